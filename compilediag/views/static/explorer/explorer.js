// The explorer: functions ranked by seconds lost on the left; one of them, a guard or a tree of it, on the right.
import { CompileGroups } from "../core/compile-groups.js";
import { targetOf } from "../core/dom.js";
import { PageBar, SidePage } from "../core/side-page.js";
import { html } from "../core/view.js";
import { useMemo } from "../vendor/hooks.js";
import { Documents } from "./documents.js";
import { FunctionList } from "./function-list.js";
import { FunctionPage } from "./function-page.js";
import { GuardPage } from "./guard-page.js";
import { GuardTreePage } from "./guard-tree-page.js";
/** @import { FunctionContext } from "./document-types" */

const UNKNOWN = "This place is not, or no longer, in the session.";
const LEAN = "detail=lean: of older entries only the first failing guard is known";
const SEARCH = "search functions and guards";

export class Explorer extends SidePage {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {Trail} trail
   */
  constructor(root, store, trail) {
    super(root, store, trail, "cdiag-explorer", "guard explorer");
    this.documents = new Documents(store);
    this.groups = new CompileGroups(store);
    /** @type {Place} */
    this.place = {};
    this.query = "";
    this.takesFocus = false;
  }

  /**
   * Goes to a place that was chosen by key or click; it takes the focus.
   * @param {Place} place
   */
  go(place) {
    this.takesFocus = true;
    this.trail.go({ page: "explorer", ...place });
  }

  /** @param {Place} place */
  goTo(place) {
    this.place = place;
    this.paint();
    if (this.takesFocus) this.focus(".cdiag-page");
    this.takesFocus = false;
  }

  /** @param {string} selector */
  focus(selector) {
    /** @type {HTMLElement | null} */
    const node = this.root.querySelector(selector);
    node?.focus({ preventScroll: true });
  }

  describe() {
    const { documents, query, trail } = this;
    documents.refresh();
    this.groups.refresh();
    this.place = documents.resolve(this.place);
    /** @param {Event} event */
    const search = (event) => {
      this.query = /** @type {HTMLInputElement} */ (targetOf(event)).value;
      this.paint();
    };
    return html`
      <${PageBar} title="Guard failures" status=${this.describeStatus()} trail=${trail}>
        <input type="search" class="cdiag-search" placeholder=${SEARCH} aria-label=${SEARCH} spellcheck=${false} value=${query} onInput=${search} />
      <//>
      <div class="cdiag-explore">
        <${FunctionList} ranked=${documents.ranked} open=${this.place.function} query=${query} onOpen=${(/** @type {number} */ id) => this.go({ function: id })} />
        <div class="cdiag-page" tabindex="-1" key=${JSON.stringify(this.place)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => this.onKey(event)}>
          ${this.describePage()}
        </div>
      </div>`;
  }

  describeStatus() {
    const { observed, problem, meta } = this.store;
    if (problem) return problem;
    if (observed.recompiles === false) return "recompiles were not collected: see the dashboard's sources";
    return meta.detail === "lean" ? LEAN : "";
  }

  describePage() {
    const { place, documents, store } = this;
    const found = documents.byId(place.function);
    if (!documents.ranked.length) return html`<p class="cdiag-quiet">nothing compiled so far</p>`;
    if (!found || place.function === undefined) return html`<p class="cdiag-quiet">${UNKNOWN}</p>`;
    /** @type {FunctionContext} */
    const context = { id: place.function, found, store, documents, start: this.groups.start, go: (to) => this.go(to) };
    return html`<${Page} context=${context} place=${place} />`;
  }

  /**
   * Escape leads one step up: from a guard or a tree to its function, from there to the list.
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    const { place } = this;
    if (place.guard !== undefined || place.tree !== undefined) this.go({ function: place.function });
    else this.focus('.cdiag-function[tabindex="0"]');
  }
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
