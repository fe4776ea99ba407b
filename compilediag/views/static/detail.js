// Everything about one compile, or about one row that belongs to none.
import { ArtifactView } from "./artifact.js";
import { make, makeButton, setShown } from "./dom.js";
import { formatClock, formatCount, formatPlace, formatSeconds, formatValue, MISSING, oneLine } from "./format.js";
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
const TABLES = ["compiles", "recompiles", "guard_failures", "cache_lookups", "graph_breaks", "dynamic_decisions", "phases", "artifacts"];

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
    this.node = make("aside", "cdiag-detail", make("div", "cdiag-detail-head", make("div", "", this.title, this.sub), close), this.body);
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
    const section = target.group && this.body.querySelector(`[data-section="${target.table.name}"]`);
    if (section && target.table.name !== "recompiles" && target.table.name !== "compiles") this.body.scrollTop = section.offsetTop;
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
    this.body.replaceChildren(...sections.map(([name, heading, build]) => this.section(name, heading, rows.get(name), build)).filter(Boolean));
    if (!this.body.childElementCount) this.body.append(make("p", "cdiag-dim", "nothing recorded about this compile yet"));
    this.body.scrollTop = kept;
  }

  section(name, heading, list, build) {
    if (!list.length) return this.silent(name, heading);
    const rest = list.length > MOST ? [make("p", "cdiag-dim", `and ${formatCount(list.length - MOST)} more`)] : [];
    const node = make("section", "cdiag-section", make("h3", "", heading), ...build(list.slice(0, MOST)), ...rest);
    node.dataset.section = name;
    return node;
  }

  silent(name, heading) {
    if (this.store.observed[name] !== false || name === "recompiles") return null;
    const node = make("section", "cdiag-section", make("h3", "", heading), make("p", "cdiag-dim", "not observed"));
    node.dataset.section = name;
    return node;
  }

  reader(name, row) {
    const table = this.store.table(name);
    return (key) => table.get(row, key);
  }

  pairs(entries) {
    const shown = entries.filter(([, value]) => value !== null && value !== undefined);
    return make("dl", "cdiag-facts", ...shown.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", longText(value))]));
  }

  recompile(list, failures) {
    const causes = list.flatMap((row) => this.cause(this.reader("recompiles", row)));
    const reasons = list.map((row) => this.reader("recompiles", row)("reason")).filter(Boolean);
    const words = reasons.map((text) => make("details", "cdiag-words", make("summary", "", "in torch's own words"), make("p", "", longText(text))));
    return [...causes, ...this.failures(failures), ...words];
  }

  cause(get) {
    const line = formatPlace(get("user_file"), get("user_line"));
    const said = (before, value, after = "") => (value === null ? null : `${before}${value}${after}`);
    const facts = [
      said("nearest entry ", get("closest_compile_id")),
      said("", get("entries_checked"), " entries checked"),
      said("", get("guards_failed"), " guards failed"),
      get("lost_s") === null ? null : `${formatSeconds(get("lost_s"))} lost`,
    ];
    const code = get("user_code") === null ? null : make("pre", "cdiag-code", line === null ? "" : `${line}   `, longText(get("user_code")));
    return [make("div", "cdiag-cause", this.changed(get)), code, make("p", "cdiag-dim", facts.filter(Boolean).join(" · "))].filter(Boolean);
  }

  changed(get) {
    const source = get("guard_source") ?? get("guard_kind") ?? "a guard";
    const values = make("span", "cdiag-change", `${longText(get("expected") ?? MISSING)} → ${longText(get("actual") ?? MISSING)}`);
    return make("div", "", make("code", "cdiag-source", longText(source)), " ", values);
  }

  /** Every failing guard, under the earlier entry that it belongs to. */
  failures(list) {
    if (!list.length) return this.store.observed.guard_failures === false ? [make("p", "cdiag-dim", "all failing guards: not observed")] : [];
    const entries = new Map();
    for (const row of list) {
      const id = this.reader("guard_failures", row)("entry_compile_id") ?? "?";
      if (!entries.has(id)) entries.set(id, []);
      entries.get(id).push(row);
    }
    return [...entries].map(([id, rows]) => {
      const heading = make("h4", "", `entry ${id}: ${rows.length === 1 ? "1 guard fails" : `${rows.length} guards fail`}`);
      return make("div", "cdiag-entry", heading, ...rows.slice(0, MOST).map((row) => this.failure(row)));
    });
  }

  failure(row) {
    const get = this.reader("guard_failures", row);
    const first = get("is_first") ? make("span", "cdiag-tag", "first") : null;
    const times = get("fail_count") > 1 ? make("span", "cdiag-dim", `failed ${formatCount(get("fail_count"))}×`) : null;
    const where = formatPlace(get("user_file"), get("user_line"));
    const top = make("div", "cdiag-failure-top", this.changed(get), first, times, where === null ? null : make("span", "cdiag-dim", where));
    const node = make("div", "cdiag-failure", top, get("guard") === null ? null : make("code", "cdiag-guard", longText(get("guard"))));
    node.dataset.eventId = String(row[0]);
    return node;
  }

  compile(row) {
    const get = this.reader("compiles", row);
    const total = get("duration_s") ?? get("dynamo_s");
    const what = [get("trigger"), get("outcome"), get("is_recompile") ? "recompile" : null].filter(Boolean).join(" · ");
    const parts = PARTS.filter(([key]) => get(key) !== null);
    const bars = parts.map(([key, label, kind]) => this.bar(label, get(key), total, kind, 0));
    const facts = FACTS.map(([key, label]) => [label, formatFact(get(key))]);
    return [make("p", "cdiag-lead", make("strong", "", formatSeconds(total)), ` ${what} · ${formatClock(get("time"))}`), ...bars, this.pairs(facts)];
  }

  bar(label, value, total, kind, depth) {
    const fill = make("span", `cdiag-part is-${kind}`);
    fill.style.width = `${total ? Math.min(100, (value / total) * 100).toFixed(1) : 0}%`;
    const name = make("span", "cdiag-bar-name", label);
    name.style.paddingLeft = `${Math.min(depth, 8) * 10}px`;
    name.title = label;
    return make("div", "cdiag-bar-row", name, make("span", "cdiag-track", fill), make("span", "cdiag-bar-value", formatSeconds(value)));
  }

  phases(list) {
    const table = this.store.table("phases");
    const longest = Math.max(...list.map((row) => table.get(row, "duration_s") ?? 0));
    return list.map((row) => {
      const get = this.reader("phases", row);
      const node = this.bar(phaseLabel(get("name") ?? "?"), get("duration_s"), longest, phaseKind(get("name")), get("depth") ?? 0);
      node.firstChild.title = get("name") ?? "";
      return node;
    });
  }

  lookup(row) {
    const get = this.reader("cache_lookups", row);
    const saved = get("saved_s") === null ? null : `saved ${formatSeconds(get("saved_s"))}`;
    const words = [get("cache"), get("tier"), saved].filter(Boolean).join(" · ");
    const outcome = make("span", "cdiag-outcome", get("outcome") ?? MISSING);
    outcome.dataset.outcome = get("outcome") ?? "";
    const differences = (get("key_diff") ?? []).slice(0, MOST).map((line) => make("code", "cdiag-diff", longText(line)));
    const intro = differences.length ? make("div", "cdiag-dim", "differs from the nearest earlier key in:") : null;
    return make("div", "cdiag-item", make("div", "", outcome, ` ${words}`), this.pairs([["why", get("reason")], ["key", get("key")]]), intro, ...differences);
  }

  graphBreak(row) {
    const get = this.reader("graph_breaks", row);
    const code = get("user_code") === null ? null : make("pre", "cdiag-code", longText(get("user_code")));
    const facts = [["line", formatPlace(get("user_file"), get("user_line"))], ["torch's id", get("break_id")], ["why", get("explanation")], ["hints", formatFact(get("hints"))]];
    return make("div", "cdiag-item", make("div", "", longText(get("reason") ?? MISSING)), code, this.pairs(facts));
  }

  decision(row) {
    const get = this.reader("dynamic_decisions", row);
    const change = `${get("cached") ?? MISSING} → ${get("new") ?? MISSING}`;
    return make("div", "cdiag-item", make("code", "", longText(get("source") ?? MISSING)), ` ${get("dim") ?? ""} ${longText(change)} `, make("span", "cdiag-dim", get("reason")));
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
    const entries = table.columns.map((column) => [column.label ?? column.name, table.get(row, column.name), column.type]);
    const shown = entries.filter(([, value]) => value !== null);
    this.body.replaceChildren(this.pairs(shown.map(([label, value, type]) => [label, formatValue(value, type)])));
  }
}

function longText(value) {
  const text = String(value);
  return text.length > LONG ? `${text.slice(0, LONG)}… (${formatCount(text.length)} characters)` : text;
}

function formatFact(value) {
  if (value === null) return null;
  return typeof value === "number" ? formatValue(value, Number.isInteger(value) ? "int" : "us") : formatValue(value, "list");
}
