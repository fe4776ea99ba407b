// What the timeline shows at this moment: how a person has set it, which lanes, which stretch of time, what is at a point or
// in the direction of a key. No element is touched here.
import { Inputs } from "../core/inputs.js";
import { SessionMemory } from "../core/memory.js";
import { toX } from "./axis.js";
import { makeLayout } from "./drawing.js";
import { clampRange, findIdle, makeBounds, TimeScale } from "./ranges.js";

const LONGEST_HISTORY = 50;
const SWITCHES = /** @type {const} */ (["isFolded", "isOpen", "hasTable"]);

/**
 * The compile that a key leads to, in lanes as they are on the screen; null if there is none in that direction. The way
 * begins in `range`, the Unix ms in view.
 * @type {(lanes: Lane[], current: CompileBar | null, key: string, range: TimeRange) => CompileBar | null}
 */
export function findNext(lanes, current, key, range) {
  const all = lanes.flatMap(({ bars }) => bars);
  /** @param {(bar: CompileBar) => number} distance */
  const findNearest = (distance, bars = all) => bars.reduce((best, bar) => (best && distance(best) <= distance(bar) ? best : bar), /** @type {CompileBar | null} */ (null));
  if (key === "End") return findNearest(({ start }) => -start);
  if (key === "Home") return findNearest(({ start }) => start);
  if (!current) return all.find(({ start, end }) => end >= range.from && start <= range.to) ?? findNearest(({ start }) => start);
  const { bars } = current.lane;
  if (key === "ArrowLeft") return bars[bars.indexOf(current) - 1] ?? null;
  if (key === "ArrowRight") return bars[bars.indexOf(current) + 1] ?? null;
  // The compile nearest in time in the next lane.
  const next = lanes[lanes.indexOf(current.lane) + (key === "ArrowUp" ? -1 : 1)];
  return findNearest(({ start }) => Math.abs(start - current.start), next?.bars ?? []);
}

const MOST_LANES = 7; // without "more"
const REACH = 3; // px around the pointer that still count as on a bar
const MARK_REACH = 5;
const WORTH_FOLDING = 0.1; // share of idle time from which folding is offered
const ROUND_S = [5, 10, 15, 30, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600]; // ends of the axis while live
const LONG_MS = 1800e3;

/** What a person has set is remembered until the browser tab closes. */
export class TimelineModel {
  /** @param {TimelineLanes} lanes */
  constructor(lanes) {
    this.lanes = lanes;
    this.store = lanes.store;
    this.memory = new SessionMemory("timeline");
    /** @type {TimeRange | null} Unix ms; null shows everything */
    this.zoom = null;
    /** @type {(TimeRange | null)[]} earlier zooms, the last one at the end */
    this.history = [];
    this.isFolded = false; // idle stretches
    this.isOpen = false; // the lanes beyond the costliest
    this.hasTable = false;
    this.hasKeys = false; // not remembered
    this.width = 0;
    /** @type {Layout} */
    this.layout = makeLayout(0, false, false);
    this.isStrip = false; // all lanes as one, without names and axis
    this.isShared = false; // another timeline has the same scale, so nothing is folded
    /** @type {Set<string | null> | null} */
    this.lit = null;
    /** @type {number | null} event id of the compile that is open */
    this.selected = null;
    /** @type {CompileBar | null} the compile that the arrow keys have reached */
    this.current = null;
    /** @type {Lane[]} */
    this.ordered = [];
    /** @type {TimeRange[]} */
    this.idle = [];
    this.scale = new TimeScale({ from: 0, to: 0 }, []);
    this.bounds = makeBounds(0);
    this.now = 0;
    this.inputs = new Inputs(); // of `ordered` and `idle`
  }

  /** @type {(width: number, isStrip: boolean) => void} Reads the tables again and the clock; `width` in px. */
  refresh(width, isStrip) {
    const { lanes, lit } = this;
    this.restore();
    Object.assign(this, { width, isStrip });
    // While it is live, a lane has room for what will be said of its recompiles.
    this.layout = makeLayout(width, lanes.signs.has("recompile") || this.store.isLive(), isStrip);
    this.now = this.store.kernelNow();
    if (this.inputs.haveChanged(lanes.version, lanes.list, lit)) {
      const byLit = Map.groupBy(lanes.list, ({ bars }) => lit === null || bars.some(({ key }) => lit.has(key)));
      this.ordered = [...(byLit.get(true) ?? []), ...(byLit.get(false) ?? [])];
      this.idle = this.isShared ? [] : findIdle(lanes.spans, lanes.extent);
      const { key, start } = this.current ?? {}; // lanes are made anew
      this.current = this.current && lanes.findBar((bar) => bar.key === key && bar.start === start);
    }
    const isFlying = this.store.isLive() && this.store.now.length > 0;
    const { from, to } = lanes.extent;
    const extent = { from, to: isFlying ? Math.max(to, this.now) : to };
    this.scale = new TimeScale(extent, this.isFolded ? this.idle : []);
    this.bounds = isStrip ? { from: 0, to: Math.max(this.scale.width, 1) } : makeBounds(this.scale.width);
    if (this.store.isLive()) this.bounds.to = roundUp(this.scale.width);
  }

