// Draws the lanes of the timeline on a canvas: names, compiles with their phases, signs, and what changed at each recompile.
import { joinChange, readChange } from "../core/compiles.js";
import { make } from "../core/dom.js";
import { formatAmount, formatPlace, formatSeconds } from "../core/format.js";
import { findCellNumber } from "../core/notebook-cell.js";
import { AXIS, drawAxis, drawGrid, drawWarmupEnd, toX } from "./axis.js";
import { KINDS } from "./lanes.js";
import { PHASE_KINDS } from "./phases.js";
import { nameCompile } from "./words.js";

/**
 * @typedef {object} Layout sizes in px, the same for all lanes
 * @property {number} gutter at the left, for the names of lanes; 0 if they are above the bars
 * @property {number} axis height
 * @property {number} lane height
 * @property {number} above height of the name above the bars
 * @property {number | null} flag middle of the line that says what a compile is
 * @property {number} bar top of a bar in its lane
 * @property {number} size height of a bar
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
 * @property {TimeRange} range Unix ms of both edges
 * @property {number} now Unix ms
 * @property {number} scroll px
 * @property {Record<string, string>} palette
 * @property {Set<string | null> | null} lit keys of the compiles that are drawn in full color; null for all
 * @property {number} origin Unix ms of 0 on the axis
 * @property {number | null} warmup Unix ms of the end of the warm-up
 * @property {number | null} selected event id of a compile
 * @property {CompileBar | null} current the compile that the arrow keys have reached
 * @property {Compiles} compiles
 * @property {boolean} hasLinks the places of cells lead to them
 */
/**
 * @typedef {object} Group compiles that are too narrow to be drawn one by one, or a single one
 * @property {CompileBar[]} bars
 * @property {number} x px
 * @property {number} end px
 * @property {boolean} isThin
 * @property {boolean} isLit
 */

const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const FONT = `11px ${SANS}`;
const [BOLD, CODE, NAME] = [`600 11px ${SANS}`, `600 11px ${MONO}`, `600 12px ${MONO}`];
const NARROW = 560; // px: below, the names of lanes are above their bars
const LEAST = 2; // px, width of a bar
const LEAST_FLAG = 8; // px that the shortest flag needs
const THIN = 14; // px: narrower bars beside each other are one group
const MANY = 20; // recompiles in one group that is hatched
const DIM = 0.2; // opacity of what the search does not match
const BAD = KINDS.length + 1; // after the kinds of phases, whose numbers are one more than their position
const AGAIN = "↻";

/**
 * @param {number} width px
 * @param {boolean} hasFlags whether there is a line above each bar that says what it is
 * @param {boolean} isStrip one lane without names and axis
 * @returns {Layout}
 */
export function makeLayout(width, hasFlags, isStrip) {
  if (isStrip) return { gutter: 0, axis: 0, lane: 40, above: 0, flag: 8, bar: 21, size: 14 };
  const gutter = width < NARROW ? 0 : Math.round(Math.min(200, width * 0.2));
  const above = gutter ? 0 : 20;
  const [lane, bar] = hasFlags ? [54, 26] : [40, 12];
  return { gutter, axis: AXIS, lane: lane + above, above, flag: hasFlags ? above + 12 : null, bar: above + bar, size: 17 };
}

/**
 * Gives a canvas its size; its context then draws in px of the page.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width px
 * @param {number} height px
 * @param {number} [ratio]
 */
export function sizeCanvas(canvas, width, height, ratio = globalThis.devicePixelRatio || 1) {
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    [canvas.width, canvas.height] = [wide, high];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  }
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/**
 * @param {Frame} frame
 * @param {Lane[]} lanes
 */
export function drawTimeline(frame, lanes) {
  const { context, width, height, layout, scroll } = frame;
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  context.font = FONT;
  const first = Math.max(0, Math.floor(scroll / layout.lane));
  const last = Math.min(lanes.length, Math.ceil((scroll + height - layout.axis) / layout.lane));
  if (layout.axis) drawGrid(frame);
  for (let i = first; i < last; i += 1) drawLane(frame, lanes[i], layout.axis + i * layout.lane - scroll);
  if (layout.axis) drawAxis(frame);
  if (frame.warmup !== null) drawWarmupEnd(frame, frame.warmup);
}

