// The explorer: functions ranked by seconds lost on the left; one of them, a guard or a tree of it, on the right.
import { make, makeSearch, setText } from "../core/dom.js";
import { SidePage } from "../core/side-page.js";
import { Documents } from "./documents.js";
import { FunctionList } from "./function-list.js";
import { makeFunctionPage } from "./function-page.js";
import { makeGuardPage } from "./guard-page.js";
import { GuardTreePage } from "./guard-tree-page.js";
/** @import { Place } from "../core/types" */
/** @import { Trail } from "../core/place.js" */
/** @import { Store } from "../core/store.js" */
/** @import { FunctionContext, FunctionDocument } from "./document-types" */

const UNKNOWN = "This place is not, or no longer, in the session.";
const LEAN = "detail=lean: of older entries only the first failing guard is known";

export class Explorer extends SidePage {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {Trail} trail
   */
  constructor(root, store, trail) {
    super(root, store, trail, "cdiag-explorer", "guard explorer");
    this.documents = new Documents(store);
    /** @type {Place} */
    this.place = {};
    this.takesFocus = false;
    /** @type {GuardTreePage | null} */
    this.tree = null;
    /** @type {unknown[] | null} what was painted last */
    this.shape = null;
    const label = "search functions and guards";
    this.search = makeSearch(label, label, () => this.list.setQuery(this.search.value));
    this.list = new FunctionList((id) => this.go({ function: id }));
    this.page.addEventListener("keydown", (event) => this.onKey(event));
    const bar = this.makeBar("Guard failures", this.search);
    this.root.replaceChildren(bar, make("div", "cdiag-explore", this.list.node, this.page));
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
    this.shape = null;
    this.paint();
    if (this.takesFocus) this.page.focus({ preventScroll: true });
    this.takesFocus = false;
  }

  paint() {
    this.beginPaint();
    this.documents.refresh();
    this.place = this.documents.resolve(this.place);
    this.list.paint(this.documents.ranked, this.place.function);
    setText(this.status, this.describeStatus());
    this.paintPage();
  }

  describeStatus() {
    const { observed, problem, meta } = this.store;
    if (problem) return problem;
    if (observed.recompiles === false) return "recompiles were not collected: see the dashboard's sources";
    return meta.detail === "lean" ? LEAN : "";
  }

  /** Paints the page again if what it shows has changed, and keeps the reader's position on it. */
  paintPage() {
    const { place, documents } = this;
    const found = documents.byId(place.function);
    const shape = [found, place, this.store.findings, documents.trees.version];
    const before = this.shape;
    if (before && shape.every((part, i) => part === before[i])) return;
    this.shape = shape;
    const focused = this.focusedKey();
    const scrolled = [this.page.scrollTop, this.findGrid()?.scrollTop ?? 0];
    this.page.replaceChildren(...this.makeParts(found));
    if (before?.[1] !== place) {
      this.page.scrollTop = 0;
      return;
    }
    this.page.scrollTop = scrolled[0];
    const grid = this.findGrid();
    if (grid) grid.scrollTop = scrolled[1];
    if (focused) this.focusKey(focused);
  }

  findGrid() {
    return this.page.querySelector(".cdiag-grid-frame");
  }

  /** The key of the element that has the focus, which an element has again after a painting. */
  focusedKey() {
    const { activeElement } = document;
    return activeElement instanceof HTMLElement && this.page.contains(activeElement) ? activeElement.dataset.key : undefined;
  }

  /** @param {string} key */
  focusKey(key) {
    /** @type {HTMLElement | null} */
    const element = this.page.querySelector(`[data-key="${CSS.escape(key)}"]`);
    element?.focus({ preventScroll: true });
  }

  /** @param {FunctionDocument | null} found */
  makeParts(found) {
    const { place, documents } = this;
    if (!documents.ranked.length) return [make("p", "cdiag-quiet", "nothing compiled so far")];
    if (!found || place.function === undefined) return [make("p", "cdiag-quiet", UNKNOWN)];
    /** @type {FunctionContext} */
    const context = { id: place.function, found, store: this.store, documents, go: (to) => this.go(to) };
    if (place.guard !== undefined) {
      const at = found.guards.findIndex((guard) => guard.key === place.guard);
      return at < 0 ? [make("p", "cdiag-quiet", UNKNOWN)] : makeGuardPage(context, at);
    }
    if (place.tree === undefined) return makeFunctionPage(context);
    this.tree = this.tree?.isOf(place) ? this.tree : new GuardTreePage(place);
    return this.tree.make(context);
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
    else this.list.focus();
  }
}
