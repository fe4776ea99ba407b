// What changed at each recompile, as bars, tables and details write it, and which steps of the plan remove it.
import { formatCode, MISSING } from "./format.js";
import { Inputs } from "./inputs.js";

/** @typedef {{what: string, change: string | null}} Change `idx.shape[0]`, and `8 → 6` */

/**
 * "before → after"; null if neither is known.
 * @param {string | null} before
 * @param {string | null} after
 */
export function writeChange(before, after) {
  return before === null && after === null ? null : `${before ?? MISSING} → ${after ?? MISSING}`;
}

/**
 * @param {Get<any>} get of a recompile, or of a guard that failed
 * @returns {Change}
 */
export function readChange(get) {
  const what = get("guard_source") ?? formatCode(get("guard_kind") ?? "unknown");
  return { what, change: writeChange(get("expected"), get("actual")) };
}

/** @param {Change} change */
export function joinChange({ what, change }) {
  return change === null ? what : `${what}: ${change}`;
}

export class Recompiles {
  /**
   * @param {Store} store
   * @param {CompileGroups} groups
   */
  constructor(store, groups) {
    this.store = store;
    this.groups = groups;
    this.inputs = new Inputs(); // of the maps
    /** @type {Map<string | null, {row: Cells, number: number}>} key of a compile -> its row, and its place in time */
    this.byKey = new Map();
    /** @type {Map<number, number[]>} event id -> numbers of the steps of the plan that remove it */
    this.stepsById = new Map();
  }

  refresh() {
    const { plan, tables } = this.store;
    const { table } = this;
    if (!this.inputs.haveChanged(tables, table.version, plan)) return;
    const { rows } = table;
    const isInOrder = rows.every((row, i) => i === 0 || table.get(rows[i - 1], "time") <= table.get(row, "time"));
    const inOrder = isInOrder ? rows : [...rows].sort((a, b) => table.get(a, "time") - table.get(b, "time"));
    this.byKey = new Map(inOrder.map((row, i) => [this.groups.keyOf(table, row), { row, number: i + 1 }]));
    this.stepsById.clear();
    plan?.steps.forEach(({ evidence }, i) => {
      for (const id of evidence) this.stepsById.set(id, [...(this.stepsById.get(id) ?? []), i + 1]);
    });
  }

  /** @returns {Table<"recompiles">} */
  get table() {
    return this.store.table("recompiles");
  }

  /**
   * The recompile that started a compile.
   * @param {string | null} key
   */
  find(key) {
    return this.byKey.get(key) ?? null;
  }

  /**
   * What changed, "idx.shape[0]: 8 → 6", at the recompile that started a compile; null for any other compile.
   * @param {string | null} key
   */
  describe(key) {
    const row = this.byKey.get(key)?.row;
    return row ? joinChange(readChange(this.table.reader(row))) : null;
  }

  /**
   * What else had changed since the entry that it is compared with.
   * @param {Cells} row
   * @returns {Change[]}
   */
  listOthers(row) {
    const own = this.table.reader(row);
    const failures = this.store.table("guard_failures");
    const readers = this.groups.members("guard_failures", this.groups.keyOf(this.table, row) ?? "").map((each) => failures.reader(each));
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
