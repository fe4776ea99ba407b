// The explorer: functions ranked by seconds lost on the left; one of them, a guard or a tree of it, on the right.
import { CompileGroups } from "../core/compile-groups.js";
import { findAll } from "../core/dom.js";
import { PageBar } from "../core/page.js";
import { SearchField } from "../core/search.js";
import { html } from "../core/view.js";
import { useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { Documents } from "./documents.js";
import { FunctionList } from "./function-list.js";
import { FunctionPage } from "./function-page.js";
import { GuardPage } from "./guard-page.js";
import { GuardTreePage } from "./guard-tree-page.js";
/** @import { FunctionContext } from "./document-types" */

const UNKNOWN = "This place is not, or no longer, in the session.";
const LEAN = "detail=lean: of older entries only the first failing guard is known";

/** @param {{store: Store, trail: Trail, place: Place}} props */
export function Explorer({ store, trail, place: wanted }) {
  const [query, setQuery] = useState("");
  const { documents, groups } = useMemo(() => ({ documents: new Documents(store), groups: new CompileGroups(store) }), [store]);
  const shown = useRef({ wanted, place: wanted }); // the place, once it is resolved
  const takesFocus = useRef(false); // it was chosen by key or click
  const page = useRef(/** @type {HTMLElement | null} */ (null));
  documents.refresh();
  groups.refresh();
  if (shown.current.wanted !== wanted) shown.current = { wanted, place: wanted };
  const place = documents.resolve(shown.current.place);
  shown.current.place = place;
  useLayoutEffect(() => {
    if (takesFocus.current) page.current?.focus({ preventScroll: true });
    takesFocus.current = false;
  }, [wanted]);
  /** @param {Place} to */
  const go = (to) => {
    takesFocus.current = true;
    trail.explore(to);
  };
  /**
   * Escape leads one step up: from a guard or a tree to its function, from there to the list.
   * @param {KeyboardEvent} event
   */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    if (place.guard !== undefined || place.tree !== undefined) go({ function: place.function });
    else findAll(page.current?.parentElement, '.cdiag-function[tabindex="0"]')[0]?.focus({ preventScroll: true });
  };
  const found = documents.byId(place.function);
  return html`
    <${PageBar} title="Guard failures" status=${describeStatus(store)} trail=${trail}>
      <${SearchField} label="search functions and guards" value=${query} onInput=${setQuery} />
    <//>
    <div class="cdiag-explore">
      <${FunctionList} ranked=${documents.ranked} open=${place.function} query=${query} onOpen=${(/** @type {number} */ id) => go({ function: id })} />
      <div class="cdiag-page" tabindex="-1" key=${JSON.stringify(place)} ref=${page} onKeyDown=${onKey}>
        ${found && place.function !== undefined
          ? html`<${Page} context=${{ id: place.function, found, store, documents, start: groups.start, go }} place=${place} />`
          : html`<p class="cdiag-quiet">${documents.ranked.length ? UNKNOWN : "nothing compiled so far"}</p>`}
      </div>
    </div>`;
}

/** @param {Store} store */
function describeStatus({ observed, problem, meta }) {
  if (problem) return problem;
  if (observed.recompiles === false) return "recompiles were not collected: see the dashboard's sources";
  return meta.detail === "lean" ? LEAN : "";
}

/**
 * A function, or a guard or a tree of it. It is described again only if what it shows has changed.
 * @param {{context: FunctionContext, place: Place}} props
 */
function Page({ context, place: { guard, tree, other } }) {
  const { found, store, documents } = context;
  return useMemo(() => {
    if (guard !== undefined) {
      const at = found.guards.findIndex(({ key }) => key === guard);
      return at < 0 ? html`<p class="cdiag-quiet">${UNKNOWN}</p>` : html`<${GuardPage} context=${context} at=${at} />`;
    }
    if (tree === undefined) return html`<${FunctionPage} context=${context} />`;
    return html`<${GuardTreePage} context=${context} tree=${tree} other=${other} />`;
  }, [found, store.findings, documents.trees.version]);
}
