// The timeline: pointer, keys and tooltip around the canvas that timeline-drawing.js paints.
import { make, makeButton, setShown } from "../core/dom.js";
import { formatAmount, formatClock, formatPlace, formatSeconds } from "../core/format.js";
import { readPalette } from "../core/theme.js";
import { PHASE_WORDS } from "./phases.js";
import { AXIS, drawTimeline, LANE, toX } from "./timeline-drawing.js";
/** @import { Store } from "../core/store.js" */
/** @import { Frame } from "./timeline-drawing.js" */
/** @import { CompileBar, FlightBar, Lane, Mark, TimelineLanes } from "./timeline-lanes.js" */

/** @typedef {{x: number, y: number, ms: number}} Point px in the frame, and the time there */
/** @typedef {{from: number, to: number}} Range Unix ms */
/** @typedef {{start: number, end: number, compile: CompileBar | null, flight: FlightBar | null}} Hit a bar under the pointer */

const MARK_WORDS = {
  recompile: "recompile",
  hit: "cache hit",
  miss: "cache miss",
  break: "graph break",
  capture: "CUDA graph captured",
  recapture: "CUDA graph re-recorded",
  skip: "CUDA graphs skipped",
};
const CAPTURE_MARKS = new Set(["capture", "recapture", "skip"]);
const MOST_LANES = 7; // lanes in view; the others scroll
const SHORTEST_MS = 0.05; // the closest zoom
const REACH = 3; // px around the pointer that still count as on a bar

export class Timeline {
  /**
   * @param {Store} store
   * @param {TimelineLanes} lanes
   * @param {(key: string | null, eventId: number | null) => void} onPick runs when a compile is clicked
   */
  constructor(store, lanes, onPick) {
    this.store = store;
    this.lanes = lanes;
    this.onPick = onPick;
    /** @type {Range | null} null shows everything */
    this.zoom = null;
    /** @type {Set<string | null> | null} */
    this.lit = null;
    /** @type {number | null} */
    this.selected = null;
    /** @type {number | null} where a drag began, px */
    this.drag = null;
    /** @type {Frame | null} what was painted last */
    this.frame = null;
    this.canvas = make("canvas", "cdiag-canvas");
    this.spacer = make("div", "cdiag-spacer", this.canvas);
    this.scroller = this.makeScroller();
    this.box = make("div", "cdiag-band");
    this.tip = make("div", "cdiag-tip");
    this.tip.setAttribute("role", "tooltip");
    this.reset = makeButton("cdiag-link", "show everything", () => this.setZoom(null));
    const marks = Object.entries(MARK_WORDS).map(([name, word]) => ({ name, key: makeKey(name, word) }));
    this.captureKeys = marks.filter(({ name }) => CAPTURE_MARKS.has(name)).map(({ key }) => key);
    const phases = Object.entries(PHASE_WORDS).map(([kind, word]) => makeKey(kind, word));
    const legend = make("div", "cdiag-legend", ...phases, ...marks.map(({ key }) => key));
    const strip = make("div", "cdiag-strip", make("h2", "", "Timeline"), legend, this.reset);
    this.node = make("section", "cdiag-timeline", strip, make("div", "cdiag-frame", this.scroller, this.box, this.tip));
    setShown(this.box, false);
    setShown(this.tip, false);
    this.watcher = new ResizeObserver(() => this.paint());
    this.watcher.observe(this.scroller);
  }

  destroy() {
    this.watcher.disconnect();
  }

