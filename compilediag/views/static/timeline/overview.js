// All of the session on a strip under the timeline, with a window over what the timeline shows.
//
// Drag the window to move it, its edges to make it larger or smaller, beside it to show another stretch.
import { make, setShown } from "../core/dom.js";
import { clampRange, moveRange } from "./ranges.js";
/** @import { TimelineLanes } from "./lanes.js" */
/** @import { Range, TimeScale } from "./ranges.js" */

/** @typedef {{lanes: TimelineLanes, scale: TimeScale, bounds: Range, range: Range, gutter: number, width: number, palette: Record<string, string>}} Shown */
/** @typedef {{part: "from" | "to" | "all", at: number, range: Range}} Grip what is dragged, and how it began; units */

const HEIGHT = 26; // px
const HANDLE = 7; // px on each side of an edge that still grip it
const LEAST_WINDOW = 4; // px, so that the window stays visible

export class Overview {
  /** @param {(range: Range, isNew: boolean) => void} onMove gets units; `isNew` at the start of a drag */
  constructor(onMove) {
    this.onMove = onMove;
    this.canvas = make("canvas", "cdiag-minimap-canvas");
    this.window = make("div", "cdiag-minimap-window");
    this.track = make("div", "cdiag-minimap-track", this.canvas, this.window);
    this.node = make("div", "cdiag-minimap", this.track);
    this.node.setAttribute("aria-hidden", "true"); // the keys of the timeline do the same
    this.drawn = "";
    /** @type {Shown | null} */
    this.shown = null;
    /** @type {Grip | null} */
    this.grip = null;
    this.track.addEventListener("pointerdown", (event) => this.onDown(event));
    this.track.addEventListener("pointermove", (event) => this.onPointerMove(event));
    this.track.addEventListener("pointerup", () => this.release());
    this.track.addEventListener("pointercancel", () => this.release());
  }

  /** @param {boolean} isShown */
  setShown(isShown) {
    setShown(this.node, isShown);
  }

  /** @param {Shown} overview */
  paint(overview) {
    this.shown = overview;
    const { bounds, range, gutter, width, lanes, palette, scale } = overview;
    const wide = width - gutter;
    this.track.style.marginLeft = `${gutter}px`;
    this.track.style.width = `${wide}px`;
    const whole = bounds.to - bounds.from;
    const left = ((range.from - bounds.from) / whole) * wide;
    const size = Math.max(((range.to - range.from) / whole) * wide, LEAST_WINDOW);
    this.window.style.left = `${Math.min(left, wide - size)}px`;
    this.window.style.width = `${size}px`;
    // Bars do not change while the window moves, so they are not drawn again.
    const drawn = JSON.stringify([lanes.version, wide, bounds, scale.stretches.length, palette, globalThis.devicePixelRatio]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    drawBars(this.canvas, overview, wide);
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

/**
 * How much was compiling at each pixel: dark where several functions were.
 * @param {HTMLCanvasElement} canvas
 * @param {Shown} overview
 * @param {number} width px
 */
function drawBars(canvas, { lanes, scale, bounds, palette }, width) {
  const ratio = globalThis.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(HEIGHT * ratio)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${HEIGHT}px`];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  /** @param {number} ms */
  const toPixel = (ms) => ((scale.toUnits(ms) - bounds.from) / (bounds.to - bounds.from)) * width;
  const [busy, again, failed] = [0, 1, 2].map(() => new Uint8Array(Math.ceil(width) + 1));
  for (const lane of lanes.list) {
    for (const { start, end, isRecompile, isFailed } of lane.bars) {
      const [low, high] = [Math.max(0, Math.floor(toPixel(start))), Math.max(0, Math.ceil(toPixel(end)))];
      busy.fill(1, low, Math.max(high, low + 1));
      if (isRecompile) again.fill(1, low, Math.max(high, low + 1));
      if (isFailed) failed.fill(1, low, Math.max(high, low + 1));
    }
  }
  drawRuns(context, busy, palette.need, 6, HEIGHT - 14);
  drawRuns(context, again, palette.re, HEIGHT - 7, 3);
  drawRuns(context, failed, palette.bad, 2, 3);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Uint8Array} pixels
 * @param {string} color
 * @param {number} y
 * @param {number} height
 */
function drawRuns(context, pixels, color, y, height) {
  context.fillStyle = color;
  for (let x = 0; x < pixels.length; x += 1) {
    if (!pixels[x]) continue;
    const start = x;
    while (x < pixels.length && pixels[x]) x += 1;
    context.fillRect(start, y, x - start, height);
  }
}
