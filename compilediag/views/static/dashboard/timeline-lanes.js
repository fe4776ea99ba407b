// What the timeline draws: a lane per function, made from the tables. No element is touched here.
import { describeFunction, keyOfFlight } from "../core/compile-groups.js";
import { phaseKind } from "./phases.js";
/** @import { CompiledFunction, CompileGroups } from "../core/compile-groups.js" */
/** @import { Cells, Flight, Get } from "../core/page-types" */
/** @import { CudagraphsRow } from "../core/rows" */
/** @import { Store, Table } from "../core/store.js" */

/** @typedef {{start: number, end: number, row: Cells, key: string | null, isRecompile: boolean, isFailed: boolean}} CompileBar */
/** @typedef {{start: number, end: number, depth: number, kind: string, name: string}} PhaseBar */
/** @typedef {{at: number, shape: string, label: string, key: string | null, saved: number | null}} Mark */
/** @typedef {{start: number, key: string | null, flight: Flight}} FlightBar */
/**
 * @typedef {object} Lane
 * @property {string} name
 * @property {string | null} file
 * @property {number | null} line
 * @property {CompileBar[]} bars
 * @property {PhaseBar[]} phases
 * @property {Mark[]} marks
 * @property {FlightBar[]} flights
 * @property {number} first when the function was first compiled, Unix ms
 */

/** @type {Record<string, string>} */
const LOOKUPS = { hit: "hit", miss: "miss", guard_miss: "miss", bypass: "miss", failed: "miss" };
const COMPILE_CACHES = new Set(["fx_graph", "aot_autograd"]); // the others hold parts of what these hold
/** @type {Record<string, string>} */
const CAPTURES = {
  record: "capture",
  user_capture: "capture",
  rerecord: "recapture",
  skip: "skip",
  limit: "skip",
  failed: "skip",
};
const TABLES = ["compiles", "phases", "cache_lookups", "cudagraphs", "graph_breaks"];

export class TimelineLanes {
  /**
   * @param {Store} store
   * @param {CompileGroups} groups
   */
  constructor(store, groups) {
    this.store = store;
    this.groups = groups;
    this.versions = "";
    /** @type {Map<string, Table<any>> | null} */
    this.tables = null;
    /** @type {Lane[]} */
    this.list = [];
    /** @type {Map<string, Lane>} */
    this.byFunction = new Map();
    /** @type {Map<string, Lane>} key of a compile -> its lane */
    this.byCompile = new Map();
    this.extent = { low: 0, high: 0 };
  }

  /** Rebuilds the lanes if their tables changed. */
  refresh() {
    const flights = this.store.isLive() ? this.store.now : [];
    const versions = JSON.stringify([TABLES.map((name) => this.store.table(name).version), flights]);
    if (versions === this.versions && this.tables === this.store.tables) return;
    this.versions = versions;
    this.tables = this.store.tables;
    this.byFunction.clear();
    this.byCompile.clear();
    this.addCompiles();
    this.addFlights(flights);
    this.addPhases();
    this.addMarks();
    this.list = [...this.byFunction.values()].sort((a, b) => a.first - b.first);
    this.extent = this.findExtent();
  }

  /** @param {CompiledFunction} what */
  laneOf({ name, file, line, lane }) {
    let found = this.byFunction.get(lane);
    if (!found) {
      found = { name, file, line, bars: [], phases: [], marks: [], flights: [], first: Infinity };
      this.byFunction.set(lane, found);
    }
    return found;
  }

  addCompiles() {
    const table = this.store.table("compiles");
    for (const row of table.rows) {
      const get = table.reader(row);
      const lane = this.laneOf(describeFunction(get("function"), get("file"), get("line")));
      const [start, key] = [get("time"), this.groups.keyOf(table, row)];
      const end = start + (get("duration_s") ?? 0) * 1e3;
      const [isRecompile, isFailed] = [get("is_recompile") === true, get("outcome") === "failed"];
      lane.bars.push({ start, end, row, key, isRecompile, isFailed });
      lane.first = Math.min(lane.first, start);
      if (key !== null) this.byCompile.set(key, lane);
    }
  }

  /** @param {Flight[]} flights */
  addFlights(flights) {
    for (const flight of flights) {
      const lane = this.laneOf(describeFunction(flight.function, flight.file, flight.line));
      const key = keyOfFlight(flight);
      lane.flights.push({ start: flight.started_ms, key, flight });
      lane.first = Math.min(lane.first, flight.started_ms);
      if (key !== null && !this.byCompile.has(key)) this.byCompile.set(key, lane);
    }
  }

  addPhases() {
    const table = this.store.table("phases");
    for (const row of table.rows) {
      const get = table.reader(row);
      const lane = this.byCompile.get(this.groups.keyOf(table, row) ?? "");
      const [start, seconds, name] = [get("time"), get("duration_s"), get("name") ?? "?"];
      if (!lane || seconds === null) continue;
      lane.phases.push({ start, end: start + seconds * 1e3, depth: get("depth") ?? 0, kind: phaseKind(name), name });
    }
    this.byFunction.forEach((lane) => lane.phases.sort((a, b) => a.depth - b.depth || a.start - b.start));
  }

  addMarks() {
    const lookups = this.store.table("cache_lookups");
    for (const row of lookups.rows) {
      const get = lookups.reader(row);
      const shape = COMPILE_CACHES.has(get("cache") ?? "") ? LOOKUPS[get("outcome") ?? ""] : undefined;
      this.addMark(lookups, row, shape, `${get("cache")} ${get("outcome")}`, get("saved_s"));
    }
    const captures = this.store.table("cudagraphs");
    for (const row of captures.rows) {
      const get = captures.reader(row);
      this.addMark(captures, row, CAPTURES[get("action") ?? ""], labelCapture(get), null);
    }
    const breaks = this.store.table("graph_breaks");
    for (const row of breaks.rows) this.addMark(breaks, row, "break", `graph break: ${breaks.get(row, "reason")}`, null);
  }

  /**
   * @param {Table<any>} table
   * @param {Cells} row
   * @param {string | undefined} shape
   * @param {string} label
   * @param {number | null} saved s
   */
  addMark(table, row, shape, label, saved) {
    const key = this.groups.keyOf(table, row);
    if (!shape) return;
    const lane = (key === null ? undefined : this.byCompile.get(key)) ?? this.laneOfFunction(table.reader(row));
    lane?.marks.push({ at: table.get(row, "time"), shape, label, key, saved });
  }

  /**
   * The lane of an event outside any compile, such as a capture, if its function was compiled.
   * @param {Get} get
   */
  laneOfFunction(get) {
    return this.byFunction.get(describeFunction(get("function"), get("file"), get("line")).lane);
  }

  findExtent() {
    let [low, high] = [Infinity, -Infinity];
    for (const lane of this.list) {
      for (const bar of lane.bars) {
        low = Math.min(low, bar.start);
        high = Math.max(high, bar.end);
      }
      for (const flight of lane.flights) low = Math.min(low, flight.start);
      for (const mark of lane.marks) high = Math.max(high, mark.at);
    }
    return low === Infinity ? { low: 0, high: 0 } : { low, high: Math.max(high, low) };
  }
}

/** @param {Get<CudagraphsRow>} get */
function labelCapture(get) {
  const words = [get("mode"), get("mismatch"), get("reason")].filter(Boolean).join(": ");
  return `CUDA graph ${get("action")} ${words}`.trim();
}
