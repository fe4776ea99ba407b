// Everything about one compile, or about one row that belongs to none.
import { ArtifactView } from "./artifact.js";
import { make, makeButton, setShown } from "./dom.js";
import { counted, formatClock, formatCount, formatPlace } from "./format.js";
import { formatSeconds, formatValue, MISSING, oneLine } from "./format.js";
import { phaseKind, phaseLabel } from "./phases.js";

const LONG = 4000; // characters of one value
const MOST = 200; // rows of one section; the rest is counted
const PARTS = [
  ["dynamo_s", "Dynamo, all in all", "dynamo"],
  ["aot_s", "backend (AOTAutograd and below)", "aot"],
  ["inductor_s", "Inductor", "inductor"],
  ["codegen_s", "code generation and loading", "codegen"],
  ["triton_s", "Triton", "triton"],
];
const FACTS = [
  ["backend", "backend"],
  ["guard_count", "guards"],
  ["guard_latency_us", "one check of all guards, µs"],
  ["graph_ops", "calls in the graph"],
  ["graph_nodes", "graph nodes"],
  ["graph_inputs", "graph inputs"],
  ["cache_size", "earlier entries"],
  ["attempt", "extra attempts"],
  ["limit", "limit hit"],
  ["restart_reasons", "restarted because"],
  ["fail_type", "failed with"],
  ["fail_reason", "failure"],
];
const TABLES = [
  "compiles",
  "recompiles",
  "guard_failures",
  "cache_lookups",
  "graph_breaks",
  "dynamic_decisions",
  "phases",
  "artifacts",
];
const LED_BY_THE_TOP = new Set(["recompiles", "compiles"]); // sections that stand first anyway

export class Detail {
  constructor(store, groups, onClose) {
    this.store = store;
    this.groups = groups;
    this.artifacts = new Map(); // event id -> ArtifactView, kept so that an open text stays open
    this.title = make("h2", "");
    this.sub = make("div", "cdiag-dim");
    this.body = make("div", "cdiag-detail-body");
    this.body.tabIndex = 0;
    const close = makeButton("cdiag-close", "close", onClose);
    const head = make("div", "cdiag-detail-head", make("div", "", this.title, this.sub), close);
    this.node = make("aside", "cdiag-detail", head, this.body);
    this.node.setAttribute("aria-label", "detail");
    this.node.addEventListener("keydown", (event) => event.key === "Escape" && onClose());
    this.target = null;
    setShown(this.node, false);
  }

  /** Shows a compile by its group, led by the section of `table`; or one row that has no compile. */
  open(target) {
    this.target = target;
    this.shape = null;
    this.artifacts.clear();
    setShown(this.node, target !== null);
    if (!target) return;
    this.paint();
    this.body.scrollTop = 0;
    if (target.group === null || LED_BY_THE_TOP.has(target.table.name)) return;
    this.body.scrollTop = this.body.querySelector(`[data-section="${target.table.name}"]`)?.offsetTop ?? 0;
  }

  paint() {
    if (!this.target) return;
    const { group, table, row } = this.target;
    if (group === null) return this.paintPlainRow(table, table.byId(row[0]) ?? row);
    const rows = new Map(TABLES.map((name) => [name, this.groups.members(name, group)]));
    const shape = [...rows.values(), [this.store.texts.size], [this.store.tables]].flat();
    if (this.shape && shape.length === this.shape.length && shape.every((item, i) => item === this.shape[i])) return;
    this.shape = shape;
    this.paintCompile(group, rows);
  }

