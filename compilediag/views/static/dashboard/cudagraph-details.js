// Details of CUDA graphs: one action, and all of a function.
import { buildSome, joinKnown, makeCodeLine, makeFacts, makeSection, whenKnown } from "../core/blocks.js";
import { make } from "../core/dom.js";
import {
  formatAmount,
  formatBytes,
  formatClock,
  formatCount,
  formatFunction,
  formatMilliseconds,
  formatPlace,
  formatTimes,
  MISSING,
} from "../core/format.js";
/** @import { Get } from "../core/types" */
/** @import { CudagraphsRow, GraphFunctionsRow } from "../core/page-types" */
/** @import { DerivedPanel } from "./derived-panels.js" */

/**
 * One action on a CUDA graph.
 * @param {Get<CudagraphsRow>} get
 */
export function makeGraphAction(get) {
  const action = make("span", "cdiag-outcome", get("action") ?? MISSING);
  action.dataset.outcome = get("action") ?? "";
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
    formatClock(get("time")),
  );
  const facts = makeFacts([
    ["broken invariant", get("mismatch")],
    ["input", get("input")],
    ["reason", get("reason")],
  ]);
  const code = makeCodeLine(get, formatPlace(get("user_file"), get("user_line")));
  const top = make("div", "", action, ` ${words}`);
  return { top, node: make("div", "cdiag-item", top, code, facts) };
}

/** @type {DerivedPanel<GraphFunctionsRow, CudagraphsRow>} */
export const GRAPH_PANEL = {
  title: (get) => `${formatFunction(get("function")) ?? "?"} · CUDA graphs`,
  makeParts(get, readers, linkCompile) {
    const lead = joinKnown(
      get("state"),
      formatAmount(get("captured"), "capture"),
      get("rerecorded") ? `${formatCount(get("rerecorded"))} re-recorded` : null,
      whenKnown(get("replays"), (count) => formatAmount(count, "replay")),
      whenKnown(get("eager"), (count) => formatAmount(count, "call without a graph", "calls without a graph")),
      get("skipped") ? formatAmount(get("skipped"), "skip") : null,
      formatAmount(get("warmups"), "warm-up"),
    );
    const facts = makeFacts([
      ["mode", get("mode")],
      ["backend", get("backend")],
      ["capture time", whenKnown(get("capture_ms"), formatMilliseconds)],
      ["memory pool", whenKnown(get("pool_bytes"), formatBytes)],
    ]);
    const items = buildSome([...readers].reverse(), (some) => some.map((each) => {
      const { top, node } = makeGraphAction(each);
      top.append(linkCompile(each));
      return node;
    }));
    return [make("p", "cdiag-lead", lead), facts, makeSection("cudagraphs", "Actions, the latest first", ...items)];
  },
};
