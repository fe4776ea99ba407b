// Draws the lanes of the timeline on a canvas: names, bars, phases with their names, what is compiling now.
import { formatPlace, formatSeconds } from "../core/format.js";
import { PHASE_KINDS, phaseLabel } from "../timeline/phases.js";
import { AXIS, drawAxis, drawGrid, toX } from "./timeline-axis.js";
import { drawCross, drawMarks } from "./timeline-marks.js";
/** @import { CompileBar, Lane, PhaseBar } from "./timeline-lanes.js" */
/** @import { Range, TimeScale } from "./timeline-view.js" */

/**
 * @typedef {object} Layout sizes in px, the same for all lanes
 * @property {number} gutter at the left, for the names of lanes; 0 if they are above the bars
 * @property {number} lane height
 * @property {number} bar top of a bar in its lane
 */
/**
 * @typedef {object} Frame what one painting shows
 * @property {CanvasRenderingContext2D} context
 * @property {number} width px
 * @property {number} height px
 * @property {Layout} layout
 * @property {number} gutter px
 * @property {TimeScale} scale
 * @property {number} from units at the left edge
 * @property {number} to units at the right edge
 * @property {Range} range Unix ms of both edges
 * @property {number} now Unix ms
 * @property {number} scroll px
 * @property {Record<string, string>} palette
 * @property {Set<string | null> | null} lit keys of the compiles that are drawn in full color; null for all
 * @property {number} origin Unix ms of 0 on the axis
 * @property {number | null} selected event id of a compile
 * @property {number | null} current event id of the compile that the arrow keys have reached
 */

export const FONT = "11px system-ui, sans-serif";
const SMALL = "10.5px system-ui, sans-serif";
const BAR = 20; // px, height of a bar
const NEST = 2; // px that each depth of phases is set down
const DEEPEST = 4;
const LEAST_LABEL = 30; // px: a narrower phase has no name
const NARROW = 560; // px: below, the names of lanes are above their bars
const DIM = 0.2; // opacity of what the search does not match

/**
 * @param {number} width px
 * @returns {Layout}
 */
export function makeLayout(width) {
  if (width < NARROW) return { gutter: 0, lane: 48, bar: 20 };
  return { gutter: Math.round(Math.min(260, width * 0.3)), lane: 36, bar: 8 };
}

/**
 * @param {Frame} frame
 * @param {Lane[]} lanes
 */
export function drawTimeline(frame, lanes) {
  const { context, width, height, layout, scroll } = frame;
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  const first = Math.max(0, Math.floor(scroll / layout.lane));
  const last = Math.min(lanes.length, Math.ceil((scroll + height - AXIS) / layout.lane));
  for (let i = first; i < last; i += 1) drawStripe(frame, AXIS + i * layout.lane - scroll, i);
  drawGrid(frame);
  for (let i = first; i < last; i += 1) drawLane(frame, lanes[i], AXIS + i * layout.lane - scroll);
  drawAxis(frame);
}

/**
 * @param {Frame} frame
 * @param {number} top
 * @param {number} index
 */
function drawStripe({ context, palette, width, layout }, top, index) {
  if (index % 2 === 0) return;
  context.fillStyle = palette.stripe;
  context.fillRect(0, top, width, layout.lane);
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} top
 */
function drawLane(frame, lane, top) {
  const { context, width, gutter, layout } = frame;
  context.save();
  context.beginPath();
  context.rect(gutter, top, width - gutter, layout.lane);
  context.clip();
  const y = top + layout.bar;
  drawBars(frame, lane, y);
  drawPhases(frame, lane, y);
  drawOutlines(frame, lane, y);
  drawFlights(frame, lane, y);
  drawMarks(frame, lane, y - 1);
  context.restore();
  if (gutter) drawNameInGutter(frame, lane, top);
  else drawNameAbove(frame, lane, top + 9);
}

/**
 * Two lines: the name and its seconds, then where it is.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} top
 */
