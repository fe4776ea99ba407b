// What the details say of a row that sums up many events: cache lookups, tunings, CUDA graphs; and of each event in it.
import { Bar, CodeLine, Dim, drawSome, Facts, joinKnown, longText, Section, whenKnown } from "../core/blocks.js";
import {
  formatAmount, formatBytes, formatCode, formatCount, formatFunction, formatMilliseconds, formatOutcome, formatPlace,
  formatSeconds, formatShare, formatTimes, formatValue, lookUp, MISSING,
} from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";

/**
 * One component of a key that differs, `name: old -> new`.
 * @param {{text: string}} props
 */
function Difference({ text }) {
  return html`<code class="cdiag-diff">${longText(text.trim())}</code>`;
}

/**
 * One lookup: its outcome, why it missed, its keys and seconds.
 * @param {{get: Get<CacheLookupsRow>, link?: ComponentChild}} props
 */
export function Lookup({ get, link }) {
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
}

/** @type {DerivedPanel<CacheGroupsRow, CacheLookupsRow>} */
export const LOOKUP_PANEL = {
  title: (get) => `${formatFunction(get("function")) ?? "outside any compile"} · ${get("cache")}`,
  Body({ get, readers, start, linkCompile }) {
    const lead = joinKnown(
      get("hits") ? formatAmount(get("hits"), "hit") : null,
      whenKnown(get("saved_s"), (seconds) => `${formatSeconds(seconds)} saved`),
      get("misses") ? formatAmount(get("misses"), "miss", "misses") : null,
      get("bypassed") ? `${formatCount(get("bypassed"))} bypassed` : null,
      get("failed") ? `${formatCount(get("failed"))} failed` : null,
      get("stored") ? `${formatCount(get("stored"))} stored` : null,
    );
    const reasons = get("reasons");
    /** @param {Get<CacheLookupsRow>} each */
    const drawLookup = (each) => {
      const link = html` <span class="cdiag-dim">at <${At} ms=${each("time")} start=${start} /></span>${linkCompile(each)}`;
      return html`<${Lookup} key=${each("event_id")} get=${each} link=${link} />`;
    };
    return html`
      <p class="cdiag-lead">${lead}</p>
      ${reasons.length > 0 && html`
        <${Section} name="reasons" heading="Why lookups missed">${reasons.map((text) => html`<${Difference} text=${text} />`)}<//>`}
      <${Section} name="cache_lookups" heading="Lookups, the latest first">${drawSome([...readers].reverse(), drawLookup)}<//>`;
  },
};

/** @type {Record<string, string>} kind of a choice -> the color of its bar */
const CHOICE_COLORS = { extern: "aot", triton: "triton", cpp: "codegen", cutlass: "inductor" };

/**
 * One line on a tuning, which opens its panel.
 * @param {{get: Get<TuningsRow>, onOpen: () => void}} props
 */
export function TuningLine({ get, onOpen }) {
  const winner = get("winner") === null ? "no winner" : `${get("winner")}, ${formatMilliseconds(get("winner_ms"))}`;
  const spent = whenKnown(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`);
  return html`
    <div class="cdiag-item">
      <code class="cdiag-source">${longText(get("op") ?? "?")}</code>
      ${" "}${joinKnown(longText(winner), formatAmount(get("choices"), "choice"), spent)}${" "}
      <button type="button" class="cdiag-link" onClick=${onOpen}>all choices</button>
    </div>`;
}

/** @type {DerivedPanel<TuningsRow, AutotuneRow>} */
export const TUNING_PANEL = {
  title: (get) => get("op") ?? "tuning",
  Body({ get, readers, linkCompile }) {
    const words = joinKnown(
      whenKnown(get("winner_ms"), (ms) => `${formatMilliseconds(ms)} per call`),
      whenKnown(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`),
      whenKnown(get("from_cache"), (where) => `from the ${where} cache`),
    );
    return html`
      <p class="cdiag-lead"><strong>${longText(get("winner") ?? "no winner")}</strong> ${words}${linkCompile(get)}</p>
      <${TuningFacts} get=${get} />
      <${Choices} get=${get} readers=${readers} />`;
  },
};

