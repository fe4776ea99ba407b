// What the page knows: patches go in, tables and totals come out. No element is touched here.
import { applyDelta } from "./deltas.js";
import { formatValue } from "./format.js";

const SILENCE_MS = 8000; // the kernel sends something every two seconds while it can
const SEARCHED_CHARS = 500; // characters of one value that the search sees
/** @type {(keyof Patch & ("meta" | "totals" | "observed" | "feeds" | "made_of"))[]} */
const MERGED = ["meta", "totals", "observed", "feeds", "made_of"];
/** @type {(keyof Patch & ("now" | "findings" | "plan" | "examples" | "torch_docs" | "ranks" | "vllm" | "panels"))[]} */
const REPLACED = ["now", "findings", "plan", "examples", "torch_docs", "ranks", "vllm", "panels"];

/**
 * Rows of one kind of event, in order of arrival; the event id, the first column, is their key.
 * @template {string} [Name=string]
 */
export class Table {
  /** @param {Name} name */
  constructor(name) {
    this.name = name;
    /** @type {Column[]} */
    this.columns = [];
    /** @type {Map<PropertyKey, number>} column name -> position in a row */
    this.positions = new Map();
    /** @type {Cells[]} */
    this.rows = [];
    /** @type {Map<number, number>} event id -> position in rows */
    this.place = new Map();
    /** @type {Map<number, number[]>} id of a row of a derived table -> ids of the rows here that are part of it */
    this.parts = new Map();
    /** @type {(string | undefined)[]} position -> what the search looks in, made when first needed */
    this.searchTexts = [];
    this.version = 0;
  }

  /** @param {Column[]} columns */
  setColumns(columns) {
    this.columns = columns;
    this.positions = new Map(columns.map((column, i) => [column.name, i]));
  }

  /** @param {Cells[]} rows */
  upsert(rows) {
    const partOf = this.positions.get("part_of");
    for (const row of rows) {
      const known = this.place.get(row[0]);
      const position = known ?? this.rows.length;
      this.place.set(row[0], position);
      this.rows[position] = row;
      this.searchTexts[position] = undefined;
      if (partOf === undefined || known !== undefined) continue;
      const parts = this.parts.get(row[partOf]);
      if (parts) parts.push(row[0]);
      else this.parts.set(row[partOf], [row[0]]);
    }
    if (rows.length) this.version += 1;
  }

  /**
   * The value of a column; null where the row or this session has none.
   * @template {keyof RowOf<Name>} Key
   * @param {Cells} row
   * @param {Key} name
   * @returns {RowOf<Name>[Key]}
   */
  get(row, name) {
    return row[this.positions.get(name) ?? -1] ?? null;
  }

  /** @type {(row: Cells) => Get<RowOf<Name>>} reads the columns of one row by name */
  reader(row) {
    return (name) => this.get(row, name);
  }

  /** @param {number} id */
  byId(id) {
    return this.rows[this.place.get(id) ?? -1] ?? null;
  }

  /** @param {number} position */
  searchText(position) {
    let text = this.searchTexts[position];
    if (text === undefined) {
      const shown = this.rows[position].filter((value, i) => value !== null && this.columns[i]?.type !== "ids");
      // Pairs as they are shown.
      const texts = shown.map((value) => (typeof value === "object" ? formatValue(value, "list") : String(value)));
      text = texts.map((each) => each.slice(0, SEARCHED_CHARS)).join("\n").toLowerCase();
      this.searchTexts[position] = text;
    }
    return text;
  }
}

