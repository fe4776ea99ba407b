// The tabs and their columns. A column shows one value (`name`) or a text made of several (`text`).
import { formatCount, formatOutcome, formatPlace, formatValue, oneLine, MISSING } from "../core/format.js";

const CELL_LIMIT = 300; // characters of a cell; the detail and the tooltip show more

function change(get, before, after) {
  const [from, to] = [get(before), get(after)];
  return from === null && to === null ? null : `${from ?? MISSING} → ${to ?? MISSING}`;
}

function whichCompile(get, owner) {
  const id = get("compile_id");
  const name = get("function") ?? owner?.name ?? null;
  return name === null ? id : `${name} ${id ?? ""}`.trim();
}

/** "31, 4 failed": how many choices there were. */
function choiceCounts(get) {
  const failed = get("failed") ? `, ${formatCount(get("failed"))} failed` : "";
  return `${formatCount(get("choices"))}${failed}`;
}

/** "+2.0 %", or that the extern kernel is the winner itself. */
function externTakes(get) {
  if (get("winner_kind") === "extern") return "it won";
  return get("margin_extern") === null ? null : formatValue(get("margin_extern"), "share");
}

/** What a symbol is, or what is asked of several: "s0 = 6", "s0 > 3", "u0 > 2 → True". */
function symbolText(get) {
  const [what, value] = [get("expression") ?? get("symbol"), get("value")];
  return value === null ? what : `${what} ${get("expression") === null ? "=" : "→"} ${value}`;
}

/** Why a compile failed, or why its analysis began again. */
function whyFailed(get) {
  return get("fail_reason") ?? ((get("restart_reasons") ?? []).join("; ") || null);
}

/** "failed, UserError", "begun again 2×". */
function howFailed(get) {
  const again = (get("restart_reasons") ?? []).length;
  const parts = [get("outcome") === "ok" ? null : get("outcome"), again ? `begun again ${formatCount(again)}×` : null];
  return parts.filter(Boolean).join(", ") || get("outcome");
}

/** A compile that did not end well, or not at the first go. */
function hasFailed(get) {
  const ended = get("outcome") === "failed" || get("outcome") === "skipped" || get("fail_type") !== null;
  return ended || (get("restart_reasons") ?? []).length > 0;
}

function whyNotReplayed(get) {
  return [get("mismatch"), get("input") && `input ${get("input")}`, get("reason")].filter(Boolean).join(" · ") || null;
}

const TIME = { label: "time", name: "time", type: "time", width: "84px" };
const COMPILE = {
  label: "compile",
  text: whichCompile,
  sortBy: "compile_id",
  width: "minmax(110px, 1.2fr)",
  code: true,
};
const LINE = {
  label: "line",
  text: (get) => formatPlace(get("user_file"), get("user_line")) ?? formatPlace(get("file"), get("line")),
  width: "minmax(130px, 1fr)",
  code: true,
  from: 620,
};

/** "forward:25": functions of one name are told apart by their line. */
function functionAndLine(get) {
  const [name, line] = [get("function"), get("line")];
  return name === null || line === null ? name : `${name}:${line}`;
}

const FUNCTION = {
  label: "function",
  text: functionAndLine,
  width: "minmax(110px, 1fr)",
  code: true,
};

function secondsColumn(label, name, from) {
  return { label, name, type: "s", width: "84px", from };
}

function countColumn(label, name, width, from) {
  return { label, name, type: "int", width, from };
}

/** One entry a tab: table, label, what to say when it is empty, first sort, columns; a name where a table has several
 * tabs, `only` which of its rows it shows, `view` what draws it instead of a table, `rare` if it is there only with rows.
 * `from`: least width in px of the table for a column to be shown. */