/**
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} top
 */
function drawLane(frame, lane, top) {
  const { context, width, gutter, layout, palette } = frame;
  const groups = groupBars(frame, lane);
  context.save();
  context.beginPath();
  context.rect(gutter, top + layout.above, width - gutter, layout.lane - layout.above);
  context.clip();
  for (const group of groups) drawGround(frame, group, top);
  drawPhases(frame, lane, groups, top + layout.bar);
  for (const group of groups) drawCap(frame, group, top + layout.bar);
  if (lane.uncompiled !== null) drawUncompiled(frame, lane.uncompiled, top + layout.bar);
  if (layout.flag !== null) drawFlags(frame, groups, top + layout.flag);
  if (layout.axis) drawMarks(frame, lane, top + layout.bar + layout.size + 5);
  context.restore();
  if (!layout.axis) return;
  context.fillStyle = palette.line;
  context.fillRect(0, top, width, 1);
  drawName(frame, lane, top);
}

/**
 * The compiles in view, the narrow ones beside each other as one group.
 * @param {Frame} frame
 * @param {Lane} lane
 */
function groupBars(frame, lane) {
  const { range, lit, now } = frame;
  /** @type {Group[]} */
  const groups = [];
  for (const bar of lane.bars) {
    const to = Math.min(bar.end, Math.max(now, bar.start));
    if (to < range.from || bar.start > range.to) continue;
    const x = toX(frame, bar.start);
    const end = Math.max(x + LEAST, toX(frame, to) - 1);
    const [isThin, isLit] = [end - x < THIN && !bar.flight, lit === null || lit.has(bar.key)];
    const last = groups.at(-1);
    if (last && last.isLit === isLit && isAgain(last) === bar.isRecompile && x - last.end < THIN && joins(last, bar, end - x)) {
      last.end = Math.max(last.end, end);
      last.bars.push(bar);
      last.isThin &&= !bar.isBackward || last.end - last.x < THIN;
    } else groups.push({ bars: [bar], x, end, isThin, isLit });
  }
  return groups;
}

/**
 * Whether a compile is drawn as one with those before it: the backward of a recompile is a part of it.
 * @param {Group} group
 * @param {CompileBar} bar
 * @param {number} wide px
 */
function joins({ bars, isThin }, bar, wide) {
  if (bar.isRecompile && bar.isBackward) return bars[bars.length - 1].key === bar.key;
  return isThin && !bar.flight && wide < (bars.length < MANY ? THIN : 4 * THIN);
}

/** @param {Group} group */
function isAgain({ bars }) {
  return bars[0].isRecompile;
}

/**
 * The ground of recompiles over the whole lane: hatched if there are many.
 * @param {Frame} frame
 * @param {Group} group
 * @param {number} top
 */
function drawGround({ context, palette, layout }, group, top) {
  if (!isAgain(group)) return;
  const [x, wide, high] = [group.x, group.end - group.x, layout.lane - layout.above];
  const y = top + layout.above;
  context.globalAlpha = group.isLit ? 1 : DIM;
  context.fillStyle = context.strokeStyle = palette["re-soft"];
  if (group.bars.length < MANY) context.fillRect(x, y, wide, high);
  else {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, high);
    context.clip();
    context.lineWidth = 5;
    context.beginPath();
    for (let at = x - high; at < group.end; at += 12) {
      context.moveTo(at, y + high);
      context.lineTo(at + high, y);
    }
    context.stroke();
    context.restore();
  }
  context.fillStyle = palette.re;
  if (!group.isThin || group.bars.length >= MANY) context.fillRect(x, y, 1, high);
  context.globalAlpha = 1;
}

/**
 * The cap of a bar, thicker for a recompile, a cross for a failure, and a line below for what is pale.
 * @param {Frame} frame
 * @param {Group} group
 * @param {number} y
 */
