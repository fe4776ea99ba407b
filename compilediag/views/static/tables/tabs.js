// The tabs of the dashboard: which table each shows, in which columns, and what it says while it is empty.
import { formatAmount, formatCode, formatOutcome, formatPlace, formatRange, formatSizes, formatTimes, formatValue } from "../core/format.js";
import { writeChange } from "../core/recompiles.js";
import {
  CHANGE, COMPILE, countColumn, FUNCTION, GUARD, HOW, LINE, secondsColumn, STEP, TIME, WHAT_CHANGED, writeChoices,
} from "./columns.js";
import { panelTabs } from "./panel-tabs.js";
/** @import { Tab } from "./tab-types" */

/**
 * Checks that a tab's columns are columns of its table.
 * @template {keyof RowTypes} Name
 * @param {Tab<Name>} tab
 * @returns {Tab<any>}
 */
function defineTab(tab) {
  return tab;
}

/**
 * The margin of the extern kernel, or that it is the winner itself.
 * @param {Get<TuningsRow>} get
 */
function compareExtern(get) {
  if (get("winner_kind") === "extern") return "winner";
  return get("margin_extern") === null ? null : formatValue(get("margin_extern"), "share");
}

/**
 * A symbol or an expression with its value: "s0 = 6", "s0 > 3", "u0 > 2 → True".
 * @param {string | null} expression
 * @param {string | null} symbol
 * @param {string | number | null} value
 */
export function writeSymbol(expression, symbol, value) {
  const what = expression ?? symbol;
  return value === null ? what : `${what ?? ""} ${expression === null ? "=" : "→"} ${value}`.trim();
}

/** @param {Get<SymbolicShapesRow>} get */
function writeShape(get) {
  return writeSymbol(get("expression"), get("symbol"), get("value"));
}

/** @param {Get<ExportProblemsRow>} get */
function writeProblem(get) {
  return get("op") ?? writeSymbol(get("expression"), null, get("result"));
}

/**
 * Why torch restarted the analysis of a compile.
 * @param {Get<CompilesRow>} get
 * @returns {string[]}
 */
function restartReasons(get) {
  return get("restart_reasons") ?? [];
}

/**
 * "ok, recompile", "failed, restarted once".
 * @param {Get<CompilesRow>} get
 */
function writeOutcome(get) {
  const restarts = restartReasons(get).length;
  const parts = [get("outcome"), get("is_recompile") && "recompile", restarts && `restarted ${formatTimes(restarts)}`];
  return parts.filter(Boolean).join(", ") || null;
}

/**
 * True for a lookup of code that torch did not compile and that is not the user's, such as the kernel's own.
 * @param {Get<CacheGroupsRow>} get
 */
function isForeignBypass(get) {
  return get("is_own") === false && Boolean(get("bypassed")) && !get("hits") && !get("stored");
}

/**
 * True for a compile that failed or was skipped. torch restarts many compiles that then succeed: these are no failures.
 * @param {Get<CompilesRow>} get
 */
function hasFailed(get) {
  const outcome = get("outcome");
  return outcome === "failed" || outcome === "skipped" || get("fail_type") !== null;
}

const NOTHING = "nothing compiled so far: call a function that torch.compile returned, and it appears here while it compiles";

