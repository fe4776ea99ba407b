// Draws the timeline on its canvas.
import { formatPlace, formatSeconds } from "../core/format.js";
/** @import { Lane } from "./timeline-lanes.js" */

/**
 * @typedef {object} Frame what one painting shows
 * @property {CanvasRenderingContext2D} context
 * @property {number} width px
 * @property {number} height px
 * @property {number} gutter px on the left for the names of lanes
 * @property {number} from Unix ms at the left edge
 * @property {number} to Unix ms at the right edge
 * @property {number} now Unix ms
 * @property {number} scroll px
 * @property {Record<string, string>} palette
 * @property {Set<string | null> | null} lit keys of the compiles that are drawn in full color; null for all
 * @property {number} origin Unix ms of 0 s on the axis
 * @property {number | null} selected event id of a compile
 */

export const LANE = 28; // px, height of a lane
export const AXIS = 20; // px, height of the time axis
const BAR = 16; // px, height of a bar
const NEST = 2.5; // px that each depth of phases is set down
const DEEPEST = 4;
const FONT = "11px system-ui, sans-serif";

const [MINUTE, HOUR] = [60_000, 3_600_000];
const LONG_STEPS = [1, 2, 5, 10, 30].map((n) => n * MINUTE).concat([1, 2, 6, 12, 24].map((n) => n * HOUR));

/**
 * A round step in ms that leaves at least 90 px between ticks.
 * @param {number} msPerPixel
 */
function findTickStep(msPerPixel) {
  const least = msPerPixel * 90;
  if (least > MINUTE / 2) return LONG_STEPS.find((step) => step >= least) ?? Math.ceil(least / (24 * HOUR)) * 24 * HOUR;
  const size = 10 ** Math.floor(Math.log10(Math.max(least, 0.001)));
  return [1, 2, 5].map((n) => n * size).find((step) => step >= least) ?? 10 * size;
}

/**
 * Fits a text into a width, with an ellipsis.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width
 */
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

/**
 * @param {Frame} frame
 * @param {Lane[]} lanes
 */
export function drawTimeline(frame, lanes) {
  const { context, width, height, palette } = frame;
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  const first = Math.max(0, Math.floor(frame.scroll / LANE));
  const last = Math.min(lanes.length, Math.ceil((frame.scroll + height - AXIS) / LANE));
  drawGrid(frame);
  for (let i = first; i < last; i += 1) drawLane(frame, lanes[i], AXIS + i * LANE - frame.scroll, i);
  context.fillStyle = palette.surface;
  context.fillRect(0, 0, width, AXIS);
  drawAxis(frame);
}

/**
 * @param {Frame} frame
 * @param {number} ms
 */
export function toX(frame, ms) {
  return frame.gutter + ((ms - frame.from) / (frame.to - frame.from)) * (frame.width - frame.gutter);
}

/**
 * @param {Frame} frame
 * @param {(x: number, ms: number) => void} visit gets the ms since the origin
 */
function eachTick(frame, visit) {
  const step = findTickStep((frame.to - frame.from) / (frame.width - frame.gutter));
  for (let at = Math.ceil((frame.from - frame.origin) / step) * step; frame.origin + at <= frame.to; at += step) {
    visit(Math.round(toX(frame, frame.origin + at)) + 0.5, at);
  }
}

/** @param {Frame} frame */
function drawGrid(frame) {
  const { context, height, palette } = frame;
  context.strokeStyle = palette.grid;
  context.beginPath();
  eachTick(frame, (x) => {
    context.moveTo(x, AXIS);
    context.lineTo(x, height);
  });
  context.stroke();
}

/** @param {Frame} frame */
function drawAxis(frame) {
  const { context, palette } = frame;
  context.fillStyle = palette.muted;
  context.textAlign = "left";
  eachTick(frame, (x, at) => {
    const text = formatSeconds(at / 1e3);
    if (x + context.measureText(text).width + 4 < frame.width) context.fillText(text, x + 3, AXIS / 2);
  });
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} top
 * @param {number} index
 */
