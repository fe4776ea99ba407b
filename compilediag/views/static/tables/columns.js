// The columns that tabs share, and how a cell is written and sorted.
import { formatFunction, formatPlace, formatSeconds, formatValue, isNumeric, MISSING, oneLine } from "../core/format.js";
import { readChange, writeChange } from "../core/recompiles.js";
/** @import { CellContext, Tab, TabColumn } from "./tab-types" */

const CELL_LIMIT = 300; // characters of a cell; the detail and the tooltip show more

/** @type {TabColumn<{time: number}>} */
export const TIME = { label: "at", name: "time", from: 480 };

/** @type {TabColumn} */
export const COMPILE = {
  label: "compile",
  text(get, { owner }) {
    const [id, name] = [get("compile_id"), formatFunction(get("function")) ?? owner?.name ?? null];
    return name === null ? id : `${name} ${id ?? ""}`.trim();
  },
  sortBy: "compile_id",
  isCode: true,
};

/** @type {TabColumn} */
export const GUARD = { label: "guard", text: (get) => get("guard_source") ?? get("guard_kind"), isCode: true };

/** @type {TabColumn} */
export const CHANGE = { label: "expected → actual", text: (get) => writeChange(get("expected"), get("actual")), isCode: true };

/** @type {TabColumn} what a recompile is about */
export const WHAT_CHANGED = { label: "what changed", text: (get) => readChange(get).what, isCode: true };

/** @type {TabColumn} how it changed, and how much else did */
export const HOW = {
  label: "change",
  text(get, { row, recompiles }) {
    const others = recompiles.listOthers(row).length;
    return [readChange(get).change, others && `+ ${others} more`].filter(Boolean).join(" ") || null;
  },
  isCode: true,
};

/** @type {TabColumn} the steps of the plan that remove a recompile */
export const STEP = {
  label: "step",
  text: (_, { row, recompiles }) => recompiles.listSteps(row[0]).join(" ") || null,
  look: "steps",
  from: 620,
};

/**
 * The file and line of the user's, else those of the function.
 * @param {Get<any>} get
 * @returns {[file: string | null, line: number | null]}
 */
export function readLine(get) {
  return get("user_file") ? [get("user_file"), get("user_line")] : [get("file"), get("line")];
}

/** @type {TabColumn} */
export const LINE = {
  label: "line",
  text: (get) => formatPlace(...readLine(get)),
  look: "line",
  isCode: true,
  from: 620,
};

/** @type {TabColumn} "forward:25", because several functions can have one name */
export const FUNCTION = {
  label: "function",
  text(get) {
    const name = formatFunction(get("function"));
    return name === null || get("line") === null ? name : `${name}:${get("line")}`;
  },
  isCode: true,
};

/** @type {TabColumn<{user_code: string | null}>} */
export const CODE = { label: "code", name: "user_code", isCode: true, from: 760 };

/**
 * The columns of a tab that its table has and that fit, with their types.
 * @param {Tab} tab
 * @param {Table} table
 * @param {number} width px
 */
export function listColumns(tab, table, width) {
  const types = new Map(table.columns.map(({ name, type }) => [name, type]));
  const fitting = tab.columns.filter(({ from = 0, name = "", text }) => from <= width && (text || types.has(name) || !types.size));
  return fitting.map((column) => ({ type: types.get(column.name ?? ""), ...column }));
}

/**
 * The name of a tab: its table's, where the table has only this one.
 * @param {Tab<any>} tab
 */
export function tabName(tab) {
  return tab.name ?? tab.table;
}

/**
 * The text of one cell. A time is since the start.
 * @param {TabColumn} column
 * @param {Table} table
 * @param {CellContext} context
 */
export function writeCell(column, table, context) {
  const get = table.reader(context.row);
  if (column.text) return oneLine(column.text(get, context) ?? MISSING, CELL_LIMIT);
  const value = get(column.name ?? "");
  if (column.type === "time") return formatSeconds(Math.max(0, value - context.start) / 1e3);
  return oneLine(formatValue(value, column.type), CELL_LIMIT);
}

/**
 * What the cells of a row are written with.
 * @param {Table<any>} table
 * @param {Cells} row
 * @param {Recompiles} recompiles
 * @returns {CellContext}
 */
export function makeContext(table, row, recompiles) {
  const { groups } = recompiles;
  return { row, owner: groups.functionOf(groups.keyOf(table, row)), start: groups.start, recompiles };
}

/** @param {TabColumn} column */
export function classOf(column) {
  return column.isCode ? "is-code" : isNumeric(column.type) ? "is-number" : "";
}
