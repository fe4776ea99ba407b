// What the timeline draws: a lane per function, made from the tables. No element is touched here.
import { describeFunction } from "../core/compiles.js";
import { lookUp } from "../core/format.js";
import { Inputs } from "../core/inputs.js";
import { PHASE_KINDS, phaseKind } from "./phases.js";

/**
 * @typedef {object} CompileBar
 * @property {number} start Unix ms
 * @property {number} end Unix ms; Infinity while it runs
 * @property {Cells | null} row null while it runs
 * @property {RunningCompile | null} flight
 * @property {string | null} key
 * @property {boolean} isRecompile also for the backward of a recompile
 * @property {boolean} isBackward
 * @property {boolean} isFailed
 * @property {Lane} lane that it is in
 */
/** @typedef {{start: number, end: number, depth: number, kind: number, key: string | null}} PhaseBar `kind`: position in KINDS */
/** @typedef {{at: number, shape: string, label: string, key: string | null, saved: number | null}} Mark */
/** @typedef {CompiledFunction & LaneContent} Lane */
/**
 * @typedef {object} LaneContent
 * @property {CompileBar[]} bars in order of time
 * @property {PhaseBar[]} phases the outer ones first
 * @property {Mark[]} marks
 * @property {boolean} isFlying
 * @property {number | null} uncompiled since when it runs without being compiled, because it reached a limit; Unix ms
 * @property {number} first when the function was first compiled, Unix ms
 * @property {number} seconds that its compiles took
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
const TABLES = ["compiles", "recompiles", "phases", "cache_lookups", "cudagraphs", "graph_breaks"];
const LEAST_SHARE = 0.003; // of the largest time: below, a kind of phase can hardly be seen
const UNCOMPILED = 0.15; // of the time before, where a function runs uncompiled after it
/** The kinds of phases. */
export const KINDS = Object.keys(PHASE_KINDS);

export class TimelineLanes {
  /** @param {Compiles} compiles */
  constructor(compiles) {
    this.compiles = compiles;
    this.store = compiles.store;
    this.inputs = new Inputs();
    /** @type {Lane[]} */
    this.list = [];
    /** @type {Map<string, Lane>} */
    this.byFunction = new Map();
    /** @type {Map<string, Lane>} key of a compile -> its lane */
    this.byCompile = new Map();
    /** @type {TimeRange} Unix ms */
    this.extent = { from: 0, to: 0 };
    /** @type {Set<string>} the kinds of phases and the signs that occur */
    this.signs = new Set();
    /** @type {Lane | null} all lanes as one, made when it is needed */
    this.whole = null;
    this.version = 0;
  }

  /** Rebuilds the lanes if their tables changed. */
  refresh() {
    const flights = this.store.isLive() ? this.store.now : [];
    const versions = TABLES.map((name) => this.store.table(name).version);
    if (!this.inputs.haveChanged(this.store.tables, ...versions, JSON.stringify(flights))) return;
    this.byFunction.clear();
    this.byCompile.clear();
    this.signs.clear();
    this.addCompiles();
    this.addFlights(flights);
    this.addPhases();
    this.addMarks();
    // What is compiling now comes first, then what cost most.
    this.list = [...this.byFunction.values()].sort((a, b) => {
      return Number(b.isFlying) - Number(a.isFlying) || b.seconds - a.seconds || a.first - b.first;
    });
    this.extent = this.findExtent();
    this.whole = null;
    this.version += 1;
  }

  /** All compiles in one lane, as the compact timeline shows them. */
  get joined() {
    const lanes = this.list;
    this.whole ??= {
      ...lanes[0],
      bars: lanes.flatMap((lane) => lane.bars).sort((a, b) => a.start - b.start),
      phases: lanes.flatMap((lane) => lane.phases).sort((a, b) => a.depth - b.depth || a.start - b.start),
      marks: [],
    };
    return this.whole;
  }

  /**
   * When something happened, Unix ms; a compile in flight has no end.
   * @param {(start: number, end: number) => void} visit
   */
  eachSpan(visit) {
    for (const lane of this.list) {
      for (const { start, end } of lane.bars) visit(start, end);
      for (const { at } of lane.marks) visit(at, at);
    }
  }

  /**
   * The first compile for which `isIt` holds.
   * @param {(bar: CompileBar) => boolean} isIt
   */
  findBar(isIt) {
    return this.list.flatMap(({ bars }) => bars).find(isIt) ?? null;
  }

  /** @param {CompiledFunction} what */
  laneOf(what) {
    const known = this.byFunction.get(what.lane);
    /** @type {Lane} */
    const lane = known ?? { ...what, bars: [], phases: [], marks: [], isFlying: false, uncompiled: null, first: Infinity, seconds: 0 };
    this.byFunction.set(what.lane, lane);
    return lane;
  }

