// What the timeline shows at this moment: which lanes, which stretch of time, and what is at a point. No element is
// touched here; the state of a person's view is in timeline-state.js, the arithmetic of ranges in timeline-view.js.
import { Inputs } from "../core/inputs.js";
import { toX } from "./axis.js";
import { makeLayout } from "./drawing.js";
import { putLitFirst } from "./lanes.js";
import { TimelineState } from "./state.js";
import { clampRange, findIdle, fitRange, makeBounds, revealRange, showsAll, TimeScale } from "./ranges.js";
/** @import { Frame, Layout } from "./drawing.js" */
/** @import { Point } from "./input.js" */
/** @import { CompileBar, Lane, Mark, TimelineLanes } from "./lanes.js" */
/** @import { Range } from "./ranges.js" */

/** @typedef {Pick<Frame, "from" | "to" | "range" | "scale" | "origin" | "now" | "lit" | "warmup">} View */
/** @typedef {{lane: Lane, bar: CompileBar | null, marks: Mark[], isName: boolean, isPlace?: boolean}} Hit */

const MOST_LANES = 7; // without "more"
const REACH = 3; // px around the pointer that still count as on a bar
const MARK_REACH = 5;
const WORTH_FOLDING = 0.1; // share of idle time from which folding is offered
const ROUND_S = [5, 10, 15, 30, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600]; // ends of the axis while live
const LONG_MS = 1800e3;

export class TimelineModel {
  /**
   * @param {Store} store
   * @param {TimelineLanes} lanes
   */
  constructor(store, lanes) {
    this.store = store;
    this.lanes = lanes;
    this.state = new TimelineState();
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
    /** @type {Range[]} */
    this.idle = [];
    this.scale = new TimeScale({ from: 0, to: 0 }, []);
    this.bounds = makeBounds(0);
    this.now = 0;
    this.inputs = new Inputs(); // of `ordered` and `idle`
  }

  /**
   * Reads the tables again and the clock.
   * @param {number} width px
   * @param {boolean} isStrip
   */
  refresh(width, isStrip) {
    const { lanes, state, lit } = this;
    state.restore(this.store.meta);
    Object.assign(this, { width, isStrip });
    // While it is live, a lane has room for what will be said of its recompiles.
    this.layout = makeLayout(width, lanes.signs.has("recompile") || this.store.isLive(), isStrip);
    this.now = this.store.kernelNow();
    if (this.inputs.haveChanged(lanes.version, lanes.list, lit)) {
      this.ordered = putLitFirst(lanes.list, lit);
      this.idle = this.isShared ? [] : findIdle((visit) => lanes.eachSpan(visit), lanes.extent);
      const { key, start } = this.current ?? {}; // lanes are made anew
      this.current = this.current && lanes.findBar((bar) => bar.key === key && bar.start === start);
    }
    const isFlying = this.store.isLive() && this.store.now.length > 0;
    const { from, to } = lanes.extent;
    const extent = { from, to: isFlying ? Math.max(to, this.now) : to };
    this.scale = new TimeScale(extent, state.isFolded ? this.idle : []);
    this.bounds = makeBounds(this.scale.width);
    if (this.store.isLive()) this.bounds.to = roundUp(this.scale.width);
  }

  /** The lanes that are shown. */
  get shown() {
    if (this.isStrip) return [this.lanes.joined];
    return this.state.isOpen ? this.ordered : this.ordered.slice(0, MOST_LANES);
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
    const { zoom } = this.state;
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

  /** @returns {View} */
  get view() {
    const { scale, now, lit, warmup } = this;
    const { from, to } = this.range;
    const range = { from: scale.toMs(from), to: scale.toMs(to) };
    return { from, to, range, scale, origin: this.lanes.extent.from, now, lit, warmup };
  }

  /** @returns {View} with all of the time */
  get wholeView() {
    const { from, to } = this.bounds;
    return { ...this.view, from, to, range: { from: this.scale.toMs(from), to: this.scale.toMs(to) }, lit: null };
  }

  /**
   * @param {Range} range units
   * @param {boolean} isStep Escape returns to the view before it
   */
  show(range, isStep) {
    if (isStep) this.state.noteStep();
    const { from, to } = clampRange(range, this.bounds);
    const isAll = showsAll({ from, to }, this.bounds);
    this.state.zoom = isAll ? null : { from: this.scale.toMs(from), to: this.scale.toMs(to) };
  }

  /** @param {{start: number, end: number}} bar */
  fit(bar) {
    this.show(fitRange(this.unitsOf(bar), this.bounds), true);
  }

  /** @param {{start: number, end: number}} bar */
  reveal(bar) {
    const { range } = this;
    const wanted = revealRange(range, this.unitsOf(bar), this.bounds);
    if (wanted !== range) this.show(wanted, false);
  }

  /**
   * @param {{start: number, end: number}} bar
   * @returns {Range}
   */
  unitsOf({ start, end }) {
    return { from: this.scale.toUnits(start), to: this.scale.toUnits(Math.min(end, Math.max(start, this.now))) };
  }

  /**
   * What is at a point.
   * @param {Point} point
   * @param {number} scroll px
   * @returns {Hit | null}
   */
  hitAt({ x, y }, scroll) {
    const { layout, plot } = this;
    const below = y - layout.axis + scroll;
    const lane = y < layout.axis ? undefined : this.shown[Math.floor(below / layout.lane)];
    if (!lane) return null;
    const isName = layout.gutter ? x < layout.gutter : below % layout.lane < layout.above;
    const isPlace = isName && layout.gutter > 0 && below % layout.lane > layout.lane / 2; // the line below the name
    if (isName) return { lane, bar: null, marks: [], isName, isPlace };
    const at = { ...this.view, gutter: layout.gutter, width: this.width };
    const marks = lane.marks.filter((mark) => Math.abs(toX(at, mark.at) - x) < MARK_REACH);
    const units = at.from + ((x - plot.left) / plot.wide) * (at.to - at.from);
    const reach = (REACH * (at.to - at.from)) / plot.wide;
    const [low, high] = [this.scale.toMs(units - reach), this.scale.toMs(units + reach)];
    const near = lane.bars.filter((bar) => bar.start <= high && low <= Math.min(bar.end, this.now));
    const bar = near.sort((a, b) => a.end - a.start - (b.end - b.start))[0] ?? null; // the shortest
    return { lane, bar, marks, isName };
  }
}

/**
 * The next round time, so that bars keep their place until it is reached.
 * @param {number} ms
 */
export function roundUp(ms) {
  return (ROUND_S.find((seconds) => seconds * 1e3 >= ms) ?? Math.ceil(ms / LONG_MS) * (LONG_MS / 1e3)) * 1e3;
}
