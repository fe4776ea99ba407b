// Everything about one compile, or about one row that belongs to none.
import { ArtifactView } from "./artifact-view.js";
import { make, makeButton, setShown } from "../core/dom.js";
import { counted, formatClock, formatCount, formatPlace } from "../core/format.js";
import { formatSeconds, formatValue, MISSING, oneLine } from "../core/format.js";
import { graphItem, kernelBars, lookupItem, PANELS, tuningLine } from "./derived-details.js";
import { bar, codeLine, cutShort, dim, formatFact, longText, MOST, pairs, section } from "../core/blocks.js";
import { phaseKind, phaseLabel } from "./phases.js";
import { byStage } from "./artifact-stages.js";
import { traced } from "./provenance-view.js";
import { stackDetails, stackLines, Stacks } from "../core/call-stacks.js";

const PATH = 4000; // characters of a path
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
  "tunings",
  "cudagraphs",
  "kernels",
  "graph_breaks",
  "dynamic_decisions",
  "symbolic_shapes",
  "collectives",
  "phases",
  "artifacts",
];
const STACKS = new Set(["user_stack", "torch_stack", "stack"]); // keys, shown as what they stand for
const TITLE = 200; // characters of a title
const UNTOLD = new Set(["recompiles", "tunings", "cudagraphs", "kernels", "symbolic_shapes", "collectives"]); // most compiles have none
const LED_BY_THE_TOP = new Set(["recompiles", "compiles"]); // sections that stand first anyway

export class Detail {
  /** `actions`: close(), open(table, row) for another row, compile(group) for a whole compile,
   * explore(place) for the explorer, provenance(title, sets) for graphs and code side by side. */
  constructor(store, groups, actions) {
    this.store = store;
    this.groups = groups;
    this.stacks = new Stacks(store);
    this.actions = actions;
    this.artifacts = new Map(); // event id -> ArtifactView, kept so that an open text stays open
    this.title = make("h2", "");
    this.sub = make("div", "cdiag-dim");
    this.body = make("div", "cdiag-detail-body");
    this.body.tabIndex = 0;
    const close = makeButton("cdiag-close", "close", actions.close);
    const head = make("div", "cdiag-detail-head", make("div", "", this.title, this.sub), close);
    this.node = make("aside", "cdiag-detail", head, this.body);
    this.node.setAttribute("aria-label", "detail");
    this.node.addEventListener("keydown", (event) => event.key === "Escape" && actions.close());
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
    if (target.group === null || target.table.name in PANELS || LED_BY_THE_TOP.has(target.table.name)) return;
    this.body.scrollTop = this.body.querySelector(`[data-section="${target.table.name}"]`)?.offsetTop ?? 0;
  }

  paint() {
    if (!this.target) return;
    const { group, table, row } = this.target;
    if (table.name in PANELS) return this.paintPanel(table, table.byId(row[0]) ?? row);
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
    this.sub.textContent = oneLine(file ? `${file}:${owner?.line ?? flight?.line ?? ""}` : "", PATH);
    const sections = [
      ["recompiles", "Why it compiled again", (list) => this.recompile(list, rows.get("guard_failures"))],
      ["compiles", "Time", (list) => list.flatMap((row) => this.compile(row))],
      ["cache_lookups", "Cache look-ups", (list) => list.map((row) => lookupItem(this.reader("cache_lookups", row)))],
      ["tunings", "Autotuning", (list) => list.map((row) => this.tuning(row))],
      ["cudagraphs", "CUDA graphs", (list) => list.map((row) => graphItem(this.reader("cudagraphs", row)))],
      ["kernels", "Kernels", (list) => kernelBars(list.map((row) => this.reader("kernels", row)))],
      ["graph_breaks", "Graph breaks", (list) => list.map((row) => this.graphBreak(row))],
      ["dynamic_decisions", "Made dynamic", (list) => list.map((row) => this.decision(row))],
      ["symbolic_shapes", "Symbolic shapes", (list) => list.map((row) => this.shapeItem(row))],
      ["collectives", "Collectives, in their order", (list) => list.map((row) => this.collective(row))],
      ["artifacts", "Graphs, guards and code", (list) => this.texts(list)],
      ["phases", "Phases", (list) => this.phases(list)],
    ];
    const kept = this.body.scrollTop;
    const made = sections.map(([name, heading, build]) => this.section(name, heading, rows.get(name), build));
    made.splice(2, 0, this.calledFrom(rows.get("compiles")));
    this.body.replaceChildren(...made.filter(Boolean));
    if (!this.body.childElementCount) this.body.append(dim("nothing recorded about this compile yet"));
    this.body.scrollTop = kept;
  }

  section(name, heading, list, build) {
    return list.length ? section(name, heading, ...cutShort(list, build)) : this.silent(name, heading);
  }

  silent(name, heading) {
    const isTold = this.store.observed[name] !== false || UNTOLD.has(name);
    return isTold ? null : section(name, heading, dim("not observed"));
  }

  reader(name, row) {
    const table = this.store.table(name);
    return (key) => table.get(row, key);
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
    const event = get("event_id");
    const explore = makeButton("cdiag-link", "explore this guard ›", () => this.actions.explore({ event }));
    return [main, codeLine(get, line), dim(facts.filter(Boolean).join(" · ")), explore].filter(Boolean);
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
    const bars = parts.map(([key, label, kind]) => bar(label, get(key), total, kind, formatSeconds(get(key))));
    const failedAt = formatPlace(get("user_file"), get("user_line"));
    const facts = [...FACTS.map(([key, label]) => [label, formatFact(get(key))]), ["failed at", failedAt]];
    const seconds = make("strong", "", formatSeconds(total));
    return [make("p", "cdiag-lead", seconds, ` ${words.filter(Boolean).join(" · ")}`), ...bars, pairs(facts)];
  }