  paintCompile(group, rows) {
    const owner = this.groups.functionOf(group);
    const flight = this.store.now.find((candidate) => this.groups.ofFlight(candidate) === group);
    const id = group.split("|").pop().replace(/#\d+$/, "");
    this.title.textContent = `${owner?.name ?? flight?.function ?? "compile"} ${id}`;
    const file = owner?.file ?? flight?.file;
    this.sub.textContent = oneLine(file ? `${file}:${owner?.line ?? flight?.line ?? ""}` : "", LONG);
    const sections = [
      ["recompiles", "Why it compiled again", (list) => this.recompile(list, rows.get("guard_failures"))],
      ["compiles", "Time", (list) => list.flatMap((row) => this.compile(row))],
      ["cache_lookups", "Cache look-ups", (list) => list.map((row) => this.lookup(row))],
      ["graph_breaks", "Graph breaks", (list) => list.map((row) => this.graphBreak(row))],
      ["dynamic_decisions", "Made dynamic", (list) => list.map((row) => this.decision(row))],
      ["artifacts", "Graphs, guards and code", (list) => list.map((row) => this.artifact(row))],
      ["phases", "Phases", (list) => this.phases(list)],
    ];
    const kept = this.body.scrollTop;
    const made = sections.map(([name, heading, build]) => this.section(name, heading, rows.get(name), build));
    this.body.replaceChildren(...made.filter(Boolean));
    if (!this.body.childElementCount) this.body.append(dim("nothing recorded about this compile yet"));
    this.body.scrollTop = kept;
  }

  section(name, heading, list, build) {
    if (!list.length) return this.silent(name, heading);
    const rest = list.length > MOST ? [dim(`and ${formatCount(list.length - MOST)} more`)] : [];
    const node = make("section", "cdiag-section", make("h3", "", heading), ...build(list.slice(0, MOST)), ...rest);
    node.dataset.section = name;
    return node;
  }

  silent(name, heading) {
    if (this.store.observed[name] !== false || name === "recompiles") return null;
    const node = make("section", "cdiag-section", make("h3", "", heading), dim("not observed"));
    node.dataset.section = name;
    return node;
  }

  reader(name, row) {
    const table = this.store.table(name);
    return (key) => table.get(row, key);
  }

  pairs(entries) {
    const shown = entries.filter(([, value]) => value !== null && value !== undefined);
    const cells = shown.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", longText(value))]);
    return make("dl", "cdiag-facts", ...cells);
  }

  recompile(list, failures) {
    const causes = list.flatMap((row) => this.cause(this.reader("recompiles", row)));
    const reasons = list.map((row) => this.reader("recompiles", row)("reason")).filter(Boolean);
    const words = reasons.map((text) => {
      return make("details", "cdiag-words", make("summary", "", "in torch's own words"), make("p", "", longText(text)));
    });
    return [...causes, ...this.failures(failures), ...words];
  }

  cause(get) {
    const line = formatPlace(get("user_file"), get("user_line"));
    const told = (name, tell) => (get(name) === null ? null : tell(get(name)));
    const facts = [
      told("closest_compile_id", (id) => `nearest entry ${id}`),
      told("entries_checked", (count) => `${counted(count, "entry", "entries")} checked`),
      told("guards_failed", (count) => `${counted(count, "guard", "guards")} failed`),
      told("lost_s", (seconds) => `${formatSeconds(seconds)} lost`),
    ];
    const main = make("div", "cdiag-cause", this.changed(get));
    return [main, codeLine(get, line), dim(facts.filter(Boolean).join(" · "))].filter(Boolean);
  }

  changed(get) {
    const source = get("guard_source") ?? get("guard_kind") ?? "a guard";
    const values = `${longText(get("expected") ?? MISSING)} → ${longText(get("actual") ?? MISSING)}`;
    return make("div", "", make("code", "cdiag-source", longText(source)), " ", make("span", "cdiag-change", values));
  }

  /** Every failing guard, under the earlier entry that it belongs to. */
  failures(list) {
    const isBlind = !list.length && this.store.observed.guard_failures === false;
    if (isBlind) return [dim("all failing guards: not observed")];
    const entries = new Map();
    for (const row of list) {
      const id = this.reader("guard_failures", row)("entry_compile_id") ?? "?";
      if (!entries.has(id)) entries.set(id, []);
      entries.get(id).push(row);
    }
    return [...entries].map(([id, rows]) => {
      const heading = make("h4", "", `entry ${id}: ${counted(rows.length, "guard fails", "guards fail")}`);
      return make("div", "cdiag-entry", heading, ...rows.slice(0, MOST).map((row) => this.failure(row)));
    });
  }

  failure(row) {
    const get = this.reader("guard_failures", row);
    const first = get("is_first") ? make("span", "cdiag-tag", "first") : null;
    const times = get("fail_count") > 1 ? `failed ${formatCount(get("fail_count"))}×` : null;
    const said = [times, formatPlace(get("user_file"), get("user_line"))].filter(Boolean).join(" · ");
    const top = make("div", "cdiag-failure-top", this.changed(get), first, make("span", "cdiag-dim", said));
    const guard = get("guard") === null ? null : make("code", "cdiag-guard", longText(get("guard")));
    const node = make("div", "cdiag-failure", top, guard);
    node.dataset.eventId = String(row[0]);
    return node;
  }

  compile(row) {
    const get = this.reader("compiles", row);
    const total = get("duration_s") ?? get("dynamo_s");
    const words = [get("trigger"), get("outcome"), get("is_recompile") ? "recompile" : null, formatClock(get("time"))];
    const parts = PARTS.filter(([key]) => get(key) !== null);
    const bars = parts.map(([key, label, kind]) => this.bar(label, get(key), total, kind, 0));
    const facts = FACTS.map(([key, label]) => [label, formatFact(get(key))]);
    const seconds = make("strong", "", formatSeconds(total));
    return [make("p", "cdiag-lead", seconds, ` ${words.filter(Boolean).join(" · ")}`), ...bars, this.pairs(facts)];
  }

  bar(label, value, total, kind, depth) {
    const fill = make("span", `cdiag-part is-${kind}`);
    fill.style.width = `${total ? Math.min(100, (value / total) * 100).toFixed(1) : 0}%`;
    const name = make("span", "cdiag-bar-name", label);
    name.style.paddingLeft = `${Math.min(depth, 8) * 10}px`;
    name.title = label;
    const seconds = make("span", "cdiag-bar-value", formatSeconds(value));
    return make("div", "cdiag-bar-row", name, make("span", "cdiag-track", fill), seconds);
  }

  phases(list) {
    const table = this.store.table("phases");
    const longest = Math.max(...list.map((row) => table.get(row, "duration_s") ?? 0));
    return list.map((row) => {
      const get = this.reader("phases", row);
      const name = get("name") ?? "?";
      const node = this.bar(phaseLabel(name), get("duration_s"), longest, phaseKind(name), get("depth") ?? 0);
      node.firstChild.title = name;
      return node;
    });
  }

  lookup(row) {
    const get = this.reader("cache_lookups", row);
    const saved = get("saved_s") === null ? null : `saved ${formatSeconds(get("saved_s"))}`;
    const words = [get("cache"), get("tier"), saved].filter(Boolean).join(" · ");
    const outcome = make("span", "cdiag-outcome", get("outcome") ?? MISSING);
    outcome.dataset.outcome = get("outcome") ?? "";
    const lines = (get("key_diff") ?? []).slice(0, MOST).map((line) => make("code", "cdiag-diff", longText(line)));
    const intro = lines.length ? dim("differs from the nearest earlier key in:") : null;
    const facts = this.pairs([["why", get("reason")], ["key", get("key")]]);
    return make("div", "cdiag-item", make("div", "", outcome, ` ${words}`), facts, intro, ...lines);
  }

  graphBreak(row) {
    const get = this.reader("graph_breaks", row);
    const facts = [["torch's id", get("break_id")], ["why", get("explanation")], ["hints", formatFact(get("hints"))]];
    const code = codeLine(get, formatPlace(get("user_file"), get("user_line")));
    return make("div", "cdiag-item", make("div", "", longText(get("reason") ?? MISSING)), code, this.pairs(facts));
  }

  decision(row) {
    const get = this.reader("dynamic_decisions", row);
    const change = ` ${get("dim") ?? ""} ${longText(`${get("cached") ?? MISSING} → ${get("new") ?? MISSING}`)} `;
    const source = make("code", "", longText(get("source") ?? MISSING));
    return make("div", "cdiag-item", source, change, make("span", "cdiag-dim", get("reason")));
  }

  artifact(row) {
    const get = this.reader("artifacts", row);
    const kept = this.store.texts.get(row[0]);
    const known = this.artifacts.get(row[0]);
    if (known && known.kept === kept) return known.node;
    const view = new ArtifactView(row[0], get("name") ?? "text", get("size"), kept);
    this.artifacts.set(row[0], view);
    return view.node;
  }

  paintPlainRow(table, row) {
    this.title.textContent = `${table.get(row, "name") ?? table.name}`;
    this.sub.textContent = "";
    const known = table.columns.filter((column) => table.get(row, column.name) !== null);
    const told = known.map(({ label, name, type }) => [label, formatValue(table.get(row, name), type)]);
    this.body.replaceChildren(this.pairs(told));
  }
}

function longText(value) {
  const text = String(value);
  return text.length > LONG ? `${text.slice(0, LONG)}… (${formatCount(text.length)} characters)` : text;
}

function formatFact(value) {
  if (value === null) return null;
  if (typeof value !== "number") return formatValue(value, "list");
  return formatValue(value, Number.isInteger(value) ? "int" : "us");
}

function dim(text) {
  return make("p", "cdiag-dim", text);
}

/** A line of the user's code with its place, or the place alone; null if neither is known. */
function codeLine(get, place) {
  const parts = [place, get("user_code")].filter((part) => part !== null);
  return parts.length ? make("pre", "cdiag-code", longText(parts.join("   "))) : null;
}