function drawNameInGutter(frame, lane, top) {
  const { context, palette, gutter, layout } = frame;
  const [first, second] = [top + layout.lane / 2 - 7, top + layout.lane / 2 + 7];
  const right = gutter - 10;
  context.fillStyle = palette.muted;
  context.textAlign = "right";
  const seconds = lane.seconds ? formatSeconds(lane.seconds) : "";
  context.fillText(seconds, right, first);
  context.textAlign = "left";
  context.fillText(fitPlace(context, lane, right - 8), 8, second);
  context.fillStyle = palette.text;
  context.fillText(fitText(context, lane.own, right - 20 - context.measureText(seconds).width), 8, first);
}

/**
 * One line over the bars.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawNameAbove(frame, lane, y) {
  const { context, palette, width } = frame;
  context.fillStyle = palette.muted;
  context.textAlign = "right";
  const seconds = lane.seconds ? formatSeconds(lane.seconds) : "";
  context.fillText(seconds, width - 6, y);
  context.textAlign = "left";
  const room = width - 24 - context.measureText(seconds).width;
  context.fillStyle = palette.text;
  const name = fitText(context, lane.own, room);
  context.fillText(name, 6, y);
  const used = context.measureText(name).width;
  context.fillStyle = palette.muted;
  if (room - used > 40) context.fillText(fitPlace(context, lane, room - used), 12 + used, y);
}

/**
 * "after the graph break at line 21 · model.py:30". If that is too long, the place is left out; without a graph break the
 * file's name is cut and its line is kept, which distinguishes functions of one name.
 * @param {CanvasRenderingContext2D} context
 * @param {Lane} lane
 * @param {number} width px
 */
function fitPlace(context, lane, width) {
  const place = formatPlace(lane.file, lane.line);
  const text = [lane.after, place].filter(Boolean).join(" · ");
  if (context.measureText(text).width <= width) return text;
  if (lane.after || !place || lane.line === null) return fitText(context, lane.after ?? text, width);
  const line = `:${lane.line}`;
  return fitText(context, place.slice(0, -line.length), width - context.measureText(line).width) + line;
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
 * Calls `paint(x, width, item)` for what is in view; of items thinner than a pixel, for one per pixel.
 * @template {{start: number, end: number}} Item
 * @param {Frame} frame
 * @param {Item[]} items
 * @param {(x: number, width: number, item: Item) => void} paint
 */
function eachInView(frame, items, paint) {
  let lastPixel = -1;
  for (const item of items) {
    if (item.end < frame.range.from || item.start > frame.range.to) continue;
    const x = toX(frame, item.start);
    const wide = toX(frame, item.end) - x;
    if (wide < 1 && Math.floor(x) === lastPixel) continue;
    lastPixel = wide < 1 ? Math.floor(x) : -1;
    paint(x, wide, item);
  }
}

/**
 * Bars that the search does not match, pale, then those that it matches, which thus stay visible among many.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {(x: number, width: number, bar: CompileBar) => void} paint
 */
function eachBar(frame, lane, paint) {
  const { context, lit } = frame;
  if (lit === null) return eachInView(frame, lane.bars, paint);
  context.globalAlpha = DIM;
  eachInView(frame, lane.bars.filter(({ key }) => !lit.has(key)), paint);
  context.globalAlpha = 1;
  eachInView(frame, lane.bars.filter(({ key }) => lit.has(key)), paint);
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawBars(frame, lane, y) {
  const { context, palette } = frame;
  eachBar(frame, lane, (x, wide, bar) => {
    context.fillStyle = bar.isFailed ? palette.bad : palette["p-dynamo"];
    context.fillRect(x, y, Math.max(2, wide), BAR);
  });
}

/**
 * The phases of the compiles that the search matches. Outer ones are below inner ones.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawPhases(frame, lane, y) {
  const { context, palette, width, lit } = frame;
  const top = new Int32Array(Math.ceil(width)); // pixel -> 1 + position of the phase that is seen there
  /** @type {PhaseBar[]} */
  const painted = [];
  eachInView(frame, lit === null ? lane.phases : lane.phases.filter(({ key }) => lit.has(key)), (x, wide, phase) => {
    if (wide < 0.7) return;
    const drop = dropOf(phase);
    context.fillStyle = palette[`p-${phase.kind}`];
    context.fillRect(x, y + drop, wide, BAR - drop);
    top.fill(painted.push(phase), Math.max(0, Math.floor(x)), Math.max(0, Math.ceil(x + wide)));
    if (wide < 4) return;
    context.fillStyle = palette.surface;
    context.fillRect(x, y + drop, 0.75, BAR - drop);
  });
  eachWideRun(top, frame.gutter, (x, wide, position) => drawPhaseName(frame, painted[position - 1], x, wide, y));
}

/** @param {PhaseBar} phase */
function dropOf({ depth }) {
  return Math.min(depth, DEEPEST) * NEST;
}

/**
 * Runs of equal numbers above 0 that are wide enough for a name.
 * @param {Int32Array} top
 * @param {number} begin
 * @param {(x: number, width: number, value: number) => void} visit
 */
function eachWideRun(top, begin, visit) {
  let start = begin;
  for (let x = begin + 1; x <= top.length; x += 1) {
    if (x < top.length && top[x] === top[start]) continue;
    if (top[start] && x - start >= LEAST_LABEL) visit(start, x - start, top[start]);
    start = x;
  }
}

/**
 * The phase in words, its kind if that is too long, or nothing.
 * @param {Frame} frame
 * @param {PhaseBar} phase
 * @param {number} x
 * @param {number} wide
 * @param {number} y
 */
function drawPhaseName({ context, palette }, phase, x, wide, y) {
  context.font = SMALL;
  const text = [phaseLabel(phase.name), PHASE_KINDS[phase.kind][0]].find((each) => context.measureText(each).width <= wide - 8);
  if (text !== undefined) {
    const drop = dropOf(phase);
    context.fillStyle = palette[`p-${phase.kind}`];
    context.fillStyle = chooseInk(String(context.fillStyle));
    context.fillText(text, x + 4, y + drop + (BAR - drop) / 2 + 0.5);
  }
  context.font = FONT;
}

/** @type {Map<string, string>} */
const inks = new Map();

/**
 * Black or white, whichever is easier to read on a color.
 * @param {string} color "#rrggbb", as a canvas returns it
 */
function chooseInk(color) {
  let ink = inks.get(color);
  if (ink === undefined) {
    const channels = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255);
    const [r, g, b] = channels.map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    ink = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#10151f" : "#ffffff";
    inks.set(color, ink);
  }
  return ink;
}

