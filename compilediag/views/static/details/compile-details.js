// Details of a compile: its time, phases, kernels, graph breaks, dynamic dimensions, symbolic shapes, collectives.
import { Bar, CodeLine, drawSome, Facts, formatFact, joinKnown, longText, whenKnown } from "../core/blocks.js";
import {
  formatCount,
  formatMicroseconds,
  formatPlace,
  formatRange,
  formatSeconds,
  formatValue,
  MISSING,
} from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
import { writeChange } from "../core/recompiles.js";
import { writeSymbol } from "../tables/tabs.js";
import { PHASE_KINDS, phaseKind, phaseLabel } from "../timeline/phases.js";
import { Stacks } from "../core/call-stacks.js";
/** @import { NamedStack } from "../core/call-stacks.js" */

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
 * @param {{get: Get<CompilesRow>, start: number}} props
 */
export function CompileTime({ get, start }) {
  const total = get("duration_s") ?? get("dynamo_s");
  const words = joinKnown(get("trigger"), get("outcome"), get("is_recompile") ? "recompile" : null);
  const parts = PARTS.filter(([key]) => get(key) !== null);
  const facts = [
    ...FACTS.map(([key, label]) => [label, formatFact(get(key))]),
    ["one check of all guards", whenKnown(get("guard_check_us"), formatMicroseconds)],
    ["failed at", formatPlace(get("user_file"), get("user_line"))],
  ];
  return html`
    <p class="cdiag-lead"><strong>${formatSeconds(total)}</strong> ${words} · at <${At} ms=${get("time")} start=${start} /></p>
    ${parts.map(([key, label, kind]) => {
      const seconds = Number(get(key));
      return html`<${Bar} label=${label} value=${seconds} total=${total} kind=${kind} text=${formatSeconds(seconds)} hint=${PHASE_KINDS[kind][1]} />`;
    })}
    <${Facts} entries=${facts} />`;
}

/** @param {{readers: Get<PhasesRow>[]}} props */
export function Phases({ readers }) {
  const longest = Math.max(...readers.map((get) => get("duration_s") ?? 0));
  return drawSome(readers, (get) => {
    const [torchName, seconds] = [get("name") ?? "?", get("duration_s")];
    const kind = phaseKind(torchName) ?? phaseKind(get("parent") ?? "") ?? "dynamo";
    const hint = `${PHASE_KINDS[kind][1]}\ntorch calls this phase ${torchName}.`;
    return html`<${Bar} label=${phaseLabel(torchName)} value=${seconds} total=${longest} kind=${kind} text=${formatSeconds(seconds)}
      depth=${get("depth") ?? 0} hint=${hint} />`;
  });
}

/**
 * Kernels as bars of their seconds, the longest first.
 * @param {{readers: Get<KernelsRow>[]}} props
 */
export function Kernels({ readers }) {
  /** @param {Get<KernelsRow>} get */
  const secondsOf = (get) => get("duration_s") ?? 0;
  const sorted = [...readers].sort((a, b) => secondsOf(b) - secondsOf(a));
  return drawSome(sorted, (get) => {
    const worker = whenKnown(get("worker_pid"), (pid) => `pid ${pid}`);
    const more = joinKnown(get("outcome"), get("language"), get("where"), worker, whenKnown(get("fail_reason"), longText));
    return html`<${Bar} label=${get("name") ?? "?"} value=${secondsOf(get)} total=${secondsOf(sorted[0])} kind="triton"
      text=${formatSeconds(get("duration_s"))} more=${more} />`;
  });
}

/** @param {{get: Get<GraphBreaksRow>}} props */
export function GraphBreak({ get }) {
  const facts = [["torch's id", get("break_id")], ["explanation", get("explanation")], ["hints", formatFact(get("hints"))]];
  return html`
    <div class="cdiag-item">
      <div>${longText(get("reason") ?? MISSING)}</div>
      <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
      <${Facts} entries=${facts} />
    </div>`;
}

/** @param {{get: Get<DynamicDecisionsRow>}} props */
export function Decision({ get }) {
  const change = longText(writeChange(get("cached"), get("new")) ?? MISSING);
  return html`
    <div class="cdiag-item">
      <code>${longText(get("source") ?? MISSING)}</code> ${get("dim") ?? ""} ${change} <span class="cdiag-dim">${get("reason")}</span>
    </div>`;
}

/** @param {{get: Get<SymbolicShapesRow>, stacks: NamedStack[]}} props */
export function SymbolicShape({ get, stacks }) {
  const text = writeSymbol(get("expression"), get("symbol"), get("value"));
  const facts = [["source", get("source")], ["range", formatRange(get("range"))], ["reason", get("reason")]];
  return html`
    <div class="cdiag-item">
      <div><span class="cdiag-outcome">${get("action") ?? MISSING}</span> <code class="cdiag-source">${longText(text ?? MISSING)}</code></div>
      <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
      <${Facts} entries=${facts} />
      <${Stacks} stacks=${stacks} />
    </div>`;
}

/** @param {{get: Get<CollectivesRow>}} props */
export function Collective({ get }) {
  const outputs = whenKnown(get("outputs"), (values) => longText(formatValue(values, "list")));
  const rank = whenKnown(get("rank"), (number) => ` on rank ${number}`) ?? "";
  return html`
    <div class="cdiag-item">
      ${formatCount(get("position"))}${rank} <code class="cdiag-source">${longText(get("op") ?? "?")}</code> <span class="cdiag-dim">${outputs}</span>
    </div>`;
}