function drawCap(frame, group, y) {
  const { context, palette, layout, selected, current } = frame;
  const [x, wide] = [group.x, group.end - group.x];
  const [first] = group.bars;
  context.globalAlpha = group.isLit ? 1 : DIM;
  context.fillStyle = context.strokeStyle = isAgain(group) ? palette.re : first.isFailed ? palette.bad : palette.need;
  const thick = isAgain(group) ? 4 : 3;
  if (first.flight) {
    // What compiles now has a dashed cap, and a line where it is.
    for (let at = x; at < group.end; at += 6) context.fillRect(at, y - thick - 1, Math.min(4, group.end - at), thick);
    fillRect(context, isAgain(group) ? palette.re : palette.accent, group.end - 1, y - layout.bar, 2, layout.lane);
  } else context.fillRect(x, y - thick - 1, wide, thick);
  fillRect(context, palette.need, x, y + layout.size, wide, 1);
  for (const bar of group.bars) {
    if (bar.isFailed) {
      const middle = (toX(frame, bar.start) + Math.min(group.end, toX(frame, bar.end))) / 2;
      drawCross(context, middle, y + layout.size / 2, 4, wide < 8 ? palette.text : palette.surface);
    }
    if ((bar.row && bar.row[0] === selected) || bar === current) drawRing(frame, bar, y);
  }
  context.globalAlpha = 1;
}

/**
 * @param {Frame} frame
 * @param {CompileBar} bar
 * @param {number} y
 */
function drawRing(frame, bar, y) {
  const { context, palette, layout, now } = frame;
  const x = toX(frame, bar.start);
  const wide = Math.max(LEAST, toX(frame, Math.min(bar.end, now)) - x);
  context.lineWidth = 2;
  for (const [color, out] of /** @type {[string, number][]} */ ([[palette.surface, 1], [palette.text, 3]])) {
    context.strokeStyle = color;
    context.strokeRect(x - out, y - 5 - out, wide + 2 * out, layout.size + 6 + 2 * out);
  }
  context.lineWidth = 1;
}

/**
 * The phases of the compiles. Each pixel has the kind of the innermost phase; the first pixel of a run is left free.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {Group[]} groups
 * @param {number} y
 */
function drawPhases(frame, lane, groups, y) {
  const { context, palette, width, range, lit, now, layout } = frame;
  const kinds = new Uint8Array(Math.ceil(width));
  for (const group of groups) {
    let last = -1; // of bars in one pixel, one is drawn
    for (const bar of group.bars) {
      const x = toX(frame, bar.start);
      if (Math.round(x) === last && group.isThin) continue;
      last = Math.round(x);
      const end = toX(frame, Math.min(bar.end, now)) - 1;
      if (bar.flight) fillRect(context, palette["live-fill"], x, y, Math.max(LEAST, end - x), layout.size);
      else if (group.isLit) fillPixels(kinds, x, Math.max(end, x + LEAST), bar.isFailed ? BAD : 1);
      else fillRect(context, palette["live-fill"], x, y, Math.max(LEAST, end - x), layout.size);
    }
  }
  for (const { start, end, kind, key } of lane.phases) {
    if (end < range.from || start > range.to || (lit !== null && !lit.has(key))) continue;
    const x = toX(frame, start);
    const wide = toX(frame, end) - x;
    if (wide >= 0.7) fillPixels(kinds, x, x + wide, kind + 1);
  }
  let start = frame.gutter;
  for (let x = start + 1; x <= kinds.length; x += 1) {
    if (x < kinds.length && kinds[x] === kinds[start]) continue;
    if (kinds[start]) drawRun(frame, kinds[start], start, x - start, y);
    start = x;
  }
}

/**
 * @param {Uint8Array} kinds
 * @param {number} x
 * @param {number} end
 * @param {number} kind
 */
function fillPixels(kinds, x, end, kind) {
  const from = Math.max(0, Math.round(x));
  kinds.fill(kind, from, Math.max(from + 1, Math.round(end)));
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} color
 * @param {number} x
 * @param {number} y
 * @param {number} wide
 * @param {number} high
 */
function fillRect(context, color, x, y, wide, high) {
  context.fillStyle = color;
  context.fillRect(x, y, wide, high);
}

/**
 * Neighboring pixels of one kind, with its word if that fits.
 * @param {Frame} frame
 * @param {number} number
 * @param {number} x
 * @param {number} wide
 * @param {number} y
 */
