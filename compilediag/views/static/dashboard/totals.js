// The totals, on one line: what is zero is left out, what was not collected is not.
import { explain, Term } from "../core/blocks.js";
import { formatCount, formatSeconds, formatShare, MISSING } from "../core/format.js";
import { html } from "../core/view.js";

export const LARGE_SHARE = 0.05; // of the compile time: more than that is a warning

/** @type {[end: string, format: (value: number) => string][]} how the names of totals end that are no counts */
const FORMATS = [["_s", formatSeconds], ["_share", formatShare], ["", formatCount]];

/** @typedef {[key: string, one: string, many?: string]} Total a total, and the words after it */

/** @type {{from: string, main: Total, details: Total[]}[]} the table that each sums up, the total, and more about it */
const TOTALS = [
  { from: "compiles", main: ["compiles", "compile", "compiles"], details: [["compile_s", ""], ["wall_share", "of the time"]] },
  { from: "recompiles", main: ["recompiles", "recompile", "recompiles"], details: [["lost_s", "lost"]] },
  { from: "compiles", main: ["after_warmup", "after warm-up"], details: [] },
  { from: "compiles", main: ["limit_hits", "at the recompile limit"], details: [] },
  { from: "compile_caches", main: ["cache_hits", "cache hit", "cache hits"], details: [["cache_saved_s", "saved"]] },
  { from: "compile_caches", main: ["cache_misses", "cache miss", "cache misses"], details: [] },
  { from: "autotune", main: ["tuning_s", "tuning"], details: [["tuning_failed", "choice failed", "choices failed"]] },
  {
    from: "cudagraphs",
    main: ["graph_records", "CUDA graph", "CUDA graphs"],
    details: [["graph_rerecords", "re-recorded"], ["graph_replays", "replay", "replays"]],
  },
  { from: "cudagraphs", main: ["graph_skips", "CUDA graph skipped", "CUDA graphs skipped"], details: [] },
  { from: "graph_breaks", main: ["graph_breaks", "graph break", "graph breaks"], details: [] },
  { from: "refused_calls", main: ["refused_calls", "refused call", "refused calls"], details: [] },
  { from: "calls", main: ["eager_calls", "eager call", "eager calls"], details: [["eager_s", ""]] },
  { from: "calls", main: ["used_once", "entry called once", "entries called once"], details: [["used_once_s", ""]] },
  { from: "", main: ["own_share", "overhead"], details: [["own_s", ""]] },
  { from: "", main: ["dropped", "event dropped", "events dropped"], details: [] },
];
/** Totals that are named also where they were not collected; most sessions have none of the others. */
const ESSENTIAL = ["compiles", "recompiles", "cache_hits", "graph_breaks"];

/** @param {{store: Store}} props */
export function Totals({ store }) {
  const { now, totals } = store;
  return html`<div class="cdiag-totals">
    ${now.length > 0 && !totals.compiles && html`<div>
      <span class="cdiag-total is-main"><span class="cdiag-amount">${formatCount(now.length)}</span> ${now.length === 1 ? "compile" : "compiles"} running</span>
    </div>`}
    ${TOTALS.map(({ from, main, details }) => {
      const isBlind = store.observed[from] === false;
      const isPromise = main[0] === "after_warmup" && store.totals.after_warmup === 0; // nothing should compile after it
      const isShown = store.totals[main[0]] > 0 || (isBlind && ESSENTIAL.includes(main[0])) || isPromise;
      const isWarning = main[0] === "own_share" && store.totals.own_share > LARGE_SHARE;
      return html`<div key=${main[0]} class=${isWarning ? "is-warning" : ""} hidden=${!isShown}>
        <${TotalNumber} store=${store} total=${main} isBlind=${isBlind} isMain=${true} />
        ${details.map((total) => html`<${TotalNumber} key=${total[0]} store=${store} total=${total} isBlind=${isBlind} />`)}
        ${isBlind && html`<span class="cdiag-dim">not collected</span>`}
      </div>`;
    })}
  </div>`;
}

/** @param {{store: Store, total: Total, isBlind: boolean, isMain?: boolean}} props */
function TotalNumber({ store, total: [key, one, many], isBlind, isMain = false }) {
  const value = store.totals[key];
  const isKnown = value !== null && value !== undefined && !(isBlind && value === 0);
  const format = FORMATS.find(([end]) => key.endsWith(end))?.[1] ?? formatCount;
  const text = isKnown ? (isBlind ? "≥ " : "") + format(value) : MISSING;
  const words = value === 1 ? one : many ?? one;
  return html`<span class=${isMain ? "cdiag-total is-main" : "cdiag-total"} hidden=${!isMain && !(value > 0)}>
    <span class="cdiag-amount" data-total=${key} data-value=${isKnown ? value : ""}>${text}</span>
    ${words && html` <${Term} text=${words} hint=${explain(key)} />`}
  </span>`;
}
