// What the search box and a selected finding let through. All of it runs in the browser.
import { splitQuery } from "../core/search.js";

/** @typedef {{label: string, ids: Set<number>, keys: Set<string | null>}} Evidence the events of a finding, and the keys of their compiles */
/** @typedef {{passed: Map<string, number[]>, lit: Set<string | null> | null}} FilterResult positions by table; keys of the compiles with a row that passed, or null for all */

export class Filter {
  /**
   * @param {Store} store
   * @param {CompileGroups} groups
   */
  constructor(store, groups) {
    this.store = store;
    this.groups = groups;
    this.query = "";
    /** @type {string[]} the words of the query */
    this.terms = [];
    /** @type {WeakMap<Table, number>} table -> how many of its rows are ready to be searched */
    this.warmed = new WeakMap();
    /** @type {Evidence | null} */
    this.evidence = null;
  }

  /** @param {string} text */
  setQuery(text) {
    this.query = text;
    this.terms = splitQuery(text);
  }

  /**
   * Shows only the events of a finding or step and the compiles that they belong to; null shows all.
   * @param {{label: string, evidence: number[]} | null} picked
   */
  pick(picked) {
    this.evidence = picked && { label: picked.label, ids: new Set(picked.evidence), keys: new Set() };
  }

  /** The finding or step that is selected; null if none is. */
  get picked() {
    return this.evidence && { label: this.evidence.label, evidence: [...this.evidence.ids] };
  }

  get isActive() {
    return this.terms.length > 0 || this.evidence !== null;
  }

  /** @param {Evidence} evidence */
  findKeys(evidence) {
    evidence.keys = new Set();
    for (const table of this.store.tables.values()) {
      for (const id of evidence.ids) {
        const row = table.byId(id);
        const key = row && this.groups.keyOf(table, row);
        if (key) evidence.keys.add(key);
      }
    }
  }

  /**
   * Positions of the rows of a table that pass; a row that sums up others passes with one of those.
   * @param {Table} table
   * @param {Map<string, number[]>} passed of the tables so far
   */
  findPassing(table, passed) {
    const source = this.store.sourceOf(table);
    const parts = source ? passed.get(source.name) ?? [] : [];
    const wholes = new Set(parts.map((i) => source?.get(source.rows[i], "part_of")));
    const { evidence } = this;
    const found = [];
    for (let i = 0; i < table.rows.length; i += 1) {
      const row = table.rows[i];
      const isEvidence = !evidence || evidence.ids.has(row[0]) || evidence.keys.has(this.groups.keyOf(table, row));
      const passes = isEvidence && this.matches(() => table.searchText(i));
      if (passes || wholes.has(row[0])) found.push(i);
    }
    return found;
  }

  /**
   * True if the text that `read` gives has every word of the search.
   * @param {() => string} read
   */
  matches(read) {
    if (!this.terms.length) return true;
    const text = read();
    return this.terms.every((term) => text.includes(term));
  }

  /**
   * Makes the texts that the search looks in, while there is time; true when all are made.
   * @param {string[]} names
   * @param {{timeRemaining: () => number}} deadline
   */
  warm(names, deadline) {
    for (const table of names.map((name) => this.store.table(name))) {
      let next = this.warmed.get(table) ?? 0;
      for (; next < table.rows.length; next += 1) {
        if (next % 64 === 0 && deadline.timeRemaining() < 2) break;
        table.searchText(next);
      }
      this.warmed.set(table, next);
      if (next < table.rows.length) return false;
    }
    return true;
  }

  /**
   * Filters all tables at once. `names` has the tables that others sum up first.
   * @param {string[]} names
   * @returns {FilterResult}
   */
  run(names) {
    const tables = names.map((name) => this.store.table(name));
    if (this.evidence) this.findKeys(this.evidence);
    /** @type {Map<string, number[]>} */
    const passed = new Map();
    for (const table of tables) {
      passed.set(table.name, this.isActive ? this.findPassing(table, passed) : [...table.rows.keys()]);
    }
    if (!this.isActive) return { passed, lit: null };
    const lit = new Set();
    for (const table of tables) {
      for (const i of passed.get(table.name) ?? []) lit.add(this.groups.keyOf(table, table.rows[i]));
    }
    return { passed, lit };
  }
}