function drawRun({ context, palette, layout }, number, x, wide, y) {
  const kind = number === BAD ? null : KINDS[number - 1];
  fillRect(context, kind ? palette[`p-${kind}`] : palette.bad, x, y, wide > 3 ? wide - 1 : wide, layout.size);
  if (!kind || layout.size < 16) return;
  const [word] = PHASE_KINDS[kind];
  context.font = FONT;
  if (wide < measureWord(context, word) + 12) return;
  context.fillStyle = palette[`i-${kind}`];
  context.textAlign = "center";
  context.fillText(word, x + wide / 2, y + layout.size / 2 + 1);
  context.textAlign = "left";
}

/** @type {Map<string, number>} */
const widths = new Map();

/**
 * The width of the word of a phase, measured once.
 * @param {CanvasRenderingContext2D} context
 * @param {string} word
 */
function measureWord(context, word) {
  const width = widths.get(word) ?? context.measureText(word).width;
  widths.set(word, width);
  return width;
}

/**
 * Above each bar what it is: of a recompile, what changed.
 * @param {Frame} frame
 * @param {Group[]} groups
 * @param {number} y
 */
function drawFlags(frame, groups, y) {
  const { context, palette, width, gutter } = frame;
  let free = gutter; // the first pixel that no flag has
  context.font = CODE;
  const letter = context.measureText("0").width;
  /** @param {string} text @param {boolean} isCode measuring is slow, and all letters of code are as wide */
  const measure = (text, isCode) => (isCode ? (text.length + 0.5) * letter : context.measureText(text).width);
  groups.forEach((group, i) => {
    const isRe = isAgain(group);
    const [x, next] = [Math.max(group.x, gutter) + (group.isThin && group.bars.length < MANY ? 1 : 4), groups[i + 1]?.x ?? width];
    const room = Math.max(next - 4, group.end - 2) - x;
    if (room < LEAST_FLAG && i < groups.length - 1) return;
    const texts = isRe ? describeAgain(frame, group) : [describeFirst(frame, group)];
    context.font = isRe ? CODE : BOLD;
    const text = texts.find((each) => measure(each, isRe) <= room) ?? (isRe ? texts.at(-1) ?? "" : fitText(context, texts[0], room));
    const wide = measure(text, isRe);
    const at = Math.min(x, Math.max(gutter, next - 2 - wide)); // to the left if there is no room
    if (!text || at < free || at + wide > width) return;
    free = at + wide + 2;
    context.globalAlpha = group.isLit ? 1 : DIM;
    if (isRe && at + wide > group.end) fillRect(context, palette["re-soft"], at - 1, y - 7, wide + 2, 14);
    context.fillStyle = isRe ? palette["re-text"] : palette.muted;
    context.fillText(text, at, y + 0.5);
    context.globalAlpha = 1;
  });
}

/**
 * What a group of recompiles is, the longest text first.
 * @param {Frame} frame
 * @param {Group} group
 */
function describeAgain({ compiles }, { bars: all, x, end }) {
  const bars = all.filter((bar) => !bar.isBackward);
  if (!bars.length) return [`${AGAIN} its backward`, AGAIN];
  const rows = [bars[0], bars[bars.length - 1]].map(({ key }) => compiles.findRecompile(key)?.row ?? null);
  const [first, last] = rows.map((row) => row && compiles.recompiles.reader(row));
  if (!first || !last) return [AGAIN];
  const change = readChange(first);
  if (bars.length === 1) return [`${AGAIN} ${joinChange(change)}`, `${AGAIN} ${change.change ?? change.what}`, AGAIN];
  const count = [`${AGAIN} ${bars.length} recompiles`, `${AGAIN}${bars.length}×`];
  if (bars.length < MANY || end - x < 4 * THIN) return count;
  const mean = formatSeconds(bars.reduce((sum, bar) => sum + bar.end - bar.start, 0) / bars.length / 1e3);
  const is = last("guard_source") === first("guard_source") ? `${change.what}: ${first("expected")} → ${last("actual")}` : "several values";
  return [`${AGAIN} ${bars.length} recompiles, ${mean} each · ${is}`, ...count];
}

/**
 * @param {Frame} frame
 * @param {Group} group
 */
function describeFirst({ compiles }, { bars }) {
  if (bars.length > 1) return bars.length < MANY ? `${bars.length}×` : formatAmount(bars.length, "compile");
  return bars[0].row ? nameCompile(compiles.store.table("compiles").reader(bars[0].row)) : "compiling";
}

