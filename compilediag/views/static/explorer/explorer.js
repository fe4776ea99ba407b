// The explorer: functions ranked by seconds lost on the left; one of them, a guard or a tree of it, on the right.
import { joinKnown, SearchField, splitQuery, whenKnown } from "../core/blocks.js";
import { Compiles } from "../core/compiles.js";
import { findAll, onKeys } from "../core/dom.js";
import { formatAmount, formatCount, formatFunction, formatPlace, formatSeconds, oneLine } from "../core/format.js";
import { PageBar } from "../core/page.js";
import { html } from "../core/view.js";
import { Documents } from "./documents.js";
import { FunctionPage } from "./function-page.js";
import { GuardPage } from "./guard-page.js";
import { GuardTreePage } from "./guard-tree-page.js";
import { useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";

const UNKNOWN = "This place is not, or no longer, in the session.";
const BLIND = "recompiles were not collected: see the dashboard's sources";
const LEAN = "detail=lean: of older entries only the first failing guard is known";

/** @param {{store: Store, trail: Trail, place: Place}} props */
export function Explorer({ store, trail, place: wanted }) {
  const [query, setQuery] = useState("");
  const { documents, compiles } = useMemo(() => ({ documents: new Documents(store), compiles: new Compiles(store) }), [store]);
  const shown = useRef({ wanted, place: wanted }); // the place, once it is resolved
  const takesFocus = useRef(false); // it was chosen by key or click
  const page = useRef(/** @type {HTMLElement | null} */ (null));
  documents.refresh();
  compiles.refresh();
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
  // One step up: from a guard or a tree to its function, from there to the list.
  const goUp = () => {
    if (place.guard !== undefined || place.tree !== undefined) go({ function: place.function });
    else findAll(page.current?.parentElement, '.cdiag-function[tabindex="0"]')[0]?.focus({ preventScroll: true });
  };
  const found = documents.byId(place.function);
  const status = store.problem ?? (store.observed.recompiles === false ? BLIND : store.meta.detail === "lean" ? LEAN : "");
  return html`
    <${PageBar} title="Guard failures" status=${status} trail=${trail}>
      <${SearchField} label="search functions and guards" value=${query} onInput=${setQuery} />
    <//>
    <div class="cdiag-explore">
      <${FunctionList} ranked=${documents.ranked} open=${place.function} query=${query} onOpen=${(/** @type {number} */ id) => go({ function: id })} />
      <div class="cdiag-page" tabindex="-1" key=${JSON.stringify(place)} ref=${page} onKeyDown=${onKeys({ Escape: goUp })}>
        ${found && place.function !== undefined
          ? html`<${Page} context=${{ id: place.function, found, store, documents, start: compiles.start, go }} place=${place} />`
          : html`<p class="cdiag-quiet">${documents.ranked.length ? UNKNOWN : "nothing compiled so far"}</p>`}
      </div>
    </div>`;
}

/** @param {{context: FunctionContext, place: Place}} props of a function, a guard or a tree; drawn again only if that has changed */
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

const MOST_SHOWN = 200; // functions in the list; the search finds the others
const NAME_LIMIT = 60; // characters of a name

/** @type {WeakMap<FunctionDocument, string>} what the search looks in */
const searchTexts = new WeakMap();

/** @param {{ranked: Ranked, open: number | undefined, query: string, onOpen: (id: number) => void}} props */
function FunctionList({ ranked, open, query, onOpen }) {
  const [chosen, choose] = useState(/** @type {number | undefined} id of the function that the keys have reached */ (undefined));
  const isMoving = useRef(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const terms = splitQuery(query);
  const passed = terms.length ? ranked.filter(([, found]) => matches(found, terms)) : ranked;
  const shown = passed.slice(0, MOST_SHOWN);
  const most = Math.max(...ranked.map(([, found]) => found.lost_s ?? 0), 1e-9);
  const stop = [chosen, open].find((id) => shown.some(([known]) => known === id)) ?? shown[0]?.[0];
  useLayoutEffect(() => {
    if (isMoving.current) findAll(box.current, '[tabindex="0"]')[0]?.focus();
    isMoving.current = false;
  });
  const here = shown.findIndex(([id]) => id === stop);
  /** @param {number} index */
  const moveTo = (index) => {
    isMoving.current = true;
    choose(shown[Math.max(0, Math.min(shown.length - 1, index))][0]);
  };
  const onKey = onKeys({
    ArrowDown: () => moveTo(here + 1),
    ArrowUp: () => moveTo(here - 1),
    Home: () => moveTo(0),
    End: () => moveTo(Infinity),
    PageDown: () => moveTo(here + 10),
    PageUp: () => moveTo(here - 10),
  });
  const cut = passed.length > shown.length && `the first ${formatCount(MOST_SHOWN)} of ${formatAmount(passed.length, "function")}`;
  const note = passed.length || !ranked.length ? cut : "nothing matches";
  return html`
    <nav class="cdiag-function-list">
      ${note && html`<div class="cdiag-quiet">${note}</div>`}
      <div class="cdiag-functions" role="listbox" aria-label="functions by seconds lost" ref=${box} onKeyDown=${onKey}>
        ${shown.map(([id, found]) => html`
          <button type="button" class="cdiag-function" role="option" key=${id} data-function=${id} tabindex=${id === stop ? 0 : -1}
            aria-selected=${String(id === open)} onClick=${() => onOpen(id)}>
            <span class="cdiag-function-top">
              <span class="cdiag-function-name">${oneLine(formatFunction(found.function) ?? "?", NAME_LIMIT)}</span>
              <span class="cdiag-function-lost">${found.lost_s === null ? "" : formatSeconds(found.lost_s)}</span>
            </span>
            <span class="cdiag-function-bar" style=${{ width: `${((found.lost_s ?? 0) / most) * 100}%` }}></span>
            <span class="cdiag-function-sub">${describe(found)}</span>
          </button>`)}
      </div>
    </nav>`;
}

/** @type {Write<FunctionDocument>} */
function describe(found) {
  const causes = new Set(found.rows.map((row) => found.guards[row.guard ?? -1]?.name).filter(Boolean));
  const facts = joinKnown(
    whenKnown(found.rank, (rank) => `rank ${rank}`),
    formatPlace(found.file, found.line),
    formatAmount(found.recompiles, "recompile"),
    [...causes].slice(0, 3).join(", "),
  );
  return oneLine(facts, 160);
}

/** @param {FunctionDocument} found @param {string[]} terms */
function matches(found, terms) {
  let text = searchTexts.get(found);
  if (text === undefined) {
    const guards = found.guards.flatMap((guard) => [guard.name, ...guard.kinds]);
    const values = found.rows.flatMap((row) => [row.compile_id, row.expected, row.now]);
    text = [found.function, found.file, ...guards, ...values].filter(Boolean).join("\n").toLowerCase();
    searchTexts.set(found, text);
  }
  const searched = text;
  return terms.every((term) => searched.includes(term));
}