function drawLane(frame, lane, top, index) {
  const { context, palette, width, gutter } = frame;
  if (index % 2) {
    context.fillStyle = palette.stripe;
    context.fillRect(0, top, width, LANE);
  }
  context.save();
  context.beginPath();
  context.rect(gutter, top, width - gutter, LANE);
  context.clip();
  const y = top + (LANE - BAR) / 2;
  drawBars(frame, lane, y);
  drawPhases(frame, lane, y);
  drawOutlines(frame, lane, y);
  drawFlights(frame, lane, y);
  drawMarks(frame, lane, y);
  context.restore();
  drawLaneName(frame, lane, top + LANE / 2);
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawLaneName(frame, lane, y) {
  const { context, palette, gutter } = frame;
  context.textAlign = "left";
  context.fillStyle = palette.text;
  const name = fitText(context, lane.name, gutter - 18);
  context.fillText(name, 8, y);
  const width = gutter - 24 - context.measureText(name).width;
  const place = formatPlace(lane.file, lane.line);
  if (!place || width < 30) return;
  context.fillStyle = palette.muted;
  // A place that is too long keeps its line, which distinguishes functions of one name.
  const line = lane.line === null ? "" : `:${lane.line}`;
  const file = fitText(context, place.slice(0, place.length - line.length), width - context.measureText(line).width);
  context.fillText(file + line, 14 + context.measureText(name).width, y);
}

/**
 * @param {Frame} frame
 * @param {string | null} key
 */
function opacityOf(frame, key) {
  return frame.lit === null || frame.lit.has(key) ? 1 : 0.2;
}

/**
 * Calls `paint(x, width, item)` for what is in view; of items thinner than a pixel, for one per pixel.
 * @template {{start: number, end: number}} Item
 * @param {Frame} frame
 * @param {Item[]} items
 * @param {(x: number, width: number, item: Item) => void} paint
 */
function eachInView(frame, items, paint) {
  let lastPixel = -1;
  for (const item of items) {
    if (item.end < frame.from || item.start > frame.to) continue;
    const x = toX(frame, item.start);
    const wide = toX(frame, item.end) - x;
    if (wide < 1 && Math.floor(x) === lastPixel) continue;
    lastPixel = wide < 1 ? Math.floor(x) : -1;
    paint(x, wide, item);
  }
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawBars(frame, lane, y) {
  const { context, palette } = frame;
  eachInView(frame, lane.bars, (x, wide, bar) => {
    context.globalAlpha = opacityOf(frame, bar.key);
    context.fillStyle = bar.isFailed ? palette.failed : palette.dynamo;
    context.fillRect(x, y, Math.max(2, wide), BAR);
  });
  context.globalAlpha = 1;
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawPhases(frame, lane, y) {
  const { context, palette } = frame;
  context.globalAlpha = frame.lit === null ? 1 : 0.35;
  eachInView(frame, lane.phases, (x, wide, phase) => {
    if (wide < 0.7) return;
    const drop = Math.min(phase.depth, DEEPEST) * NEST;
    context.fillStyle = palette[phase.kind];
    context.fillRect(x, y + drop, wide, BAR - drop);
    if (wide < 4) return;
    context.fillStyle = palette.surface;
    context.fillRect(x, y + drop, 0.75, BAR - drop);
  });
  context.globalAlpha = 1;
}

/**
 * Draws a dark foot for a recompile and a cross for a failure, so that color is not the only sign.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawOutlines(frame, lane, y) {
  const { context, palette } = frame;
  eachInView(frame, lane.bars, (x, wide, bar) => {
    const shown = Math.max(2, wide);
    context.globalAlpha = opacityOf(frame, bar.key);
    if (bar.isRecompile) {
      context.fillStyle = palette.recompile;
      context.fillRect(x, y + BAR + 1, shown, 3);
    }
    if (bar.isFailed) drawCross(context, x + shown / 2, y + BAR / 2, 4, palette.surface);
    if (bar.row[0] === frame.selected) {
      context.strokeStyle = palette.text;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 2, shown + 2, BAR + 4);
      context.lineWidth = 1;
    }
  });
  context.globalAlpha = 1;
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawFlights(frame, lane, y) {
  const { context, palette } = frame;
  for (const { start } of lane.flights) {
    const x = toX(frame, start);
    const end = Math.max(x + 2, toX(frame, frame.now));
    context.strokeStyle = palette.live;
    context.fillStyle = palette["live-fill"];
    context.fillRect(x, y, end - x, BAR);
    context.setLineDash([4, 3]);
    context.strokeRect(x + 0.5, y + 0.5, end - x - 1, BAR - 1);
    context.setLineDash([]);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {string} color
 */
function drawCross(context, x, y, size, color) {
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

/** @typedef {[dx: number, dy: number][]} Outline corners, in units of the mark's size */
/** @type {Outline} */
const DIAMOND = [[0, -1], [1, 0], [0, 1], [-1, 0]];
/** @type {Outline} */
const TRIANGLE = [[0, -1], [1, 1], [-1, 1]];

/** @type {Record<string, {outline: Outline, size: number, face: string, edge: string}>} a negative size is upside down */
const MARKS = {
  hit: { outline: DIAMOND, size: 4, face: "hit", edge: "surface" },
  miss: { outline: DIAMOND, size: 4, face: "surface", edge: "muted" },
  capture: { outline: TRIANGLE, size: 4, face: "live", edge: "surface" },
  recapture: { outline: TRIANGLE, size: 4, face: "recompile", edge: "surface" },
  skip: { outline: TRIANGLE, size: -4, face: "surface", edge: "failed" },
};

/**
 * Draws a hit as a full diamond, a miss as an empty one, a capture as a full triangle, a skip as an empty one upside
 * down, a graph break as a cross.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawMarks(frame, lane, y) {
  const { context, palette } = frame;
  for (const mark of lane.marks) {
    if (mark.at < frame.from || mark.at > frame.to) continue;
    context.globalAlpha = opacityOf(frame, mark.key);
    const x = toX(frame, mark.at);
    if (mark.shape === "break") {
      drawCross(context, x, y - 1, 3, palette.failed);
      continue;
    }
    const { outline, size, face, edge } = MARKS[mark.shape];
    context.beginPath();
    for (const [dx, dy] of outline) context.lineTo(x + dx * Math.abs(size), y - 1 + dy * size);
    context.closePath();
    context.fillStyle = palette[face];
    context.strokeStyle = palette[edge];
    context.fill();
    context.stroke();
  }
  context.globalAlpha = 1;
}
