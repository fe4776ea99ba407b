// The time axis of the timeline: ticks at round times since the start, and what folded idle stretches look like.
import { formatCount } from "../core/format.js";

export const AXIS = 22; // px, height of the axis
const [LEAST_GAP, NARROW_GAP] = [120, 80]; // px between ticks, and where there is little room
const LABEL_GAP = 8; // px between labels

/** @type {[ms: number, short: string, steps: number[]][]} the units of ticks, and their round numbers */
const UNITS = [
  [1e-3, "µs", [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [1, "ms", [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [1e3, "s", [1, 2, 5, 10, 15, 20, 30]],
  [60e3, "min", [1, 2, 5, 10, 15, 20, 30]],
  [3600e3, "h", [1, 2, 6, 12, 24, 48, 168]],
];

/**
 * The ms between ticks.
 * @param {number} ms in view
 * @param {number} width px
 */
export function chooseStep(ms, width) {
  const least = (ms / width) * (width < 600 ? NARROW_GAP : LEAST_GAP);
  return UNITS.flatMap(([unit, , steps]) => steps.map((count) => count * unit)).find((step) => step >= least) ?? least;
}

/**
 * A tick: "0", "30 s", "1 min 30 s", "1.5 s" between whole seconds.
 * @param {number} ms since the start
 */
export function writeTick(ms) {
  if (ms < 1) return ms ? `${formatRound(ms * 1e3)} µs` : "0";
  if (ms < 1e3) return `${formatRound(ms)} ms`;
  const seconds = ms / 1e3;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  const rest = formatRound(seconds % 60);
  return [hours && `${formatCount(hours)} h`, minutes && `${minutes} min`, rest !== "0" && `${rest} s`].filter(Boolean).join(" ");
}

/**
 * A number without what floating point adds to it.
 * @param {number} value
 */
function formatRound(value) {
  return String(Math.round(value * 1e6) / 1e6);
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
 * @param {(x: number, at: number) => void} visit gets the ms since the start
 */
function eachTick(frame, visit) {
  const step = chooseStep(frame.to - frame.from, frame.width - frame.gutter);
  const last = frame.scale.stretches.length - 1;
  frame.scale.stretches.forEach(({ start, end, isFolded }, i) => {
    if (isFolded) return;
    const low = i === 0 ? frame.range.from : Math.max(start, frame.range.from);
    const high = i === last ? frame.range.to : Math.min(end, frame.range.to);
    const first = Math.max(0, Math.ceil((low - frame.origin) / step - 1e-9));
    for (let n = first; frame.origin + n * step <= high; n += 1) {
      visit(Math.round(toX(frame, frame.origin + n * step)) + 0.5, n * step);
    }
  });
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
 * The times of the ticks since the start.
 * @param {Frame} frame
 */
export function drawAxis(frame) {
  const { context, palette, width, gutter } = frame;
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, width, AXIS);
  visibleFolds(frame).forEach((fold) => drawFoldSign(frame, fold));
  context.fillStyle = palette.muted;
  if (gutter) context.fillText("since the start", 12, AXIS / 2);
  let free = gutter;
  eachTick(frame, (x, at) => {
    const text = writeTick(at);
    const wide = context.measureText(text).width;
    if (x < free || x + wide + LABEL_GAP > width) return;
    context.fillText(text, x + 4, AXIS / 2);
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

/**
 * The line where the warm-up ended: what is at its right is an incident.
 * @param {Frame} frame
 * @param {number} at Unix ms
 */
export function drawWarmupEnd(frame, at) {
  const { context, palette, width, height, gutter, layout } = frame;
  const x = Math.round(toX(frame, at)) + 0.5;
  if (x < gutter || x > width) return;
  context.strokeStyle = palette.text;
  context.setLineDash([5, 3]);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.setLineDash([]);
  if (!layout.axis) return;
  const text = "warm-up ended";
  const wide = context.measureText(text).width;
  const left = x + wide + LABEL_GAP > width ? x - wide - 4 : x + 4;
  context.fillStyle = palette.surface;
  context.fillRect(left - 2, 0, wide + 4, AXIS);
  context.fillStyle = palette.text;
  context.fillText(text, left, AXIS / 2);
}
