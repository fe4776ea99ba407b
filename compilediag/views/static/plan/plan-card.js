// The plan: a verdict, where the time went, the steps, the whole change, and what trying it showed.
import { make, setShown } from "../core/dom.js";
import { Inputs } from "../core/inputs.js";
import { hasCells } from "../core/notebook-cell.js";
import { draw, html } from "../core/view.js";
import { PlanView } from "./plan-view.js";
import { Trial } from "./trial.js";
import { findCellState } from "./whole-change.js";

const LOOKS_MS = [50, 1500]; // when it looks for the notebook: a host may put the page in place later

/** @typedef {{label: string, evidence: number[]}} Picked what is selected: its name, and event ids */
/**
 * @typedef {object} PlanActions
 * @property {(picked: Picked) => void} pick
 * @property {(place: Place) => void} explore
 * @property {(evidence: number[] | null) => void} [mark] marks the compiles of these events for a moment
 */

export class PlanCard {
  /**
   * @param {Store} store
   * @param {PlanActions} actions
   */
  constructor(store, actions) {
    this.store = store;
    this.actions = actions;
    this.trial = new Trial(store);
    this.inputs = new Inputs(); // of what was drawn last
    /** @type {string | null} label of what is selected */
    this.picked = null;
    /** @type {Set<string>} keys of the open steps, and "change" */
    this.open = new Set();
    this.showsAll = false;
    this.isPrinting = false;
    this.changes = 0; // of what the reader has opened, and of the cells around
    this.node = make("section", "cdiag-plan");
    this.node.setAttribute("aria-label", "Plan");
    for (const type of ["pointerover", "focusin"]) this.node.addEventListener(type, () => this.checkCells());
    for (const wait of LOOKS_MS) setTimeout(() => this.checkCells(), wait);
    this.cells = ""; // what the cells that the plan changes have now
  }

  paint() {
    const { plan, search, canSearch, isFrozen, meta, examples, torch_docs } = this.store;
    const live = this.store.isLive();
    const own = [this.picked, this.changes, this.trial.changes];
    if (!this.inputs.haveChanged(plan, live, search, canSearch, meta.stopped_ms, examples, torch_docs, ...own)) return;
    setShown(this.node, plan !== null);
    if (plan) draw(this.node, html`<${PlanView} card=${this} plan=${plan} isLive=${live} isFrozen=${isFrozen} />`);
  }

  redraw() {
    this.changes += 1;
    this.paint();
  }

  /** Draws again if the page came into a notebook, or a cell was edited since. */
  checkCells() {
    const states = (this.store.plan?.sources ?? []).map((source) => findCellState(this.node, source));
    const cells = [hasCells(this.node), ...states].join();
    if (cells === this.cells) return;
    this.cells = cells;
    this.redraw();
  }

  /** @param {string | null} label */
  setPicked(label) {
    this.picked = label;
    this.paint();
  }

  /** @param {string} key */
  toggle(key) {
    if (!this.open.delete(key)) this.open.add(key);
    this.redraw();
  }

  /**
   * @param {string} key
   * @returns {boolean}
   */
  isOpen(key) {
    return this.isPrinting || this.open.has(key); // on paper, all is open
  }

  /** @param {boolean} isPrinting */
  setPrinting(isPrinting) {
    this.isPrinting = isPrinting;
    this.redraw();
  }

  toggleAll() {
    this.showsAll = !this.showsAll;
    this.redraw();
  }
}