export const TABS = [
  {
    table: "recompiles",
    label: "Recompiles",
    empty: "no recompiles so far",
    sort: ["time", -1],
    columns: [
      TIME,
      COMPILE,
      {
        label: "guard",
        text: (get) => get("guard_source") ?? get("guard_kind"),
        width: "minmax(100px, 1.2fr)",
        code: true,
      },
      {
        label: "expected → actual",
        text: (get) => change(get, "expected", "actual"),
        width: "minmax(120px, 1.4fr)",
        code: true,
      },
      LINE,
      secondsColumn("lost s", "lost_s"),
    ],
  },
  {
    table: "compiles",
    label: "Compiles",
    empty: "nothing compiled so far",
    sort: ["time", -1],
    columns: [
      TIME,
      COMPILE,
      {
        label: "where",
        text: (get) => formatPlace(get("file"), get("line")),
        width: "minmax(90px, 1fr)",
        code: true,
        from: 620,
      },
      { label: "trigger", name: "trigger", type: "text", width: "100px", from: 980 },
      {
        label: "outcome",
        text: (get) => [get("outcome"), get("is_recompile") ? "recompile" : null].filter(Boolean).join(", ") || null,
        width: "minmax(92px, .8fr)",
      },
      secondsColumn("total s", "duration_s"),
      secondsColumn("dynamo s", "dynamo_s", 760),
      secondsColumn("backend s", "aot_s", 860),
      secondsColumn("inductor s", "inductor_s", 760),
      secondsColumn("codegen s", "codegen_s", 980),
      { label: "guards", name: "guard_count", type: "int", width: "70px", from: 900 },
      { label: "ops", name: "graph_ops", type: "int", width: "60px", from: 980 },
    ],
  },
  {
    table: "compiles",
    name: "where",
    view: "where",
    label: "Where",
    empty: "nothing compiled so far",
    only: (get) => get("stack") !== null,
    columns: [],
  },
  {
    table: "compiles",
    name: "failures",
    label: "Failures",
    empty: "no compile failed or began again so far",
    sort: ["time", -1],
    only: hasFailed,
    columns: [
      TIME,
      COMPILE,
      { label: "what", text: howFailed, width: "minmax(92px, .8fr)" },
      { label: "exception", name: "fail_type", type: "text", width: "minmax(90px, .9fr)", from: 760 },
      { label: "why", text: whyFailed, width: "minmax(140px, 2.4fr)" },
      LINE,
      secondsColumn("total s", "duration_s", 620),
    ],
  },
  {
    table: "cache_groups",
    label: "Caches",
    empty: "no cache look-ups so far",
    sort: ["time", -1],
    columns: [
      TIME,
      FUNCTION,
      { label: "cache", name: "cache", type: "text", width: "minmax(96px, .7fr)" },
      { label: "tier", name: "tier", type: "text", width: "70px", from: 860 },
      { label: "last", text: (get) => formatOutcome(get("last")), width: "90px" },
      countColumn("hits", "hits", "56px"),
      countColumn("misses", "misses", "66px"),
      countColumn("bypassed", "bypassed", "80px", 900),
      countColumn("stored", "stored", "64px", 980),
      secondsColumn("saved s", "saved_s", 760),
      { label: "differs in, or why", name: "why", type: "text", width: "minmax(120px, 2.2fr)", code: true, from: 620 },
    ],
  },
  {
    table: "tunings",
    label: "Autotune",
    empty: "nothing tuned so far",
    sort: ["time", -1],
    columns: [
      TIME,
      { label: "op", name: "op", type: "text", width: "minmax(80px, .8fr)", code: true },
      { label: "inputs", name: "inputs", type: "list", width: "minmax(110px, 1.4fr)", code: true, from: 860 },
      { label: "winner", name: "winner", type: "text", width: "minmax(100px, 1.2fr)", code: true },
      { label: "ms", name: "winner_ms", type: "ms", width: "82px" },
      { label: "next takes", name: "margin_next", type: "share", width: "88px", from: 620 },
      { label: "extern takes", text: externTakes, sortBy: "margin_extern", type: "share", width: "100px" },
      { label: "choices", text: choiceCounts, sortBy: "choices", width: "100px", from: 980 },
      secondsColumn("tuning s", "spent_s"),
      countColumn("pays after calls", "break_even", "118px", 980),
      { label: "from cache", name: "from_cache", type: "text", width: "86px", from: 1100 },
    ],
  },
  {
    table: "graph_functions",
    label: "CUDA graphs",
    empty: "no CUDA graphs so far",
    sort: ["time", -1],
    columns: [
      TIME,
      FUNCTION,
      { label: "mode", name: "mode", type: "text", width: "80px", from: 860 },
      { label: "state", name: "state", type: "text", width: "minmax(90px, .8fr)" },
      countColumn("captured", "captured", "78px"),
      countColumn("again", "rerecorded", "62px"),
      countColumn("skipped", "skipped", "72px"),
      countColumn("replays", "replays", "72px", 760),
      countColumn("warm-ups", "warmups", "80px", 900),
      { label: "captures ms", name: "capture_ms", type: "ms", width: "92px", from: 980 },
      { label: "latest reason", text: whyNotReplayed, width: "minmax(120px, 2.2fr)", from: 620 },
    ],
  },
  {
    table: "kernels",
    label: "Kernels",
    empty: "no kernel compiled so far",
    sort: ["time", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "kernel", name: "name", type: "text", width: "minmax(140px, 2fr)", code: true },
      { label: "language", name: "language", type: "text", width: "80px", from: 760 },
      { label: "outcome", name: "outcome", type: "text", width: "86px" },
      secondsColumn("s", "duration_s"),
      { label: "where", name: "where", type: "text", width: "96px", from: 620 },
      { label: "worker pid", name: "worker_pid", type: "int", width: "90px", from: 900 },
      { label: "why it failed", name: "fail_reason", type: "text", width: "minmax(80px, 1fr)", from: 980 },
    ],
  },
  {
    table: "graph_breaks",
    label: "Graph breaks",
    empty: "no graph breaks so far",
    sort: ["time", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "reason", name: "reason", type: "text", width: "minmax(140px, 2fr)" },
      { label: "id", name: "break_id", type: "text", width: "76px", from: 760 },
      LINE,
      { label: "code", name: "user_code", type: "code", width: "minmax(100px, 1.5fr)", code: true, from: 760 },
    ],
  },
  {
    table: "dynamic_decisions",
    label: "Dynamic",
    empty: "torch made nothing dynamic by itself so far",
    sort: ["time", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "source", name: "source", type: "code", width: "minmax(100px, 1fr)", code: true },
      { label: "dimension", name: "dim", type: "text", width: "90px" },
      { label: "was → now", text: (get) => change(get, "cached", "new"), width: "minmax(100px, 1fr)", code: true },
      { label: "reason", name: "reason", type: "text", width: "minmax(120px, 1.5fr)", from: 620 },
    ],
  },
  {
    table: "symbolic_shapes",
    label: "Shapes",
    empty: "no symbolic shape so far",
    sort: ["time", -1],
    columns: [
      TIME,
      COMPILE,
      { label: "what", name: "action", type: "text", width: "92px" },
      { label: "symbol or expression", text: symbolText, width: "minmax(120px, 1.5fr)", code: true },
      { label: "stands for", name: "source", type: "code", width: "minmax(110px, 1.3fr)", code: true, from: 620 },
      { label: "range", name: "range", type: "text", width: "minmax(80px, .6fr)", code: true, from: 980 },
      LINE,
      { label: "code", name: "user_code", type: "code", width: "minmax(100px, 1.4fr)", code: true, from: 860 },
    ],
  },
  {
    table: "export_problems",
    label: "Export",
    empty: "no problem of an export so far",
    sort: ["time", -1],
    rare: true,
    columns: [
      TIME,
      { label: "problem", text: (get) => get("problem")?.replaceAll("_", " ") ?? null, width: "minmax(110px, .9fr)" },
      {
        label: "operator or expression",
        text: (get) => get("op") ?? symbolText((name) => get(name === "value" ? "result" : name)),
        width: "minmax(120px, 1.4fr)",
        code: true,
      },
      { label: "why", name: "reason", type: "text", width: "minmax(100px, 1.4fr)", from: 620 },
      LINE,
      { label: "code", name: "user_code", type: "code", width: "minmax(100px, 1.4fr)", code: true, from: 760 },
    ],
  },
  {
    table: "collectives",
    label: "Collectives",
    empty: "no collective so far",
    sort: ["place", 1],
    rare: true,
    columns: [
      { label: "rank", name: "rank", type: "int", width: "60px" },
      COMPILE,
      { label: "place", name: "position", type: "int", width: "64px" },
      { label: "operator", name: "op", type: "code", width: "minmax(160px, 2fr)", code: true },
      { label: "outputs", name: "outputs", type: "list", width: "minmax(110px, 1.2fr)", code: true, from: 620 },
      { label: "expected µs", name: "estimate_us", type: "us", width: "96px", from: 760 },
    ],
  },
  {
    table: "sources",
    label: "Sources",
    empty: "no source has reported yet",
    sort: ["source", 1],
    columns: [
      { label: "source", name: "name", type: "text", width: "minmax(140px, 1fr)" },
      { label: "status", name: "status", type: "text", width: "96px" },
      { label: "why", name: "reason", type: "text", width: "minmax(140px, 2.5fr)" },
      { label: "events", name: "events", type: "int", width: "76px" },
      { label: "dropped", name: "dropped", type: "int", width: "80px" },
      { label: "own cost s", name: "overhead_s", type: "s", width: "90px", from: 620 },
    ],
  },
];

