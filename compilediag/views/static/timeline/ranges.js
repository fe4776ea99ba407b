// What the timeline shows: ranges of its axis, and how they change. Nothing is drawn and no element is touched here.
//
// The axis has units: a unit is a millisecond, except in idle stretches that are folded to a short width.

const SHORTEST = 0.05; // units, the closest zoom
const LEAST_IDLE = 0.01; // of the whole: a shorter pause is never folded
const FOLD_WIDTH = 0.02; // of the busy time: width of a folded stretch
const ALL_FOLDS = 0.3; // of the busy time: width of all folded stretches
const PADDING = 0.01; // of the whole, at both ends
const FIT_MARGIN = 0.08; // of a bar, at both of its ends

/**
 * The stretches without any span that are long enough to fold: so many spans have ended as had begun. Unix ms.
 * @type {(spans: {start: number, end: number}[], extent: TimeRange) => TimeRange[]}
 */
export function findIdle(spans, { from, to }) {
  const starts = Float64Array.from([...spans.map(({ start }) => start), to]).sort();
  const ends = Float64Array.from(spans, ({ end }) => end).sort();
  /** @type {TimeRange[]} */
  const idle = [];
  ends.forEach((end, i) => starts[i + 1] - end > (to - from) * LEAST_IDLE && idle.push({ from: end, to: starts[i + 1] }));
  return idle;
}

/** Converts Unix ms to units of the axis and back. */
export class TimeScale {
  /** @param {TimeRange} extent Unix ms @param {TimeRange[]} folds stretches that are folded, in order */
  constructor(extent, folds) {
    const busy = extent.to - extent.from - folds.reduce((sum, { from, to }) => sum + to - from, 0);
    const width = Math.max(busy, SHORTEST) * Math.min(FOLD_WIDTH, ALL_FOLDS / Math.max(1, folds.length)); // of each fold
    /** @type {Stretch[]} */
    this.stretches = [];
    this.width = 0;
    /** @param {number} begin @param {number} end @param {number} wide @param {boolean} isFolded */
    const add = (begin, end, wide, isFolded) => {
      this.stretches.push({ start: begin, end, at: this.width, width: wide, isFolded });
      this.width += wide;
    };
    let start = extent.from;
    for (const fold of folds.filter(({ from, to }) => to - from > width)) {
      add(start, fold.from, fold.from - start, false);
      add(fold.from, fold.to, width, true);
      start = fold.to;
    }
    add(start, extent.to, extent.to - start, false);
  }

  get last() {
    return this.stretches[this.stretches.length - 1];
  }

  /** @param {number} ms */
  toUnits(ms) {
    const { start, end, at, width, isFolded } = this.stretches.find((stretch) => stretch.end > ms) ?? this.last;
    return at + (isFolded ? ((ms - start) / (end - start)) * width : ms - start);
  }

  /** @param {number} units */
  toMs(units) {
    const { start, end, at, width, isFolded } = this.stretches.find((stretch) => stretch.at + stretch.width > units) ?? this.last;
    return start + (isFolded ? ((units - at) / width) * (end - start) : units - at);
  }

}

/** @type {(width: number) => TimeRange} everything, so many units, with a margin at both ends */
export function makeBounds(width) {
  const margin = Math.max(width * PADDING, 1);
  return { from: -margin, to: width + margin };
}

/** @type {FitRange} that is not too short */
export function clampRange({ from, to }, bounds) {
  const width = Math.min(Math.max(to - from, SHORTEST), bounds.to - bounds.from);
  const start = Math.min(Math.max(from, bounds.from), bounds.to - width);
  return { from: start, to: start + width };
}

/**
 * A range around `at`, which stays where it is on the screen; a factor above 1 shows less.
 * @type {(range: TimeRange, at: number, factor: number, bounds: TimeRange) => TimeRange}
 */
export function zoomRange({ from, to }, at, factor, bounds) {
  const width = Math.min(Math.max((to - from) / factor, SHORTEST), bounds.to - bounds.from);
  const start = at - ((at - from) / (to - from)) * width;
  return clampRange({ from: start, to: start + width }, bounds);
}

/** @type {(range: TimeRange, by: number, bounds: TimeRange) => TimeRange} `by` in units */
export function moveRange({ from, to }, by, bounds) {
  return clampRange({ from: from + by, to: to + by }, bounds);
}

/** @type {FitRange} that a bar fills but for a margin */
export function fitRange({ from, to }, bounds) {
  const margin = Math.max((to - from) * FIT_MARGIN, SHORTEST);
  return clampRange({ from: from - margin, to: to + margin }, bounds);
}

/**
 * The least movement of a range that brings a bar into it; null if it is there.
 * @type {(range: TimeRange, bar: TimeRange, bounds: TimeRange) => TimeRange | null}
 */
export function revealRange(range, bar, bounds) {
  if (bar.from >= range.from && bar.to <= range.to) return null;
  const width = range.to - range.from;
  if (bar.to - bar.from >= width) return fitRange(bar, bounds);
  const margin = width * PADDING;
  const by = bar.from < range.from ? bar.from - margin - range.from : bar.to + margin - range.to;
  return moveRange(range, by, bounds);
}

/**
 * The range in which two places of the axis are at two places of the screen (shares of its width), as a pinch asks for.
 * @type {(units: [number, number], shares: [number, number], bounds: TimeRange) => TimeRange}
 */
export function pinchRange([a, b], [shareA, shareB], bounds) {
  const apart = Math.max(Math.abs(shareB - shareA), 1e-3) * Math.sign(shareB - shareA || 1);
  const width = Math.min(Math.max(Math.abs((b - a) / apart), SHORTEST), bounds.to - bounds.from);
  const start = (a + b) / 2 - ((shareA + shareB) / 2) * width;
  return clampRange({ from: start, to: start + width }, bounds);
}
