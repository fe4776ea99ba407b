// Details of a tuning: its winner, and how long each choice took.
import { buildSome, joinKnown, longText, makeBar, makeFacts, makeSection, whenKnown } from "../core/blocks.js";
import { make, makeButton } from "../core/dom.js";
import { formatAmount, formatCode, formatMilliseconds, formatSeconds, formatShare, formatValue, lookUp } from "../core/format.js";
import { makeDifference } from "./lookup-details.js";
/** @import { Get } from "../core/types" */
/** @import { AutotuneRow, TuningsRow } from "../core/page-types" */
/** @import { DerivedPanel } from "./derived-panels.js" */

/** @type {Record<string, string>} kind of a choice -> the color of its bar */
const CHOICE_COLORS = { extern: "aot", triton: "triton", cpp: "codegen", cutlass: "inductor" };

/**
 * One line on a tuning, which opens its panel.
 * @param {Get<TuningsRow>} get
 * @param {() => void} onOpen
 */
export function makeTuningLine(get, onOpen) {
  const op = make("code", "cdiag-source", longText(get("op") ?? "?"));
  const winner = get("winner") === null ? "no winner" : `${get("winner")}, ${formatMilliseconds(get("winner_ms"))}`;
  const spent = whenKnown(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`);
  const words = joinKnown(longText(winner), formatAmount(get("choices"), "choice"), spent);
  return make("div", "cdiag-item", op, ` ${words} `, makeButton("cdiag-link", "all choices", onOpen));
}

/** @type {DerivedPanel<TuningsRow, AutotuneRow>} */
export const TUNING_PANEL = {
  title: (get) => get("op") ?? "tuning",
  makeParts(get, readers, linkCompile) {
    const winner = make("strong", "", longText(get("winner") ?? "no winner"));
    const words = joinKnown(
      whenKnown(get("winner_ms"), (ms) => `${formatMilliseconds(ms)} per call`),
      whenKnown(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`),
      whenKnown(get("from_cache"), (where) => `from the ${where} cache`),
    );
    const lead = make("p", "cdiag-lead", winner, ` ${words}`, linkCompile(get));
    return [lead, makeTuningFacts(get), ...makeChoices(get, readers)];
  },
};

/** @param {Get<TuningsRow>} get */
function makeTuningFacts(get) {
  const isGain = get("winner_kind") !== "extern"; // the extern kernel is what runs without tuning
  const runnerUp = whenKnown(get("margin_next"), (margin) => `${formatShare(margin, true)} (${get("next_choice")})`);
  return makeFacts([
    ["inputs", get("inputs").join("; ") || null],
    ["device", get("device")],
    ["tuner", get("tuner")],
    ["vs. runner-up", runnerUp],
    ["vs. extern kernel", isGain ? whenKnown(get("margin_extern"), (margin) => formatShare(margin, true)) : null],
    ["time for benchmarks", whenKnown(get("benchmark_s"), formatSeconds)],
    ["time for compiling", whenKnown(get("precompile_s"), formatSeconds)],
    ["saved per call", isGain ? whenKnown(get("saved_ms"), formatMilliseconds) : null],
    ["break-even", whenKnown(get("break_even"), (calls) => formatAmount(calls, "call"))],
  ]);
}

/**
 * @param {Get<TuningsRow>} get
 * @param {Get<AutotuneRow>[]} readers
 */
function makeChoices(get, readers) {
  const byId = new Map(readers.map((each) => [each("event_id"), each]));
  const timed = get("order").map((id) => byId.get(id)).filter((each) => each !== undefined);
  const others = readers.filter((each) => each("time_ms") !== null && !timed.includes(each));
  const failed = readers.filter((each) => each("fail_reason") !== null);
  const slowest = Math.max(...[...timed, ...others].map((each) => each("time_ms") ?? 0));
  /** @param {Get<AutotuneRow>[]} some */
  const makeBars = (some) => some.map((each) => makeChoiceBar(each, slowest, each("choice") === get("winner")));
  const reasons = get("fail_reasons").map(makeDifference);
  const heading = `Why ${formatAmount(get("failed"), "choice")} failed`;
  return [
    timed.length ? makeSection("choices", "Choices by time", ...buildSome(timed, makeBars)) : null,
    reasons.length
      ? makeSection("failed", heading, ...reasons, ...buildSome(failed, (some) => some.map(makeFailedChoice)))
      : null,
    others.length ? makeSection("others", "Also timed, in other stages", ...buildSome(others, makeBars)) : null,
  ];
}

/**
 * @param {Get<AutotuneRow>} get
 * @param {number} slowest ms
 * @param {boolean} isWinner
 */
function makeChoiceBar(get, slowest, isWinner) {
  const color = lookUp(CHOICE_COLORS, get("choice_kind") ?? "") ?? "dynamo";
  const time = formatMilliseconds(get("time_ms"));
  const { node, name } = makeBar(get("choice") ?? "?", get("time_ms"), slowest, color, time);
  if (isWinner) name.append(" ", make("span", "cdiag-tag is-good", "winner"));
  const stage = get("stage") === "benchmark" ? null : whenKnown(get("stage"), formatCode);
  const parameters = whenKnown(get("parameters"), (values) => longText(formatValue(values, "list")));
  node.append(make("span", "cdiag-bar-more", joinKnown(get("choice_kind"), stage, parameters)));
  node.dataset.eventId = String(get("event_id"));
  return node;
}

/** @param {Get<AutotuneRow>} get */
function makeFailedChoice(get) {
  const reason = make("span", "cdiag-dim", ` ${longText(get("fail_reason"))}`);
  return make("div", "cdiag-failure", make("code", "", longText(get("choice") ?? "?")), reason);
}
