// The columns that tabs share, how a cell is written, and columns as wide as what is in them.
import { readChange, writeChange } from "../core/compiles.js";
import {
  formatFunction, formatPlace, formatSeconds, formatValue, isNumeric, MISSING, oneLine,
} from "../core/format.js";

const CELL_LIMIT = 300; // characters of a cell; the detail and the tooltip show more

/** @type {(get: Get<any>) => [file: string | null, line: number | null]} the user's, else those of the function */
export function readLine(get) {
  return get("user_file") ? [get("user_file"), get("user_line")] : [get("file"), get("line")];
}

/** @type {SharedColumns} the columns that tabs share */
export const SHARED = {
  TIME: { label: "at", name: "time", from: 480 },
  COMPILE: {
    label: "compile",
    text(get, { owner }) {
      const [id, name] = [get("compile_id"), formatFunction(get("function")) ?? owner?.name ?? null];
      return name === null ? id : `${name} ${id ?? ""}`.trim();
    },
    sortBy: "compile_id",
    isCode: true,
  },
  GUARD: { label: "guard", text: (get) => get("guard_source") ?? get("guard_kind"), isCode: true },
  CHANGE: { label: "expected → actual", text: (get) => writeChange(get("expected"), get("actual")), isCode: true },
  /** What a recompile is about. */
  WHAT_CHANGED: { label: "what changed", text: (get) => readChange(get).what, isCode: true },
  /** How it changed, and how much else did. */
  HOW: {
    label: "change",
    text(get, { row, compiles }) {
      const others = compiles.listOthers(row).length;
      return [readChange(get).change, others && `+ ${others} more`].filter(Boolean).join(" ") || null;
    },
    isCode: true,
  },
  /** The steps of the plan that remove a recompile. */
  STEP: {
    label: "step",
    text: (_, { row, compiles }) => compiles.listSteps(row[0]).join(" ") || null,
    look: "steps",
    from: 620,
  },
  LINE: { label: "line", text: (get) => formatPlace(...readLine(get)), look: "line", isCode: true, from: 620 },
  /** "forward:25", because several functions can have one name. */
  FUNCTION: {
    label: "function",
    text(get) {
      const name = formatFunction(get("function"));
      return name === null || get("line") === null ? name : `${name}:${get("line")}`;
    },
    isCode: true,
  },
  CODE: { label: "code", name: "user_code", isCode: true, from: 760 },
};

/** @type {(tab: Tab, table: Table, width: number) => TabColumn[]} those that its table has and that fit (px), with their types */
export function listColumns(tab, table, width) {
  const types = new Map(table.columns.map(({ name, type }) => [name, type]));
  const fitting = tab.columns.filter(({ from = 0, name = "", text }) => from <= width && (text || types.has(name) || !types.size));
  return fitting.map((column) => ({ type: types.get(column.name ?? ""), ...column }));
}

/** @type {(column: TabColumn, table: Table, context: CellContext) => string} the text of one cell; a time is since the start */
export function writeCell(column, table, context) {
  const get = table.reader(context.row);
  if (column.text) return oneLine(column.text(get, context) ?? MISSING, CELL_LIMIT);
  const value = get(column.name ?? "");
  if (column.type === "time") return formatSeconds(Math.max(0, value - context.start) / 1e3);
  return oneLine(formatValue(value, column.type), CELL_LIMIT);
}

/** @type {(table: Table<any>, row: Cells, compiles: Compiles) => CellContext} what the cells of a row are written with */
export function makeContext(table, row, compiles) {
  return { row, owner: compiles.functionOf(compiles.keyOf(table, row)), start: compiles.start, compiles };
}

/** @type {Write<TabColumn>} */
export function classOf(column) {
  return column.isCode ? "is-code" : isNumeric(column.type) ? "is-number" : "";
}

const PADDING = 18; // px, of a cell
const [LEAST, LEAST_TEXT, MOST] = [44, 96, 560]; // px
const BAR = 72; // px, of a bar beside a number
export const WITH_BARS = 820; // px, of a table: a narrower one has no bars
const UI_FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const CODE_FONT = '11.1px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** @type {CanvasRenderingContext2D | null | undefined} */
let context;

/** @type {(text: string, font: string) => number} the width of a text, in px */
function measure(text, font) {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return text.length * 7.3;
  context.font = font;
  return context.measureText(text).width;
}

/**
 * The widths of columns in px, by the texts of some rows. Numbers get what they need. Texts share what is left over; where
 * too little is left, the longest are cut first, and the table scrolls when none can be cut any more.
 * @type {(columns: TabColumn[], rows: string[][], available: number) => number[]}
 */
export function fitColumns(columns, rows, available) {
  const widths = columns.map((column, i) => {
    const font = column.isCode ? CODE_FONT : UI_FONT;
    const longest = Math.max(measure(`${column.label} ▼`, UI_FONT), ...rows.map((texts) => measure(texts[i], font)));
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
 * Cuts the widest of `texts` down, in place, until everything fits, or all of them are narrow.
 * @type {(widths: number[], texts: number[], available: number) => void}
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
