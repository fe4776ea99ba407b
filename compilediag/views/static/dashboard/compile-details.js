// Details of a compile: its time, phases, kernels, graph breaks, dynamic dimensions, symbolic shapes, collectives.
import { formatFact, joinKnown, longText, makeBar, makeCodeLine, makeFacts, whenKnown } from "../core/blocks.js";
import { make } from "../core/dom.js";
import {
  formatClock,
  formatCount,
  formatMicroseconds,
  formatPlace,
  formatRange,
  formatSeconds,
  formatValue,
  MISSING,
} from "../core/format.js";
import { writeChange } from "../core/recompiles.js";
import { PHASE_KINDS, phaseKind, phaseLabel } from "../timeline/phases.js";
import { writeSymbol } from "../tables/tabs.js";
/** @import { Get } from "../core/types" */
/** @import { CollectivesRow, CompilesRow, DynamicDecisionsRow, GraphBreaksRow, KernelsRow, PhasesRow, SymbolicShapesRow } from "../core/page-types" */

/** @type {[keyof CompilesRow, string, string][]} column, label, color */
const PARTS = [
  ["dynamo_s", "Dynamo, in total", "dynamo"],
  ["aot_s", "backend (AOTAutograd and below)", "aot"],
  ["inductor_s", "Inductor", "inductor"],
  ["codegen_s", "code generation and loading", "codegen"],
  ["triton_s", "Triton", "triton"],
];
/** @type {[keyof CompilesRow, string][]} */
const FACTS = [
  ["backend", "backend"],
  ["guard_count", "guards"],
  ["graph_ops", "calls in the graph"],
  ["graph_nodes", "graph nodes"],
  ["graph_inputs", "graph inputs"],
  ["cache_size", "earlier entries"],
  ["attempt", "extra attempts"],
  ["limit", "limit hit"],
  ["restart_reasons", "reason for the restart"],
  ["fail_type", "exception"],
  ["fail_reason", "failure"],
];

/**
 * The time of a compile by part, and what is known of it.
 * @param {Get<CompilesRow>} get
 */
export function makeCompile(get) {
  const total = get("duration_s") ?? get("dynamo_s");
  const words = joinKnown(get("trigger"), get("outcome"), get("is_recompile") ? "recompile" : null, formatClock(get("time")));
  const bars = PARTS.filter(([key]) => get(key) !== null).map(([key, label, kind]) => {
    const seconds = Number(get(key));
    return makeBar(label, seconds, total, kind, formatSeconds(seconds), 0, PHASE_KINDS[kind][1]).node;
  });
  const facts = makeFacts([
    ...FACTS.map(([key, label]) => /** @type {[string, unknown]} */ ([label, formatFact(get(key))])),
    ["one check of all guards", whenKnown(get("guard_latency_us"), formatMicroseconds)],
    ["failed at", formatPlace(get("user_file"), get("user_line"))],
  ]);
  return [make("p", "cdiag-lead", make("strong", "", formatSeconds(total)), ` ${words}`), ...bars, facts];
}

/** @param {Get<PhasesRow>[]} readers */
export function makePhases(readers) {
  const longest = Math.max(...readers.map((get) => get("duration_s") ?? 0));
  return readers.map((get) => {
    const [torchName, seconds] = [get("name") ?? "?", get("duration_s")];
    const label = phaseLabel(torchName);
    const kind = phaseKind(torchName) ?? phaseKind(get("parent") ?? "") ?? "dynamo";
    const hint = `${PHASE_KINDS[kind][1]}\ntorch calls this phase ${torchName}.`;
    return makeBar(label, seconds, longest, kind, formatSeconds(seconds), get("depth") ?? 0, hint).node;
  });
}

/**
 * Kernels as bars of their seconds, the longest first.
 * @param {Get<KernelsRow>[]} readers
 */
export function makeKernels(readers) {
  /** @param {Get<KernelsRow>} get */
  const secondsOf = (get) => get("duration_s") ?? 0;
  const sorted = [...readers].sort((a, b) => secondsOf(b) - secondsOf(a));
  return sorted.map((get) => {
    const text = formatSeconds(get("duration_s"));
    const { node } = makeBar(get("name") ?? "?", secondsOf(get), secondsOf(sorted[0]), "triton", text);
    const worker = whenKnown(get("worker_pid"), (pid) => `pid ${pid}`);
    const more = joinKnown(get("outcome"), get("language"), get("where"), worker, whenKnown(get("fail_reason"), longText));
    node.append(make("span", "cdiag-bar-more", more));
    return node;
  });
}

/** @param {Get<GraphBreaksRow>} get */
export function makeGraphBreak(get) {
  const facts = makeFacts([
    ["torch's id", get("break_id")],
    ["explanation", get("explanation")],
    ["hints", formatFact(get("hints"))],
  ]);
  const code = makeCodeLine(get, formatPlace(get("user_file"), get("user_line")));
  return make("div", "cdiag-item", make("div", "", longText(get("reason") ?? MISSING)), code, facts);
}

/** @param {Get<DynamicDecisionsRow>} get */
export function makeDecision(get) {
  const change = ` ${get("dim") ?? ""} ${longText(writeChange(get("cached"), get("new")) ?? MISSING)} `;
  const source = make("code", "", longText(get("source") ?? MISSING));
  return make("div", "cdiag-item", source, change, make("span", "cdiag-dim", get("reason")));
}

/**
 * @param {Get<SymbolicShapesRow>} get
 * @param {Node[]} stacks
 */
export function makeShape(get, stacks) {
  const text = writeSymbol(get("expression"), get("symbol"), get("value"));
  const what = make("code", "cdiag-source", longText(text ?? MISSING));
  const action = make("span", "cdiag-outcome", get("action") ?? MISSING);
  const facts = makeFacts([["source", get("source")], ["range", formatRange(get("range"))], ["reason", get("reason")]]);
  const code = makeCodeLine(get, formatPlace(get("user_file"), get("user_line")));
  return make("div", "cdiag-item", make("div", "", action, " ", what), code, facts, ...stacks);
}

/** @param {Get<CollectivesRow>} get */
export function makeCollective(get) {
  const outputs = whenKnown(get("outputs"), (values) => longText(formatValue(values, "list")));
  const rank = whenKnown(get("rank"), (number) => ` on rank ${number}`) ?? "";
  const op = make("code", "cdiag-source", longText(get("op") ?? "?"));
  return make("div", "cdiag-item", `${formatCount(get("position"))}${rank} `, op, " ", make("span", "cdiag-dim", outputs));
}