/** The whole state. `listeners` run after each change, `onGap` when a patch was missed. A report's store is frozen. */
export class Store {
  constructor(isFrozen = false) {
    this.isFrozen = isFrozen;
    /** @type {Set<(isUrgent: boolean) => void>} */
    this.listeners = new Set();
    this.onGap = () => {};
    /** @type {KernelRequests | null} null in a report */
    this.kernel = null;
    this.paused = false;
    /** @type {Patch[]} */
    this.waiting = [];
    /** @type {string | null} text of an error in the kernel */
    this.problem = null;
    /** @type {number | null} browser clock minus kernel clock, ms */
    this.clockSkew = null;
    this.lastHeard = Date.now();
    this.hasKernelStopped = false;
    this.canSearch = false; // the kernel answers, and has IPython's history
    /** @type {Search | null} a search for a change that a page has started */
    this.search = null;
    this.catchingUp = false;
    /** @type {number | null} */
    this.seq = null;
    this.part = Infinity;
    this.forget();
  }

  /** Begins a session: all of this comes in patches. */
  forget() {
    /** @type {Partial<Meta>} */
    this.meta = {};
    /** @type {Record<string, any>} */
    this.totals = {};
    /** @type {Record<string, boolean>} table -> whether its sources work */
    this.observed = {};
    /** @type {Record<string, string[]>} table -> names of the sources that fill it */
    this.feeds = {};
    /** @type {Record<string, string>} derived table -> the table whose rows it sums up */
    this.made_of = {};
    /** @type {RunningCompile[]} */
    this.now = [];
    /** @type {Finding[]} */
    this.findings = [];
    /** @type {Plan | null} */
    this.plan = null;
    /** @type {Record<string, Example>} rule -> its example */
    this.examples = {};
    /** @type {Record<string, Link>} rule -> the page of torch's documentation about it */
    this.torch_docs = {};
    /** @type {Ranks | null} of a session with two ranks or more */
    this.ranks = null;
    /** @type {VllmParts | null} of a session in which vLLM compiled */
    this.vllm = null;
    /** @type {Panel[]} of plug-ins */
    this.panels = [];
    /** @type {Map<string, Table<any>>} */
    this.tables = new Map();
    /** @type {Map<number, StoredText>} */
    this.texts = new Map();
  }

  /**
   * @template {string} Name
   * @param {Name} name
   * @returns {Table<Name>}
   */
  table(name) {
    let table = this.tables.get(name);
    if (!table) this.tables.set(name, (table = new Table(name)));
    return table;
  }

  /** @type {(table: Table<any>) => Table<any> | null} whose rows a derived table sums up; null for any other */
  sourceOf(table) {
    return table.name in this.made_of ? this.table(this.made_of[table.name]) : null;
  }

  /** @type {(table: Table<any>, row: Cells) => Cells[]} events that a row of a derived table is made of, in order of time */
  members(table, row) {
    const source = this.sourceOf(table);
    if (!source) return [];
    const found = (source.parts.get(row[0]) ?? []).map((id) => source.byId(id)).filter((part) => part !== null);
    return found.sort((a, b) => source.get(a, "time") - source.get(b, "time"));
  }

  /** @type {(table: Table<any>, id: number) => Cells | null} the row of an event, or the one that the event is part of */
  rowOf(table, id) {
    const source = this.sourceOf(table);
    const part = source?.byId(id);
    return source && part ? table.byId(source.get(part, "part_of")) : table.byId(id);
  }

  /** @param {Patch} patch is applied, or kept while the display is paused */
  receive(patch) {
    if (this.paused && this.seq !== null) this.waiting.push(patch);
    else this.apply(patch);
    this.notify();
  }

  /** @param {boolean} paused */
  setPaused(paused) {
    this.paused = paused;
    if (!paused) this.waiting.splice(0).forEach((patch) => this.apply(patch));
    this.notify(true);
  }

  /** @param {Patch} patch applied once: a large one comes in parts with one seq; what is at or below our own was seen already */
  apply(patch) {
    const part = patch.part ?? 0;
    if (patch.reset) {
      if (this.seq !== null && patch.seq < this.seq) return;
      this.forget();
      this.catchingUp = false;
    } else {
      const nextPart = patch.seq === this.seq && part === this.part + 1;
      if (!nextPart && this.seq !== null && patch.seq <= this.seq) return;
      const isGap = !nextPart && (this.seq === null || patch.seq > this.seq + 1 || part > 0);
      if (isGap && !this.catchingUp) {
        this.catchingUp = true;
        this.onGap();
      }
    }
    this.seq = patch.seq;
    this.part = patch.reset && patch.part === undefined ? Infinity : part;
    this.merge(patch);
  }