/** The name of a tab: its table's, where it has only this one. */
export function tabName(tab) {
  return tab.name ?? tab.table;
}

/** Tables that are searched: those that rows of others are made of, and those of the tabs. */
export const FILTERED = ["cache_lookups", "autotune", "cudagraphs", ...new Set(TABS.map((tab) => tab.table))];

const PANEL_WIDTH = "minmax(90px, 1fr)";
const panelTabs = new WeakMap(); // panel -> its tab, the same while the panel is

function panelTab(panel) {
  const columns = panel.columns.map((label, i) => {
    const numbers = panel.rows.every((row) => row[i] === null || typeof row[i] === "number");
    const [width, from] = [panel.widths?.[i] ?? PANEL_WIDTH, panel.from?.[i]];
    return { label, name: `c${i + 1}`, type: numbers ? "number" : "text", width, from };
  });
  if (!columns.length) columns.push({ label: "", name: "c0", type: "id", width: PANEL_WIDTH });
  const empty = panel.note ?? "nothing so far";
  return { table: panel.name, label: panel.label, empty, note: panel.note, sort: panel.sort ?? [columns[0].label, 1], columns };
}

/** A tab a panel. */
export function panelTabsOf(store) {
  return store.panels.map((panel) => {
    if (!panelTabs.has(panel)) panelTabs.set(panel, panelTab(panel));
    return panelTabs.get(panel);
  });
}

