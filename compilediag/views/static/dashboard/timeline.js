// The timeline: pointer, keys and tooltip around the canvas that draw.js paints.
import { make, makeButton, setShown } from "../core/dom.js";
import { AXIS, drawTimeline, LANE, toX } from "./timeline-drawing.js";
import { counted, formatClock, formatPlace, formatSeconds } from "../core/format.js";
import { PHASE_KINDS, PHASE_WORDS } from "./phases.js";
import { readPalette } from "../core/theme.js";

const MARK_WORDS = {
  recompile: "recompile",
  hit: "cache hit",
  miss: "miss",
  break: "graph break",
  capture: "CUDA graph captured",
  recapture: "captured again",
  skip: "CUDA graphs skipped",
};
const CAPTURE_MARKS = new Set(["capture", "recapture", "skip"]);
const MOST_LANES = 7; // lanes in view; more scroll
const SHORTEST_MS = 0.05; // the closest zoom
const REACH = 3; // px around the pointer that still count as on a bar

export class Timeline {
  /** `onPick(group, eventId)` runs when a compile is clicked. */
  constructor(store, lanes, onPick) {
    this.store = store;
    this.lanes = lanes;
    this.onPick = onPick;
    this.zoom = null; // {from, to} in Unix ms, or null for everything
    this.lit = null;
    this.selected = null;
    this.drag = null;
    this.build();
    this.listen();
    this.watcher = new ResizeObserver(() => this.paint());
    this.watcher.observe(this.scroller);
  }

  destroy() {
    this.watcher.disconnect();
  }

