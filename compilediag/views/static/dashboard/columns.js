// The columns that tabs share, and how a cell is written and sorted.
import { formatCount, formatFunction, formatInUnit, formatPlace, formatValue, MISSING, oneLine } from "../core/format.js";
import { writeChange } from "../core/recompiles.js";
/** @import { CompiledFunction } from "../core/compile-groups.js" */
/** @import { Unit } from "../core/format.js" */
/** @import { Cells } from "../core/page-types" */
/** @import { Get } from "../core/types" */
/** @import { Table } from "../core/store.js" */
/** @import { Tab, TabColumn } from "./tab-types" */

const CELL_LIMIT = 300; // characters of a cell; the detail and the tooltip show more

/** @type {TabColumn<{time: number}>} */
export const TIME = { label: "at", name: "time", type: "time", from: 480 };

/** @type {TabColumn} */
export const COMPILE = {
  label: "compile",
  text(get, owner) {
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

/** @type {TabColumn} */
export const LINE = {
  label: "line",
  text: (get) => formatPlace(get("user_file"), get("user_line")) ?? formatPlace(get("file"), get("line")),
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

/**
 * @template {string} Name
 * @param {string} label
 * @param {Name} name
 * @param {number} [from]
 */
export function secondsColumn(label, name, from) {
  return { label, name, type: "s", from };
}

/**
 * @template {string} Name
 * @param {string} label
 * @param {Name} name
 * @param {number} [from]
 */
export function countColumn(label, name, from) {
  return { label, name, type: "int", from };
}

/**
 * "31, 4 failed": how many choices a tuning had.
 * @param {Get<{choices: number | null, failed: number | null}>} get
 */
export function writeChoices(get) {
  return formatCount(get("choices")) + (get("failed") ? `, ${formatCount(get("failed"))} failed` : "");
}

/**
 * The name of a tab: its table's, where the table has only this one.
 * @param {Tab<any>} tab
 */
export function tabName(tab) {
  return tab.name ?? tab.table;
}

/**
 * The text of one cell; `owner` is the function of the row's compile, if it is known.
 * @param {TabColumn} column
 * @param {Table} table
 * @param {Cells} row
 * @param {CompiledFunction | null} owner
 * @param {Unit | null} [unit] that all numbers of the column have
 */
export function writeCell(column, table, row, owner, unit = null) {
  const get = table.reader(row);
  const value = column.text ? null : get(column.name ?? "");
  const text = column.text ? column.text(get, owner) : writeValue(value, column, unit);
  return text === null ? MISSING : oneLine(String(text), CELL_LIMIT);
}

/**
 * @param {any} value
 * @param {TabColumn} column
 * @param {Unit | null} unit
 */
function writeValue(value, column, unit) {
  return unit && typeof value === "number" ? formatInUnit(value, unit) : formatValue(value, column.type);
}

/**
 * What a column sorts by; null goes last.
 * @param {TabColumn} column
 * @param {Table} table
 * @param {Cells} row
 * @param {CompiledFunction | null} owner
 * @returns {string | number | null}
 */
export function sortKey(column, table, row, owner) {
  if (column.sortBy) return table.get(row, column.sortBy);
  return column.text ? column.text(table.reader(row), owner) : table.get(row, column.name ?? "");
}