/** The tabs, with those of plug-ins. */
export function tabsOf(store) {
  return [...TABS, ...panelTabsOf(store)];
}

/** The text of one cell; `owner` is the function that the row's compile belongs to, if known. */
export function columnText(column, table, row, owner) {
  const get = (name) => table.get(row, name);
  const value = column.text ? column.text(get, owner) : formatValue(get(column.name), column.type);
  return value === null ? MISSING : oneLine(String(value), CELL_LIMIT);
}

/** What a column sorts by; null goes last. */
export function columnKey(column, table, row, owner) {
  if (column.sortBy) return table.get(row, column.sortBy);
  return column.text ? column.text((name) => table.get(row, name), owner) : table.get(row, column.name);
}

/** Why a table has nothing to show, told by the sources that feed it (`feeds`), or else by all that are not active. */
export function whySilent(feeds, sources) {
  const silent = sources.rows.filter((row) => sources.get(row, "status") !== "active");
  const own = silent.filter((row) => feeds.includes(sources.get(row, "name")));
  const told = (own.length ? own : silent).map((row) => {
    const [name, status, reason] = ["name", "status", "reason"].map((key) => sources.get(row, key));
    return `${name} is ${status}: ${reason ?? "no reason given"}`;
  });
  return told.join(" · ") || "no source for it was active";
}
