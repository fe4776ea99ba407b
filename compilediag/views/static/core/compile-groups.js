// Which events belong to one compile, and which function it compiles. The key of a compile is a column of every table,
// `compile_key`; torch's own compile id is used again after torch._dynamo.reset(), so it is only displayed.
import { formatFunction, splitFunction } from "./format.js";
import { Inputs } from "./inputs.js";

/**
 * @typedef {object} CompiledFunction
 * @property {string} name
 * @property {string} own the name in the program
 * @property {string | null} after where Dynamo continued it: "after the graph break at line 21"
 * @property {string | null} file
 * @property {number | null} line
 * @property {string} lane its key
 */

export class CompileGroups {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, {table: Table<any>, version: number, rows: Map<string | null, Cells[]>}>} table name -> its index */
    this.indexes = new Map();
    /** @type {Map<string, CompiledFunction>} */
    this.functions = new Map();
    this.first = Infinity; // when the first compile began, Unix ms
    this.inputs = new Inputs();
  }

  /** Updates the functions of compiles; cheap when the tables have not changed. */
  refresh() {
    const tables = ["compiles", "recompiles", "refused_calls"].map((name) => this.store.table(name));
    if (!this.inputs.haveChanged(this.store.tables, ...tables.map((table) => table.version))) return;
    this.functions.clear();
    this.first = tables[0].rows.reduce((first, row) => Math.min(first, tables[0].get(row, "time")), Infinity);
    for (const table of tables) {
      for (const row of table.rows) {
        const [key, get] = [this.keyOf(table, row), table.reader(row)];
        if (key !== null && get("function") !== null) this.functions.set(key, describeFunction(get("function"), get("file"), get("line")));
      }
    }
  }

  /** The time that all others are since: when the first compile began, Unix ms. */
  get start() {
    const { now, meta } = this.store;
    return Number.isFinite(this.first) ? this.first : now[0]?.started_ms ?? meta.started_ms ?? 0;
  }

  /**
   * The key of the compile that a row belongs to; null for an event outside any compile. A compile of an old file that
   * has no key is a group of its own.
   * @param {Table<any>} table
   * @param {Cells} row
   * @returns {string | null}
   */
  keyOf(table, row) {
    return table.get(row, "compile_key") ?? (table.name === "compiles" ? `event ${row[0]}` : null);
  }

  /**
   * The function that a compile compiles, or null.
   * @param {string | null} key
   */
  functionOf(key) {
    return key === null ? null : this.functions.get(key) ?? null;
  }

  /**
   * The rows of a table that belong to a compile, in order of time.
   * @param {string} name
   * @param {string} key
   * @returns {Cells[]}
   */
  members(name, key) {
    const table = this.store.table(name);
    const known = this.indexes.get(name);
    const isCurrent = known?.table === table && known.version === table.version;
    const rows = isCurrent ? known.rows : this.indexRows(table);
    if (!isCurrent) this.indexes.set(name, { table, version: table.version, rows });
    return rows.get(key) ?? [];
  }

  /** @param {Table<any>} table */
  indexRows(table) {
    const rows = Map.groupBy(table.rows, (row) => this.keyOf(table, row));
    rows.forEach((found) => found.sort((a, b) => table.get(a, "time") - table.get(b, "time")));
    return rows;
  }
}

/**
 * A function as lanes and lists name it.
 * @param {string | null} name
 * @param {string | null} file
 * @param {number | null} line
 * @returns {CompiledFunction}
 */
export function describeFunction(name, file, line) {
  const [own, after] = splitFunction(name);
  return { name: formatFunction(name) ?? "?", own: own ?? "?", after, file, line, lane: `${name}|${file}|${line}` };
}
