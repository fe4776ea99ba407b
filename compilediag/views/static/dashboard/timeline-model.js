// What the timeline shows at this moment: which lanes, which stretch of time, and what is at a point. No element is
// touched here; the state of a person's view is in timeline-state.js, the arithmetic of ranges in timeline-view.js.
import { AXIS, toX } from "./timeline-axis.js";
import { makeLayout } from "./timeline-drawing.js";
import { putLitFirst } from "./timeline-lanes.js";
import { TimelineState } from "./timeline-state.js";
import { clampRange, findIdle, fitRange, makeBounds, revealRange, showsAll, TimeScale } from "./timeline-view.js";
/** @import { Store } from "../core/store.js" */
/** @import { Layout } from "./timeline-drawing.js" */
/** @import { Point } from "./timeline-input.js" */
/** @import { CompileBar, FlightBar, Lane, Mark, TimelineLanes } from "./timeline-lanes.js" */
/** @import { Range } from "./timeline-view.js" */

/** @typedef {{from: number, to: number, range: Range, scale: TimeScale, origin: number, now: number, lit: Set<string | null> | null}} View */
/** @typedef {{lane: Lane, bar: CompileBar | null, flight: FlightBar | null, marks: Mark[], isName: boolean}} Hit */

const MOST_LANES = 7; // without "more"
const REACH = 3; // px around the pointer that still count as on a bar
const MARK_REACH = 5;
const NAME_LINE = 17; // px of a lane without a gutter that its name has
const WORTH_FOLDING = 0.1; // share of idle time from which folding is offered

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
    this.layout = makeLayout(0);
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
    /** @type {unknown[]} what `ordered` and `idle` were made of */
    this.made = [];
  }

  /**
   * Reads the tables again and the clock.
   * @param {number} width px
   */
  refresh(width) {
    const { lanes, state, lit } = this;
    state.restore(this.store.meta);
    this.width = width;
    this.layout = makeLayout(width);
    this.now = this.store.kernelNow();
    const made = [lanes.version, lanes.list, lit];
    if (made.some((each, i) => each !== this.made[i])) {
      this.made = made;
      this.ordered = putLitFirst(lanes.list, lit);
      this.idle = findIdle((visit) => lanes.eachSpan(visit), lanes.extent);
      this.current = this.current && lanes.findBar(this.current.row[0]); // lanes are made anew
    }
    const isFlying = this.store.isLive() && this.store.now.length > 0;
    const { from, to } = lanes.extent;
    const extent = { from, to: isFlying ? Math.max(to, this.now) : to };
    this.scale = new TimeScale(extent, state.isFolded ? this.idle : []);
    this.bounds = makeBounds(this.scale.width);
  }

  /** The lanes that are shown. */
  get shown() {
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
    if (!zoom) return this.bounds;
    return clampRange({ from: this.scale.toUnits(zoom.from), to: this.scale.toUnits(zoom.to) }, this.bounds);
  }

  /** Where the bars are, px. */
  get plot() {
    return { left: this.layout.gutter, wide: Math.max(1, this.width - this.layout.gutter) };
  }

  /** @returns {View} */
  get view() {
    const { scale, now, lit } = this;
    const { from, to } = this.range;
    return { from, to, range: { from: scale.toMs(from), to: scale.toMs(to) }, scale, origin: this.lanes.extent.from, now, lit };
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
    return { from: this.scale.toUnits(start), to: this.scale.toUnits(end) };
  }

  /**
   * The time at an x, Unix ms.
   * @param {number} x px
   */
  msAt(x) {
    const { from, to } = this.range;
    return this.scale.toMs(from + ((x - this.plot.left) / this.plot.wide) * (to - from));
  }

  /**
   * What is at a point.
   * @param {Point} point
   * @param {number} scroll px
   * @returns {Hit | null}
   */
  hitAt({ x, y }, scroll) {
    const { layout } = this;
    const below = y - AXIS + scroll;
    const lane = y < AXIS ? undefined : this.shown[Math.floor(below / layout.lane)];
    if (!lane) return null;
    const isName = layout.gutter ? x < layout.gutter : below % layout.lane < NAME_LINE;
    if (isName) return { lane, bar: null, flight: null, marks: [], isName };
    const at = { ...this.view, gutter: layout.gutter, width: this.width };
    const marks = lane.marks.filter((mark) => Math.abs(toX(at, mark.at) - x) < MARK_REACH);
    const units = at.from + ((x - layout.gutter) / this.plot.wide) * (at.to - at.from);
    const reach = (REACH * (at.to - at.from)) / this.plot.wide;
    return { lane, ...this.findBar(lane, units, reach), marks, isName };
  }

  /**
   * The shortest compile, or compile in flight, near a place of the axis.
   * @param {Lane} lane
   * @param {number} units
   * @param {number} reach units
   */
  findBar(lane, units, reach) {
    const [low, high] = [this.scale.toMs(units - reach), this.scale.toMs(units + reach)];
    const near = lane.bars.filter((bar) => bar.start <= high && low <= bar.end);
    const bar = near.sort((a, b) => a.end - a.start - (b.end - b.start))[0];
    const flight = lane.flights.find(({ start }) => start <= high && low <= this.now) ?? null;
    return bar ? { bar, flight: null } : { bar: null, flight };
  }
}
