// What the timeline draws: a lane per function, in a session of several ranks one per function and rank, made from the
// tables. No element is touched here.
import { describeFunction } from "../core/compiles.js";
import { lookUp } from "../core/format.js";
import { Inputs } from "../core/inputs.js";
import { PHASE_KINDS, phaseKind } from "./phases.js";

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
/** @type {[table: string, shapeOf: (get: Get<any>) => string | undefined, write: (get: Get<any>) => string][]} what signs are of */
const MARKS = [
  [
    "cache_lookups",
    (get) => (COMPILE_CACHES.has(get("cache")) ? lookUp(LOOKUPS, get("outcome") ?? "") : undefined),
    (get) => `${get("cache")} ${get("outcome")}`,
  ],
  [
    "cudagraphs",
    (get) => lookUp(CAPTURES, get("action") ?? ""),
    (get) => `CUDA graph ${get("action")} ${[get("mode"), get("mismatch"), get("reason")].filter(Boolean).join(": ")}`.trim(),
  ],
  ["graph_breaks", () => "break", (get) => `graph break: ${get("reason")}`],
];
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
    /** @type {Map<string, Lane>} by `keyOf` */
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
    if (!this.inputs.haveChanged(this.store.tables, this.store.ranks, ...versions, JSON.stringify(flights))) return;
    this.byFunction.clear();
    this.byCompile.clear();
    this.signs.clear();
    this.addCompiles(flights);
    this.addPhases();
    this.addMarks();
    // What is compiling now comes first, then what cost most.
    this.list = [...this.byFunction.values()].sort((a, b) => {
      return Number(b.isFlying) - Number(a.isFlying) || b.seconds - a.seconds || a.first - b.first;
    });
    const from = this.list.reduce((low, lane) => Math.min(low, lane.first), Infinity);
    const to = this.spans.reduce((high, { start, end }) => Math.max(high, end === Infinity ? start : end), from);
    const room = this.list.some((lane) => lane.uncompiled !== null) ? UNCOMPILED * (to - from) : 0; // for what follows
    this.extent = this.list.length ? { from, to: to + room } : { from: 0, to: 0 };
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

  /** When something happened, Unix ms; a compile in flight has no end. */
  get spans() {
    return this.list.flatMap(({ bars, marks }) => [...bars, ...marks.map(({ at }) => ({ start: at, end: at }))]);
  }

  /** @param {(bar: CompileBar) => boolean} isIt */
  findBar(isIt) {
    return this.list.flatMap(({ bars }) => bars).find(isIt) ?? null;
  }

  /** @type {(what: CompiledFunction, rank: number | null) => string} ranks that compile at the same time cannot share a lane */
  keyOf(what, rank) {
    return this.store.ranks ? `${what.lane}|${rank}` : what.lane;
  }

  /** @type {(what: CompiledFunction, rank: number | null) => Lane} */
  laneOf(what, rank) {
    const key = this.keyOf(what, rank);
    let lane = this.byFunction.get(key);
    if (!lane) {
      const inRank = this.store.ranks && rank !== null ? `rank ${rank}` : null;
      lane = { ...what, inRank, bars: [], phases: [], marks: [], isFlying: false, uncompiled: null, first: Infinity, seconds: 0 };
      this.byFunction.set(key, lane);
    }
    return lane;
  }

  /** @param {RunningCompile[]} flights */
  addCompiles(flights) {
    const table = this.store.table("compiles");
    for (const row of table.rows) {
      const get = table.reader(row);
      const lane = this.laneOf(describeFunction(get("function"), get("file"), get("line")), get("rank"));
      const [start, key, seconds] = [get("time"), this.compiles.keyOf(table, row), get("duration_s") ?? 0];
      const end = start + seconds * 1e3;
      const [isFailed, isBackward] = [get("outcome") === "failed", get("trigger") === "lazy_backward"];
      const isRecompile = get("is_recompile") === true || (isBackward && this.compiles.findRecompile(key) !== null);
      lane.bars.push({ start, end, row, flight: null, key, isRecompile, isBackward, isFailed, lane });
      if (get("limit") !== null) lane.uncompiled ??= end;
      if (isRecompile) this.signs.add("recompile");
      this.signs.add(isFailed ? "failed" : "dynamo");
      lane.seconds += seconds;
    }
    for (const flight of flights) {
      const lane = this.laneOf(describeFunction(flight.function, flight.file, flight.line), null);
      const [start, key, isBackward] = [flight.started_ms, flight.compile_key, flight.trigger === "lazy_backward"];
      const isRecompile = this.compiles.findRecompile(key) !== null;
      lane.bars.push({ start, end: Infinity, row: null, flight, key, isRecompile, isBackward, isFailed: false, lane });
      lane.isFlying = true;
    }
    for (const lane of this.byFunction.values()) {
      lane.bars.sort((a, b) => a.start - b.start);
      lane.first = lane.bars[0].start;
      for (const { key } of lane.bars) if (key !== null) this.byCompile.set(key, lane);
    }
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
    for (const [name, shapeOf, write] of MARKS) {
      const table = this.store.table(name);
      for (const row of table.rows) {
        const get = table.reader(row);
        const [shape, key] = [shapeOf(get), this.compiles.keyOf(table, row)];
        if (!shape) continue;
        // An event outside any compile, such as a capture, is in the lane of its function, if that was compiled.
        const own = this.keyOf(describeFunction(get("function"), get("file"), get("line")), get("rank"));
        const lane = this.byCompile.get(key ?? "") ?? this.byFunction.get(own);
        if (!lane) continue;
        this.signs.add(shape);
        lane.marks.push({ at: get("time"), shape, label: write(get), key, saved: get("saved_s") });
      }
    }
  }
}
