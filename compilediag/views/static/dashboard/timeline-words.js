// What the timeline says in words: the lines of its tooltip, and what a compile was.
import { formatAmount, formatClock, formatPlace, formatSeconds, lookUp } from "../core/format.js";
import { PHASE_KINDS, phaseLabel } from "../timeline/phases.js";
/** @import { Get } from "../core/types" */
/** @import { CompilesRow } from "../core/page-types" */
/** @import { FlightBar, Lane, Mark } from "./timeline-lanes.js" */

const MOST_PHASES = 8; // lines of a tooltip

/** @type {Record<string, string>} what started a compile, where that is not a call */
const TRIGGERS = {
  lazy_backward: "backward, at its first call",
  compiled_autograd: "compiled autograd",
  precompile: "captured ahead of time",
};

/** @type {Record<string, string>} */
const OUTCOMES = { skipped: "skipped, runs eagerly", empty: "nothing to compile" };

/** @type {[keyof CompilesRow & string, string][]} column, kind */
const PARTS = [
  ["dynamo_s", "dynamo"],
  ["aot_s", "aot"],
  ["inductor_s", "inductor"],
  ["codegen_s", "codegen"],
  ["triton_s", "triton"],
];

/**
 * What a compile was: "recompile", "first compile", "first compile: failed".
 * @param {Get<CompilesRow>} get
 */
export function nameCompile(get) {
  const outcome = get("outcome");
  const what = get("is_recompile") ? "recompile" : lookUp(TRIGGERS, get("trigger") ?? "") ?? "first compile";
  return outcome === null || outcome === "ok" ? what : `${what}: ${lookUp(OUTCOMES, outcome) ?? outcome}`;
}

/**
 * The seconds of a compile by phase: "Dynamo 2.0 s, AOTAutograd 1.5 s, Inductor 1.2 s". A phase holds those that it calls.
 * @param {Get<CompilesRow>} get
 */
export function describePhases(get) {
  const known = PARTS.filter(([column]) => get(column) !== null);
  return known.map(([column, kind]) => `${PHASE_KINDS[kind][0]} ${formatSeconds(Number(get(column)))}`).join(", ");
}

/**
 * The lines about a lane; its name and place may be cut where they are drawn.
 * @param {Lane} lane
 */
export function describeLane(lane) {
  const cost = `${formatAmount(lane.bars.length, "compile")}, ${formatSeconds(lane.seconds)}`;
  const again = lane.bars.filter((bar) => bar.isRecompile).length;
  const place = lane.file === null ? null : formatPlace(lane.file, lane.line);
  const lines = [lane.name, place, again ? `${cost}, of them ${formatAmount(again, "recompile")}` : cost];
  return lines.filter((line) => line !== null);
}

/**
 * The lines about a compile that has ended, with the phases that ran at a time.
 * @param {Lane} lane
 * @param {{start: number, end: number}} bar
 * @param {Get<CompilesRow>} get
 * @param {number | null} at Unix ms; null for no phases
 */
export function describeBar(lane, bar, get, at) {
  const head = `${lane.name} ${get("compile_id") ?? ""} · ${formatSeconds((bar.end - bar.start) / 1e3)}`;
  const when = [formatClock(bar.start), nameCompile(get)].join(" · ");
  return [head, when, ...(at === null ? [describePhases(get)] : phaseLines(lane, bar, at))].filter(Boolean);
}

/**
 * The lines about a compile in flight.
 * @param {Lane} lane
 * @param {FlightBar} bar
 * @param {number} now Unix ms
 */
export function describeFlight(lane, { flight, start }, now) {
  const head = `${lane.name} ${flight.compile_id ?? ""} · ${formatSeconds((now - start) / 1e3)}`;
  return [head, [formatClock(start), "compiling now"].join(" · "), flight.phase ? phaseLabel(flight.phase) : ""].filter(Boolean);
}

/**
 * @param {Lane} lane
 * @param {{start: number, end: number}} bar
 * @param {number} at
 */
function phaseLines(lane, bar, at) {
  const inside = lane.phases.filter(({ start, end }) => bar.start - 5 <= start && start <= at && at <= end);
  return inside.slice(0, MOST_PHASES).map(({ depth, name, start, end }) => {
    const label = phaseLabel(name);
    const own = label === name ? "" : ` (${name})`;
    return `${"  ".repeat(Math.min(depth, 6))}${label} ${formatSeconds((end - start) / 1e3)}${own}`;
  });
}

/** @param {Mark} mark */
export function describeMark(mark) {
  return mark.label + (mark.saved === null ? "" : `, saved ${formatSeconds(mark.saved)}`);
}
