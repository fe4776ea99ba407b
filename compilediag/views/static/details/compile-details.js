// What the details say of a compile: why it was compiled again or refused, its time, phases, kernels, graph breaks, shapes.
import {
  Bar, CodeLine, Dim, drawSome, Facts, formatFact, joinKnown, longText, MOST, whenKnown, Words,
} from "../core/blocks.js";
import { Stacks } from "../core/call-stacks.js";
import { writeChange } from "../core/compiles.js";
import {
  formatAmount, formatCode, formatCount, formatMicroseconds, formatPlace, formatRange, formatSeconds, formatTimes,
  formatValue, lookUp, MISSING,
} from "../core/format.js";
import { explain } from "../core/glossary.js";
import { At, Term } from "../core/text.js";
import { html } from "../core/view.js";
import { writeSymbol } from "../tables/tabs.js";
import { PHASE_KINDS, phaseKind, phaseLabel } from "../timeline/phases.js";

/** @type {Record<string, string>} what ran instead of compiled code */
const RAN = {
  eager: "ran eagerly",
  aot_eager: "ran with aot_eager",
  raised: "raised an exception",
  unchecked: "guards are not checked",
};

/**
 * The cause of a recompile, with a link to its guard.
 * @param {{get: Get<RecompilesRow>, explore?: (place: Place) => void}} props
 */
export function Cause({ get, explore }) {
  const facts = joinKnown(
    whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
    whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
    whenKnown(get("entries_analyzed"), (count) => (count < (get("entries_checked") ?? 0) ? `${count} analyzed` : "")),
    whenKnown(get("guards_failed"), (count) => `${formatAmount(count, "guard")} failed`),
    whenKnown(get("lost_s"), (seconds) => `${formatSeconds(seconds)} lost`),
  );
  const event = get("event_id");
  return html`
    <div class="cdiag-cause"><${Change} get=${get} /></div>
    <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
    <${Dim}>${facts}<//>
    ${explore && html`<button type="button" class="cdiag-link" onClick=${() => explore({ event })}>explore this guard ›</button>`}`;
}

/**
 * What refused a call, what ran instead, and the guard of the closest entry that failed, if there is an entry.
 * @param {{get: Get<RefusedCallsRow>}} props
 */
export function Refusal({ get }) {
  const facts = joinKnown(
    whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
    whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
  );
  const setAt = whenKnown(formatPlace(get("set_file"), get("set_line")), (place) => `set at ${place}`);
  const ran = [lookUp(RAN, get("ran") ?? MISSING), whenKnown(get("count"), formatTimes)].filter(Boolean).join(" ");
  return html`
    <p class="cdiag-lead">${joinKnown(ran, get("refused_by"), setAt)}</p>
    ${get("guard_kind") !== null && html`<div class="cdiag-cause"><${Change} get=${get} /></div>`}
    <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
    ${facts && html`<${Dim}>${facts}<//>`}`;
}

/** @param {{get: (name: "guard_source" | "guard_kind" | "expected" | "actual") => string | null}} props */
function Change({ get }) {
  const source = get("guard_source") ?? get("guard_kind") ?? "a guard";
  const values = `${longText(get("expected") ?? MISSING)} → ${longText(get("actual") ?? MISSING)}`;
  return html`<div><code class="cdiag-source">${longText(source)}</code> <span class="cdiag-change">${values}</span></div>`;
}

/**
 * Every failing guard, under the earlier entry that it belongs to.
 * @param {{readers: Get<GuardFailuresRow>[]}} props
 */
export function GuardFailures({ readers }) {
  const entries = Map.groupBy(readers, (get) => get("entry_compile_key") ?? get("entry_compile_id") ?? "?");
  return [...entries].map(([key, failures]) => html`
    <div class="cdiag-entry" key=${key}>
      <h4>entry ${failures[0]("entry_compile_id") ?? "?"}: ${formatAmount(failures.length, "guard fails", "guards fail")}</h4>
      ${failures.slice(0, MOST).map((get) => html`<${GuardFailure} get=${get} />`)}
    </div>`);
}

/** @param {{get: Get<GuardFailuresRow>}} props */
function GuardFailure({ get }) {
  const count = get("fail_count") ?? 0;
  const words = joinKnown(count > 1 ? `failed ${formatTimes(count)}` : null, formatPlace(get("user_file"), get("user_line")));
  const kind = get("guard_kind");
  return html`
    <div class="cdiag-failure" data-event-id=${get("event_id")}>
      <div class="cdiag-failure-top">
        <${Change} get=${get} />
        ${get("is_first") && html`<${Term} text="first" hint=${explain("first")} />`}
        ${kind !== null && html`<${Term} text=${formatCode(kind)} hint=${explain(kind)} />`}
        <span class="cdiag-dim">${words}</span>
      </div>
      ${whenKnown(get("guard"), (text) => html`<code class="cdiag-guard">${longText(text)}</code>`)}
    </div>`;
}

/** @param {{text: string}} props torch's reason */
export function TorchReason({ text }) {
  return html`<${Words} heading="torch's message"><p>${longText(text)}</p><//>`;
}

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
