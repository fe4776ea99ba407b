// Draws the lanes of the timeline on a canvas: names, compiles with their phases, signs, and what changed at each recompile.
import { joinChange, readChange } from "../core/compiles.js";
import { make } from "../core/dom.js";
import { formatAmount, formatPlace, formatSeconds } from "../core/format.js";
import { AXIS, drawAxis, drawGrid, drawWarmupEnd, fillRect, strokeLines, toX } from "./axis.js";
import { KINDS } from "./lanes.js";
import { nameCompile, PHASE_KINDS } from "./phases.js";

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
const CROSS_WIDTH = 1.5; // px
const APART = 2; // px: of marks of one shape that are closer, one is drawn
const PAPER = 820; // px
const PIECE = 16; // lanes on a page of paper
const MANY_LANES = 100; // beyond, the pieces have a lower resolution, because memory is limited

/** @type {Outline} */
const DIAMOND = [[0, -1], [1, 0], [0, 1], [-1, 0]];
/** @type {Outline} */
const TRIANGLE = [[0, -1], [1, 1], [-1, 1]];
/**
 * A hit is a full diamond, a miss an empty one, a capture a full triangle, a skip an empty one; a negative size is upside
 * down. A graph break is a cross.
 * @type {Record<string, {outline: Outline, size: number, face: string, edge: string}>}
 */
const MARKS = {
  hit: { outline: DIAMOND, size: 4, face: "good", edge: "surface" },
  miss: { outline: DIAMOND, size: 4, face: "surface", edge: "muted" },
  capture: { outline: TRIANGLE, size: 4, face: "accent", edge: "surface" },
  recapture: { outline: TRIANGLE, size: 4, face: "re", edge: "surface" },
  skip: { outline: TRIANGLE, size: -4, face: "surface", edge: "bad" },
};

/**
 * `width` in px; `hasFlags`: a line above each bar says what it is; `isStrip`: one lane without names and axis.
 * @type {(width: number, hasFlags: boolean, isStrip: boolean) => Layout}
 */
export function makeLayout(width, hasFlags, isStrip) {
  if (isStrip) return { gutter: 0, axis: 0, lane: 40, above: 0, flag: 8, bar: 21, size: 14 };
  const gutter = width < NARROW ? 0 : Math.round(Math.min(200, width * 0.2));
  const above = gutter ? 0 : 20;
  const [lane, bar] = hasFlags ? [54, 26] : [40, 12];
  return { gutter, axis: AXIS, lane: lane + above, above, flag: hasFlags ? above + 12 : null, bar: above + bar, size: 17 };
}

/**
 * Gives a canvas its size in px; its context then draws in px of the page.
 * @type {(canvas: HTMLCanvasElement, width: number, height: number, ratio?: number) => CanvasRenderingContext2D | null}
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

/** @param {Frame} frame @param {Lane[]} lanes */
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
  drawWarmupEnd(frame);
}

/**
 * Draws all lanes on paper, in pieces that a page can hold; of `frame`, the view gives the time.
 * @param {Omit<Frame, "context" | "width" | "height" | "layout" | "scroll">} frame
 * @param {Lane[]} lanes
 */
export function drawForPrint(frame, lanes) {
  const ratio = lanes.length > MANY_LANES ? 1 : 2;
  const layout = makeLayout(PAPER, lanes.some((lane) => lane.bars.some((bar) => bar.isRecompile)), false);
  const pieces = [];
  for (let first = 0; first < lanes.length; first += PIECE) {
    const some = lanes.slice(first, first + PIECE);
    const height = layout.axis + some.length * layout.lane;
    const canvas = make("canvas");
    const context = sizeCanvas(canvas, PAPER, height, ratio);
    canvas.removeAttribute("style"); // as wide as the page of paper
    if (!context) continue;
    drawTimeline({ ...frame, context, width: PAPER, height, layout, scroll: 0 }, some);
    context.globalCompositeOperation = "destination-over"; // under what is drawn
    fillRect(context, frame.palette.surface, 0, 0, PAPER, height);
    pieces.push(canvas);
  }
  return pieces;
}

