// The keys of the timeline: which compile an arrow leads to. No element is touched here.
/** @import { CompileBar, Lane } from "./lanes.js" */
/** @import { Range } from "./ranges.js" */

/**
 * The compile that a key leads to; null if there is none in that direction.
 * @param {Lane[]} lanes in their order on the screen
 * @param {CompileBar | null} current
 * @param {string} key
 * @param {Range} range Unix ms in view, where the way begins
 * @returns {CompileBar | null}
 */
export function findNext(lanes, current, key, range) {
  if (key === "Home" || key === "End") return findEnd(lanes, key === "End");
  const inView = lanes.flatMap(({ bars }) => bars).find(({ start, end }) => end >= range.from && start <= range.to);
  if (!current) return inView ?? findEnd(lanes, false);
  const { lane } = current;
  const position = lane.bars.indexOf(current);
  if (key === "ArrowLeft") return lane.bars[position - 1] ?? null;
  if (key === "ArrowRight") return lane.bars[position + 1] ?? null;
  return findNearest(lanes, current, key === "ArrowUp" ? -1 : 1);
}

/**
 * The compile nearest in time in the next lane that has any.
 * @param {Lane[]} lanes
 * @param {CompileBar} current
 * @param {number} step
 */
function findNearest(lanes, current, step) {
  /** @param {CompileBar} bar */
  const distance = (bar) => Math.abs(bar.start - current.start);
  for (let i = lanes.indexOf(current.lane) + step; lanes[i]; i += step) {
    const { bars } = lanes[i];
    if (bars.length) return bars.reduce((best, bar) => (distance(bar) < distance(best) ? bar : best));
  }
  return null;
}

/**
 * @param {Lane[]} lanes
 * @param {boolean} isLast
 */
function findEnd(lanes, isLast) {
  const ends = lanes.flatMap(({ bars }) => (isLast ? bars.slice(-1) : bars.slice(0, 1)));
  return ends.sort((a, b) => (isLast ? b.start - a.start : a.start - b.start))[0] ?? null;
}