  build() {
    this.canvas = make("canvas", "cdiag-canvas");
    this.spacer = make("div", "cdiag-spacer", this.canvas);
    this.scroller = make("div", "cdiag-lanes", this.spacer);
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "application");
    this.scroller.setAttribute("aria-label", "timeline: left and right pan, plus and minus zoom, 0 shows everything");
    this.box = make("div", "cdiag-band");
    this.tip = make("div", "cdiag-tip");
    this.tip.setAttribute("role", "tooltip");
    this.reset = makeButton("cdiag-link", "show everything", () => this.setZoom(null));
    const keys = PHASE_KINDS.map((kind) => make("span", `cdiag-key is-${kind}`, PHASE_WORDS[kind]));
    const marks = Object.entries(MARK_WORDS).map(([name, word]) => make("span", `cdiag-key is-${name}`, word));
    this.captureKeys = marks.filter((_, i) => CAPTURE_MARKS.has(Object.keys(MARK_WORDS)[i]));
    const legend = make("div", "cdiag-legend", ...keys, ...marks);
    const strip = make("div", "cdiag-strip", make("h2", "", "Timeline"), legend, this.reset);
    this.frameNode = make("div", "cdiag-frame", this.scroller, this.box, this.tip);
    this.node = make("section", "cdiag-timeline", strip, this.frameNode);
    setShown(this.box, false);
    setShown(this.tip, false);
  }

  listen() {
    const on = (name, handler) => this.scroller.addEventListener(name, handler);
    on("scroll", () => this.paint());
    on("pointerdown", (event) => this.onDown(event));
    on("pointermove", (event) => this.onMove(event));
    on("pointerup", (event) => this.onUp(event));
    on("pointerleave", () => setShown(this.tip, false));
    on("dblclick", () => this.setZoom(null));
    on("keydown", (event) => this.onKey(event));
  }

  setLit(lit) {
    this.lit = lit;
  }

  setSelected(id) {
    this.selected = id;
    this.paint();
  }

  setZoom(zoom) {
    this.zoom = zoom;
    this.paint();
  }

  range() {
    const whole = this.wholeRange();
    return this.zoom ?? whole;
  }

  wholeRange() {
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
    drawTimeline(this.frame, lanes);
  }

  makeFrame(width, height) {
    const scale = globalThis.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      [this.canvas.width, this.canvas.height] = [wide, high];
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const { from, to } = this.range();
    return {
      context, width, height, from, to,
      gutter: width < 760 ? 120 : 200,
      now: this.store.kernelNow(),
      scroll: this.scroller.scrollTop,
      palette: readPalette(this.node),
      lit: this.lit,
      origin: this.lanes.extent.low,
      selected: this.selected,
    };
  }

  /** Where the pointer is: x and y in px of the frame, and the time under it. */
  at(event) {
    const box = this.scroller.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { from, to, gutter, width } = this.frame;
    return { x, y, ms: from + ((x - gutter) / (width - gutter)) * (to - from) };
  }

  onDown(event) {
    if (event.button !== 0 || !this.frame) return;
    const { x } = this.at(event);
    if (x < this.frame.gutter || event.offsetX > this.scroller.clientWidth) return;
    this.drag = x;
    this.scroller.setPointerCapture(event.pointerId);
  }

  onMove(event) {
    if (!this.frame) return;
    const point = this.at(event);
    if (this.drag === null) return this.showTip(point);
    setShown(this.tip, false);
    const [low, high] = [Math.min(this.drag, point.x), Math.max(this.drag, point.x)];
    setShown(this.box, high - low > 3);
    this.box.style.left = `${Math.max(low, this.frame.gutter)}px`;
    this.box.style.width = `${high - Math.max(low, this.frame.gutter)}px`;
  }

  onUp(event) {
    if (this.drag === null) return;
    const [start, point] = [this.drag, this.at(event)];
    this.drag = null;
    setShown(this.box, false);
    const { from, to, gutter, width } = this.frame;
    const time = (x) => from + ((Math.max(x, gutter) - gutter) / (width - gutter)) * (to - from);
    const [low, high] = [time(Math.min(start, point.x)), time(Math.max(start, point.x))];
    if (Math.abs(point.x - start) > 3) return void (high - low > SHORTEST_MS && this.setZoom({ from: low, to: high }));
    const hit = this.find(point);
    if (hit) this.onPick(hit.group, hit.row ? hit.row[0] : null);
  }

  onKey(event) {
    if (!this.frame) return;
    const { from, to } = this.range();
    const span = to - from;
    const move = (by) => this.setZoom({ from: from + by * span, to: to + by * span });
    const shrink = (by) => {
      if (span * (1 - 2 * by) > SHORTEST_MS) this.setZoom({ from: from + span * by, to: to - span * by });
    };
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

  laneAt(y) {
    return y < AXIS ? null : this.lanes.list[Math.floor((y - AXIS + this.frame.scroll) / LANE)] ?? null;
  }

  /** The compile, or compile in flight, under a point; the shortest if several are. */
  find({ x, y, ms }) {
    const lane = this.laneAt(y);
    if (!lane || x < this.frame.gutter) return null;
    const reach = (REACH * (this.frame.to - this.frame.from)) / (this.frame.width - this.frame.gutter);
    const flights = lane.flights.map((flight) => ({ ...flight, end: this.frame.now }));
    const near = [...lane.bars, ...flights].filter((bar) => bar.start - reach <= ms && ms <= bar.end + reach);
    return near.sort((a, b) => a.end - a.start - (b.end - b.start))[0] ?? null;
  }

  showTip(point) {
    const lines = this.tipLines(point);
    setShown(this.tip, lines.length > 0);
    if (!lines.length) return;
    this.tip.replaceChildren(...lines.map((text, i) => make("div", i ? "" : "cdiag-tip-head", text)));
    const room = this.frame.width - this.tip.offsetWidth - 8;
    this.tip.style.left = `${Math.max(4, Math.min(point.x + 14, room))}px`;
    this.tip.style.top = `${point.y + 16}px`;
  }

  tipLines(point) {
    const lane = this.laneAt(point.y);
    if (!lane) return [];
    const place = formatPlace(lane.file, lane.line);
    const compiles = counted(lane.bars.length, "compile", "compiles");
    if (point.x < this.frame.gutter) return [lane.name, place, compiles].filter(Boolean);
    const marks = lane.marks.filter((mark) => Math.abs(toX(this.frame, mark.at) - point.x) < 5).slice(0, 4);
    const saved = (mark) => (mark.saved === null ? "" : `, saved ${formatSeconds(mark.saved)}`);
    const extra = marks.map((mark) => `${mark.label}${saved(mark)}`);
    const bar = this.find(point);
    return bar ? [...this.barLines(lane, bar, point), ...extra] : extra;
  }

  barLines(lane, bar, point) {
    const table = this.store.table("compiles");
    const get = (name) => (bar.row ? table.get(bar.row, name) : bar.flight[name] ?? null);
    const isFlying = !bar.row;
    const words = [get("trigger"), isFlying ? "in flight" : get("outcome"), bar.isRecompile ? "recompile" : null];
    const seconds = formatSeconds((bar.end - bar.start) / 1e3);
    const covers = ({ start, end }) => bar.start - 5 <= start && start <= point.ms && point.ms <= end;
    const inside = lane.phases.filter(covers);
    const phases = inside.slice(0, 8).map(({ depth, name, start, end }) => {
      return `${"  ".repeat(Math.min(depth, 6))}${name} ${formatSeconds((end - start) / 1e3)}`;
    });
    const when = [formatClock(bar.start), ...words].filter(Boolean).join(" · ");
    return [`${lane.name} ${get("compile_id") ?? ""} · ${seconds}`, when, ...phases];
  }
}