  /** Takes over what was remembered, once the session is known, or is another one. */
  restore() {
    const isOther = this.memory.name !== null;
    const found = this.memory.restore(this.store.meta);
    if (!found) return;
    if (isOther) Object.assign(this, { zoom: null, history: [] });
    if (found.zoom?.from < found.zoom?.to) this.zoom = found.zoom;
    for (const key of SWITCHES) this[key] = found[key] === true;
  }

  save() {
    const { zoom, isFolded, isOpen, hasTable } = this;
    this.memory.save({ zoom, isFolded, isOpen, hasTable });
  }

  /** Returns to an earlier zoom that differs; false if there is none. */
  goBack() {
    while (this.history.length) {
      const before = this.history.pop() ?? null;
      if (before?.from === this.zoom?.from && before?.to === this.zoom?.to) continue;
      this.zoom = before;
      return true;
    }
    return false;
  }

  /** The lanes that are shown. */
  get shown() {
    if (this.isStrip) return [this.lanes.joined];
    return this.isOpen ? this.ordered : this.ordered.slice(0, MOST_LANES);
  }

  /** How many lanes only "more" shows. */
  get hiddenCount() {
    return Math.max(0, this.ordered.length - MOST_LANES);
  }

  /** Seconds without a compile; 0 if folding them would change little. */
  get idleSeconds() {
    const ms = this.idle.reduce((sum, { from, to }) => sum + to - from, 0);
    const { from, to } = this.lanes.extent;
    return ms > (to - from) * WORTH_FOLDING ? ms / 1e3 : 0;
  }

  /** The units in view. */
  get range() {
    const { zoom } = this;
    if (!zoom || this.isStrip) return this.bounds;
    return clampRange({ from: this.scale.toUnits(zoom.from), to: this.scale.toUnits(zoom.to) }, this.bounds);
  }

  /** When the warm-up ended, Unix ms: of several processes, in the last one. */
  get warmup() {
    const ends = this.store.table("warmup_ends");
    return ends.rows.length ? Math.max(...ends.rows.map((row) => Number(ends.get(row, "time")))) : null;
  }

  /** Where the bars are, px. */
  get plot() {
    return { left: this.layout.gutter, wide: Math.max(1, this.width - this.layout.gutter) };
  }

  get view() {
    return this.makeView(this.range);
  }

  /** With all of the time. */
  get wholeView() {
    return { ...this.makeView(this.bounds), lit: null };
  }

  /** @type {(range: TimeRange) => TimelineView} of a range in units */
  makeView({ from, to }) {
    const { scale, now, lit, warmup } = this;
    const range = { from: scale.toMs(from), to: scale.toMs(to) };
    return { from, to, range, scale, origin: this.lanes.extent.from, now, lit, warmup };
  }

  /** @type {ShowRange} */
  show(range, isStep) {
    if (isStep) this.history = [...this.history, this.zoom].slice(-LONGEST_HISTORY);
    const { from, to } = clampRange(range, this.bounds);
    const isAll = to - from >= (this.bounds.to - this.bounds.from) * 0.999;
    this.zoom = isAll ? null : { from: this.scale.toMs(from), to: this.scale.toMs(to) };
  }

  /** @param {{start: number, end: number}} bar */
  unitsOf({ start, end }) {
    return { from: this.scale.toUnits(start), to: this.scale.toUnits(Math.min(end, Math.max(start, this.now))) };
  }

  /** @type {(point: Point, scroll: number) => Hit | null} what is at a point; `scroll` in px */
  hitAt({ x, y }, scroll) {
    const { layout, plot } = this;
    const below = y - layout.axis + scroll;
    const lane = y < layout.axis ? undefined : this.shown[Math.floor(below / layout.lane)];
    if (!lane) return null;
    const isName = layout.gutter ? x < layout.gutter : below % layout.lane < layout.above;
    const isPlace = isName && layout.gutter > 0 && below % layout.lane > layout.lane / 2; // the line below the name
    if (isName) return { lane, bar: null, marks: [], isName, isPlace };
    const at = { ...this.view, layout, width: this.width };
    const marks = lane.marks.filter((mark) => Math.abs(toX(at, mark.at) - x) < MARK_REACH);
    const units = at.from + ((x - plot.left) / plot.wide) * (at.to - at.from);
    const reach = (REACH * (at.to - at.from)) / plot.wide;
    const [low, high] = [this.scale.toMs(units - reach), this.scale.toMs(units + reach)];
    const near = lane.bars.filter((bar) => bar.start <= high && low <= Math.min(bar.end, this.now));
    const bar = near.sort((a, b) => a.end - a.start - (b.end - b.start))[0] ?? null; // the shortest
    return { lane, bar, marks, isName };
  }
}

/** @type {(ms: number) => number} the next round time, so that bars keep their place until it is reached */
export function roundUp(ms) {
  return (ROUND_S.find((seconds) => seconds * 1e3 >= ms) ?? Math.ceil(ms / LONG_MS) * (LONG_MS / 1e3)) * 1e3;
}
