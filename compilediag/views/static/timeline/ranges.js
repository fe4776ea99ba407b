// What the timeline shows: ranges of its axis, and how they change. Nothing is drawn and no element is touched here.
//
// The axis has units: a unit is a millisecond, except in idle stretches that are folded to a short width.

/** @typedef {{from: number, to: number}} TimeRange Unix ms, or units of the axis */
/** @typedef {{start: number, end: number, at: number, width: number, isFolded: boolean}} Stretch Unix ms, and units */

const SHORTEST = 0.05; // units, the closest zoom
const SLOTS = 500; // so many that a pause worth folding has empty ones
const LEAST_IDLE = 0.01; // of the whole: a shorter pause is never folded
const FOLD_WIDTH = 0.02; // of the busy time: width of a folded stretch
const ALL_FOLDS = 0.3; // of the busy time: width of all folded stretches
const PADDING = 0.01; // of the whole, at both ends
const FIT_MARGIN = 0.08; // of a bar, at both of its ends

/**
 * The stretches without any span that are long enough to fold. Spans are sorted into slots and not among themselves,
 * because a live page does this at every patch.
 * @param {(visit: (start: number, end: number) => void) => void} eachSpan gives Unix ms
 * @param {TimeRange} extent Unix ms
 */
export function findIdle(eachSpan, extent) {
  const length = extent.to - extent.from;
  if (length <= 0) return [];
  const isBusy = new Uint8Array(SLOTS);
  const [first, last] = [new Float64Array(SLOTS).fill(Infinity), new Float64Array(SLOTS).fill(-Infinity)];
  /** @param {number} ms */
  const slotOf = (ms) => Math.max(0, Math.min(SLOTS - 1, Math.floor(((ms - extent.from) / length) * SLOTS)));
  eachSpan((start, end) => {
    const [low, high] = [slotOf(start), slotOf(end)];
    isBusy.fill(1, low, high + 1);
    first[low] = Math.min(first[low], start);
    last[high] = Math.max(last[high], end);
  });
  /** @type {TimeRange[]} */
  const idle = [];
  for (let slot = 1; slot < SLOTS; slot += 1) {
    if (isBusy[slot]) continue;
    const before = slot - 1;
    while (slot < SLOTS - 1 && !isBusy[slot]) slot += 1;
    const [from, to] = [last[before], Math.min(first[slot], extent.to)];
    if (to - from > length * LEAST_IDLE) idle.push({ from, to });
  }
  return idle;
}

/** Converts Unix ms to units of the axis and back. */
export class TimeScale {
  /**
   * @param {TimeRange} extent Unix ms
   * @param {TimeRange[]} folds stretches that are folded, in order
   */
  constructor(extent, folds) {
    const busy = extent.to - extent.from - folds.reduce((sum, { from, to }) => sum + to - from, 0);
    const width = Math.max(busy, SHORTEST) * Math.min(FOLD_WIDTH, ALL_FOLDS / Math.max(1, folds.length)); // of each fold
    /** @type {Stretch[]} */
    this.stretches = [];
    this.width = 0;
    let start = extent.from;
    for (const fold of folds.filter(({ from, to }) => to - from > width)) {
      this.add(start, fold.from, fold.from - start, false);
      this.add(fold.from, fold.to, width, true);
      start = fold.to;
    }
    this.add(start, extent.to, extent.to - start, false);
  }

  /**
   * @param {number} start
   * @param {number} end
   * @param {number} width
   * @param {boolean} isFolded
   */
  add(start, end, width, isFolded) {
    this.stretches.push({ start, end, at: this.width, width, isFolded });
    this.width += width;
  }

  /** @param {number} ms */
  toUnits(ms) {
    if (this.stretches.length === 1) return ms - this.stretches[0].start; // as it is nearly always
    const { start, end, at, width, isFolded } = this.find((stretch) => stretch.end > ms);
    return at + (isFolded ? ((ms - start) / (end - start)) * width : ms - start);
  }

