// Which rows of its table a tab shows, how many there are, and what is said where there are none.
import { tabName } from "./columns.js";
/** @import { Filter, FilterResult } from "../dashboard/filter.js" */
/** @import { Tab } from "./tab-types" */

export class TabRows {
  /**
   * @param {Store} store
   * @param {Filter} filter
   */
  constructor(store, filter) {
    this.store = store;
    this.filter = filter;
    /** @type {FilterResult} */
    this.result = filter.run([]);
    /** @type {Map<Tab, WeakMap<Cells, boolean>>} tab with `only` -> row -> whether it is one of its rows */
    this.known = new Map();
    /** @type {Set<string>} names of the tabs that show all of their rows */
    this.unfolded = new Set();
  }

  /**
   * Positions of a tab's rows that passed the filter.
   * @param {Tab} tab
   */
  pass(tab) {
    const [table, found] = [this.store.table(tab.table), this.result.passed.get(tab.table) ?? []];
    return tab.only || this.hidesMinor(tab) ? found.filter((i) => this.shows(tab, table, table.rows[i])) : found;
  }

  /**
   * How many rows each tab has, and how many of them it shows, by its name.
   * @param {Tab[]} tabs
   */
  count(tabs) {
    return new Map(tabs.map((tab) => {
      const table = this.store.table(tab.table);
      const isWhole = !tab.only && !this.hidesMinor(tab);
      const all = isWhole ? table.rows.length : table.rows.filter((row) => this.shows(tab, table, row)).length;
      const isBlind = this.store.observed[tab.table] === false;
      return [tabName(tab), { shown: this.pass(tab).length, all, isBlind }];
    }));
  }

  /**
   * @param {Tab} tab
   * @param {Table<any>} table
   * @param {Cells} row
   */
  shows(tab, table, row) {
    return this.isOf(tab, table, row) && !(this.hidesMinor(tab) && tab.minor?.is(table.reader(row)));
  }

  /**
   * True if a tab that shows some rows of its table shows this one; checked once per row.
   * @param {Tab} tab
   * @param {Table<any>} table
   * @param {Cells} row
   */
  isOf(tab, table, row) {
    if (!tab.only) return true;
    const known = this.known.get(tab) ?? new WeakMap();
    this.known.set(tab, known);
    if (!known.has(row)) known.set(row, tab.only(table.reader(row)));
    return known.get(row) === true;
  }

  /**
   * True if a tab leaves out the rows that most readers do not need. A search finds them.
   * @param {Tab} tab
   */
  hidesMinor(tab) {
    return tab.minor !== undefined && !this.filter.isActive && !this.unfolded.has(tabName(tab));
  }

  /** @param {Tab} tab */
  countMinor({ minor, table: name }) {
    const table = this.store.table(name);
    return minor ? table.rows.filter((row) => minor.is(table.reader(row))).length : 0;
  }

  /** @param {Tab} tab */
  toggleMinor(tab) {
    const name = tabName(tab);
    if (!this.unfolded.delete(name)) this.unfolded.add(name);
  }

  /**
   * What is said above the rows of a tab.
   * @param {Tab} tab
   * @param {number[]} passed
   */
  describe(tab, passed) {
    const table = this.store.table(tab.table);
    if (this.store.observed[table.name] === false) {
      const gap = explainGap(this.store.feeds[table.name] ?? [], this.store);
      return { note: `not collected: ${gap}`, isWarning: true };
    }
    if (passed.length) return { note: tab.note ?? null, isWarning: false };
    const isFiltered = this.filter.isActive && table.rows.length > 0;
    return isFiltered ? { note: "nothing matches", isWarning: false } : { note: tab.empty, isWarning: Boolean(tab.note) };
  }
}

/**
 * Why a table has nothing to show: its own sources that are not active (`feeds`), else all that are not active.
 * @param {string[]} feeds
 * @param {Store} store
 */
function explainGap(feeds, store) {
  const sources = store.table("sources");
  const readers = sources.rows.map((row) => sources.reader(row)).filter((get) => get("status") !== "active");
  const own = readers.filter((get) => feeds.includes(get("name") ?? ""));
  const reasons = (own.length ? own : readers).map((get) => {
    return `${get("name")} is ${get("status")}: ${get("reason") ?? "no reason given"}`;
  });
  return reasons.join(" · ") || "no source for it was active";
}