/**
 * Draws a foot for a recompile and a cross for a failure, so that color is not the only sign.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} y
 */
function drawOutlines(frame, lane, y) {
  const { context, palette } = frame;
  eachBar(frame, lane, (x, wide, bar) => {
    const shown = Math.max(2, wide);
    if (bar.isRecompile) {
      context.fillStyle = palette.re;
      context.fillRect(x, y + BAR + 1, shown, 3);
    }
    if (bar.isFailed) drawCross(context, x + shown / 2, y + BAR / 2, 4, wide < 8 ? palette.text : palette.surface);
  });
  for (const bar of lane.bars) {
    if (bar.row[0] === frame.selected) drawRing(frame, bar, y, []);
    if (bar.row[0] === frame.current) drawRing(frame, bar, y, [4, 2]);
  }
}

/**
 * @param {Frame} frame
 * @param {CompileBar} bar
 * @param {number} y
 * @param {number[]} dash
 */
function drawRing(frame, bar, y, dash) {
  const { context, palette } = frame;
  const x = toX(frame, bar.start);
  const wide = Math.max(2, toX(frame, bar.end) - x);
  context.strokeStyle = dash.length ? palette.accent : palette.text;
  context.lineWidth = 2;
  context.setLineDash(dash);
  context.strokeRect(x - 2, y - 2, wide + 4, BAR + 4);
  context.setLineDash([]);
  context.lineWidth = 1;
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
    context.strokeStyle = palette.accent;
    context.fillStyle = palette["live-fill"];
    context.fillRect(x, y, end - x, BAR);
    context.setLineDash([4, 3]);
    context.strokeRect(x + 0.5, y + 0.5, end - x - 1, BAR - 1);
    context.setLineDash([]);
  }
}
