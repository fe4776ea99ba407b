// What surrounds the timeline: its legend, its switches, "more", and the line that says how to move in it.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatAmount, formatSeconds } from "../core/format.js";
import { Legend } from "./timeline-legend.js";
/** @import { TimelineModel } from "./timeline-model.js" */

const MODIFIER = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
/** @type {[keys: string, effect: string][]} */
const HINTS = [
  [`${MODIFIER} + wheel`, "zoom"],
  ["drag", "move"],
  ["Shift + drag", "zoom to a stretch"],
  ["double-click", "fit a bar"],
  ["arrows, + − 0", "by key"],
];
/** @type {[keys: string, effect: string][]} */
const TOUCH_HINTS = [["pinch", "zoom"], ["drag", "move"], ["double-tap", "fit a bar"]];

/** @typedef {"isFolded" | "isOpen" | "hasTable"} Switch */

export class TimelineControls {
  /**
   * @param {(name: Switch) => void} flip
   * @param {() => void} showAll
   */
  constructor(flip, showAll) {
    this.legend = new Legend();
    this.reset = makeButton("cdiag-link cdiag-reset", "show everything", showAll);
    this.fold = makeButton("cdiag-switch", "", () => flip("isFolded"));
    this.table = makeButton("cdiag-switch", "as a table", () => flip("hasTable"));
    this.more = makeButton("cdiag-link cdiag-more-lanes", "", () => flip("isOpen"));
    const controls = make("div", "cdiag-controls", this.fold, this.table);
    this.strip = make("div", "cdiag-strip", make("h2", "", "Timeline"), this.legend.node, controls);
    const hints = [makeHints("cdiag-for-mouse", HINTS), makeHints("cdiag-for-touch", TOUCH_HINTS)];
    this.hint = make("div", "cdiag-hint", ...hints, this.reset);
  }

  /** @param {TimelineModel} model */
  paint({ state, lanes, hiddenCount, idleSeconds }) {
    this.legend.paint(lanes.signs);
    this.reset.style.visibility = state.zoom === null ? "hidden" : ""; // it keeps its place, so nothing moves under the pointer
    setShown(this.fold, idleSeconds > 0);
    setText(this.fold, `fold ${formatSeconds(idleSeconds)} without compiles`);
    setShown(this.more, hiddenCount > 0);
    setText(this.more, state.isOpen ? "only the costliest functions" : `${formatAmount(hiddenCount, "more function")}`);
    setState(this.fold, "aria-pressed", state.isFolded);
    setState(this.table, "aria-pressed", state.hasTable);
    setState(this.more, "aria-expanded", state.isOpen);
  }
}

/**
 * @param {string} className
 * @param {[string, string][]} hints
 */
function makeHints(className, hints) {
  const parts = hints.map(([keys, effect]) => make("span", "", make("kbd", "", keys), ` ${effect}`));
  return make("span", className, ...parts);
}

/**
 * @param {HTMLElement} node
 * @param {string} name
 * @param {boolean} value
 */
function setState(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}