  addCompiles() {
    const table = this.store.table("compiles");
    for (const row of table.rows) {
      const get = table.reader(row);
      const lane = this.laneOf(describeFunction(get("function"), get("file"), get("line")));
      const [start, key] = [get("time"), this.compiles.keyOf(table, row)];
      const end = start + (get("duration_s") ?? 0) * 1e3;
      const [isFailed, isBackward] = [get("outcome") === "failed", get("trigger") === "lazy_backward"];
      const isRecompile = get("is_recompile") === true || (isBackward && this.compiles.findRecompile(key) !== null);
      lane.bars.push({ start, end, row, flight: null, key, isRecompile, isBackward, isFailed, lane });
      if (get("limit") !== null) lane.uncompiled ??= end;
      if (isRecompile) this.signs.add("recompile");
      this.signs.add(isFailed ? "failed" : "dynamo");
      lane.first = Math.min(lane.first, start);
      lane.seconds += get("duration_s") ?? 0;
      if (key !== null) this.byCompile.set(key, lane);
    }
  }

  /** @param {RunningCompile[]} flights */
  addFlights(flights) {
    for (const flight of flights) {
      const lane = this.laneOf(describeFunction(flight.function, flight.file, flight.line));
      const key = flight.compile_key;
      const [start, isRecompile] = [flight.started_ms, this.compiles.findRecompile(key) !== null];
      const isBackward = flight.trigger === "lazy_backward";
      lane.bars.push({ start, end: Infinity, row: null, flight, key, isRecompile, isBackward, isFailed: false, lane });
      lane.isFlying = true;
      lane.first = Math.min(lane.first, flight.started_ms);
      if (key !== null && !this.byCompile.has(key)) this.byCompile.set(key, lane);
    }
    this.byFunction.forEach((lane) => lane.bars.sort((a, b) => a.start - b.start));
  }

  addPhases() {
    const table = this.store.table("phases");
    const times = new Float64Array(KINDS.length); // ms
    for (const row of table.rows) {
      const get = table.reader(row);
      const key = this.compiles.keyOf(table, row);
      const lane = this.byCompile.get(key ?? "");
      const [start, seconds, kind] = [get("time"), get("duration_s"), phaseKind(get("name") ?? "")];
      if (!lane || seconds === null || kind === null) continue; // it belongs to the phase that contains it
      lane.phases.push({ start, end: start + seconds * 1e3, depth: get("depth") ?? 0, kind: KINDS.indexOf(kind), key });
      times[KINDS.indexOf(kind)] += seconds * 1e3;
    }
    const least = LEAST_SHARE * times.reduce((most, time) => Math.max(most, time), 0);
    KINDS.forEach((kind, i) => times[i] > least && this.signs.add(kind));
    this.byFunction.forEach((lane) => lane.phases.sort((a, b) => a.depth - b.depth || a.start - b.start));
  }

  addMarks() {
    const lookups = this.store.table("cache_lookups");
    for (const row of lookups.rows) {
      const get = lookups.reader(row);
      const shape = COMPILE_CACHES.has(get("cache") ?? "") ? lookUp(LOOKUPS, get("outcome") ?? "") : undefined;
      this.addMark(lookups, row, shape, `${get("cache")} ${get("outcome")}`, get("saved_s"));
    }
    const captures = this.store.table("cudagraphs");
    for (const row of captures.rows) {
      const get = captures.reader(row);
      this.addMark(captures, row, lookUp(CAPTURES, get("action") ?? ""), labelCapture(get), null);
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
    const key = this.compiles.keyOf(table, row);
    if (!shape) return;
    const get = table.reader(row);
    // An event outside any compile, such as a capture, is in the lane of its function, if that was compiled.
    const lane = this.byCompile.get(key ?? "") ?? this.byFunction.get(describeFunction(get("function"), get("file"), get("line")).lane);
    if (lane) this.signs.add(shape);
    lane?.marks.push({ at: table.get(row, "time"), shape, label, key, saved });
  }

  /** @returns {TimeRange} */
  findExtent() {
    const from = this.list.reduce((low, lane) => Math.min(low, lane.first), Infinity);
    if (from === Infinity) return { from: 0, to: 0 };
    let to = from;
    this.eachSpan((start, end) => {
      to = Math.max(to, end === Infinity ? start : end);
    });
    const isEnded = this.list.some((lane) => lane.uncompiled !== null); // what follows needs some room
    return { from, to: isEnded ? to + UNCOMPILED * (to - from) : to };
  }
}

/**
 * Lanes that have a compile in `lit` first, each group in its order.
 * @param {Lane[]} lanes
 * @param {Set<string | null> | null} lit keys of compiles; null for all
 */
export function putLitFirst(lanes, lit) {
  if (lit === null) return lanes;
  const isLit = new Map(lanes.map((lane) => [lane, lane.bars.some((bar) => lit.has(bar.key))]));
  return [...lanes.filter((lane) => isLit.get(lane)), ...lanes.filter((lane) => !isLit.get(lane))];
}

/** @param {Get<CudagraphsRow>} get */
function labelCapture(get) {
  const words = [get("mode"), get("mismatch"), get("reason")].filter(Boolean).join(": ");
  return `CUDA graph ${get("action")} ${words}`.trim();
}
