// The explorer: functions ranked by seconds lost on the left; one of them, a guard or a tree of it, on the right.
import { make, setText } from "../core/dom.js";
import { Documents } from "./documents.js";
import { functionPage } from "./function-page.js";
import { guardPage } from "./guard-page.js";
import { RankedList } from "./function-list.js";
import { TreePage } from "./guard-tree-page.js";
import { SidePage } from "../core/side-page.js";

const UNKNOWN = "This place is not in the session (any more).";

export class Explorer extends SidePage {
  constructor(root, store, trail) {
    super(root, store, trail, "cdiag-explorer");
    this.documents = new Documents(store);
    this.place = {};
    this.build();
  }

  build() {
    this.search = make("input", "cdiag-search");
    this.search.type = "search";
    this.search.placeholder = "search functions and guards";
    this.search.setAttribute("aria-label", "search functions and guards");
    this.search.spellcheck = false;
    this.search.addEventListener("input", () => this.list.setQuery(this.search.value));
    this.list = new RankedList((id) => this.go({ function: id }, true));
    this.page.addEventListener("keydown", (event) => this.onKey(event));
    const bar = this.makeBar("Guard failures", this.search);
    this.root.replaceChildren(bar, make("div", "cdiag-explore", this.list.node, this.page));
  }

  /** Goes to a place of the explorer; `takesFocus` if what was chosen came by key or click. */
  go(place, takesFocus) {
    this.takesFocus = takesFocus;
    this.trail.go({ page: "explorer", ...place });
  }

  goTo(place) {
    this.place = place;
    this.shape = null;
    this.paint();
    if (this.takesFocus) this.page.focus({ preventScroll: true });
    this.takesFocus = false;
  }

  paint() {
    this.painting = null;
    this.documents.refresh();
    this.place = this.documents.resolve(this.place);
    this.list.paint(this.documents.ranked, this.place.function);
    setText(this.status, this.told());
    this.paintPage();
    this.root.dataset.seq = String(this.store.seq ?? "");
  }

  told() {
    const { observed, problem } = this.store;
    if (problem) return problem;
    if (observed.recompiles === false) return "recompiles were not observed: see the dashboard's sources";
    return this.store.meta.detail === "lean" ? "detail=lean: of older entries only the first failing guard is known" : "";
  }

  /** Paints the page anew if what it shows has changed, and keeps the reader's place on it. */
  paintPage() {
    const { place, documents } = this;
    const found = documents.byId(place.function);
    const shape = [found, place, this.store.findings, documents.trees.version];
    if (this.shape && shape.every((part, i) => part === this.shape[i])) return;
    const isNew = !this.shape || this.shape[1] !== place;
    this.shape = shape;
    const focused = this.page.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const scrolled = [this.page.scrollTop, this.page.querySelector(".cdiag-grid-frame")?.scrollTop ?? 0];
    this.page.replaceChildren(...this.make(found));
    if (isNew) return void (this.page.scrollTop = 0);
    this.page.scrollTop = scrolled[0];
    const grid = this.page.querySelector(".cdiag-grid-frame");
    if (grid) grid.scrollTop = scrolled[1];
    if (focused) this.page.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  make(found) {
    if (!this.documents.ranked.length) return [make("p", "cdiag-quiet", "nothing compiled so far")];
    if (!found) return [make("p", "cdiag-quiet", UNKNOWN)];
    const { place, documents } = this;
    const context = { id: place.function, found, store: this.store, documents, go: (to) => this.go(to, true) };
    if (place.guard !== undefined) {
      const at = found.guards.findIndex((guard) => guard.key === place.guard);
      return at < 0 ? [make("p", "cdiag-quiet", UNKNOWN)] : guardPage(context, at);
    }
    if (place.tree !== undefined) {
      this.tree = this.tree?.isOf(place) ? this.tree : new TreePage(place);
      return this.tree.make(context);
    }
    return functionPage(context);
  }

  /** Escape leads one step up: from a guard or a tree to its function, from there to the list. */
  onKey(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    const { place } = this;
    if (place.guard !== undefined || place.tree !== undefined) this.go({ function: place.function }, true);
    else this.list.focus();
  }
}