  makeScroller() {
    const scroller = make("div", "cdiag-lanes", this.spacer);
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "application");
    scroller.setAttribute("aria-label", "timeline: left and right pan, plus and minus zoom, 0 shows everything");
    scroller.addEventListener("scroll", () => this.paint());
    scroller.addEventListener("pointerdown", (event) => this.onDown(event));
    scroller.addEventListener("pointermove", (event) => this.onMove(event));
    scroller.addEventListener("pointerup", (event) => this.onUp(event));
    scroller.addEventListener("pointerleave", () => setShown(this.tip, false));
    scroller.addEventListener("dblclick", () => this.setZoom(null));
    scroller.addEventListener("keydown", (event) => this.onKey(event));
    return scroller;
  }

  /** @param {Set<string | null> | null} lit */
  setLit(lit) {
    this.lit = lit;
  }

  /** @param {number | null} id */
  setSelected(id) {
    this.selected = id;
    this.paint();
  }

  /** @param {Range | null} zoom */
  setZoom(zoom) {
    this.zoom = zoom;
    this.paint();
  }

  /** True while everything is shown and nobody drags, so that a bar in flight may grow. */
  get isFollowing() {
    return this.zoom === null && this.drag === null;
  }

  visibleRange() {
    if (this.zoom) return this.zoom;
    const { extent } = this.lanes;
    const isFlying = this.store.isLive() && this.store.now.length > 0;
    const high = isFlying ? Math.max(extent.high, this.store.kernelNow()) : extent.high;
    const pad = Math.max((high - extent.low) * 0.01, 1);
    return { from: extent.low - pad, to: high + pad };
  }

  paint() {
    const lanes = this.lanes.list;
    setShown(this.node, lanes.length > 0);
    setShown(this.reset, this.zoom !== null);
    const hasCaptures = this.store.table("cudagraphs").rows.length > 0;
    this.captureKeys.forEach((key) => setShown(key, hasCaptures));
    const width = this.scroller.clientWidth;
    if (!lanes.length || !width) return;
    const height = AXIS + Math.min(lanes.length, MOST_LANES) * LANE;
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${AXIS + lanes.length * LANE}px`;
    this.frame = this.makeFrame(width, height);
    if (this.frame) drawTimeline(this.frame, lanes);
  }

  /**
   * @param {number} width
   * @param {number} height
   * @returns {Frame | null}
   */
  makeFrame(width, height) {
    const scale = globalThis.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      [this.canvas.width, this.canvas.height] = [wide, high];
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    if (!context) return null;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return {
      context,
      width,
      height,
      ...this.visibleRange(),
      gutter: width < 760 ? 120 : 200,
      now: this.store.kernelNow(),
      scroll: this.scroller.scrollTop,
      palette: readPalette(this.node),
      lit: this.lit,
      origin: this.lanes.extent.low,
      selected: this.selected,
    };
  }

  /**
   * Where the pointer is.
   * @param {PointerEvent} event
   * @param {Frame} frame
   * @returns {Point}
   */
  pointAt(event, { from, to, gutter, width }) {
    const box = this.scroller.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return { x, y, ms: from + ((x - gutter) / (width - gutter)) * (to - from) };
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (event.button !== 0 || !this.frame) return;
    const { x } = this.pointAt(event, this.frame);
    if (x < this.frame.gutter || event.offsetX > this.scroller.clientWidth) return;
    this.drag = x;
    this.scroller.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const { frame } = this;
    if (!frame) return;
    const point = this.pointAt(event, frame);
    if (this.drag === null) return this.showTip(point, frame);
    setShown(this.tip, false);
    const [low, high] = [Math.min(this.drag, point.x), Math.max(this.drag, point.x)];
    setShown(this.box, high - low > 3);
    this.box.style.left = `${Math.max(low, frame.gutter)}px`;
    this.box.style.width = `${high - Math.max(low, frame.gutter)}px`;
  }

  /** @param {PointerEvent} event */
  onUp(event) {
    const { frame, drag } = this;
    if (drag === null || !frame) return;
    const point = this.pointAt(event, frame);
    this.drag = null;
    setShown(this.box, false);
    if (Math.abs(point.x - drag) > 3) return this.zoomTo(frame, Math.min(drag, point.x), Math.max(drag, point.x));
    const hit = this.findBar(point, frame);
    if (hit) this.onPick(hit.compile?.key ?? hit.flight?.key ?? null, hit.compile?.row[0] ?? null);
  }

  /**
   * @param {Frame} frame
   * @param {number} low px
   * @param {number} high px
   */
  zoomTo({ from, to, gutter, width }, low, high) {
    /** @param {number} x */
    const timeAt = (x) => from + ((Math.max(x, gutter) - gutter) / (width - gutter)) * (to - from);
    const range = { from: timeAt(low), to: timeAt(high) };
    if (range.to - range.from > SHORTEST_MS) this.setZoom(range);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!this.frame) return;
    const { from, to } = this.visibleRange();
    const span = to - from;
    /** @param {number} by */
    const move = (by) => this.setZoom({ from: from + by * span, to: to + by * span });
    /** @param {number} by */
    const shrink = (by) => {
      if (span * (1 - 2 * by) > SHORTEST_MS) this.setZoom({ from: from + span * by, to: to - span * by });
    };
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowLeft: () => move(-0.15),
      ArrowRight: () => move(0.15),
      "+": () => shrink(0.2),
      "=": () => shrink(0.2),
      "-": () => shrink(-1 / 3),
      0: () => this.setZoom(null),
      ArrowUp: () => this.scroller.scrollBy(0, -LANE),
      ArrowDown: () => this.scroller.scrollBy(0, LANE),
    };
    if (!(event.key in actions)) return;
    actions[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * @param {number} y
   * @param {Frame} frame
   * @returns {Lane | null}
   */
  laneAt(y, frame) {
    return y < AXIS ? null : this.lanes.list[Math.floor((y - AXIS + frame.scroll) / LANE)] ?? null;
  }

  /**
   * The compile, or compile in flight, under a point; the shortest if there are several.
   * @param {Point} point
   * @param {Frame} frame
   * @returns {Hit | null}
   */
  findBar({ x, y, ms }, frame) {
    const lane = this.laneAt(y, frame);
    if (!lane || x < frame.gutter) return null;
    const reach = (REACH * (frame.to - frame.from)) / (frame.width - frame.gutter);
    /** @type {Hit[]} */
    const bars = [
      ...lane.bars.map((compile) => ({ start: compile.start, end: compile.end, compile, flight: null })),
      ...lane.flights.map((flight) => ({ start: flight.start, end: frame.now, compile: null, flight })),
    ];
    const near = bars.filter((bar) => bar.start - reach <= ms && ms <= bar.end + reach);
    return near.sort((a, b) => a.end - a.start - (b.end - b.start))[0] ?? null;
  }

  /**
   * @param {Point} point
   * @param {Frame} frame
   */
  showTip(point, frame) {
    const lines = this.tipLines(point, frame);
    setShown(this.tip, lines.length > 0);
    if (!lines.length) return;
    this.tip.replaceChildren(...lines.map((text, i) => make("div", i ? "" : "cdiag-tip-head", text)));
    const last = frame.width - this.tip.offsetWidth - 8;
    this.tip.style.left = `${Math.max(4, Math.min(point.x + 14, last))}px`;
    this.tip.style.top = `${point.y + 16}px`;
  }

  /**
   * @param {Point} point
   * @param {Frame} frame
   */
  tipLines(point, frame) {
    const lane = this.laneAt(point.y, frame);
    if (!lane) return [];
    if (point.x < frame.gutter) {
      const lines = [lane.name, formatPlace(lane.file, lane.line), formatAmount(lane.bars.length, "compile")];
      return lines.filter((line) => line !== null);
    }
    const marks = lane.marks.filter((mark) => Math.abs(toX(frame, mark.at) - point.x) < 5).slice(0, 4).map(describeMark);
    const bar = this.findBar(point, frame);
    return bar ? [...this.barLines(lane, bar, point), ...marks] : marks;
  }

  /**
   * @param {Lane} lane
   * @param {Hit} bar
   * @param {Point} point
   */
  barLines(lane, bar, point) {
    const inside = lane.phases.filter(({ start, end }) => bar.start - 5 <= start && start <= point.ms && point.ms <= end);
    const phases = inside.slice(0, 8).map(({ depth, name, start, end }) => {
      return `${"  ".repeat(Math.min(depth, 6))}${name} ${formatSeconds((end - start) / 1e3)}`;
    });
    const { id, words } = this.describeBar(bar);
    const when = [formatClock(bar.start), ...words].filter(Boolean).join(" · ");
    return [`${lane.name} ${id ?? ""} · ${formatSeconds((bar.end - bar.start) / 1e3)}`, when, ...phases];
  }

  /** @param {Hit} bar */
  describeBar({ compile, flight }) {
    if (!compile) return { id: flight?.flight.compile_id, words: [flight?.flight.trigger, "in flight"] };
    const get = this.store.table("compiles").reader(compile.row);
    return { id: get("compile_id"), words: [get("trigger"), get("outcome"), compile.isRecompile ? "recompile" : null] };
  }
}

/**
 * @param {string} name
 * @param {string} word
 */
function makeKey(name, word) {
  return make("span", `cdiag-key is-${name}`, word);
}

/** @param {Mark} mark */
function describeMark(mark) {
  return mark.label + (mark.saved === null ? "" : `, saved ${formatSeconds(mark.saved)}`);
}
