// What the timeline draws: a lane a function, made from the tables. No element is touched here.
import { describeFunction } from "../core/compile-groups.js";
import { phaseKind } from "./phases.js";

const LOOKUPS = { hit: "hit", miss: "miss", guard_miss: "miss", bypass: "miss", failed: "miss" };
const COMPILE_CACHES = new Set(["fx_graph", "aot_autograd"]); // the others hold parts of what these hold
const CAPTURES = {
  record: "capture",
  user_capture: "capture",
  rerecord: "recapture",
  skip: "skip",
  limit: "skip",
  failed: "skip",
};

export class Lanes {
  constructor(store, groups) {
    this.store = store;
    this.groups = groups;
    this.versions = "";
    this.list = [];
  }

  /** Rebuilds the lanes if their tables changed. */
  refresh() {
    const names = ["compiles", "phases", "cache_lookups", "cudagraphs", "graph_breaks"];
    const flights = this.store.isLive() ? this.store.now : [];
    const versions = JSON.stringify([names.map((name) => this.store.table(name).version), flights]);
    if (versions === this.versions && this.tables === this.store.tables) return;
    this.versions = versions;
    this.tables = this.store.tables;
    this.byLane = new Map();
    this.ofGroup = new Map();
    this.addCompiles();
    this.addFlights(flights);
    this.addPhases();
    this.addMarks();
    this.list = [...this.byLane.values()].sort((a, b) => a.first - b.first);
    this.extent = this.findExtent();
  }

  laneOf(what) {
    const { name, file, line, lane } = what;
    if (!this.byLane.has(lane)) {
      this.byLane.set(lane, { name, file, line, bars: [], phases: [], marks: [], flights: [], first: Infinity });
    }
    return this.byLane.get(lane);
  }

  addCompiles() {
    const table = this.store.table("compiles");
    for (const row of table.rows) {
      const get = (name) => table.get(row, name);
      const lane = this.laneOf(describeFunction(get("function"), get("file"), get("line")));
      const start = get("time");
      const group = this.groups.of(table, row);
      const end = start + (get("duration_s") ?? 0) * 1e3;
      const isFailed = get("outcome") === "failed";
      lane.bars.push({ start, end, row, group, isRecompile: get("is_recompile") === true, isFailed });
      lane.first = Math.min(lane.first, start);
      this.ofGroup.set(group, lane);
    }
  }

  addFlights(flights) {
    for (const flight of flights) {
      const lane = this.laneOf(describeFunction(flight.function, flight.file, flight.line));
      const group = this.groups.ofFlight(flight);
      lane.flights.push({ start: flight.started_ms, group, flight });
      lane.first = Math.min(lane.first, flight.started_ms);
      if (!this.ofGroup.has(group)) this.ofGroup.set(group, lane);
    }
  }

  addPhases() {
    const table = this.store.table("phases");
    const [time, duration, name, depth] = ["time", "duration_s", "name", "depth"].map((key) => table.at.get(key));
    for (const row of table.rows) {
      const lane = this.ofGroup.get(this.groups.of(table, row));
      if (!lane || row[duration] === null) continue;
      const end = row[time] + row[duration] * 1e3;
      lane.phases.push({ start: row[time], end, depth: row[depth] ?? 0, kind: phaseKind(row[name]), name: row[name] });
    }
    this.byLane.forEach((lane) => lane.phases.sort((a, b) => a.depth - b.depth || a.start - b.start));
  }

  addMarks() {
    const lookup = (get) => (COMPILE_CACHES.has(get("cache")) ? LOOKUPS[get("outcome")] : undefined);
    this.addMarksOf("cache_lookups", lookup, (get) => `${get("cache")} ${get("outcome")}`);
    this.addMarksOf("cudagraphs", (get) => CAPTURES[get("action")], labelOfCapture);
    this.addMarksOf("graph_breaks", () => "break", (get) => `graph break: ${get("reason")}`);
  }

  addMarksOf(name, shapeOf, labelOf) {
    const table = this.store.table(name);
    for (const row of table.rows) {
      const get = (key) => table.get(row, key);
      const group = this.groups.of(table, row);
      const shape = shapeOf(get);
      const lane = shape && (this.ofGroup.get(group) ?? this.laneOfFunction(get));
      if (lane) lane.marks.push({ at: get("time"), shape, label: labelOf(get), group, saved: get("saved_s") });
    }
  }

  /** The lane of an event outside of any compile, as a capture is, if its function was compiled. */
  laneOfFunction(get) {
    return this.byLane.get(describeFunction(get("function"), get("file"), get("line")).lane);
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
    return low === Infinity ? null : { low, high: Math.max(high, low) };
  }
}

function labelOfCapture(get) {
  const words = [get("mode"), get("mismatch"), get("reason")].filter(Boolean).join(": ");
  return `CUDA graph ${get("action")} ${words}`.trim();
}
