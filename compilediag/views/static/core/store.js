// What the page knows: patches go in, tables and totals come out. No element is touched here.
import { formatValue } from "./format.js";

const HAY_PER_VALUE = 500; // characters of one value that the search sees

/** A value as the search sees it: pairs as they are shown. */
function searchable(value) {
  return typeof value === "object" ? formatValue(value, "list") : String(value);
}

/** Rows of one kind of event, keyed by event id (the first column), in order of arrival. */
export class Table {
  constructor(name) {
    this.name = name;
    this.columns = [];
    this.at = new Map(); // column name -> position in a row
    this.clear();
  }

  clear() {
    this.rows = [];
    this.place = new Map(); // event id -> position in rows
    this.parts = new Map(); // id of a row of a derived table -> ids of the rows here that are part of it
    this.hay = []; // position -> what the search looks in, made when first needed
    this.version = 0;
  }

  setColumns(columns) {
    this.columns = columns;
    this.at = new Map(columns.map((column, i) => [column.name, i]));
  }

  upsert(rows) {
    const partOf = this.at.get("part_of");
    for (const row of rows) {
      const known = this.place.get(row[0]);
      const position = known === undefined ? this.rows.length : known;
      this.place.set(row[0], position);
      this.rows[position] = row;
      this.hay[position] = undefined;
      if (partOf !== undefined && known === undefined) this.addPart(row[partOf], row[0]);
    }
    if (rows.length) this.version += 1;
  }

  /** The value of a column; null where the row or this session has none. */
  get(row, name) {
    const value = row[this.at.get(name)];
    return value === undefined ? null : value;
  }

  byId(id) {
    return this.rows[this.place.get(id)] ?? null;
  }

  addPart(whole, id) {
    if (!this.parts.has(whole)) this.parts.set(whole, []);
    this.parts.get(whole).push(id);
  }

  haystack(position) {
    let text = this.hay[position];
    if (text === undefined) {
      const shown = this.rows[position].filter((value, i) => value !== null && this.columns[i]?.type !== "ids");
      text = shown.map((value) => searchable(value).slice(0, HAY_PER_VALUE)).join("\n").toLowerCase();
      this.hay[position] = text;
    }
    return text;
  }
}

/** The whole state. `listeners` run after each change, `onGap` when a patch was missed. A report's is frozen. */
export class Store {
  constructor(isFrozen = false) {
    this.isFrozen = isFrozen;
    this.listeners = new Set();
    this.onGap = () => {};
    this.paused = false;
    this.waiting = [];
    this.problem = null; // text of an error in the kernel's pump
    this.clockSkew = null; // browser clock minus kernel clock, ms
    this.lastHeard = Date.now();
    this.catchingUp = false;
    this.seq = null;
    this.part = Infinity;
    this.forget();
  }

  forget() {
    this.meta = {};
    this.totals = {};
    this.observed = {};
    this.feeds = {}; // table -> names of the sources that it needs
    this.made_of = {}; // derived table -> the table whose rows it sums up
    this.now = [];
    this.findings = [];
    this.ranks = null; // of a session with two ranks or more
    this.panels = []; // of plug-ins: {name, label, columns, rows, note}
    this.tables = new Map();
    this.texts = new Map();
  }

  table(name) {
    if (!this.tables.has(name)) this.tables.set(name, new Table(name));
    return this.tables.get(name);
  }

  /** The rows of events that a row of a derived table is made of, in order of time. */
  members(table, row) {
    const source = this.table(this.made_of[table.name]);
    const found = (source.parts.get(row[0]) ?? []).map((id) => source.byId(id));
    return found.sort((a, b) => source.get(a, "time") - source.get(b, "time"));
  }

  /** The row of an event in a table, or the row that the event is part of; null if there is none. */
  rowOf(table, id) {
    const source = table.name in this.made_of ? this.table(this.made_of[table.name]) : null;
    const part = source?.byId(id);
    return part ? table.byId(source.get(part, "part_of")) : table.byId(id);
  }

  /** Takes a patch, or keeps it while the display is paused. */
  receive(patch) {
    if (this.paused && this.seq !== null) this.waiting.push(patch);
    else this.apply(patch);
    this.changed();
  }

  setPaused(paused) {
    this.paused = paused;
    if (!paused) this.waiting.splice(0).forEach((patch) => this.apply(patch));
    this.changed(true);
  }

  /** A large patch comes in parts with one seq; whatever is at or below our own seq was seen already. */
  apply(patch) {
    const part = patch.part ?? 0;
    if (patch.reset) {
      if (this.seq !== null && patch.seq < this.seq) return;
      this.forget();
      this.catchingUp = false;
    } else {
      const nextPart = patch.seq === this.seq && part === this.part + 1;
      if (!nextPart && this.seq !== null && patch.seq <= this.seq) return;
      if (!nextPart && (this.seq === null || patch.seq > this.seq + 1 || part > 0)) this.noteGap();
    }
    this.seq = patch.seq;
    this.part = patch.reset && patch.part === undefined ? Infinity : part;
    this.merge(patch);
  }

  merge(patch) {
    for (const key of ["meta", "totals", "observed", "feeds", "made_of"]) Object.assign(this[key], patch[key]);
    // A thread that builds kernels for a compile knows neither its id nor its function: the compile has its own line.
    if (patch.now) this.now = patch.now.filter((flight) => flight.compile_id ?? flight.function);
    if (patch.findings) this.findings = patch.findings;
    if (patch.ranks) this.ranks = patch.ranks;
    if (patch.panels) this.setPanels(patch.panels);
    for (const [name, columns] of Object.entries(patch.columns ?? {})) this.table(name).setColumns(columns);
    for (const [name, rows] of Object.entries(patch.rows ?? {})) this.table(name).upsert(rows);
    // Ids come in order, so that what a text is the same as is there already.
    for (const [id, text] of Object.entries(patch.texts ?? {})) this.texts.set(Number(id), this.texts.get(text.same) ?? text);
  }

  /** A panel comes whole: its rows have no ids of events, but numbers below zero. */
  setPanels(panels) {
    this.panels = panels;
    for (const panel of panels) {
      const table = this.table(panel.name);
      table.clear();
      table.setColumns(["id", ...panel.columns].map((label, i) => ({ label, name: `c${i}`, type: i ? "text" : "id" })));
      table.upsert(panel.rows.map((cells, i) => [-1 - i, ...cells]));
    }
  }

  noteGap() {
    if (this.catchingUp) return;
    this.catchingUp = true;
    this.onGap();
  }

  /** Notes that the kernel spoke, and how its clock differs from ours (the least lag seen is the truest). */
  heard(sentMs) {
    this.lastHeard = Date.now();
    if (sentMs === undefined) return;
    const lag = Date.now() - sentMs;
    this.clockSkew = this.clockSkew === null ? lag : Math.min(this.clockSkew, lag);
  }

  /** The kernel's clock, Unix ms. */
  kernelNow() {
    return Date.now() - (this.clockSkew ?? 0);
  }

  setProblem(text) {
    this.problem = text;
    this.changed();
  }

  isLive() {
    return this.meta.state === "watching" && !this.isFrozen;
  }

  changed(isUrgent = false) {
    this.listeners.forEach((listener) => listener(isUrgent));
  }
}
