// What the search box and a chosen finding let through. All of it runs in the browser.

export class Filter {
  constructor(store, groups) {
    this.store = store;
    this.groups = groups;
    this.terms = [];
    this.warmed = new WeakMap(); // table -> how many of its rows are ready to be searched
    this.evidence = null; // {label, ids: Set of event ids, groups: Set} of a chosen finding
  }

  setQuery(text) {
    this.terms = text.toLowerCase().split(/\s+/).filter(Boolean);
  }

  /** Shows only what speaks for a finding: its events and the compiles that they belong to. */
  setEvidence(label, ids) {
    this.evidence = ids === null ? null : { label, ids: new Set(ids), groups: null };
  }

  get active() {
    return this.terms.length > 0 || this.evidence !== null;
  }

  evidenceGroups() {
    const groups = new Set();
    for (const table of this.store.tables.values()) {
      for (const id of this.evidence.ids) {
        const row = table.byId(id);
        const group = row && this.groups.of(table, row);
        if (group) groups.add(group);
      }
    }
    return groups;
  }

  /** Positions of the rows of a table that pass; a row made of others passes with one of those. */
  passing(table, passed) {
    const { evidence } = this;
    const source = table.name in this.store.made_of ? this.store.table(this.store.made_of[table.name]) : null;
    const wholes = source && new Set(passed.get(source.name).map((i) => source.get(source.rows[i], "part_of")));
    const found = [];
    for (let i = 0; i < table.rows.length; i += 1) {
      const row = table.rows[i];
      const itself = this.isFound(table, i) && !(evidence && !this.isEvidence(table, row));
      if (itself || wholes?.has(row[0])) found.push(i);
    }
    return found;
  }

  isFound(table, position) {
    if (!this.terms.length) return true;
    const hay = table.haystack(position);
    return this.terms.every((term) => hay.includes(term));
  }

  /** True if a search runs and all that it looks for is in the text that `tell` gives. */
  isFoundIn(tell) {
    if (!this.terms.length || this.evidence) return false;
    const text = tell();
    return this.terms.every((term) => text.includes(term));
  }

  isEvidence(table, row) {
    return this.evidence.ids.has(row[0]) || this.evidence.groups.has(this.groups.of(table, row));
  }

  /** Makes the texts that the search looks in, while there is time; true when all are made. */
  warm(names, deadline) {
    for (const table of names.map((name) => this.store.table(name))) {
      let next = this.warmed.get(table) ?? 0;
      for (; next < table.rows.length; next += 1) {
        if (next % 64 === 0 && deadline.timeRemaining() < 2) break;
        table.haystack(next);
      }
      this.warmed.set(table, next);
      if (next < table.rows.length) return false;
    }
    return true;
  }

  /** Filters all tables at once, those that others are made of first: {passed: table name -> positions, lit: groups with a row that passed, or null}. */
  run(names) {
    const tables = names.map((name) => this.store.table(name));
    if (this.evidence) this.evidence.groups = this.evidenceGroups();
    const passed = new Map();
    for (const table of tables) passed.set(table.name, this.active ? this.passing(table, passed) : [...table.rows.keys()]);
    if (!this.active) return { passed, lit: null };
    const lit = new Set();
    for (const table of tables) {
      for (const i of passed.get(table.name)) lit.add(this.groups.of(table, table.rows[i]));
    }
    return { passed, lit };
  }
}
