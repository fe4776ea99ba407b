// Columns as wide as what is in them.
import { isNumeric } from "../core/format.js";
/** @import { TabColumn } from "./tab-types" */

const PADDING = 18; // px, of a cell
const [LEAST, LEAST_TEXT, MOST] = [44, 96, 560]; // px
const BAR = 72; // px, of a bar beside a number
export const WITH_BARS = 820; // px, of a table: a narrower one has no bars
const UI_FONT = '13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const CODE_FONT = '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** @type {CanvasRenderingContext2D | null | undefined} */
let context;

/**
 * The width of a text, in px.
 * @param {string} text
 * @param {string} font
 */
function measure(text, font) {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return text.length * 7.3;
  context.font = font;
  return context.measureText(text).width;
}

/**
 * The widths of columns in px. Numbers get what they need. Texts share what is left over; where too little is left, the
 * longest are cut first, and the table scrolls when none can be cut any more.
 * @param {TabColumn[]} columns
 * @param {string[]} heads
 * @param {string[][]} rows texts of some rows
 * @param {number} available px
 */
export function fitColumns(columns, heads, rows, available) {
  const widths = columns.map((column, i) => {
    const font = column.isCode ? CODE_FONT : UI_FONT;
    const longest = Math.max(measure(`${heads[i]} ▼`, UI_FONT), ...rows.map((texts) => measure(texts[i], font)));
    const bar = column.look === "bar" && available >= WITH_BARS ? BAR : 0;
    return Math.min(MOST, Math.max(LEAST, Math.ceil(longest) + PADDING)) + bar;
  });
  const texts = columns.flatMap((column, i) => (isNumeric(column.type) || column.type === "time" ? [] : [i]));
  shrink(widths, texts, available);
  const left = available - widths.reduce((sum, width) => sum + width, 0);
  if (left > 0 && texts.length) texts.forEach((i) => (widths[i] += Math.floor(left / texts.length)));
  else if (left > 0) widths[0] += left;
  return widths;
}

/**
 * Cuts the widest of `texts` down until everything fits, or all of them are narrow.
 * @param {number[]} widths changed in place
 * @param {number[]} texts
 * @param {number} available
 */
function shrink(widths, texts, available) {
  let excess = widths.reduce((sum, width) => sum + width, 0) - available;
  while (excess > 0) {
    const wide = texts.filter((i) => widths[i] > LEAST_TEXT).sort((a, b) => widths[b] - widths[a]);
    if (!wide.length) return;
    const next = Math.max(LEAST_TEXT, ...wide.map((i) => widths[i]).filter((width) => width < widths[wide[0]]));
    const same = wide.filter((i) => widths[i] === widths[wide[0]]);
    const cut = Math.min(Math.ceil(excess / same.length), widths[wide[0]] - next);
    for (const i of same) widths[i] -= cut;
    excess -= cut * same.length;
  }
}