/** @type {Paint<Lane>} */
function drawLane(frame, lane, top) {
  const { context, width, layout, palette } = frame;
  const groups = groupBars(frame, lane);
  const bar = top + layout.bar;
  context.save();
  context.beginPath();
  context.rect(layout.gutter, top + layout.above, width - layout.gutter, layout.lane - layout.above);
  context.clip();
  for (const group of groups) drawGround(frame, group, top + layout.above);
  drawPhases(frame, { lane, groups }, bar);
  for (const group of groups) drawCap(frame, group, bar);
  if (lane.uncompiled !== null) drawUncompiled(frame, lane.uncompiled, bar);
  if (layout.flag !== null) drawFlags(frame, groups, top + layout.flag);
  if (layout.axis) drawMarks(frame, lane, bar + layout.size + 5);
  context.restore();
  if (!layout.axis) return;
  fillRect(context, palette.line, 0, top, width, 1);
  drawName(frame, lane, top);
}

/**
 * The compiles in view, the narrow ones beside each other as one group; the backward of a recompile is a part of it.
 * @type {(frame: Frame, lane: Lane) => BarGroup[]}
 */
function groupBars(frame, lane) {
  const { range, lit, now } = frame;
  /** @type {BarGroup[]} */
  const groups = [];
  for (const bar of lane.bars) {
    const to = Math.min(bar.end, Math.max(now, bar.start));
    if (to < range.from || bar.start > range.to) continue;
    const x = toX(frame, bar.start);
    const end = Math.max(x + LEAST, toX(frame, to) - 1);
    const [isThin, isLit] = [end - x < THIN && !bar.flight, lit === null || lit.has(bar.key)];
    const last = groups.at(-1);
    const isBeside = last && last.isLit === isLit && last.isAgain === bar.isRecompile && x - last.end < THIN;
    const joins = isBeside && (bar.isRecompile && bar.isBackward ? last.bars.at(-1)?.key === bar.key
      : last.isThin && !bar.flight && end - x < (last.bars.length < MANY ? THIN : 4 * THIN));
    if (joins) {
      last.end = Math.max(last.end, end);
      last.bars.push(bar);
      last.isThin &&= !bar.isBackward || last.end - last.x < THIN;
    } else groups.push({ bars: [bar], x, end, isThin, isLit, isAgain: bar.isRecompile });
  }
  return groups;
}

/** @type {Paint<BarGroup>} the ground of recompiles over the whole lane: hatched if there are many */
function drawGround({ context, palette, layout }, group, y) {
  if (!group.isAgain) return;
  const [x, wide, high] = [group.x, group.end - group.x, layout.lane - layout.above];
  const isHatched = group.bars.length >= MANY;
  context.globalAlpha = group.isLit ? 1 : DIM;
  if (!isHatched) fillRect(context, palette["re-soft"], x, y, wide, high);
  else {
    context.save();
    context.beginPath();
    context.rect(x, y, wide, high);
    context.clip();
    const lines = [];
    for (let at = x - high; at < group.end; at += 12) lines.push([at, y + high, at + high, y]);
    strokeLines(context, palette["re-soft"], lines, 5);
    context.restore();
  }
  if (!group.isThin || isHatched) fillRect(context, palette.re, x, y, 1, high);
  context.globalAlpha = 1;
}

