// All of the session on a strip under the timeline, with a window over what the timeline shows.
//
// Drag the window to move it, its edges to make it larger or smaller, beside it to show another stretch.
import { make, setShown } from "../core/dom.js";
import { Inputs } from "../core/inputs.js";
import { drawTimeline, sizeCanvas } from "./drawing.js";
import { clampRange, moveRange } from "./ranges.js";

/** @typedef {Omit<Frame, "context" | "width" | "height" | "scroll" | "layout">} View what is drawn: all of the time */
/** @typedef {{lanes: TimelineLanes, bounds: TimeRange, range: TimeRange, gutter: number, width: number}} Shown */
/** @typedef {{part: "from" | "to" | "all", at: number, range: TimeRange}} Grip what is dragged, and how it began; units */

const HEIGHT = 26; // px
const LAYOUT = { gutter: 0, axis: 0, lane: HEIGHT, above: 0, flag: null, bar: 9, size: 11 };
const HANDLE = 7; // px on each side of an edge that still grip it
const LEAST_WINDOW = 4; // px, so that the window stays visible

export class Overview {
  /** @param {(range: TimeRange, isNew: boolean) => void} onMove gets units; `isNew` at the start of a drag */
  constructor(onMove) {
    this.onMove = onMove;
    this.canvas = make("canvas", "cdiag-minimap-canvas");
    this.window = make("div", "cdiag-minimap-window");
    this.track = make("div", "cdiag-minimap-track", this.canvas, this.window);
    this.node = make("div", "cdiag-minimap", this.track);
    this.node.setAttribute("aria-hidden", "true"); // the keys of the timeline do the same
    this.inputs = new Inputs(); // of the bars
    /** @type {Shown | null} */
    this.shown = null;
    /** @type {Grip | null} */
    this.grip = null;
    this.track.addEventListener("pointerdown", (event) => this.onDown(event));
    this.track.addEventListener("pointermove", (event) => this.onPointerMove(event));
    this.track.addEventListener("pointerup", () => this.release());
    this.track.addEventListener("pointercancel", () => this.release());
  }

  /**
   * @param {Shown | null} shown null while all of the time is in view
   * @param {View} view
   */
  paint(shown, view) {
    this.shown = shown;
    setShown(this.node, shown !== null);
    if (!shown) return;
    const { lanes, bounds, range, gutter, width } = shown;
    const wide = width - gutter;
    this.track.style.marginLeft = `${gutter}px`;
    this.track.style.width = `${wide}px`;
    const whole = bounds.to - bounds.from;
    const left = ((range.from - bounds.from) / whole) * wide;
    const size = Math.max(((range.to - range.from) / whole) * wide, LEAST_WINDOW);
    this.window.style.left = `${Math.min(left, wide - size)}px`;
    this.window.style.width = `${size}px`;
    // Bars do not change while the window moves, so they are not drawn again.
    const look = [view.palette.surface, view.warmup, globalThis.devicePixelRatio];
    if (!this.inputs.haveChanged(lanes.version, wide, bounds.to, view.scale.stretches.length, ...look)) return;
    const context = sizeCanvas(this.canvas, wide, HEIGHT);
    if (context) drawTimeline({ ...view, context, width: wide, height: HEIGHT, scroll: 0, layout: LAYOUT }, [lanes.joined]);
  }

  /**
   * Units at the pointer.
   * @param {PointerEvent} event
   * @param {Shown} shown
   */
  unitsAt(event, { bounds }) {
    const box = this.track.getBoundingClientRect();
    return bounds.from + ((event.clientX - box.left) / box.width) * (bounds.to - bounds.from);
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (event.button !== 0 || !this.shown) return;
    const { range, bounds } = this.shown;
    const at = this.unitsAt(event, this.shown);
    const reach = (HANDLE * (bounds.to - bounds.from)) / this.track.clientWidth;
    const [toFrom, toEnd] = [Math.abs(at - range.from), Math.abs(at - range.to)];
    this.track.setPointerCapture(event.pointerId);
    if (Math.min(toFrom, toEnd) < reach) this.grip = { part: toFrom < toEnd ? "from" : "to", at, range };
    else if (at > range.from && at < range.to) this.grip = { part: "all", at, range };
    else {
      const middle = (range.from + range.to) / 2;
      const moved = moveRange(range, at - middle, bounds);
      this.grip = { part: "all", at, range: moved };
      return this.onMove(moved, true);
    }
    this.onMove(range, true);
  }

  /** @param {PointerEvent} event */
  onPointerMove(event) {
    if (!this.shown) return;
    const at = this.unitsAt(event, this.shown);
    if (!this.grip) return;
    const { part, range } = this.grip;
    const by = at - this.grip.at;
    if (part === "all") return this.onMove(moveRange(range, by, this.shown.bounds), false);
    const edges = part === "from" ? [range.from + by, range.to] : [range.from, range.to + by];
    const [from, to] = edges.sort((a, b) => a - b);
    this.onMove(clampRange({ from, to }, this.shown.bounds), false);
  }

  release() {
    this.grip = null;
  }
}