  /**
   * The patch with whole parts instead of deltas. A page that has missed a patch leaves deltas out: it gets everything.
   * @type {(patch: Patch) => Patch}
   */
  complete(patch) {
    const whole = { ...patch, rows: { ...patch.rows } };
    for (const [name, delta] of Object.entries(this.catchingUp ? {} : patch.changes ?? {})) {
      Object.assign(whole, { [name]: applyDelta(/** @type {Record<string, any>} */ (this)[name], delta) });
    }
    const known = this.table("functions");
    const documents = this.catchingUp ? [] : patch.documents ?? [];
    /** @type {Cells[]} */
    const rows = documents.map(([id, delta]) => [id, applyDelta(known.byId(id)?.[1], delta)]);
    if (rows.length) whole.rows.functions = [...(whole.rows.functions ?? []), ...rows];
    return whole;
  }

  /** @param {Patch} given */
  merge(given) {
    const patch = this.complete(given);
    for (const key of MERGED) Object.assign(this[key], patch[key]);
    for (const key of REPLACED) if (patch[key] !== undefined) Object.assign(this, { [key]: patch[key] });
    // A thread that builds kernels for a compile has neither its id nor its function; the compile has its own line.
    this.now = this.now.filter((flight) => flight.compile_id ?? flight.function);
    if (patch.panels) this.fillPanels();
    for (const [name, columns] of Object.entries(patch.columns ?? {})) this.table(name).setColumns(columns);
    for (const [name, rows] of Object.entries(patch.rows ?? {})) this.table(name).upsert(rows);
    // Ids come in order, so a text that another one repeats is already here.
    for (const [id, text] of Object.entries(patch.texts ?? {})) {
      this.texts.set(Number(id), (text.same === undefined ? null : this.texts.get(text.same)) ?? text);
    }
  }

  /** Replaces the tables of plug-ins. Their rows have no event ids, so they are numbered below zero. */
  fillPanels() {
    for (const panel of this.panels) {
      this.tables.delete(panel.name);
      const table = this.table(panel.name);
      const types = panel.columns.map((_, i) => (panel.rows.every((row) => typeof (row[i] ?? 0) === "number") ? "number" : "text"));
      table.setColumns(["id", ...panel.columns].map((label, i) => ({ label, name: `c${i}`, type: types[i - 1] ?? "id", doc: "" })));
      table.upsert(panel.rows.map((cells, i) => [-1 - i, ...cells]));
    }
  }

  /** @param {number} [sentMs] by the kernel's clock, which differs from ours by the smallest lag, as far as we know */
  noteMessage(sentMs) {
    this.lastHeard = Date.now();
    if (sentMs === undefined) return;
    const lag = Date.now() - sentMs;
    this.clockSkew = this.clockSkew === null ? lag : Math.min(this.clockSkew, lag);
  }

  /** The kernel's clock, Unix ms. */
  kernelNow() {
    return Date.now() - (this.clockSkew ?? 0);
  }

  /** The kernel has stopped: what it was recording ended there. */
  noteKernelStop() {
    this.hasKernelStopped ||= this.isLive();
    this.canSearch = false;
    this.notify(true);
  }

  isLive() {
    return this.meta.state === "watching" && !this.isFrozen && !this.hasKernelStopped;
  }

  /** How long the kernel of a live page has sent nothing, ms; 0 while it sends something every few seconds. */
  silence() {
    const silence = Date.now() - this.lastHeard;
    return this.isLive() && silence > SILENCE_MS ? silence : 0;
  }

  notify(isUrgent = false) {
    this.listeners.forEach((listener) => listener(isUrgent));
  }
}
