// Details of CUDA graphs: one action, and all of a function.
import { CodeLine, drawSome, Facts, joinKnown, Section, whenKnown } from "../core/blocks.js";
import {
  formatAmount,
  formatBytes,
  formatCount,
  formatFunction,
  formatMilliseconds,
  formatPlace,
  formatTimes,
  MISSING,
} from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
/** @import { DerivedPanel } from "./detail-pane.js" */

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
