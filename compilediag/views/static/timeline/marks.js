// The signs on the timeline's bars: cache look-ups, graph breaks, CUDA graphs. Each has its own shape.
import { toX } from "./axis.js";
/** @import { Frame } from "./drawing.js" */
/** @import { Lane } from "./lanes.js" */

/** @typedef {[dx: number, dy: number][]} Outline corners, in units of the mark's size */
/** @type {Outline} */
const DIAMOND = [[0, -1], [1, 0], [0, 1], [-1, 0]];
/** @type {Outline} */
const TRIANGLE = [[0, -1], [1, 1], [-1, 1]];
const APART = 2; // px: of marks of one shape that are closer, one is drawn

/** @type {Record<string, {outline: Outline, size: number, face: string, edge: string}>} a negative size is upside down */
const MARKS = {
  hit: { outline: DIAMOND, size: 4, face: "good", edge: "surface" },
  miss: { outline: DIAMOND, size: 4, face: "surface", edge: "muted" },
  capture: { outline: TRIANGLE, size: 4, face: "accent", edge: "surface" },
  recapture: { outline: TRIANGLE, size: 4, face: "re", edge: "surface" },
  skip: { outline: TRIANGLE, size: -4, face: "surface", edge: "bad" },
};

/**
 * Draws a hit as a full diamond, a miss as an empty one, a capture as a full triangle, a skip as an empty one upside
 * down, a graph break as a cross.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
export function drawMarks(frame, lane, y) {
  const { context, range } = frame;
  /** @type {Map<string, number>} shape -> x of the last one */
  const last = new Map();
  for (const mark of lane.marks) {
    if (mark.at < range.from || mark.at > range.to) continue;
    const x = toX(frame, mark.at);
    const isLit = frame.lit === null || frame.lit.has(mark.key);
    const name = isLit ? mark.shape : `${mark.shape} dim`;
    if (Math.abs(x - (last.get(name) ?? -Infinity)) < APART) continue;
    last.set(name, x);
    context.globalAlpha = isLit ? 1 : 0.2;
    drawMark(frame, mark.shape, x, y);
  }
  context.globalAlpha = 1;
}

/**
 * @param {Frame} frame
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 */
function drawMark({ context, palette }, shape, x, y) {
  if (shape === "break") return drawCross(context, x, y, 3, palette.bad);
  const sign = MARKS[shape];
  if (sign === undefined) return; // A sign that this page does not know must not stop the timeline.
  const { outline, size, face, edge } = sign;
  context.beginPath();
  for (const [dx, dy] of outline) context.lineTo(x + dx * Math.abs(size), y + dy * size);
  context.closePath();
  context.fillStyle = palette[face];
  context.strokeStyle = palette[edge];
  context.fill();
  context.stroke();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {string} color
 */
export function drawCross(context, x, y, size, color) {
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.stroke();
  context.lineWidth = 1;
}
