// The tooltip of the timeline: what is under the pointer, or the compile that the keys have reached.
import { make, setShown } from "../core/dom.js";
import { AXIS, toX } from "./timeline-axis.js";
import { describeBar, describeFlight, describeLane, describeMark } from "./timeline-words.js";
/** @import { Store } from "../core/store.js" */
/** @import { Point } from "./timeline-input.js" */
/** @import { CompileBar } from "./timeline-lanes.js" */
/** @import { TimelineModel } from "./timeline-model.js" */

const MOST_MARKS = 4;
const BESIDE = 14; // px from the pointer
const BELOW = 16;

export class TimelineTip {
  /**
   * @param {Store} store
   * @param {TimelineModel} model
   */
  constructor(store, model) {
    this.store = store;
    this.model = model;
    this.node = make("div", "cdiag-tip");
    this.node.setAttribute("aria-hidden", "true"); // what the keys reach is announced as a status
    setShown(this.node, false);
  }

  /**
   * @param {Point | null} pointer null if it is elsewhere
   * @param {CompileBar | null} current the compile that the keys have reached
   * @param {number} scroll px
   */
  paint(pointer, current, scroll) {
    if (pointer) this.show(this.linesAt(pointer, scroll), pointer);
    else if (current) this.show(this.linesOf(current, null), this.placeOf(current, scroll));
    else setShown(this.node, false);
  }

  /**
   * @param {string[]} lines
   * @param {Point} point
   */
  show(lines, point) {
    setShown(this.node, lines.length > 0);
    if (!lines.length) return;
    this.node.replaceChildren(...lines.map((text, i) => make("div", i ? "" : "cdiag-tip-head", text)));
    const last = this.model.width - this.node.offsetWidth - 8;
    this.node.style.left = `${Math.max(4, Math.min(point.x + BESIDE, last))}px`;
    this.node.style.top = `${point.y + BELOW}px`;
  }

  /**
   * @param {CompileBar} bar
   * @param {number | null} at Unix ms; null for the phases of the whole compile
   */
  linesOf(bar, at) {
    return describeBar(bar.lane, bar, this.store.table("compiles").reader(bar.row), at);
  }

  /**
   * @param {Point} point
   * @param {number} scroll px
   */
  linesAt(point, scroll) {
    const { model } = this;
    const hit = model.hitAt(point, scroll);
    if (!hit) return [];
    if (hit.isName) return describeLane(hit.lane);
    const marks = hit.marks.slice(0, MOST_MARKS).map(describeMark);
    if (hit.bar) return [...this.linesOf(hit.bar, model.msAt(point.x)), ...marks];
    return [...(hit.flight ? describeFlight(hit.lane, hit.flight, model.now) : []), ...marks];
  }

  /**
   * Below the start of a bar.
   * @param {CompileBar} bar
   * @param {number} scroll px
   * @returns {Point}
   */
  placeOf(bar, scroll) {
    const { model } = this;
    const { layout, width } = model;
    const x = toX({ ...model.view, gutter: layout.gutter, width }, bar.start);
    const y = AXIS + (model.shown.indexOf(bar.lane) + 1) * layout.lane - scroll - BELOW;
    return { x: Math.max(x, layout.gutter), y };
  }
}
