// What is told of cache look-ups, tunings, CUDA graphs and kernels: each by itself, and many in one panel.
import { make, makeButton } from "../core/dom.js";
import { counted, formatBytes, formatClock, formatCount, formatMs, formatPlace } from "../core/format.js";
import { formatOutcome, formatSeconds, formatValue, MISSING } from "../core/format.js";
import { bar, codeLine, cutShort, dim, longText, pairs, section } from "../core/blocks.js";

/** Kind of a choice -> the colour of its bar. */
const CHOICE_COLOURS = { extern: "aot", triton: "triton", cpp: "codegen", cutlass: "inductor" };

function told(value, tell) {
  return value === null ? null : tell(value);
}

function joined(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/** One component of a key that differs, `name: old -> new`. */
function difference(text) {
  return make("code", "cdiag-diff", longText(text.trim()));
}

/** One look-up: what became of it, why it missed, its keys and seconds. */
export function lookupItem(get) {
  const outcome = make("span", "cdiag-outcome", formatOutcome(get("outcome")));
  outcome.dataset.outcome = get("outcome") ?? "";
  const facts = joined(
    get("cache"),
    get("tier"),
    told(get("saved_s"), (seconds) => `saved ${formatSeconds(seconds)}`),
    told(get("taken_s"), (seconds) => `took ${formatSeconds(seconds)}`),
    told(get("bytes"), formatBytes),
  );
  const lines = get("explained") ?? [];
  const words = cutShort(lines, (some) => some.map((line) => (line.startsWith("  ") ? difference(line) : dim(longText(line)))));
  const saved = ["forward_saved_s", "backward_saved_s"].map((name) => told(get(name), formatSeconds));
  const more = pairs([
    ["why", lines.length ? null : get("reason")],
    ["guards that failed", lines.length ? null : get("guard")],
    ["exception", get("exception_type")],
    ["kernels", get("kernels")],
    ["key", get("key")],
    ["forward entry", get("forward_key")],
    ["backward entry", get("backward_key")],
    ["saved forward", saved[0]],
    ["saved backward", saved[1]],
  ]);
  return make("div", "cdiag-item", make("div", "", outcome, ` ${facts}`), ...words, more);
}

/** One action on a CUDA graph. */
export function graphItem(get) {
  const action = make("span", "cdiag-outcome", get("action") ?? MISSING);
  action.dataset.outcome = get("action") ?? "";
  const words = joined(
    get("mode"),
    told(get("count"), (count) => `${formatCount(count)}×`),
    told(get("function_id"), (id) => `function ${id}`),
    told(get("graph_id"), (id) => `graph ${id}`),
    told(get("parent_id"), (id) => `after graph ${id}`),
    told(get("duration_ms"), (ms) => `${formatMs(ms)} ms`),
    told(get("nodes"), (nodes) => counted(nodes, "node", "nodes")),
    told(get("partitions"), (parts) => counted(parts, "partition", "partitions")),
    told(get("pool_bytes"), (bytes) => `pool ${formatBytes(bytes)}`),
    formatClock(get("time")),
  );
  const facts = pairs([
    ["what broke", get("mismatch")],
    ["input", get("input")],
    ["why", get("reason")],
  ]);
  const code = codeLine(get, formatPlace(get("user_file"), get("user_line")));
  return make("div", "cdiag-item", make("div", "", action, ` ${words}`), code, facts);
}

/** Kernels as bars of their seconds, the longest first. */
export function kernelBars(readers) {
  const seconds = (get) => get("duration_s") ?? 0;
  const sorted = [...readers].sort((a, b) => seconds(b) - seconds(a));
  return sorted.map((get) => {
    const node = bar(get("name") ?? "?", seconds(get), seconds(sorted[0]), "triton", formatSeconds(get("duration_s")));
    const worker = told(get("worker_pid"), (pid) => `pid ${pid}`);
    const more = joined(get("outcome"), get("language"), get("where"), worker, told(get("fail_reason"), longText));
    node.append(make("span", "cdiag-bar-more", more));
    return node;
  });
}

/** One line on a tuning, which opens its panel. */
export function tuningLine(get, onOpen) {
  const what = make("code", "cdiag-source", longText(get("op") ?? "?"));
  const won = get("winner") === null ? "no winner" : `${get("winner")}, ${formatMs(get("winner_ms"))} ms`;
  const spent = told(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`);
  const words = joined(longText(won), counted(get("choices"), "choice", "choices"), spent);
  return make("div", "cdiag-item", what, ` ${words} `, makeButton("cdiag-link", "all choices", onOpen));
}

/** Derived table -> what the detail shows of one of its rows: {title, sub, parts(get, readers, links)}. */
export const PANELS = {
  cache_groups: { title: (get) => `${get("function") ?? "outside of a compile"} · ${get("cache")}`, parts: lookupParts },
  tunings: { title: (get) => get("op") ?? "tuning", parts: tuningParts },
  graph_functions: { title: (get) => `${get("function") ?? "?"} · CUDA graphs`, parts: graphParts },
};

function lookupParts(get, readers, linkOf) {
  const lead = joined(
    counted(get("hits"), "hit", "hits"),
    told(get("saved_s"), (seconds) => `${formatSeconds(seconds)} saved`),
    counted(get("misses"), "miss", "misses"),
    get("bypassed") ? `${formatCount(get("bypassed"))} bypassed` : null,
    get("failed") ? `${formatCount(get("failed"))} failed` : null,
    get("stored") ? `${formatCount(get("stored"))} stored` : null,
  );
  const reasons = get("reasons").map(difference);
  const latestFirst = [...readers].reverse();
  const items = cutShort(latestFirst, (some) => some.map((each) => {
    const node = lookupItem(each);
    node.firstChild.append(" ", make("span", "cdiag-dim", formatClock(each("time"))), linkOf(each));
    return node;
  }));
  return [
    make("p", "cdiag-lead", lead),
    reasons.length ? section("reasons", "What kept it from hitting", ...reasons) : null,
    section("cache_lookups", "Look-ups, the latest first", ...items),
  ];
}

function tuningParts(get, readers, linkOf) {
  const percent = (name) => told(get(name), (value) => formatValue(value, "share"));
  const won = get("winner") === null ? "no winner" : get("winner");
  const cost = told(get("spent_s"), (seconds) => `${formatSeconds(seconds)} tuning`);
  const cached = told(get("from_cache"), (where) => `from the ${where} cache`);
  const hasGain = get("winner_kind") !== "extern"; // it is what would run if nothing was tuned
  const facts = pairs([
    ["inputs", told(get("inputs"), (inputs) => inputs.join("; ") || null)],
    ["device", get("device")],
    ["tuner", get("tuner")],
    ["next choice takes", told(get("margin_next"), () => `${percent("margin_next")} (${get("next_choice")})`)],
    ["extern kernel takes", hasGain ? percent("margin_extern") : null],
    ["timing took", told(get("benchmark_s"), formatSeconds)],
    ["compiling took", told(get("precompile_s"), formatSeconds)],
    ["saved a call", hasGain ? told(get("saved_ms"), (ms) => `${formatMs(ms)} ms`) : null],
    ["pays after", told(get("break_even"), (calls) => counted(calls, "call", "calls"))],
  ]);
  const byId = new Map(readers.map((each) => [each("event_id"), each]));
  const timed = get("order").map((id) => byId.get(id)).filter(Boolean);
  const others = readers.filter((each) => each("time_ms") !== null && !timed.includes(each));
  const slowest = Math.max(...[...timed, ...others].map((each) => each("time_ms")));
  const bars = (some) => some.map((each) => choiceBar(each, slowest, each("choice") === get("winner")));
  const reasons = get("fail_reasons").map(difference);
  const failed = readers.filter((each) => each("fail_reason") !== null);
  const whyFailed = `Why ${counted(get("failed"), "choice", "choices")} failed`;
  return [
    make("p", "cdiag-lead", make("strong", "", longText(won)), ` ${joined(told(get("winner_ms"), (ms) => `${formatMs(ms)} ms a call`), cost, cached)}`, linkOf(get)),
    facts,
    timed.length ? section("choices", "Choices by time", ...cutShort(timed, bars)) : null,
    reasons.length ? section("failed", whyFailed, ...reasons, ...cutShort(failed, (some) => some.map(failedChoice))) : null,
    others.length ? section("others", "Also timed, in other stages", ...cutShort(others, bars)) : null,
  ];
}

function choiceBar(get, slowest, isWinner) {
  const colour = CHOICE_COLOURS[get("choice_kind")] ?? "dynamo";
  const node = bar(get("choice") ?? "?", get("time_ms"), slowest, colour, `${formatMs(get("time_ms"))} ms`);
  if (isWinner) node.firstChild.append(" ", make("span", "cdiag-tag is-good", "winner"));
  const stage = get("stage") === "benchmark" ? null : get("stage")?.replace("_", " ");
  const parameters = told(get("parameters"), (values) => formatValue(values, "list"));
  const more = joined(get("choice_kind"), stage, parameters && longText(parameters));
  node.append(make("span", "cdiag-bar-more", more));
  node.dataset.eventId = String(get("event_id"));
  return node;
}

function failedChoice(get) {
  const reason = make("span", "cdiag-dim", ` ${longText(get("fail_reason"))}`);
  return make("div", "cdiag-failure", make("code", "", longText(get("choice") ?? "?")), reason);
}

function graphParts(get, readers, linkOf) {
  const lead = joined(
    get("state"),
    counted(get("captured"), "capture", "captures"),
    get("rerecorded") ? `${formatCount(get("rerecorded"))} of them again` : null,
    told(get("replays"), (count) => counted(count, "replay", "replays")),
    told(get("eager"), (count) => counted(count, "call without a graph", "calls without a graph")),
    get("skipped") ? `skipped ${formatCount(get("skipped"))}×` : null,
    counted(get("warmups"), "warm-up", "warm-ups"),
  );
  const facts = pairs([
    ["mode", get("mode")],
    ["backend", get("backend")],
    ["captures took", told(get("capture_ms"), (ms) => `${formatMs(ms)} ms`)],
    ["memory pool", told(get("pool_bytes"), formatBytes)],
  ]);
  const latestFirst = [...readers].reverse();
  const items = cutShort(latestFirst, (some) => some.map((each) => {
    const node = graphItem(each);
    node.firstChild.append(linkOf(each));
    return node;
  }));
  return [make("p", "cdiag-lead", lead), facts, section("cudagraphs", "Actions, the latest first", ...items)];
}
