// The time axis of the timeline: ticks at whole numbers of one unit, and what folded idle stretches look like.
import { formatCount } from "../core/format.js";
/** @import { Frame } from "./timeline-drawing.js" */
/** @import { Stretch } from "./timeline-view.js" */

export const AXIS = 22; // px, height of the axis
const LEAST_GAP = 74; // px between ticks
const LABEL_GAP = 8; // px between labels

/** @type {{ms: number, steps: number[], name: string, short: string}[]} the units of ticks, and their round numbers */
const UNITS = [
  { ms: 1e-3, steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], name: "microseconds", short: "µs" },
  { ms: 1, steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], name: "milliseconds", short: "ms" },
  { ms: 1e3, steps: [1, 2, 5, 10, 15, 30, 60], name: "seconds", short: "s" },
  { ms: 60e3, steps: [1, 2, 5, 10, 15, 30, 60], name: "minutes", short: "min" },
  { ms: 3600e3, steps: [1, 2, 6, 12, 24, 48, 168], name: "hours", short: "h" },
];
const LEAST_TICKS = 3; // of a unit: with fewer in view, the next smaller unit is used

/**
 * The unit of the ticks and the ms between them.
 * @param {number} ms in view
 * @param {number} width px
 */
export function chooseTicks(ms, width) {
  const unit = UNITS.findLast((each) => each.ms * LEAST_TICKS <= ms) ?? UNITS[0];
  const least = (ms / width) * LEAST_GAP;
  const step = unit.steps.find((count) => count * unit.ms >= least) ?? Math.ceil(least / unit.ms);
  return { unit, step: step * unit.ms };
}

/**
 * The x of a time in Unix ms.
 * @param {Pick<Frame, "scale" | "from" | "to" | "gutter" | "width">} frame
 * @param {number} ms
 */
export function toX({ scale, from, to, gutter, width }, ms) {
  return gutter + ((scale.toUnits(ms) - from) / (to - from)) * (width - gutter);
}

/**
 * @param {Frame} frame
 * @param {(x: number, at: number, unit: {ms: number}) => void} visit gets the ms since the start
 */
function eachTick(frame, visit) {
  const { unit, step } = chooseTicks(frame.to - frame.from, frame.width - frame.gutter);
  const last = frame.scale.stretches.length - 1;
  frame.scale.stretches.forEach(({ start, end, isFolded }, i) => {
    if (isFolded) return;
    const low = i === 0 ? frame.range.from : Math.max(start, frame.range.from);
    const high = i === last ? frame.range.to : Math.min(end, frame.range.to);
    const first = Math.max(0, Math.ceil((low - frame.origin) / step - 1e-9));
    for (let n = first; frame.origin + n * step <= high; n += 1) {
      visit(Math.round(toX(frame, frame.origin + n * step)) + 0.5, n * step, unit);
    }
  });
  return unit;
}

/** @param {Frame} frame */
export function drawGrid(frame) {
  const { context, height, palette } = frame;
  context.strokeStyle = palette.line;
  context.beginPath();
  eachTick(frame, (x) => {
    context.moveTo(x, AXIS);
    context.lineTo(x, height);
  });
  context.stroke();
  visibleFolds(frame).forEach((fold) => drawFold(frame, fold));
}

/** @param {Frame} frame */
function visibleFolds({ scale, range }) {
  return scale.stretches.filter(({ start, end, isFolded }) => isFolded && end > range.from && start < range.to);
}

/**
 * A folded stretch: a band with two torn edges.
 * @param {Frame} frame
 * @param {Stretch} fold
 */
function drawFold(frame, { start, end }) {
  const { context, height, palette } = frame;
  const [left, right] = [toX(frame, start), toX(frame, end)];
  context.fillStyle = palette.stripe;
  context.fillRect(left, 0, right - left, height);
  context.strokeStyle = palette.muted;
  context.globalAlpha = 0.55;
  context.setLineDash([2, 4]);
  context.beginPath();
  for (const x of [Math.round(left) + 0.5, Math.round(right) - 0.5]) {
    context.moveTo(x, AXIS);
    context.lineTo(x, height);
  }
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/**
 * Numbers at the ticks; the unit is written once, at the left or, without a gutter, after the last number.
 * @param {Frame} frame
 */
export function drawAxis(frame) {
  const { context, palette, width, gutter } = frame;
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, width, AXIS);
  visibleFolds(frame).forEach((fold) => drawFoldSign(frame, fold));
  context.fillStyle = palette.muted;
  context.textAlign = "left";
  const { unit } = chooseTicks(frame.to - frame.from, width - gutter);
  const sign = gutter ? `${unit.name} since the start` : unit.short;
  const room = gutter ? 0 : context.measureText(sign).width + LABEL_GAP;
  context.fillText(sign, gutter ? 8 : width - room, AXIS / 2);
  let free = gutter;
  eachTick(frame, (x, at, { ms }) => {
    const text = formatCount(at / ms);
    const wide = context.measureText(text).width;
    if (x < free || x + wide + LABEL_GAP > width - room) return;
    context.fillText(text, x + 3, AXIS / 2);
    free = x + wide + LABEL_GAP;
  });
}

/**
 * @param {Frame} frame
 * @param {Stretch} fold
 */
function drawFoldSign(frame, { start, end }) {
  const { context, palette } = frame;
  const middle = (toX(frame, start) + toX(frame, end)) / 2;
  context.strokeStyle = palette.muted;
  context.beginPath();
  for (const x of [middle - 2, middle + 2]) {
    context.moveTo(x - 2, AXIS / 2 + 4);
    context.lineTo(x + 2, AXIS / 2 - 4);
  }
  context.stroke();
}
