// The time axis of the timeline: ticks at round times since the start, and what folded idle stretches look like.
import { formatCount } from "../core/format.js";

export const AXIS = 22; // px, height of the axis
const [LEAST_GAP, NARROW_GAP] = [120, 80]; // px between ticks, and where there is little room
const LABEL_GAP = 8; // px between labels

/** @type {[ms: number, steps: number[]][]} the units of ticks (µs, ms, s, min, h), and their round numbers */
const UNITS = [
  [1e-3, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [1, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  [1e3, [1, 2, 5, 10, 15, 20, 30]],
  [60e3, [1, 2, 5, 10, 15, 20, 30]],
  [3600e3, [1, 2, 6, 12, 24, 48, 168]],
];

/** @type {(ms: number, width: number) => number} the ms between ticks, for the ms that are in view on so many px */
export function chooseStep(ms, width) {
  const least = (ms / width) * (width < 600 ? NARROW_GAP : LEAST_GAP);
  return UNITS.flatMap(([unit, steps]) => steps.map((count) => count * unit)).find((step) => step >= least) ?? least;
}

/** @type {Write<number>} A tick, ms since the start: "0", "30 s", "1 min 30 s", "1.5 s" between whole seconds. */
export function writeTick(ms) {
  /** @type {Write<number>} without what floating point adds to it */
  const round = (value) => String(Math.round(value * 1e6) / 1e6);
  if (ms < 1) return ms ? `${round(ms * 1e3)} µs` : "0";
  if (ms < 1e3) return `${round(ms)} ms`;
  const seconds = ms / 1e3;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  const rest = round(seconds % 60);
  return [hours && `${formatCount(hours)} h`, minutes && `${minutes} min`, rest !== "0" && `${rest} s`].filter(Boolean).join(" ");
}

/** @type {(frame: Pick<Frame, "scale" | "from" | "to" | "layout" | "width">, ms: number) => number} the x of Unix ms */
export function toX({ scale, from, to, layout: { gutter }, width }, ms) {
  return gutter + ((scale.toUnits(ms) - from) / (to - from)) * (width - gutter);
}

/** @type {FillRect} */
export function fillRect(context, color, x, y, wide, high) {
  context.fillStyle = color;
  context.fillRect(x, y, wide, high);
}

/** @type {StrokeLines} */
export function strokeLines(context, color, lines, width = 1, dash = []) {
  context.strokeStyle = color;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  for (const [x, y, endX, endY] of lines) {
    context.moveTo(x, y);
    context.lineTo(endX, endY);
  }
  context.stroke();
  context.lineWidth = 1;
  context.setLineDash([]);
}

/** @type {(frame: Frame) => number[][]} the ticks in view: x, and ms since the start */
function listTicks(frame) {
  const { scale: { stretches }, range, origin } = frame;
  const step = chooseStep(frame.to - frame.from, frame.width - frame.layout.gutter);
  return stretches.flatMap(({ start, end, isFolded }, i) => {
    if (isFolded) return [];
    const low = i === 0 ? range.from : Math.max(start, range.from);
    const high = i === stretches.length - 1 ? range.to : Math.min(end, range.to);
    const ticks = [];
    for (let n = Math.max(0, Math.ceil((low - origin) / step - 1e-9)); origin + n * step <= high; n += 1) {
      ticks.push([Math.round(toX(frame, origin + n * step)) + 0.5, n * step]);
    }
    return ticks;
  });
}

/** @type {(frame: Frame) => number[][]} both edges of each folded stretch in view, px */
function listFolds(frame) {
  const { scale: { stretches }, range } = frame;
  const shown = stretches.filter(({ start, end, isFolded }) => isFolded && end > range.from && start < range.to);
  return shown.map(({ start, end }) => [toX(frame, start), toX(frame, end)]);
}

/** @type {DrawFrame} lines at the ticks; a folded stretch is a band with two torn edges */
export function drawGrid(frame) {
  const { context, height, palette } = frame;
  strokeLines(context, palette.line, listTicks(frame).map(([x]) => [x, AXIS, x, height]));
  for (const [left, right] of listFolds(frame)) {
    fillRect(context, palette.stripe, left, 0, right - left, height);
    context.globalAlpha = 0.55;
    const edges = [Math.round(left) + 0.5, Math.round(right) - 0.5];
    strokeLines(context, palette.muted, edges.map((x) => [x, AXIS, x, height]), 1, [2, 4]);
    context.globalAlpha = 1;
  }
}

/** @type {DrawFrame} the times of the ticks since the start, and signs of folded stretches */
export function drawAxis(frame) {
  const { context, palette, width, layout: { gutter } } = frame;
  fillRect(context, palette.surface, 0, 0, width, AXIS);
  for (const [left, right] of listFolds(frame)) {
    const middle = (left + right) / 2;
    strokeLines(context, palette.muted, [middle - 2, middle + 2].map((x) => [x - 2, AXIS / 2 + 4, x + 2, AXIS / 2 - 4]));
  }
  context.fillStyle = palette.muted;
  if (gutter) context.fillText("since the start", 12, AXIS / 2);
  let free = gutter;
  for (const [x, at] of listTicks(frame)) {
    const text = writeTick(at);
    const wide = context.measureText(text).width;
    if (x < free || x + wide + LABEL_GAP > width) continue;
    context.fillText(text, x + 4, AXIS / 2);
    free = x + wide + LABEL_GAP;
  }
}

/** @type {DrawFrame} the line where the warm-up ended: what is at its right is an incident */
export function drawWarmupEnd(frame) {
  const { context, palette, width, height, layout, warmup } = frame;
  const x = warmup === null ? -1 : Math.round(toX(frame, warmup)) + 0.5;
  if (x < layout.gutter || x > width) return;
  strokeLines(context, palette.text, [[x, 0, x, height]], 1, [5, 3]);
  if (!layout.axis) return;
  const text = "warm-up ended";
  const wide = context.measureText(text).width;
  const left = x + wide + LABEL_GAP > width ? x - wide - 4 : x + 4;
  fillRect(context, palette.surface, left - 2, 0, wide + 4, AXIS);
  context.fillStyle = palette.text;
  context.fillText(text, left, AXIS / 2);
}