  /** @param {number} units */
  toMs(units) {
    const { start, end, at, width, isFolded } = this.find((stretch) => stretch.at + stretch.width > units);
    return start + (isFolded ? ((units - at) / width) * (end - start) : units - at);
  }

  /**
   * The first stretch that ends after a place, or the last.
   * @param {(stretch: Stretch) => boolean} endsLater
   */
  find(endsLater) {
    let [low, high] = [0, this.stretches.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (endsLater(this.stretches[middle])) high = middle;
      else low = middle + 1;
    }
    return this.stretches[low];
  }
}

/**
 * Everything, with a margin at both ends.
 * @param {number} width units
 * @returns {TimeRange}
 */
export function makeBounds(width) {
  const margin = Math.max(width * PADDING, 1);
  return { from: -margin, to: width + margin };
}

/**
 * The nearest range that lies in the bounds and is not too short.
 * @param {TimeRange} range
 * @param {TimeRange} bounds
 * @returns {TimeRange}
 */
export function clampRange({ from, to }, bounds) {
  const width = Math.min(Math.max(to - from, SHORTEST), bounds.to - bounds.from);
  const start = Math.min(Math.max(from, bounds.from), bounds.to - width);
  return { from: start, to: start + width };
}

/**
 * A range around `at`, which stays where it is on the screen; a factor above 1 shows less.
 * @param {TimeRange} range
 * @param {number} at
 * @param {number} factor
 * @param {TimeRange} bounds
 */
export function zoomRange({ from, to }, at, factor, bounds) {
  const width = Math.min(Math.max((to - from) / factor, SHORTEST), bounds.to - bounds.from);
  const start = at - ((at - from) / (to - from)) * width;
  return clampRange({ from: start, to: start + width }, bounds);
}

/**
 * @param {TimeRange} range
 * @param {number} by units
 * @param {TimeRange} bounds
 */
export function moveRange({ from, to }, by, bounds) {
  return clampRange({ from: from + by, to: to + by }, bounds);
}

/**
 * A range that a bar fills but for a margin.
 * @param {TimeRange} bar
 * @param {TimeRange} bounds
 */
export function fitRange({ from, to }, bounds) {
  const margin = Math.max((to - from) * FIT_MARGIN, SHORTEST);
  return clampRange({ from: from - margin, to: to + margin }, bounds);
}

/**
 * The least movement of a range that brings a bar into it.
 * @param {TimeRange} range
 * @param {TimeRange} bar
 * @param {TimeRange} bounds
 */
export function revealRange(range, bar, bounds) {
  if (bar.from >= range.from && bar.to <= range.to) return range;
  const width = range.to - range.from;
  if (bar.to - bar.from >= width) return fitRange(bar, bounds);
  const margin = width * PADDING;
  const by = bar.from < range.from ? bar.from - margin - range.from : bar.to + margin - range.to;
  return moveRange(range, by, bounds);
}

/**
 * The range in which two places of the axis are at two places of the screen, as a pinch asks for.
 * @param {[number, number]} units
 * @param {[number, number]} shares of the width, from 0 to 1
 * @param {TimeRange} bounds
 */
export function pinchRange([a, b], [shareA, shareB], bounds) {
  const apart = Math.max(Math.abs(shareB - shareA), 1e-3) * Math.sign(shareB - shareA || 1);
  const width = Math.min(Math.max(Math.abs((b - a) / apart), SHORTEST), bounds.to - bounds.from);
  const start = (a + b) / 2 - ((shareA + shareB) / 2) * width;
  return clampRange({ from: start, to: start + width }, bounds);
}

/**
 * True if a range shows everything.
 * @param {TimeRange} range
 * @param {TimeRange} bounds
 */
export function showsAll({ from, to }, bounds) {
  return to - from >= (bounds.to - bounds.from) * 0.999;
}
