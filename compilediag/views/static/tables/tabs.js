// The tabs of the dashboard: which table each shows, in which columns, and what it says while it is empty.
import { whenKnown } from "../core/blocks.js";
import { writeChange } from "../core/compiles.js";
import {
  formatAmount, formatCode, formatCount, formatOutcome, formatPlace, formatRange, formatShare, formatSizes,
  formatTimes,
} from "../core/format.js";
import { SHARED } from "./columns.js";

const { CHANGE, CODE, COMPILE, FUNCTION, GUARD, HOW, LINE, STEP, TIME, WHAT_CHANGED } = SHARED;

/**
 * A tab whose columns are columns of its table.
 * @template {keyof RowTypes} Name
 * @param {WrittenTab<Name>} tab
 * @returns {Tab<any>}
 */
function defineTab(tab) {
  const columns = tab.columns.map((column) => (typeof column === "string" ? { name: column } : column));
  return { sort: ["at", -1], name: tab.table, ...tab, columns: columns.map((column) => ({ label: formatCode(column.name ?? ""), ...column })) };
}

/**
 * A symbol or an expression with its value: "s0 = 6", "s0 > 3", "u0 > 2 → True".
 * @type {(expression: string | null, symbol: string | null, value: string | number | null) => string | null}
 */
export function writeSymbol(expression, symbol, value) {
  const what = expression ?? symbol;
  return value === null ? what : `${what ?? ""} ${expression === null ? "=" : "→"} ${value}`.trim();
}

/** @type {(get: Get<CompilesRow>) => string | null} "ok, recompile", "failed, restarted once" */
function writeOutcome(get) {
  const restarts = (get("restart_reasons") ?? []).length;
  const parts = [get("outcome"), get("is_recompile") && "recompile", restarts && `restarted ${formatTimes(restarts)}`];
  return parts.filter(Boolean).join(", ") || null;
}

const NOTHING = "nothing compiled so far: call a function that torch.compile returned, and it appears here while it compiles";

