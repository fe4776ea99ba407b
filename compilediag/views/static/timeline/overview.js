// All of the session on a strip under the timeline, with a window over what the timeline shows.
//
// Drag the window to move it, its edges to make it larger or smaller, beside it to show another stretch.
import { make } from "../core/dom.js";
import { Inputs } from "../core/inputs.js";
import { drawTimeline, sizeCanvas } from "./drawing.js";
import { clampRange, moveRange } from "./ranges.js";

/** @typedef {{part: "from" | "to" | "all", at: number, range: TimeRange}} Grip what is dragged, and how it began; units */

const HEIGHT = 26; // px
const LAYOUT = { gutter: 0, axis: 0, lane: HEIGHT, above: 0, flag: null, bar: 9, size: 11 };
const HANDLE = 7; // px on each side of an edge that still grip it
const LEAST_WINDOW = 4; // px, so that the window stays visible

export class Overview {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.canvas = make("canvas", { class: "cdiag-minimap-canvas" });
    this.window = make("div", { class: "cdiag-minimap-window" });
    this.track = make("div", { class: "cdiag-minimap-track" }, this.canvas, this.window);
    this.node = make("div", { class: "cdiag-minimap", "aria-hidden": "true" }, this.track); // the keys of the timeline do the same
    this.inputs = new Inputs(); // of the bars
    /** @type {Grip | null} */
    this.grip = null;
    this.track.addEventListener("pointerdown", (event) => this.onDown(event));
    this.track.addEventListener("pointermove", (event) => this.onPointerMove(event));
    for (const type of ["pointerup", "pointercancel"]) this.track.addEventListener(type, () => (this.grip = null));
  }

  /** @param {Omit<Frame, "context" | "width" | "height" | "scroll" | "layout">} view what is drawn: all of the time */
  paint(view) {
    const { lanes, bounds, range, layout: { gutter }, width, zoom, isStrip } = this.timeline.model;
    const isShown = zoom !== null && !isStrip; // not while all of the time is in view
    this.node.hidden = !isShown;
    if (!isShown) return;
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

  /** @param {PointerEvent} event */
  unitsAt(event) {
    const { bounds } = this.timeline.model;
    const box = this.track.getBoundingClientRect();
    return bounds.from + ((event.clientX - box.left) / box.width) * (bounds.to - bounds.from);
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (event.button !== 0) return;
    const { range, bounds } = this.timeline.model;
    const at = this.unitsAt(event);
    const reach = (HANDLE * (bounds.to - bounds.from)) / this.track.clientWidth;
    const [toFrom, toEnd] = [Math.abs(at - range.from), Math.abs(at - range.to)];
    const isEdge = Math.min(toFrom, toEnd) < reach;
    const isBeside = !isEdge && (at <= range.from || at >= range.to);
    const begin = isBeside ? moveRange(range, at - (range.from + range.to) / 2, bounds) : range;
    this.track.setPointerCapture(event.pointerId);
    this.grip = { part: !isEdge ? "all" : toFrom < toEnd ? "from" : "to", at, range: begin };
    this.timeline.show(begin, true);
  }

  /** @param {PointerEvent} event */
  onPointerMove(event) {
    if (!this.grip) return;
    const { part, range, at } = this.grip;
    const { bounds } = this.timeline.model;
    const by = this.unitsAt(event) - at;
    if (part === "all") return this.timeline.show(moveRange(range, by, bounds), false);
    const edges = part === "from" ? [range.from + by, range.to] : [range.from, range.to + by];
    const [from, to] = edges.sort((a, b) => a - b);
    this.timeline.show(clampRange({ from, to }, bounds), false);
  }

}