/** @type {Tab[]} */
export const TABS = [
  defineTab({
    table: "recompiles",
    label: "Recompiles",
    empty: "no recompiles so far: each function was compiled once for all calls",
    sort: ["at", -1],
    columns: [
      { ...TIME, from: undefined },
      WHAT_CHANGED,
      HOW,
      { ...COMPILE, from: 620 },
      LINE,
      STEP,
      { ...secondsColumn("lost", "lost_s"), look: "bar" },
    ],
  }),
  defineTab({
    table: "compiles",
    label: "Compiles",
    empty: NOTHING,
    sort: ["at", -1],
    columns: [
      TIME,
      COMPILE,
      {
        label: "function at",
        text: (get) => formatPlace(get("file"), get("line")),
        isCode: true,
        from: 620,
      },
      { label: "trigger", name: "trigger", type: "text", from: 980 },
      {
        label: "outcome",
        text: writeOutcome,
      },
      secondsColumn("total", "duration_s"),
      secondsColumn("Dynamo", "dynamo_s", 760),
      secondsColumn("backend time", "aot_s", 860),
      secondsColumn("Inductor", "inductor_s", 760),
      secondsColumn("codegen", "codegen_s", 980),
      countColumn("guards", "guard_count", 900),
      countColumn("ops", "graph_ops", 980),
    ],
  }),
  defineTab({
    table: "compiles",
    name: "where",
    view: "call-sites",
    label: "Call sites",
    empty: NOTHING,
    only: (get) => get("stack") !== null,
    sort: ["", 1],
    columns: [],
  }),
  defineTab({
    table: "compiles",
    name: "failures",
    label: "Failures",
    empty: "no compile failed so far",
    sort: ["at", -1],
    only: hasFailed,
    columns: [
      TIME,
      COMPILE,
      { label: "outcome", text: writeOutcome },
      { label: "exception", name: "fail_type", type: "text", from: 760 },
      {
        label: "reason",
        name: "fail_reason",
      },
      LINE,
      secondsColumn("total", "duration_s", 620),
    ],
  }),
  defineTab({
    table: "cache_groups",
    minor: {
      is: isForeignBypass,
      describe: (count) => `${formatAmount(count, "function")} of libraries that torch did not compile`,
    },
    label: "Caches",
    empty: "no cache lookups so far: compiles with the backend inductor have them",
    sort: ["at", -1],
    columns: [
      TIME,
      FUNCTION,
      { label: "cache", name: "cache", type: "text" },
      { label: "tier", name: "tier", type: "text", from: 860 },
      { label: "last", text: (get) => formatOutcome(get("last")) },
      countColumn("hits", "hits"),
      countColumn("misses", "misses"),
      countColumn("bypassed", "bypassed", 900),
      countColumn("stored", "stored", 980),
      secondsColumn("saved", "saved_s", 760),
      { label: "reason", name: "why", type: "text", isCode: true, from: 620 },
    ],
  }),
  defineTab({
    table: "tunings",
    label: "Autotuning",
    empty: 'nothing tuned so far: torch.compile(mode="max-autotune") times several kernels for an operation',
    sort: ["at", -1],
    columns: [
      TIME,
      { label: "op", name: "op", type: "text", isCode: true },
      { label: "inputs", name: "inputs", type: "list", isCode: true, from: 860 },
      { label: "winner", name: "winner", type: "text", isCode: true },
      { label: "one call", name: "winner_ms", type: "ms" },
      { label: "vs. runner-up", name: "margin_next", type: "share", from: 640 },
      { label: "vs. extern", text: compareExtern, sortBy: "margin_extern", type: "share" },
      { label: "choices", text: writeChoices, sortBy: "choices", from: 980 },
      secondsColumn("tuning", "spent_s"),
      countColumn("break-even", "break_even", 980),
      { label: "from cache", name: "from_cache", type: "text", from: 1100 },
    ],
  }),
  defineTab({
    table: "graph_functions",
    label: "CUDA graphs",
    empty: 'no CUDA graphs so far: torch.compile(mode="reduce-overhead") records them',
    sort: ["at", -1],
    columns: [
      TIME,
      FUNCTION,
      { label: "mode", name: "mode", type: "text", from: 860 },
      { label: "state", name: "state", type: "text" },
      countColumn("captures", "captured"),
      countColumn("re-records", "rerecorded"),
      countColumn("skips", "skipped"),
      countColumn("replays", "replays", 760),
      countColumn("warm-ups", "warmups", 900),
      { label: "capture time", name: "capture_ms", type: "ms", from: 1020 },
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
    sort: ["at", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "kernel", name: "name", type: "text", isCode: true },
      { label: "language", name: "language", type: "text", from: 760 },
      { label: "outcome", name: "outcome", type: "text" },
      secondsColumn("took", "duration_s"),
      { label: "compiled in", name: "where", type: "text", from: 620 },
      { label: "worker pid", name: "worker_pid", type: "id", from: 900 },
      { label: "reason", name: "fail_reason", type: "text", from: 980 },
    ],
  }),
  defineTab({
    table: "refused_calls",
    label: "Refused calls",
    empty: "no refused calls so far: a stance (torch.compiler.set_stance) or aot_compile can refuse to compile",
    sort: ["at", -1],
    columns: [
      TIME,
      { ...FUNCTION, text: (get, context) => FUNCTION.text?.(get, context) ?? "all functions" }, // of a stance that skips guards
      { label: "refused by", name: "refused_by", type: "text", from: 860 },
      { label: "ran", name: "ran", type: "text", from: 480 },
      countColumn("times", "count"),
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
    sort: ["at", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "reason", name: "reason", type: "text" },
      { label: "id", name: "break_id", type: "text", from: 760 },
      LINE,
      { label: "code", name: "user_code", type: "code", isCode: true, from: 760 },
    ],
  }),
  defineTab({
    table: "dynamic_decisions",
    label: "Dynamic sizes",
    empty: "torch made no dimension dynamic so far",
    sort: ["at", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "source", name: "source", type: "code", isCode: true },
      { label: "dimension", name: "dim", type: "text" },
      {
        label: "before → after",
        text: (get) => writeChange(get("cached"), get("new")),
        isCode: true,
      },
      { label: "reason", name: "reason", type: "text", from: 620 },
    ],
  }),
  defineTab({
    table: "symbolic_shapes",
    label: "Symbolic shapes",
    empty: "no symbolic shape so far",
    sort: ["at", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "action", name: "action", type: "text" },
      { label: "symbol or expression", text: writeShape, isCode: true },
      { label: "source", name: "source", type: "code", isCode: true, from: 620 },
      { label: "range", text: (get) => formatRange(get("range")), from: 980 },
      LINE,
      { label: "code", name: "user_code", type: "code", isCode: true, from: 860 },
    ],
  }),
  defineTab({
    table: "export_problems",
    label: "Export problems",
    empty: "no export problem so far: torch.export reports them",
    sort: ["at", -1],
    columns: [
      TIME,
      {
        label: "problem",
        text: (get) => formatCode(get("problem") ?? "") || null,
      },
      { label: "operator or expression", text: writeProblem, isCode: true },
      { label: "reason", name: "reason", type: "text", from: 620 },
      LINE,
      { label: "code", name: "user_code", type: "code", isCode: true, from: 760 },
    ],
  }),
  defineTab({
    table: "collectives",
    label: "Collectives",
    empty: "no collective so far: distributed jobs have them",
    sort: ["position", 1],
    columns: [
      { label: "rank", name: "rank", type: "int" },
      COMPILE,
      { label: "position", name: "position", type: "int" },
      { label: "operator", name: "op", type: "code", isCode: true },
      { label: "outputs", name: "outputs", type: "list", isCode: true, from: 620 },
      { label: "estimate", name: "estimate_us", type: "us", from: 760 },
    ],
  }),
  defineTab({
    table: "vllm_compiles",
    label: "vLLM",
    empty: "vLLM compiled nothing so far",
    sort: ["at", 1],
    columns: [
      TIME,
      { label: "part", name: "part", type: "text" },
      { label: "piece", name: "piece", type: "text", isCode: true },
      { label: "sizes", text: (get) => formatSizes(get("range_start"), get("range_end")), sortBy: "range_start" },
      { label: "CUDA graph size", text: (get) => (get("is_cudagraph_size") ? "yes" : null), from: 760 },
      countColumn("calls", "graph_ops", 620),
      secondsColumn("took", "duration_s"),
    ],
  }),
  defineTab({
    table: "sources",
    label: "Sources",
    isAside: true,
    empty: "no source has reported yet",
    sort: ["source", 1],
    columns: [
      { label: "source", name: "name", type: "text" },
      { label: "status", name: "status", type: "text" },
      { label: "reason", name: "reason", type: "text" },
      { label: "events", name: "events", type: "int" },
      { label: "dropped", name: "dropped", type: "int" },
      { label: "overhead", name: "overhead_s", type: "s", from: 620 },
    ],
  }),
];

/** The tables that are searched: those that derived tables sum up first, then those of the tabs. */
export const SEARCHED = ["cache_lookups", "autotune", "cudagraphs", ...new Set(TABS.map((tab) => tab.table))];

/**
 * All tabs, with those of plug-ins.
 * @param {Store} store
 */
export function allTabs(store) {
  return [...TABS, ...panelTabs(store)];
}
