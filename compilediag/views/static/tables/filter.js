// Which rows are shown: what the search and a selected finding let through, and which of these a tab shows. All of it runs in
// the browser.
import { splitQuery } from "../core/blocks.js";

export class Filter {
  /** @param {Compiles} compiles */
  constructor(compiles) {
    this.compiles = compiles;
    this.store = compiles.store;
    this.query = "";
    /** @type {string[]} the words of the query */
    this.terms = [];
    /** @type {Picked | null} only its events, and the compiles that they belong to, are shown */
    this.picked = null;
    /** @type {Map<string, number[]>} table -> positions of the rows that passed */
    this.passed = new Map();
    /** @type {Set<string | null> | null} keys of the compiles with a row that passed; null for all */
    this.lit = null;
    /** @type {WeakMap<Table, number>} table -> how many of its rows are ready to be searched */
    this.warmed = new WeakMap();
    /** @type {Set<string>} names of the tabs that show all of their rows */
    this.unfolded = new Set();
  }

  /** @param {string} text */
  setQuery(text) {
    this.query = text;
    this.terms = splitQuery(text);
  }

  get isActive() {
    return this.terms.length > 0 || this.picked !== null;
  }

  /** @type {(ids: Iterable<number>) => Set<string | null>} keys of the compiles that some events belong to */
  findKeys(ids) {
    const keys = new Set();
    for (const table of this.store.tables.values()) {
      for (const id of ids) {
        const row = table.byId(id);
        const key = row && this.compiles.keyOf(table, row);
        if (key) keys.add(key);
      }
    }
    return keys;
  }

  /** @type {Is<() => string>} True if the text that `read` gives has every word of the search. */
  matches(read) {
    if (!this.terms.length) return true;
    const text = read();
    return this.terms.every((term) => text.includes(term));
  }

  /**
   * Makes the texts that the search looks in, while there is time; true when all are made.
   * @type {(names: string[], deadline: Deadline) => boolean}
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
   * Filters all tables at once: a row that sums up others passes with one of those.
   * @param {string[]} names has the tables that others sum up first
   */
  run(names) {
    const { store, compiles, picked, isActive } = this;
    const ids = new Set(picked?.evidence);
    const keys = this.findKeys(ids);
    this.passed = new Map();
    this.lit = isActive ? new Set() : null;
    for (const table of names.map((name) => store.table(name))) {
      const source = store.sourceOf(table);
      const wholes = new Set(source && this.passed.get(source.name)?.map((i) => source.get(source.rows[i], "part_of")));
      /** @param {Cells} row @param {number} i */
      const passes = (row, i) => {
        const isPicked = !picked || ids.has(row[0]) || keys.has(compiles.keyOf(table, row));
        return (isPicked && this.matches(() => table.searchText(i))) || wholes.has(row[0]);
      };
      const all = [...table.rows.keys()];
      const found = isActive ? all.filter((i) => passes(table.rows[i], i)) : all;
      this.passed.set(table.name, found);
      if (this.lit) for (const i of found) this.lit.add(compiles.keyOf(table, table.rows[i]));
    }
  }

  /** @type {(tab: Tab) => number[]} positions of its rows that passed */
  pass(tab) {
    const [{ rows }, found] = [this.store.table(tab.table), this.passed.get(tab.table) ?? []];
    return tab.only || this.hidesMinor(tab) ? found.filter((i) => this.shows(tab, rows[i])) : found;
  }

  /** @type {(tabs: Tab[]) => Map<string, TabCount>} how many rows each has, and how many of them it shows, by its name */
  count(tabs) {
    return new Map(tabs.map((tab) => {
      const { rows } = this.store.table(tab.table);
      const shown = this.pass(tab).length;
      const all = !this.isActive ? shown : tab.only ? rows.filter((row) => this.shows(tab, row)).length : rows.length;
      return [tab.name, { shown, all, isBlind: this.store.observed[tab.table] === false }];
    }));
  }

  /** @param {Tab} tab @param {Cells} row */
  shows(tab, row) {
    const get = this.store.table(tab.table).reader(row);
    return (tab.only?.(get) ?? true) && !(this.hidesMinor(tab) && tab.minor?.is(get));
  }

  /** @type {Is<Tab>} True if it leaves out the rows that most readers do not need. A search finds them. */
  hidesMinor(tab) {
    return tab.minor !== undefined && !this.isActive && !this.unfolded.has(tab.name);
  }

  /** @type {(tab: Tab, passed: number[]) => TabNote} */
  describe(tab, passed) {
    const { store } = this;
    if (store.observed[tab.table] === false) return { note: `not collected: ${explainGap(tab.table, store)}`, isWarning: true };
    if (passed.length) return { note: tab.note ?? null, isWarning: false };
    const isFiltered = this.isActive && store.table(tab.table).rows.length > 0;
    return isFiltered ? { note: "nothing matches", isWarning: false } : { note: tab.empty, isWarning: Boolean(tab.note) };
  }
}

/** @type {(name: string, store: Store) => string} why a table has no rows: its own sources, else all, that are not active */
function explainGap(name, store) {
  const sources = store.table("sources");
  const readers = sources.rows.map((row) => sources.reader(row)).filter((get) => get("status") !== "active");
  const own = readers.filter((get) => store.feeds[name]?.includes(get("name") ?? ""));
  const reasons = (own.length ? own : readers).map((get) => `${get("name")} is ${get("status")}: ${get("reason") ?? "no reason given"}`);
  return reasons.join(" · ") || "no source for it was active";
}