/** @type {Paint<BarGroup>} the cap of a bar, thicker for a recompile, a cross for a failure, and a line below for what is pale */
function drawCap(frame, group, y) {
  const { context, palette, layout, selected, current } = frame;
  const { x, end, isAgain, bars: [first] } = group;
  context.globalAlpha = group.isLit ? 1 : DIM;
  const color = isAgain ? palette.re : first.isFailed ? palette.bad : palette.need;
  const thick = isAgain ? 4 : 3;
  if (first.flight) {
    // What compiles now has a dashed cap, and a line where it is.
    for (let at = x; at < end; at += 6) fillRect(context, color, at, y - thick - 1, Math.min(4, end - at), thick);
    fillRect(context, isAgain ? palette.re : palette.accent, end - 1, y - layout.bar, 2, layout.lane);
  } else fillRect(context, color, x, y - thick - 1, end - x, thick);
  fillRect(context, palette.need, x, y + layout.size, end - x, 1);
  for (const bar of group.bars) {
    if (bar.isFailed) {
      const middle = (toX(frame, bar.start) + Math.min(end, toX(frame, bar.end))) / 2;
      strokeLines(context, end - x < 8 ? palette.text : palette.surface, cross(middle, y + layout.size / 2, 4), CROSS_WIDTH);
    }
    if ((bar.row && bar.row[0] === selected) || bar === current) drawRing(frame, bar, y);
  }
  context.globalAlpha = 1;
}

/** @type {Paint<CompileBar>} */
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
 * @type {Paint<{lane: Lane, groups: BarGroup[]}>}
 */
function drawPhases(frame, { lane, groups }, y) {
  const { context, palette, width, range, lit, now, layout } = frame;
  const kinds = new Uint8Array(Math.ceil(width));
  /** @param {number} x @param {number} end @param {number} kind */
  const fill = (x, end, kind) => {
    const from = Math.max(0, Math.round(x));
    kinds.fill(kind, from, Math.max(from + 1, Math.round(end)));
  };
  for (const group of groups) {
    let last = -1; // of bars in one pixel, one is drawn
    for (const bar of group.bars) {
      const x = toX(frame, bar.start);
      if (Math.round(x) === last && group.isThin) continue;
      last = Math.round(x);
      const end = toX(frame, Math.min(bar.end, now)) - 1;
      if (bar.flight || !group.isLit) fillRect(context, palette["live-fill"], x, y, Math.max(LEAST, end - x), layout.size);
      else fill(x, Math.max(end, x + LEAST), bar.isFailed ? BAD : 1);
    }
  }
  for (const { start, end, kind, key } of lane.phases) {
    if (end < range.from || start > range.to || (lit !== null && !lit.has(key))) continue;
    const x = toX(frame, start);
    const wide = toX(frame, end) - x;
    if (wide >= 0.7) fill(x, x + wide, kind + 1);
  }
  let start = layout.gutter;
  for (let x = start + 1; x <= kinds.length; x += 1) {
    if (x < kinds.length && kinds[x] === kinds[start]) continue;
    if (kinds[start]) drawRun(frame, { number: kinds[start], x: start, wide: x - start }, y);
    start = x;
  }
}

/** @type {Map<string, number>} word of a phase -> its width, measured once */
const widths = new Map();

/** @type {Paint<{number: number, x: number, wide: number}>} Neighboring pixels of one kind, with its word if that fits. */
function drawRun({ context, palette, layout }, { number, x, wide }, y) {
  const kind = number === BAD ? null : KINDS[number - 1];
  fillRect(context, kind ? palette[`p-${kind}`] : palette.bad, x, y, wide > 3 ? wide - 1 : wide, layout.size);
  if (!kind || layout.size < 16) return;
  const [word] = PHASE_KINDS[kind];
  context.font = FONT;
  const needed = widths.get(word) ?? context.measureText(word).width;
  widths.set(word, needed);
  if (wide < needed + 12) return;
  context.fillStyle = palette[`i-${kind}`];
  context.textAlign = "center";
  context.fillText(word, x + wide / 2, y + layout.size / 2 + 1);
  context.textAlign = "left";
}