/** @param {{get: Get<TuningsRow>}} props */
function TuningFacts({ get }) {
  const isGain = get("winner_kind") !== "extern"; // the extern kernel is what runs without tuning
  const runnerUp = whenKnown(get("margin_next"), (margin) => `${formatShare(margin, true)} (${get("next_choice")})`);
  const facts = [
    ["inputs", get("inputs").join("; ") || null],
    ["device", get("device")],
    ["tuner", get("tuner")],
    ["vs. runner-up", runnerUp],
    ["vs. extern kernel", isGain ? whenKnown(get("margin_extern"), (margin) => formatShare(margin, true)) : null],
    ["time for benchmarks", whenKnown(get("benchmark_s"), formatSeconds)],
    ["time for compiling", whenKnown(get("precompile_s"), formatSeconds)],
    ["saved per call", isGain ? whenKnown(get("saved_ms"), formatMilliseconds) : null],
    ["break-even", whenKnown(get("break_even"), (calls) => formatAmount(calls, "call"))],
  ];
  return html`<${Facts} entries=${facts} />`;
}

/** @param {{get: Get<TuningsRow>, readers: Get<AutotuneRow>[]}} props */
function Choices({ get, readers }) {
  const byId = new Map(readers.map((each) => [each("event_id"), each]));
  const timed = get("order").map((id) => byId.get(id)).filter((each) => each !== undefined);
  const others = readers.filter((each) => each("time_ms") !== null && !timed.includes(each));
  const failed = readers.filter((each) => each("fail_reason") !== null);
  const slowest = Math.max(...[...timed, ...others].map((each) => each("time_ms") ?? 0));
  /** @param {Get<AutotuneRow>} each */
  const drawChoice = (each) => html`<${ChoiceBar} get=${each} slowest=${slowest} isWinner=${each("choice") === get("winner")} />`;
  const reasons = get("fail_reasons");
  const heading = `Why ${formatAmount(get("failed"), "choice")} failed`;
  return html`
    ${timed.length > 0 && html`<${Section} name="choices" heading="Choices by time">${drawSome(timed, drawChoice)}<//>`}
    ${reasons.length > 0 && html`
      <${Section} name="failed" heading=${heading}>
        ${reasons.map((text) => html`<${Difference} text=${text} />`)}
        ${drawSome(failed, (each) => html`
          <div class="cdiag-failure">
            <code>${longText(each("choice") ?? "?")}</code><span class="cdiag-dim"> ${longText(each("fail_reason"))}</span>
          </div>`)}
      <//>`}
    ${others.length > 0 && html`
      <${Section} name="others" heading="Also timed, in other stages">${drawSome(others, drawChoice)}<//>`}`;
}

/** @param {{get: Get<AutotuneRow>, slowest: number, isWinner: boolean}} props `slowest` in ms */
function ChoiceBar({ get, slowest, isWinner }) {
  const stage = get("stage") === "benchmark" ? null : whenKnown(get("stage"), formatCode);
  const parameters = whenKnown(get("parameters"), (values) => longText(formatValue(values, "list")));
  return html`<${Bar} label=${get("choice") ?? "?"} value=${get("time_ms")} total=${slowest}
    kind=${lookUp(CHOICE_COLORS, get("choice_kind") ?? "") ?? "dynamo"} text=${formatMilliseconds(get("time_ms"))}
    tag=${isWinner && html` <span class="cdiag-tag is-good">winner</span>`}
    more=${joinKnown(get("choice_kind"), stage, parameters)} />`;
}

/**
 * One action on a CUDA graph.
 * @param {{get: Get<CudagraphsRow>, start: number, link?: ComponentChild}} props
 */
export function GraphAction({ get, start, link }) {
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
      <div><span class="cdiag-outcome" data-outcome=${get("action") ?? ""}>${get("action") ?? MISSING}</span> ${words} · at <${At} ms=${get("time")} start=${start} />${link}</div>
      <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
      <${Facts} entries=${facts} />
    </div>`;
}

/** @type {DerivedPanel<GraphFunctionsRow, CudagraphsRow>} */
export const GRAPH_PANEL = {
  title: (get) => `${formatFunction(get("function")) ?? "?"} · CUDA graphs`,
  Body({ get, readers, start, linkCompile }) {
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
        ${drawSome([...readers].reverse(), (each) => html`<${GraphAction} key=${each("event_id")} get=${each} start=${start} link=${linkCompile(each)} />`)}
      <//>`;
  },
};
