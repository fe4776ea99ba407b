// What the details say of rows, table by table: those of a compile, and those that sum up many events.
import {
  At, Bar, CodeLine, Dim, drawSome, explain, Facts, formatFact, joinKnown, longText, MOST, Section, Term, whenKnown,
} from "../core/blocks.js";
import { Stacks } from "../core/call-stacks.js";
import { writeChange } from "../core/compiles.js";
import {
  formatAmount, formatBytes, formatCode, formatCount, formatFunction, formatMicroseconds, formatMilliseconds,
  formatOutcome, formatPlace, formatRange, formatSeconds, formatShare, formatTimes, formatValue, lookUp, MISSING,
} from "../core/format.js";
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
/** @type {Record<string, string>} kind of a choice of a tuning -> the color of its bar */
const CHOICE_COLORS = { extern: "aot", triton: "triton", cpp: "codegen", cutlass: "inductor" };

/** @param {{get: (name: "user_code" | "user_file" | "user_line") => any}} props */
function UserLine({ get }) {
  return html`<${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />`;
}

/** @param {{get: (name: "guard_source" | "guard_kind" | "expected" | "actual") => string | null}} props */
function Change({ get }) {
  const source = get("guard_source") ?? get("guard_kind") ?? "a guard";
  const values = `${longText(get("expected") ?? MISSING)} → ${longText(get("actual") ?? MISSING)}`;
  return html`<div><code class="cdiag-source">${longText(source)}</code> <span class="cdiag-change">${values}</span></div>`;
}

/** @param {{text: string}} props one component of a key that differs, `name: old -> new` */
function Difference({ text }) {
  return html`<code class="cdiag-diff">${longText(text.trim())}</code>`;
}

/** @param {{get: Get<any>, details: Details}} props an event, whose compile it opens */
function CompileLink({ get, details }) {
  const key = get("compile_key");
  return key !== null && html` <button type="button" class="cdiag-link" onClick=${() => details.actions.openCompile?.(key)}>compile ${get("compile_id")}</button>`;
}

/** @type {Component<{readers: Get<GuardFailuresRow>[]}>} Every failing guard, under the earlier entry that it belongs to. */
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

