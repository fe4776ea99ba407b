// The documents that the kernel makes of each function, and the guard trees, put together again. Nothing is computed here.
import { Inputs } from "../core/inputs.js";

/** The guard trees of entries: lines that entries share are sent once, and a tree is runs of them. */
class GuardTrees {
  constructor() {
    this.taken = 0;
    this.version = 0;
    /** @type {Map<string, TreeLine[]>} key -> all lines of the trees that share it */
    this.lines = new Map();
    /** @type {Map<number, {key: string, runs: [first: number, count: number][]}>} event id -> its tree */
    this.trees = new Map();
  }

  /** @param {Cells[]} rows */
  add(rows) {
    for (; this.taken < rows.length; this.taken += 1) {
      const [id, key, fresh, runs] = rows[this.taken];
      const lines = this.lines.get(key) ?? [];
      this.lines.set(key, lines);
      lines.push(...fresh);
      this.trees.set(id, { key, runs });
      this.version += 1;
    }
  }

  /** @type {(id: Numeric) => GuardTree | null} null if it is not here */
  get(id) {
    const tree = this.trees.get(id ?? NaN);
    if (!tree) return null;
    const numbers = tree.runs.flatMap(([first, count]) => Array.from({ length: count }, (_, i) => first + i));
    return { numbers, lines: this.lines.get(tree.key) ?? [] };
  }
}

export class Documents {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.trees = new GuardTrees();
    /** @type {Ranked} */
    this.ranked = [];
    /** @type {Map<number, {packed: PackedDocument, document: FunctionDocument}>} */
    this.known = new Map();
    this.treeInputs = new Inputs();
    this.inputs = new Inputs(); // of the documents
  }

  refresh() {
    const [functions, trees] = [this.store.table("functions"), this.store.table("trees")];
    if (this.treeInputs.haveChanged(trees)) this.trees = new GuardTrees();
    this.trees.add(trees.rows);
    if (!this.inputs.haveChanged(functions, functions.version)) return;
    const before = this.known;
    this.known = new Map(functions.rows.map(([id, packed]) => {
      const kept = before.get(id);
      if (kept && kept.packed === packed) return [id, kept];
      /** @param {PackedList} list @returns {any[]} */
      const unpack = ([names, rows]) => rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
      return [id, { packed, document: { ...packed, entries: unpack(packed.entries), rows: unpack(packed.rows), guards: unpack(packed.guards) } }];
    }));
    this.ranked = [...this.known].map(([id, { document }]) => [id, document]);
    this.ranked.sort(([, a], [, b]) => (b.lost_s ?? 0) - (a.lost_s ?? 0) || b.recompiles - a.recompiles);
  }

  /** @param {number | undefined} id */
  byId(id) {
    return this.known.get(id ?? NaN)?.document ?? null;
  }

  /**
   * Turns a place that names events into that of their guard, and one that names nothing into the first function's.
   * @type {(place: Place) => Place}
   */
  resolve(place) {
    const events = place.events ?? (place.event === undefined ? [] : [place.event]);
    for (const event of events) {
      for (const [id, found] of this.ranked) {
        const row = found.rows.find((candidate) => candidate.event === event);
        if (row) return { page: "explorer", function: id, guard: found.guards[row.guard ?? -1]?.key };
      }
    }
    if (place.function !== undefined || events.length || !this.ranked.length) return place;
    return { page: "explorer", function: this.ranked[0][0] };
  }

  /** @type {(found: FunctionDocument, guard: number | null) => Finding[]} of recompiles of a function, or of one guard of it */
  findingsOf(found, guard) {
    const events = new Set(found.rows.filter((row) => guard === null || row.guard === guard).map((row) => row.event));
    return this.store.findings.filter((finding) => finding.evidence.some((event) => events.has(event)));
  }
}