/** @type {Tab[]} */
export const TABS = [
  defineTab({
    table: "recompiles",
    label: "Recompiles",
    empty: "no recompiles so far: each function was compiled once for all calls",
    columns: [
      { ...TIME, from: undefined },
      WHAT_CHANGED,
      HOW,
      { ...COMPILE, from: 620 },
      LINE,
      STEP,
      { name: "lost_s", label: "lost", look: "bar" },
    ],
  }),
  defineTab({
    table: "compiles",
    label: "Compiles",
    empty: NOTHING,
    columns: [
      TIME,
      COMPILE,
      { label: "function at", text: (get) => formatPlace(get("file"), get("line")), isCode: true, from: 620 },
      { name: "trigger", from: 980 },
      { label: "outcome", text: writeOutcome },
      { name: "duration_s", label: "total" },
      { name: "dynamo_s", label: "Dynamo", from: 760 },
      { name: "aot_s", label: "backend time", from: 860 },
      { name: "inductor_s", label: "Inductor", from: 760 },
      { name: "codegen_s", label: "codegen", from: 980 },
      { name: "guard_count", label: "guards", from: 900 },
      { name: "graph_ops", label: "ops", from: 980 },
    ],
  }),
  defineTab({
    table: "compiles",
    name: "where",
    view: "call-sites",
    label: "Call sites",
    empty: NOTHING,
    only: (get) => get("stack") !== null,
    columns: [],
  }),
  defineTab({
    table: "compiles",
    name: "failures",
    label: "Failures",
    empty: "no compile failed so far",
    // torch restarts many compiles that then succeed: these are no failures.
    only: (get) => ["failed", "skipped"].includes(get("outcome") ?? "") || get("fail_type") !== null,
    columns: [
      TIME,
      COMPILE,
      { label: "outcome", text: writeOutcome },
      { name: "fail_type", label: "exception", from: 760 },
      { name: "fail_reason", label: "reason" },
      LINE,
      { name: "duration_s", label: "total", from: 620 },
    ],
  }),
  defineTab({
    table: "cache_groups",
    minor: {
      // Lookups of code that torch did not compile and that is not the user's, such as the kernel's own.
      is: (get) => get("is_own") === false && Boolean(get("bypassed")) && !get("hits") && !get("stored"),
      describe: (count) => `${formatAmount(count, "function")} of libraries that torch did not compile`,
    },
    label: "Caches",
    empty: "no cache lookups so far: compiles with the backend inductor have them",
    columns: [
      TIME,
      FUNCTION,
      "cache",
      { name: "tier", from: 860 },
      { label: "last", text: (get) => formatOutcome(get("last")) },
      "hits",
      "misses",
      { name: "bypassed", from: 900 },
      { name: "stored", from: 980 },
      { name: "saved_s", label: "saved", from: 760 },
      { name: "why", label: "reason", isCode: true, from: 620 },
    ],
  }),
  defineTab({
    table: "tunings",
    label: "Autotuning",
    empty: 'nothing tuned so far: torch.compile(mode="max-autotune") times several kernels for an operation',
    columns: [
      TIME,
      { name: "op", isCode: true },
      { name: "inputs", isCode: true, from: 860 },
      { name: "winner", isCode: true },
      { name: "winner_ms", label: "one call" },
      { name: "margin_next", label: "vs. runner-up", from: 640 },
      {
        label: "vs. extern",
        text(get) {
          if (get("winner_kind") === "extern") return "winner";
          return whenKnown(get("margin_extern"), (margin) => formatShare(margin, true));
        },
        sortBy: "margin_extern",
        type: "share",
      },
      {
        label: "choices",
        text: (get) => formatCount(get("choices")) + (get("failed") ? `, ${formatCount(get("failed"))} failed` : ""),
        sortBy: "choices",
        from: 980,
      },
      { name: "spent_s", label: "tuning" },
      { name: "break_even", label: "break-even", from: 980 },
      { name: "from_cache", from: 1100 },
    ],
  }),
  defineTab({
    table: "graph_functions",
    label: "CUDA graphs",
    empty: 'no CUDA graphs so far: torch.compile(mode="reduce-overhead") records them',
    columns: [
      TIME,
      FUNCTION,
      { name: "mode", from: 860 },
      "state",
      { name: "captured", label: "captures" },
      { name: "rerecorded", label: "re-records" },
      { name: "skipped", label: "skips" },
      { name: "replays", from: 760 },
      { name: "warmups", label: "warm-ups", from: 900 },
      { name: "capture_ms", label: "capture time", from: 1020 },
      {
        label: "latest reason",
        text: (get) => [get("mismatch"), get("input") && `input ${get("input")}`, get("reason")].filter(Boolean).join(" · ") || null,
        from: 620,
      },
    ],
  }),
  defineTab({
    table: "kernels",
    label: "Kernels",
    empty: "no kernel compiled so far: the backend inductor compiles them",
    columns: [
      TIME,
      COMPILE,
      { name: "name", label: "kernel", isCode: true },
      { name: "language", from: 760 },
      "outcome",
      { name: "duration_s", label: "took" },
      { name: "where", label: "compiled in", from: 620 },
      { name: "worker_pid", type: "id", from: 900 },
      { name: "fail_reason", label: "reason", from: 980 },
    ],
  }),
  defineTab({
    table: "trace_functions",
    label: "Tracing",
    isOnRequest: true,
    empty: "nothing traced so far: Dynamo traces a function when it is compiled",
    sort: ["own", -1],
    columns: [
      { name: "function", isCode: true },
      { label: "line", text: (get) => formatPlace(get("file"), get("line")), look: "line", isCode: true, from: 620 },
      { name: "call_line", label: "called at line", type: "id", from: 860 },
      { name: "compile_id", label: "compile", from: 760 },
      { name: "count", label: "times" },
      { name: "own_s", label: "own", look: "bar" },
      { name: "total_s", label: "with callees", from: 480 },
    ],
  }),
  defineTab({
    table: "refused_calls",
    label: "Refused calls",
    empty: "no refused calls so far: a stance (torch.compiler.set_stance) or aot_compile can refuse to compile",
    columns: [
      TIME,
      { ...FUNCTION, text: (get, context) => FUNCTION.text?.(get, context) ?? "all functions" }, // of a stance that skips guards
      { name: "refused_by", from: 860 },
      { name: "ran", from: 480 },
      { name: "count", label: "times" },
      GUARD,
      CHANGE,
      LINE,
      { label: "set at", text: (get) => formatPlace(get("set_file"), get("set_line")), isCode: true, from: 980 },
    ],
  }),
  defineTab({
    table: "graph_breaks",
    label: "Graph breaks",
    empty: "no graph breaks so far: each compiled function is one graph",
    columns: [TIME, COMPILE, "reason", { name: "break_id", label: "id", from: 760 }, LINE, CODE],
  }),
  defineTab({
    table: "dynamic_decisions",
    label: "Dynamic sizes",
    empty: "torch made no dimension dynamic so far",
    columns: [
      TIME,
      COMPILE,
      { name: "source", isCode: true },
      { name: "dim", label: "dimension" },
      { label: "before → after", text: (get) => writeChange(get("cached"), get("new")), isCode: true },
      { name: "reason", from: 620 },
    ],
  }),
  defineTab({
    table: "symbolic_shapes",
    label: "Symbolic shapes",
    empty: "no symbolic shape so far",
    columns: [
      TIME,
      COMPILE,
      "action",
      { label: "symbol or expression", text: (get) => writeSymbol(get("expression"), get("symbol"), get("value")), isCode: true },
      { name: "source", isCode: true, from: 620 },
      { label: "range", text: (get) => formatRange(get("range")), from: 980 },
      LINE,
      { ...CODE, from: 860 },
    ],
  }),
  defineTab({
    table: "export_problems",
    label: "Export problems",
    empty: "no export problem so far: torch.export reports them",
    columns: [
      TIME,
      { label: "problem", text: (get) => formatCode(get("problem") ?? "") || null },
      { label: "operator or expression", text: (get) => get("op") ?? writeSymbol(get("expression"), null, get("result")), isCode: true },
      { name: "reason", from: 620 },
      LINE,
      CODE,
    ],
  }),
  defineTab({
    table: "collectives",
    label: "Collectives",
    empty: "no collective so far: distributed jobs have them",
    sort: ["position", 1],
    columns: [
      "rank",
      COMPILE,
      "position",
      { name: "op", label: "operator", isCode: true },
      { name: "outputs", isCode: true, from: 620 },
      { name: "estimate_us", label: "estimate", from: 760 },
    ],
  }),
  defineTab({
    table: "vllm_compiles",
    label: "vLLM",
    empty: "vLLM compiled nothing so far",
    sort: ["at", 1],
    columns: [
      TIME,
      "part",
      { name: "piece", isCode: true },
      { label: "sizes", text: (get) => formatSizes(get("range_start"), get("range_end")), sortBy: "range_start" },
      { label: "CUDA graph size", text: (get) => (get("is_cudagraph_size") ? "yes" : null), from: 760 },
      { name: "graph_ops", label: "calls", from: 620 },
      { name: "duration_s", label: "took" },
    ],
  }),
  defineTab({
    table: "sources",
    label: "Sources",
    isAside: true,
    empty: "no source has reported yet",
    sort: ["source", 1],
    columns: [
      { name: "name", label: "source" },
      "status",
      "reason",
      "events",
      "dropped",
      { name: "overhead_s", label: "overhead", from: 620 },
    ],
  }),
];

/** The tables that are searched: those that derived tables sum up first, then those of the tabs. */
export const SEARCHED = ["cache_lookups", "autotune", "cudagraphs", ...new Set(TABS.map((tab) => tab.table))];

/** @param {Store} store */
export function allTabs(store) {
  return [...TABS, ...panelTabs(store)];
}

/** @type {WeakMap<Panel, Tab>} panel -> its tab, the same while the panel is */
const panelTab = new WeakMap();

/** @type {(store: Store) => Tab[]} one per panel of a plug-in, or of the page that compares two sessions */
export function panelTabs(store) {
  return store.panels.map((panel) => {
    const known = panelTab.get(panel);
    if (known) return known;
    /** @type {TabColumn[]} */
    const columns = panel.columns.map((label, i) => ({ label, name: `c${i + 1}`, from: panel.from?.[i] }));
    if (!columns.length) columns.push({ label: "", name: "c0" });
    const { name, label, note } = panel;
    /** @type {Tab} */
    const tab = { name, table: name, label, empty: note ?? "nothing so far", note, sort: panel.sort ?? [columns[0].label, 1], columns };
    panelTab.set(panel, tab);
    return tab;
  });
}
