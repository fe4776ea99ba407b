// Details of a recompile and of a refused call: what changed, and every guard that failed.
import { joinKnown, longText, makeCodeLine, makeDim, MOST, whenKnown } from "../core/blocks.js";
import { make, makeButton } from "../core/dom.js";
import { explain } from "../core/glossary.js";
import { makeTerm } from "../core/hints.js";
import { formatAmount, formatCode, formatPlace, formatSeconds, formatTimes, lookUp, MISSING } from "../core/format.js";
/** @import { Get, Place } from "../core/types" */
/** @import { GuardFailuresRow, RecompilesRow, RefusedCallsRow } from "../core/page-types" */

/** @type {Record<string, string>} what ran instead of compiled code */
const RAN = {
  eager: "ran eagerly",
  aot_eager: "ran with aot_eager",
  raised: "raised an exception",
  unchecked: "guards are not checked",
};

/**
 * The cause of a recompile, with a link to its guard.
 * @param {Get<RecompilesRow>} get
 * @param {(place: Place) => void} [explore]
 */
export function makeCause(get, explore) {
  const facts = joinKnown(
    whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
    whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
    whenKnown(get("entries_analyzed"), (count) => (count < (get("entries_checked") ?? 0) ? `${count} analyzed` : "")),
    whenKnown(get("guards_failed"), (count) => `${formatAmount(count, "guard")} failed`),
    whenKnown(get("lost_s"), (seconds) => `${formatSeconds(seconds)} lost`),
  );
  const event = get("event_id");
  return [
    make("div", "cdiag-cause", makeChange(get)),
    makeCodeLine(get, formatPlace(get("user_file"), get("user_line"))),
    makeDim(facts),
    explore ? makeButton("cdiag-link", "explore this guard ›", () => explore({ event })) : null,
  ];
}

/**
 * What refused a call, what ran instead, and the guard of the closest entry that failed, if there is an entry.
 * @param {Get<RefusedCallsRow>} get
 */
export function makeRefusal(get) {
  const facts = joinKnown(
    whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
    whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
  );
  const setAt = whenKnown(formatPlace(get("set_file"), get("set_line")), (place) => `set at ${place}`);
  const ran = [lookUp(RAN, get("ran") ?? MISSING), whenKnown(get("count"), formatTimes)].filter(Boolean).join(" ");
  return [
    make("p", "cdiag-lead", joinKnown(ran, get("refused_by"), setAt)),
    get("guard_kind") === null ? null : make("div", "cdiag-cause", makeChange(get)),
    makeCodeLine(get, formatPlace(get("user_file"), get("user_line"))),
    facts ? makeDim(facts) : null,
  ];
}

/** @param {(name: "guard_source" | "guard_kind" | "expected" | "actual") => string | null} get */
function makeChange(get) {
  const source = get("guard_source") ?? get("guard_kind") ?? "a guard";
  const values = `${longText(get("expected") ?? MISSING)} → ${longText(get("actual") ?? MISSING)}`;
  return make("div", "", make("code", "cdiag-source", longText(source)), " ", make("span", "cdiag-change", values));
}

/**
 * Every failing guard, under the earlier entry that it belongs to.
 * @param {Get<GuardFailuresRow>[]} readers
 */
export function makeFailures(readers) {
  /** @type {Map<string, Get<GuardFailuresRow>[]>} */
  const entries = new Map();
  for (const get of readers) {
    const entry = get("entry_compile_key") ?? get("entry_compile_id") ?? "?";
    entries.set(entry, [...(entries.get(entry) ?? []), get]);
  }
  return [...entries.values()].map((failures) => {
    const id = failures[0]("entry_compile_id") ?? "?";
    const heading = make("h4", "", `entry ${id}: ${formatAmount(failures.length, "guard fails", "guards fail")}`);
    return make("div", "cdiag-entry", heading, ...failures.slice(0, MOST).map(makeFailure));
  });
}

/** @param {Get<GuardFailuresRow>} get */
function makeFailure(get) {
  const first = get("is_first") ? makeTerm("first", explain("first")) : null;
  const count = get("fail_count") ?? 0;
  const words = joinKnown(count > 1 ? `failed ${formatTimes(count)}` : null, formatPlace(get("user_file"), get("user_line")));
  const code = get("guard_kind");
  const kind = code === null ? null : makeTerm(formatCode(code), explain(code));
  const top = make("div", "cdiag-failure-top", makeChange(get), first, kind, make("span", "cdiag-dim", words));
  const guard = whenKnown(get("guard"), (text) => make("code", "cdiag-guard", longText(text)));
  const node = make("div", "cdiag-failure", top, guard);
  node.dataset.eventId = String(get("event_id"));
  return node;
}

/** @param {string} text torch's reason */
export function makeReason(text) {
  return make("details", "cdiag-words", make("summary", "", "torch's message"), make("p", "", longText(text)));
}
