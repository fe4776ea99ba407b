// Details of cache lookups: one of them, and all of a function in a cache.
import { buildSome, joinKnown, longText, makeDim, makeFacts, makeSection, whenKnown } from "../core/blocks.js";
import { make } from "../core/dom.js";
import {
  formatAmount,
  formatBytes,
  formatClock,
  formatCount,
  formatFunction,
  formatOutcome,
  formatSeconds,
} from "../core/format.js";
/** @import { Get } from "../core/types" */
/** @import { CacheGroupsRow, CacheLookupsRow } from "../core/page-types" */
/** @import { DerivedPanel } from "./derived-panels.js" */

/**
 * One component of a key that differs, `name: old -> new`.
 * @param {string} text
 */
export function makeDifference(text) {
  return make("code", "cdiag-diff", longText(text.trim()));
}

/**
 * One lookup: its outcome, why it missed, its keys and seconds.
 * @param {Get<CacheLookupsRow>} get
 */
export function makeLookup(get) {
  const outcome = make("span", "cdiag-outcome", formatOutcome(get("outcome")));
  outcome.dataset.outcome = get("outcome") ?? "";
  const facts = joinKnown(
    get("cache"),
    get("tier"),
    whenKnown(get("saved_s"), (seconds) => `saved ${formatSeconds(seconds)}`),
    whenKnown(get("taken_s"), (seconds) => `took ${formatSeconds(seconds)}`),
    whenKnown(get("bytes"), formatBytes),
  );
  const lines = get("explained") ?? [];
  const words = buildSome(lines, (some) => {
    return some.map((line) => (line.startsWith("  ") ? makeDifference(line) : makeDim(longText(line))));
  });
  const top = make("div", "", outcome, ` ${facts}`);
  return { top, node: make("div", "cdiag-item", top, ...words, makeLookupFacts(get, lines.length > 0)) };
}

/**
 * @param {Get<CacheLookupsRow>} get
 * @param {boolean} isExplained
 */
function makeLookupFacts(get, isExplained) {
  return makeFacts([
    ["reason", isExplained ? null : get("reason")],
    ["failing guards", isExplained ? null : get("guard")],
    ["exception", get("exception_type")],
    ["kernels", whenKnown(get("kernels"), formatCount)],
    ["key", get("key")],
    ["forward entry", get("forward_key")],
    ["backward entry", get("backward_key")],
    ["saved in forward", whenKnown(get("forward_saved_s"), formatSeconds)],
    ["saved in backward", whenKnown(get("backward_saved_s"), formatSeconds)],
  ]);
}

/** @type {DerivedPanel<CacheGroupsRow, CacheLookupsRow>} */
export const LOOKUP_PANEL = {
  title: (get) => `${formatFunction(get("function")) ?? "outside any compile"} · ${get("cache")}`,
  makeParts(get, readers, linkCompile) {
    const lead = joinKnown(
      formatAmount(get("hits"), "hit"),
      whenKnown(get("saved_s"), (seconds) => `${formatSeconds(seconds)} saved`),
      formatAmount(get("misses"), "miss", "misses"),
      get("bypassed") ? `${formatCount(get("bypassed"))} bypassed` : null,
      get("failed") ? `${formatCount(get("failed"))} failed` : null,
      get("stored") ? `${formatCount(get("stored"))} stored` : null,
    );
    const reasons = get("reasons").map(makeDifference);
    const items = buildSome([...readers].reverse(), (some) => some.map((each) => {
      const { top, node } = makeLookup(each);
      top.append(" ", make("span", "cdiag-dim", formatClock(each("time"))), linkCompile(each));
      return node;
    }));
    return [
      make("p", "cdiag-lead", lead),
      reasons.length ? makeSection("reasons", "Why lookups missed", ...reasons) : null,
      makeSection("cache_lookups", "Lookups, the latest first", ...items),
    ];
  },
};
