// Details of a tuning: its winner, and how long each choice took.
import { Bar, drawSome, Facts, joinKnown, longText, Section, whenKnown } from "../core/blocks.js";
import { formatAmount, formatCode, formatMilliseconds, formatSeconds, formatShare, formatValue, lookUp } from "../core/format.js";
import { html } from "../core/view.js";
import { Difference } from "./lookup-details.js";
/** @import { DerivedPanel } from "./detail-pane.js" */

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