/** @type {Paint<BarGroup[]>} Above each bar what it is: of a recompile, what changed. */
function drawFlags(frame, groups, y) {
  const { context, palette, width, layout: { gutter } } = frame;
  let free = gutter; // the first pixel that no flag has
  context.font = CODE;
  const letter = context.measureText("0").width;
  /** @param {string} text @param {boolean} isCode measuring is slow, and all letters of code are as wide */
  const measure = (text, isCode) => (isCode ? (text.length + 0.5) * letter : context.measureText(text).width);
  groups.forEach((group, i) => {
    const isRe = group.isAgain;
    const [x, next] = [Math.max(group.x, gutter) + (group.isThin && group.bars.length < MANY ? 1 : 4), groups[i + 1]?.x ?? width];
    const room = Math.max(next - 4, group.end - 2) - x;
    if (room < LEAST_FLAG && i < groups.length - 1) return;
    const texts = describeGroup(frame, group);
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

/** @type {(frame: Frame, group: BarGroup) => string[]} what a group is, the longest text first */
function describeGroup({ compiles }, { bars: all, x, end, isAgain }) {
  if (!isAgain && all.length > 1) return [all.length < MANY ? `${all.length}×` : formatAmount(all.length, "compile")];
  if (!isAgain) return [all[0].row ? nameCompile(compiles.store.table("compiles").reader(all[0].row)) : "compiling"];
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

/** @type {Paint<number>} From the time when a limit was reached (Unix ms) to the end. */
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

/** @type {Paint<Lane>} the signs of cache look-ups, graph breaks and CUDA graphs below the bars */
function drawMarks(frame, { marks }, y) {
  const { context, palette, range, lit } = frame;
  /** @type {Map<string, number>} shape -> x of the last one */
  const last = new Map();
  for (const { at, shape, key } of marks) {
    if (at < range.from || at > range.to) continue;
    const x = toX(frame, at);
    const isLit = lit === null || lit.has(key);
    const name = isLit ? shape : `${shape} dim`;
    if (Math.abs(x - (last.get(name) ?? -Infinity)) < APART) continue;
    last.set(name, x);
    context.globalAlpha = isLit ? 1 : DIM;
    if (shape === "break") {
      strokeLines(context, palette.bad, cross(x, y, 3), CROSS_WIDTH);
      continue;
    }
    const { outline, size, face, edge } = MARKS[shape];
    context.beginPath();
    for (const [dx, dy] of outline) context.lineTo(x + dx * Math.abs(size), y + dy * size);
    context.closePath();
    context.fillStyle = palette[face];
    context.strokeStyle = palette[edge];
    context.fill();
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** @type {(x: number, y: number, size: number) => number[][]} its lines */
const cross = (x, y, size) => [[x - size, y - size, x + size, y + size], [x + size, y - size, x - size, y + size]];

/** @type {Paint<Lane>} the name of a lane, and where it is with its seconds: in two lines, or in one above the bars */
function drawName({ context, palette, width, layout, hasLinks, title }, lane, top) {
  const { gutter } = layout;
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
  const isOwn = title !== null && formatPlace(lane.file, null) === title; // the head of the page has its name
  const place = lane.after ?? (isOwn ? `line ${lane.line}` : formatPlace(lane.file, lane.line)) ?? "";
  const seconds = [lane.seconds ? formatSeconds(lane.seconds) : null, lane.inRank].filter(Boolean).join(" · ");
  const tail = place && seconds ? ` · ${seconds}` : seconds;
  const fitted = fitText(context, place, room - used - context.measureText(tail).width, true);
  const below = gutter ? y + 16 : y;
  if (!hasLinks || lane.cell === null) return context.fillText(fitted + tail, left + used, below);
  context.fillText(tail, left + used + context.measureText(fitted).width, below);
  context.fillStyle = palette.accent;
  context.fillText(fitted, left + used, below);
}

/**
 * Fits a text into a width, with an ellipsis at its end or, if the texts differ only at their ends, at its start.
 * @type {(context: CanvasRenderingContext2D, text: string, width: number, keepsEnd?: boolean) => string}
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
