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

  evidenceGroups(tables) {
    const groups = new Set();
    for (const table of tables) {
      for (const id of this.evidence.ids) {
        const row = table.byId(id);
        const group = row && this.groups.of(table, row);
        if (group) groups.add(group);
      }
    }
    return groups;
  }

  /** Positions of the rows of a table that pass. */
  passing(table) {
    const { terms, evidence } = this;
    const passed = [];
    for (let i = 0; i < table.rows.length; i += 1) {
      if (terms.length) {
        const hay = table.haystack(i);
        if (!terms.every((term) => hay.includes(term))) continue;
      }
      if (evidence && !this.isEvidence(table, table.rows[i])) continue;
      passed.push(i);
    }
    return passed;
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

  /** Filters all tables at once: {passed: table name -> positions, lit: groups with a row that passed, or null}. */
  run(names) {
    const tables = names.map((name) => this.store.table(name));
    if (this.evidence) this.evidence.groups = this.evidenceGroups(tables);
    const passed = new Map(tables.map((table) => [table.name, this.passing(table)]));
    if (!this.active) return { passed, lit: null };
    const lit = new Set();
    for (const table of tables) {
      for (const i of passed.get(table.name)) lit.add(this.groups.of(table, table.rows[i]));
    }
    return { passed, lit };
  }
}