  phases(list) {
    const table = this.store.table("phases");
    const longest = Math.max(...list.map((row) => table.get(row, "duration_s") ?? 0));
    return list.map((row) => {
      const get = this.reader("phases", row);
      const name = get("name") ?? "?";
      const node = this.phase(name, get, longest);
      node.firstChild.title = name;
      return node;
    });
  }

  phase(name, get, longest) {
    const seconds = get("duration_s");
    return bar(phaseLabel(name), seconds, longest, phaseKind(name), formatSeconds(seconds), get("depth") ?? 0);
  }

  /** Where a compile was asked for: the call stack that ends in the compiled function. */
  calledFrom(list) {
    const key = list.map((row) => this.reader("compiles", row)("stack")).find((found) => found !== null);
    const frames = key === undefined ? [] : this.stacks.of(key);
    return frames.length ? section("stacks", "Called from", stackLines(frames)) : null;
  }

  shapeItem(row) {
    const get = this.reader("symbolic_shapes", row);
    const value = get("value") === null ? "" : ` ${get("expression") === null ? "=" : "→"} ${get("value")}`;
    const what = make("code", "cdiag-source", longText(`${get("expression") ?? get("symbol") ?? MISSING}${value}`));
    const action = make("span", "cdiag-outcome", get("action") ?? MISSING);
    const facts = [["stands for", get("source")], ["range", get("range")], ["why", get("reason")]];
    const code = codeLine(get, formatPlace(get("user_file"), get("user_line")));
    return make("div", "cdiag-item", make("div", "", action, " ", what), code, pairs(facts), ...this.stackWords(get));
  }

  /** The user's and torch's stacks of a row, each behind a word. */
  stackWords(get) {
    const told = [["your stack", "user_stack"], ["torch's stack", "torch_stack"], ["stack", "stack"]];
    return told.map(([label, name]) => (get(name) === null ? null : stackDetails(label, this.stacks.of(get(name)))));
  }

  collective(row) {
    const get = this.reader("collectives", row);
    const outputs = get("outputs") === null ? "" : formatValue(get("outputs"), "list");
    const rank = get("rank") === null ? "" : ` on rank ${get("rank")}`;
    const op = make("code", "cdiag-source", longText(get("op") ?? "?"));
    return make("div", "cdiag-item", `${formatCount(get("position"))}${rank} `, op, " ", make("span", "cdiag-dim", longText(outputs)));
  }

  /** Texts by stage of the compiler, and the way to graphs and code side by side. */
  texts(list) {
    const table = this.store.table("artifacts");
    const stages = byStage(list, (row) => table.get(row, "name") ?? "");
    const made = stages.flatMap(([heading, rows]) => [make("h4", "", heading), ...rows.map((row) => this.artifact(row))]);
    const sets = traced(list.map((row) => ({ id: row[0], name: table.get(row, "name") })));
    if (!sets.length || !sets.some((set) => this.store.texts.get(set.code.id)?.z)) return made;
    const title = this.title.textContent;
    return [makeButton("cdiag-link cdiag-to-provenance", "from graph to code, line by line ›", () => this.actions.provenance(title, sets)), ...made];
  }

  tuning(row) {
    return tuningLine(this.reader("tunings", row), () => this.actions.open(this.store.table("tunings"), row));
  }

  graphBreak(row) {
    const get = this.reader("graph_breaks", row);
    const facts = [["torch's id", get("break_id")], ["why", get("explanation")], ["hints", formatFact(get("hints"))]];
    const code = codeLine(get, formatPlace(get("user_file"), get("user_line")));
    return make("div", "cdiag-item", make("div", "", longText(get("reason") ?? MISSING)), code, pairs(facts));
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

  /** A row that is made of others: what they are, and where they belong. */
  paintPanel(table, row) {
    const shape = [row, this.store.tables];
    if (this.shape && shape.every((item, i) => item === this.shape[i])) return;
    this.shape = shape;
    const get = (name) => table.get(row, name);
    const source = this.store.table(this.store.made_of[table.name]);
    const members = this.store.members(table, row);
    const readers = members.map((member) => (name) => source.get(member, name));
    const groups = new Map(readers.map((read, i) => [read, this.groups.of(source, members[i])]));
    groups.set(get, this.groups.of(table, row));
    this.title.textContent = oneLine(PANELS[table.name].title(get), TITLE);
    this.sub.textContent = oneLine(get("file") ? `${get("file")}:${get("line") ?? ""}` : "", PATH);
    const parts = PANELS[table.name].parts(get, readers, (each) => this.compileLink(each, groups.get(each)));
    const kept = this.body.scrollTop;
    this.body.replaceChildren(...parts.filter(Boolean));
    this.body.scrollTop = kept;
  }

  /** A button that opens the whole compile; "" for what belongs to none. */
  compileLink(get, group) {
    if (group === null) return "";
    const button = makeButton("cdiag-link", `compile ${get("compile_id")}`, () => this.actions.compile(group));
    return make("span", "", " ", button);
  }

  paintPlainRow(table, row) {
    const get = (name) => table.get(row, name);
    const panel = this.store.panels.find((each) => each.name === table.name);
    const own = get("name") ?? get("op") ?? get("expression") ?? table.name.replaceAll("_", " ");
    this.title.textContent = oneLine(String(panel?.label ?? own), TITLE);
    this.sub.textContent = "";
    const known = table.columns.filter(({ name }) => name !== "c0" && get(name) !== null && !STACKS.has(name));
    const told = known.map(({ label, name, type }) => [label, formatValue(get(name), type)]);
    this.body.replaceChildren(pairs(told), ...this.stackWords(get).filter(Boolean));
  }
}
