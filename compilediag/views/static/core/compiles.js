// Which events belong to one compile, which function it compiles, what changed at each recompile, as bars, tables and
// details write it, and which steps of the plan remove it. The key of a compile is a column of every table, `compile_key`;
// torch's own compile id is used again after torch._dynamo.reset(), so it is only displayed.
import { formatCode, formatFunction, MISSING, splitFunction } from "./format.js";
import { Inputs } from "./inputs.js";
import { findCellNumber } from "./notebook-cell.js";

/** @typedef {{what: string, change: string | null}} Change `idx.shape[0]`, and `8 → 6` */

/** @type {(before: string | null, after: string | null) => string | null} "before → after"; null if neither is known */
export function writeChange(before, after) {
  return before === null && after === null ? null : `${before ?? MISSING} → ${after ?? MISSING}`;
}

/** @type {(get: Get<any>) => Change} of a recompile, or of a guard that failed */
export function readChange(get) {
  const what = get("guard_source") ?? formatCode(get("guard_kind") ?? "unknown");
  return { what, change: writeChange(get("expected"), get("actual")) };
}

/** @type {Write<Change>} */
export function joinChange({ what, change }) {
  return change === null ? what : `${what}: ${change}`;
}

/** @type {(name: string | null, file: string | null, line: number | null) => CompiledFunction} as lanes and lists name it */
export function describeFunction(name, file, line) {
  const [own, after] = splitFunction(name);
  return { name: formatFunction(name) ?? "?", own: own ?? "?", after, file, line, lane: `${name}|${file}|${line}`, cell: after ? null : findCellNumber(file) };
}

export class Compiles {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.inputs = new Inputs();
    /** @type {Map<string, {table: Table<any>, version: number, rows: Map<string | null, Cells[]>}>} table name -> its index */
    this.indexes = new Map();
    /** @type {Map<string, CompiledFunction>} */
    this.functions = new Map();
    this.first = Infinity; // when the first compile began, Unix ms
    /** @type {Map<string | null, {row: Cells, number: number}>} key of a compile -> its recompile, and its place in time */
    this.recompilesByKey = new Map();
    /** @type {Map<number, number[]>} event id of a recompile -> numbers of the steps of the plan that remove it */
    this.stepsById = new Map();
  }

  /** Reads the tables and the plan again, if they have changed. */
  refresh() {
    const { tables, plan } = this.store;
    const read = ["compiles", "recompiles", "refused_calls"].map((name) => this.store.table(name));
    if (!this.inputs.haveChanged(tables, plan, ...read.map((table) => table.version))) return;
    this.functions.clear();
    for (const table of read) {
      for (const row of table.rows) {
        const [key, get] = [this.keyOf(table, row), table.reader(row)];
        if (key !== null && get("function") !== null) this.functions.set(key, describeFunction(get("function"), get("file"), get("line")));
      }
    }
    const [compiles, recompiles] = read;
    this.first = compiles.rows.reduce((first, row) => Math.min(first, compiles.get(row, "time")), Infinity);
    const inOrder = [...recompiles.rows].sort((a, b) => recompiles.get(a, "time") - recompiles.get(b, "time"));
    this.recompilesByKey = new Map(inOrder.map((row, i) => [this.keyOf(recompiles, row), { row, number: i + 1 }]));
    this.stepsById.clear();
    plan?.steps.forEach(({ evidence }, i) => {
      for (const id of evidence) this.stepsById.set(id, [...this.listSteps(id), i + 1]);
    });
  }

  /** The time that all others are since: when the first compile began, Unix ms. */
  get start() {
    const { now, meta } = this.store;
    return Number.isFinite(this.first) ? this.first : now[0]?.started_ms ?? meta.started_ms ?? 0;
  }

  /**
   * The key of the compile that a row belongs to; null for an event outside any compile. A compile of an old file that
   * has no key is a group of its own.
   * @type {(table: Table<any>, row: Cells) => string | null}
   */
  keyOf(table, row) {
    return table.get(row, "compile_key") ?? (table.name === "compiles" ? `event ${row[0]}` : null);
  }

  /** @param {string | null} key */
  functionOf(key) {
    return this.functions.get(key ?? "") ?? null;
  }

  /** @type {(name: string, key: string | null) => Cells[]} rows of a table that belong to a compile, in order of time */
  members(name, key) {
    const table = this.store.table(name);
    let known = this.indexes.get(name);
    if (known?.table !== table || known.version !== table.version) {
      const rows = Map.groupBy(table.rows, (row) => this.keyOf(table, row));
      rows.forEach((found) => found.sort((a, b) => table.get(a, "time") - table.get(b, "time")));
      known = { table, version: table.version, rows };
      this.indexes.set(name, known);
    }
    return key === null ? [] : known.rows.get(key) ?? [];
  }

  /** @returns {Table<"recompiles">} */
  get recompiles() {
    return this.store.table("recompiles");
  }

  /** @param {string | null} key */
  findRecompile(key) {
    return this.recompilesByKey.get(key) ?? null;
  }

  /** @type {(key: string | null) => string | null} "idx.shape[0]: 8 → 6" if a recompile started it; null for any other compile */
  describe(key) {
    const found = this.findRecompile(key);
    return found && joinChange(readChange(this.recompiles.reader(found.row)));
  }

  /** @type {(row: Cells) => Change[]} what else had changed at a recompile, since the entry that it is compared with */
  listOthers(row) {
    const own = this.recompiles.reader(row);
    const failures = this.store.table("guard_failures");
    const readers = this.members("guard_failures", this.keyOf(this.recompiles, row)).map((each) => failures.reader(each));
    const seen = new Set([own("guard_source")]);
    return readers.filter((get) => {
      const [source, entry] = [get("guard_source"), get("entry_compile_id")];
      if (source === null || entry !== own("closest_compile_id") || seen.has(source)) return false;
      return seen.add(source);
    }).map(readChange);
  }

  /** @param {number} id of a recompile */
  listSteps(id) {
    return this.stepsById.get(id) ?? [];
  }
}