/** @type {ItemViews} */
export const ITEMS = {
  /** What refused a call, what ran instead, and the guard of the closest entry that failed, if there is an entry. */
  refused_calls({ get }) {
    const facts = joinKnown(
      whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
      whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
    );
    const setAt = whenKnown(formatPlace(get("set_file"), get("set_line")), (place) => `set at ${place}`);
    const ran = [lookUp(RAN, get("ran") ?? MISSING), whenKnown(get("count"), formatTimes)].filter(Boolean).join(" ");
    return html`
      <p class="cdiag-lead">${joinKnown(ran, get("refused_by"), setAt)}</p>
      ${get("guard_kind") !== null && html`<div class="cdiag-cause"><${Change} get=${get} /></div>`}
      <${UserLine} get=${get} />
      ${facts && html`<${Dim}>${facts}<//>`}`;
  },

  /** The cause of a recompile, with a link to its guard. */
  recompiles({ get, details: { actions: { explore } } }) {
    const facts = joinKnown(
      whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
      whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
      whenKnown(get("entries_analyzed"), (count) => (count < (get("entries_checked") ?? 0) ? `${count} analyzed` : "")),
      whenKnown(get("guards_failed"), (count) => `${formatAmount(count, "guard")} failed`),
      whenKnown(get("lost_s"), (seconds) => `${formatSeconds(seconds)} lost`),
    );
    return html`
      <div class="cdiag-cause"><${Change} get=${get} /></div>
      <${UserLine} get=${get} />
      <${Dim}>${facts}<//>
      <button type="button" class="cdiag-link" onClick=${() => explore?.({ event: get("event_id") })}>explore this guard ›</button>`;
  },

  /** The time of a compile by part, and what is known of it. */
  compiles({ get, details }) {
    const total = get("duration_s") ?? get("dynamo_s");
    const words = joinKnown(get("trigger"), get("outcome"), get("is_recompile") ? "recompile" : null);
    const facts = [
      ...FACTS.map(([key, label]) => [label, formatFact(get(key))]),
      ["one check of all guards", whenKnown(get("guard_check_us"), formatMicroseconds)],
      ["failed at", formatPlace(get("user_file"), get("user_line"))],
    ];
    return html`
      <p class="cdiag-lead"><strong>${formatSeconds(total)}</strong> ${words} · at <${At} ms=${get("time")} start=${details.start} /></p>
      ${PARTS.filter(([key]) => get(key) !== null).map(([key, label, kind]) => {
        const seconds = Number(get(key));
        return html`<${Bar} label=${label} value=${seconds} total=${total} kind=${kind} text=${formatSeconds(seconds)} hint=${PHASE_KINDS[kind][1]} />`;
      })}
      <${Facts} entries=${facts} />`;
  },

  phases({ get, longest }) {
    const [torchName, seconds] = [get("name") ?? "?", get("duration_s")];
    const kind = phaseKind(torchName) ?? phaseKind(get("parent") ?? "") ?? "dynamo";
    const hint = `${PHASE_KINDS[kind][1]}\ntorch calls this phase ${torchName}.`;
    return html`<${Bar} label=${phaseLabel(torchName)} value=${seconds} total=${longest} kind=${kind} text=${formatSeconds(seconds)}
      depth=${get("depth") ?? 0} hint=${hint} />`;
  },

  kernels({ get, longest }) {
    const worker = whenKnown(get("worker_pid"), (pid) => `pid ${pid}`);
    const more = joinKnown(get("outcome"), get("language"), get("where"), worker, whenKnown(get("fail_reason"), longText));
    return html`<${Bar} label=${get("name") ?? "?"} value=${get("duration_s")} total=${longest} kind="triton"
      text=${formatSeconds(get("duration_s"))} more=${more} />`;
  },

  graph_breaks({ get }) {
    const facts = [["torch's id", get("break_id")], ["explanation", get("explanation")], ["hints", formatFact(get("hints"))]];
    return html`
      <div class="cdiag-item">
        <div>${longText(get("reason") ?? MISSING)}</div>
        <${UserLine} get=${get} />
        <${Facts} entries=${facts} />
      </div>`;
  },

  dynamic_decisions({ get }) {
    const change = longText(writeChange(get("cached"), get("new")) ?? MISSING);
    return html`
      <div class="cdiag-item">
        <code>${longText(get("source") ?? MISSING)}</code> ${get("dim") ?? ""} ${change} <span class="cdiag-dim">${get("reason")}</span>
      </div>`;
  },

  symbolic_shapes({ get, details }) {
    const text = writeSymbol(get("expression"), get("symbol"), get("value"));
    const facts = [["source", get("source")], ["range", formatRange(get("range"))], ["reason", get("reason")]];
    return html`
      <div class="cdiag-item">
        <div><span class="cdiag-outcome">${get("action") ?? MISSING}</span> <code class="cdiag-source">${longText(text ?? MISSING)}</code></div>
        <${UserLine} get=${get} />
        <${Facts} entries=${facts} />
        <${Stacks} stacks=${details.findStacks(get)} />
      </div>`;
  },

  collectives({ get }) {
    const outputs = whenKnown(get("outputs"), (values) => longText(formatValue(values, "list")));
    const rank = whenKnown(get("rank"), (number) => ` on rank ${number}`) ?? "";
    return html`
      <div class="cdiag-item">
        ${formatCount(get("position"))}${rank} <code class="cdiag-source">${longText(get("op") ?? "?")}</code> <span class="cdiag-dim">${outputs}</span>
      </div>`;
  },

  /** One lookup: its outcome, why it missed, its keys and seconds. */
  cache_lookups({ get, link }) {
    const words = joinKnown(
      get("cache"),
      get("tier"),
      whenKnown(get("saved_s"), (seconds) => `saved ${formatSeconds(seconds)}`),
      whenKnown(get("taken_s"), (seconds) => `took ${formatSeconds(seconds)}`),
      whenKnown(get("bytes"), formatBytes),
    );
    const lines = get("explained") ?? [];
    const facts = [
      ["reason", lines.length ? null : get("reason")],
      ["failing guards", lines.length ? null : get("guard")],
      ["exception", get("exception_type")],
      ["kernels", whenKnown(get("kernels"), formatCount)],
      ["key", get("key")],
      ["forward entry", get("forward_key")],
      ["backward entry", get("backward_key")],
      ["saved in forward", whenKnown(get("forward_saved_s"), formatSeconds)],
      ["saved in backward", whenKnown(get("backward_saved_s"), formatSeconds)],
    ];
    return html`
      <div class="cdiag-item">
        <div><span class="cdiag-outcome" data-outcome=${get("outcome") ?? ""}>${formatOutcome(get("outcome"))}</span> ${words}${link}</div>
        ${drawSome(lines, (line) => (line.startsWith("  ") ? html`<${Difference} text=${line} />` : html`<${Dim}>${longText(line)}<//>`))}
        <${Facts} entries=${facts} />
      </div>`;
  },

  /** One line on a tuning, which opens its panel. */
  tunings({ get, row, details }) {
    const winner = get("winner") === null ? "no winner" : `${get("winner")}, ${formatMilliseconds(get("winner_ms"))}`;
    const spent = whenKnown(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`);
    const open = () => details.actions.open?.(details.store.table("tunings"), row);
    return html`
      <div class="cdiag-item">
        <code class="cdiag-source">${longText(get("op") ?? "?")}</code>
        ${" "}${joinKnown(longText(winner), formatAmount(get("choices"), "choice"), spent)}${" "}
        <button type="button" class="cdiag-link" onClick=${open}>all choices</button>
      </div>`;
  },

  /** One action on a CUDA graph. */
  cudagraphs({ get, details, link }) {
    const words = joinKnown(
      get("mode"),
      whenKnown(get("count"), formatTimes),
      whenKnown(get("function_id"), (id) => `function ${id}`),
      whenKnown(get("graph_id"), (id) => `graph ${id}`),
      whenKnown(get("parent_id"), (id) => `after graph ${id}`),
      whenKnown(get("duration_ms"), formatMilliseconds),
      whenKnown(get("nodes"), (nodes) => formatAmount(nodes, "node")),
      whenKnown(get("partitions"), (parts) => formatAmount(parts, "partition")),
      whenKnown(get("pool_bytes"), (bytes) => `pool ${formatBytes(bytes)}`),
    );
    const facts = [["broken invariant", get("mismatch")], ["input", get("input")], ["reason", get("reason")]];
    return html`
      <div class="cdiag-item">
        <div><span class="cdiag-outcome" data-outcome=${get("action") ?? ""}>${get("action") ?? MISSING}</span> ${words} · at <${At} ms=${get("time")} start=${details.start} />${link}</div>
        <${UserLine} get=${get} />
        <${Facts} entries=${facts} />
      </div>`;
  },
};