/**
 * After a limit was reached, to the end.
 * @param {Frame} frame
 * @param {number} since Unix ms
 * @param {number} y
 */
function drawUncompiled(frame, since, y) {
  const { context, palette, width, layout } = frame;
  const x = toX(frame, since) + 3;
  const wide = width - 6 - x;
  if (wide < 2) return;
  fillRect(context, palette["bad-soft"], x, y, wide, layout.size);
  context.strokeStyle = palette.bad;
  context.setLineDash([3, 2]);
  context.strokeRect(x + 0.5, y + 0.5, wide - 1, layout.size - 1);
  context.setLineDash([]);
  context.font = FONT;
  context.fillStyle = palette["bad-text"];
  context.fillText(fitText(context, "runs uncompiled", wide - 8), x + 5, y + layout.size / 2 + 1);
}

/**
 * The name of a lane, and where it is with its seconds: in two lines, or in one above the bars.
 * @param {Frame} frame
 * @param {Lane} lane
 * @param {number} top
 */
function drawName({ context, palette, width, gutter, layout, hasLinks }, lane, top) {
  const [left, room] = gutter ? [12, gutter - 20] : [8, width - 16];
  const y = gutter ? top + layout.lane / 2 - 8 : top + 11;
  if (gutter) fillRect(context, palette.line, gutter - 1, top, 1, layout.lane);
  context.font = NAME;
  context.fillStyle = palette.text;
  const name = fitText(context, lane.own, gutter ? room : room * 0.6);
  context.fillText(name, left, y);
  const used = gutter ? 0 : context.measureText(name).width + 8;
  context.font = FONT;
  context.fillStyle = palette.muted;
  const isLink = hasLinks && !lane.after && findCellNumber(lane.file) !== null;
  const place = lane.after ?? formatPlace(lane.file, lane.line)?.replace(/^Cell (?=In)/, "") ?? "";
  const seconds = lane.seconds ? formatSeconds(lane.seconds) : "";
  const tail = place && seconds ? ` · ${seconds}` : seconds;
  const fitted = fitText(context, place, room - used - context.measureText(tail).width, true);
  const below = gutter ? y + 16 : y;
  if (!isLink) return context.fillText(fitted + tail, left + used, below);
  context.fillText(tail, left + used + context.measureText(fitted).width, below);
  context.fillStyle = palette.accent;
  context.fillText(fitted, left + used, below);
}

/**
 * Fits a text into a width, with an ellipsis at its end or, if the texts differ only at their ends, at its start.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} width
 * @param {boolean} [keepsEnd]
 */
function fitText(context, text, width, keepsEnd = false) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  /** @param {number} length */
  const cut = (length) => (keepsEnd ? `…${text.slice(text.length - length)}` : `${text.slice(0, length)}…`);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? cut(low) : "";
}

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
function drawMarks(frame, lane, y) {
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

const WIDTH = 820; // px
const PIECE = 16; // lanes
const MANY_LANES = 100; // beyond, the pieces have a lower resolution, because memory is limited

/**
 * Draws all lanes; the view of `frame` gives the time, its sizes are not used.
 * @param {Omit<Frame, "context" | "width" | "height" | "layout" | "gutter" | "scroll">} frame
 * @param {Lane[]} lanes
 */
export function drawForPrint(frame, lanes) {
  const ratio = lanes.length > MANY_LANES ? 1 : 2;
  const layout = makeLayout(WIDTH, lanes.some((lane) => lane.bars.some((bar) => bar.isRecompile)), false);
  const pieces = [];
  for (let first = 0; first < lanes.length; first += PIECE) {
    const some = lanes.slice(first, first + PIECE);
    const height = layout.axis + some.length * layout.lane;
    const canvas = make("canvas", "");
    const context = sizeCanvas(canvas, WIDTH, height, ratio);
    canvas.removeAttribute("style"); // as wide as the page of paper
    if (!context) continue;
    drawTimeline({ ...frame, context, width: WIDTH, height, layout, gutter: layout.gutter, scroll: 0 }, some);
    context.globalCompositeOperation = "destination-over"; // under what is drawn
    context.fillStyle = frame.palette.surface;
    context.fillRect(0, 0, WIDTH, height);
    pieces.push(canvas);
  }
  return pieces;
}