/** @type {{cache_groups: DerivedPanel<"cache_groups", "cache_lookups">, tunings: DerivedPanel<"tunings", "autotune">, graph_functions: DerivedPanel<"graph_functions", "cudagraphs">}} */
export const PANELS = {
  cache_groups: {
    title: (get) => `${formatFunction(get("function")) ?? "outside any compile"} · ${get("cache")}`,
    Body({ get, readers, details }) {
      const lead = joinKnown(
        get("hits") ? formatAmount(get("hits"), "hit") : null,
        whenKnown(get("saved_s"), (seconds) => `${formatSeconds(seconds)} saved`),
        get("misses") ? formatAmount(get("misses"), "miss", "misses") : null,
        get("bypassed") ? `${formatCount(get("bypassed"))} bypassed` : null,
        get("failed") ? `${formatCount(get("failed"))} failed` : null,
        get("stored") ? `${formatCount(get("stored"))} stored` : null,
      );
      const reasons = get("reasons");
      return html`
        <p class="cdiag-lead">${lead}</p>
        ${reasons.length > 0 && html`
          <${Section} name="reasons" heading="Why lookups missed">${reasons.map((text) => html`<${Difference} text=${text} />`)}<//>`}
        <${Section} name="cache_lookups" heading="Lookups, the latest first">
          ${drawSome([...readers].reverse(), (each) => html`<${ITEMS.cache_lookups} key=${each("event_id")} get=${each}
            link=${html` <span class="cdiag-dim">at <${At} ms=${each("time")} start=${details.start} /></span><${CompileLink} get=${each} details=${details} />`} />`)}
        <//>`;
    },
  },

  tunings: {
    title: (get) => get("op") ?? "tuning",
    Body({ get, readers, details }) {
      const words = joinKnown(
        whenKnown(get("winner_ms"), (ms) => `${formatMilliseconds(ms)} per call`),
        whenKnown(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`),
        whenKnown(get("from_cache"), (where) => `from the ${where} cache`),
      );
      const isGain = get("winner_kind") !== "extern"; // the extern kernel is what runs without tuning
      const facts = [
        ["inputs", get("inputs").join("; ") || null],
        ["device", get("device")],
        ["tuner", get("tuner")],
        ["vs. runner-up", whenKnown(get("margin_next"), (margin) => `${formatShare(margin, true)} (${get("next_choice")})`)],
        ["vs. extern kernel", isGain ? whenKnown(get("margin_extern"), (margin) => formatShare(margin, true)) : null],
        ["time for benchmarks", whenKnown(get("benchmark_s"), formatSeconds)],
        ["time for compiling", whenKnown(get("precompile_s"), formatSeconds)],
        ["saved per call", isGain ? whenKnown(get("saved_ms"), formatMilliseconds) : null],
        ["break-even", whenKnown(get("break_even"), (calls) => formatAmount(calls, "call"))],
      ];
      return html`
        <p class="cdiag-lead"><strong>${longText(get("winner") ?? "no winner")}</strong> ${words}<${CompileLink} get=${get} details=${details} /></p>
        <${Facts} entries=${facts} />
        <${Choices} get=${get} readers=${readers} />`;
    },
  },

  graph_functions: {
    title: (get) => `${formatFunction(get("function")) ?? "?"} · CUDA graphs`,
    Body({ get, readers, details }) {
      const lead = joinKnown(
        get("state"),
        formatAmount(get("captured"), "capture"),
        get("rerecorded") ? `${formatCount(get("rerecorded"))} re-recorded` : null,
        whenKnown(get("replays"), (count) => formatAmount(count, "replay")),
        whenKnown(get("eager"), (count) => formatAmount(count, "call without a graph", "calls without a graph")),
        get("skipped") ? formatAmount(get("skipped"), "skip") : null,
        formatAmount(get("warmups"), "warm-up"),
      );
      const facts = [
        ["mode", get("mode")],
        ["backend", get("backend")],
        ["capture time", whenKnown(get("capture_ms"), formatMilliseconds)],
        ["memory pool", whenKnown(get("pool_bytes"), formatBytes)],
      ];
      return html`
        <p class="cdiag-lead">${lead}</p>
        <${Facts} entries=${facts} />
        <${Section} name="cudagraphs" heading="Actions, the latest first">
          ${drawSome([...readers].reverse(), (each) => html`<${ITEMS.cudagraphs} key=${each("event_id")} get=${each} details=${details}
            link=${html`<${CompileLink} get=${each} details=${details} />`} />`)}
        <//>`;
    },
  },
};

/** @param {{get: Get<TuningsRow>, readers: Get<AutotuneRow>[]}} props the choices of a tuning */
function Choices({ get, readers }) {
  const byId = new Map(readers.map((each) => [each("event_id"), each]));
  const timed = get("order").map((id) => byId.get(id)).filter((each) => each !== undefined);
  const others = readers.filter((each) => each("time_ms") !== null && !timed.includes(each));
  const failed = readers.filter((each) => each("fail_reason") !== null);
  const slowest = Math.max(...[...timed, ...others].map((each) => each("time_ms") ?? 0));
  /** @param {Get<AutotuneRow>} each */
  const drawChoice = (each) => {
    const stage = each("stage") === "benchmark" ? null : whenKnown(each("stage"), formatCode);
    const parameters = whenKnown(each("parameters"), (values) => longText(formatValue(values, "list")));
    return html`<${Bar} label=${each("choice") ?? "?"} value=${each("time_ms")} total=${slowest}
      kind=${lookUp(CHOICE_COLORS, each("choice_kind") ?? "") ?? "dynamo"} text=${formatMilliseconds(each("time_ms"))}
      tag=${each("choice") === get("winner") && html` <span class="cdiag-tag is-good">winner</span>`}
      more=${joinKnown(each("choice_kind"), stage, parameters)} />`;
  };
  const reasons = get("fail_reasons");
  return html`
    ${timed.length > 0 && html`<${Section} name="choices" heading="Choices by time">${drawSome(timed, drawChoice)}<//>`}
    ${reasons.length > 0 && html`
      <${Section} name="failed" heading=${`Why ${formatAmount(get("failed"), "choice")} failed`}>
        ${reasons.map((text) => html`<${Difference} text=${text} />`)}
        ${drawSome(failed, (each) => html`
          <div class="cdiag-failure">
            <code>${longText(each("choice") ?? "?")}</code><span class="cdiag-dim"> ${longText(each("fail_reason"))}</span>
          </div>`)}
      <//>`}
    ${others.length > 0 && html`
      <${Section} name="others" heading="Also timed, in other stages">${drawSome(others, drawChoice)}<//>`}`;
}
