// Everything about one compile, or about one row that belongs to none.
import { buildSome, makeDim, makeFacts, makeSection } from "../core/blocks.js";
import { CallStacks, makeStack, makeStackDetails } from "../core/call-stacks.js";
import { keyOfFlight } from "../core/compile-groups.js";
import { make, makeButton, setShown } from "../core/dom.js";
import { formatCode, formatFunction, formatValue, oneLine } from "../core/format.js";
import { groupByStage } from "./artifact-stages.js";
import { ArtifactView } from "./artifact-view.js";
import { makeCollective, makeCompile, makeDecision, makeGraphBreak, makeKernels, makePhases, makeShape } from "./compile-details.js";
import { makeGraphAction } from "./cudagraph-details.js";
import { DERIVED_PANELS } from "./derived-panels.js";
import { makeLookup } from "./lookup-details.js";
import { findTracedGraphs } from "./provenance-links.js";
import { makeCause, makeFailures, makeReason, makeRefusal } from "./recompile-details.js";
import { makeTuningLine } from "./tuning-details.js";
/** @import { CompileGroups } from "../core/compile-groups.js" */
/** @import { Child } from "../core/dom.js" */
/** @import { Cells } from "../core/page-types" */
/** @import { Get, Place } from "../core/types" */
/** @import { Store, Table } from "../core/store.js" */
/** @import { TracedGraph } from "./provenance-links.js" */

/** @typedef {{key: string | null, table: Table<any>, row: Cells | null}} Target a compile by its key, or one row without a compile */
/**
 * @typedef {object} DetailActions
 * @property {() => void} close
 * @property {(table: Table<any>, row: Cells) => void} [open] shows another row
 * @property {(key: string) => void} [openCompile]
 * @property {(place: Place) => void} [explore]
 * @property {(title: string, graphs: TracedGraph[]) => void} [showProvenance] shows graphs and code side by side
 */

const PATH = 4000; // characters of a path
const TITLE = 200; // characters of a title
const STACKS = new Set(["user_stack", "torch_stack", "stack"]); // keys, which are shown as the stacks that they name
/** @type {[string, string][]} label, column */
const STACK_LABELS = [["your stack", "user_stack"], ["torch's stack", "torch_stack"], ["stack", "stack"]];
const LED_BY_THE_TOP = new Set(["refused_calls", "recompiles", "compiles"]); // sections that come first anyway

/** @type {[name: string, heading: string, isUsual: boolean][]} sections of a compile; most compiles have the usual ones */
const SECTIONS = [
  ["refused_calls", "Refused calls", false],
  ["recompiles", "Why it recompiled", false],
  ["compiles", "Time", true],
  ["cache_lookups", "Cache lookups", true],
  ["tunings", "Autotuning", false],
  ["cudagraphs", "CUDA graphs", false],
  ["kernels", "Kernels", false],
  ["graph_breaks", "Graph breaks", true],
  ["dynamic_decisions", "Made dynamic", true],
  ["symbolic_shapes", "Symbolic shapes", false],
  ["collectives", "Collectives, in order", false],
  ["artifacts", "Graphs, guards and code", true],
  ["phases", "Phases", true],
];
const MEMBERS = [...SECTIONS.map(([name]) => name), "guard_failures"];

export class DetailPane {
  /**
   * @param {Store} store
   * @param {CompileGroups} groups
   * @param {DetailActions} actions
   */
  constructor(store, groups, actions) {
    this.store = store;
    this.groups = groups;
    this.stacks = new CallStacks(store);
    this.actions = actions;
    /** @type {Map<number, ArtifactView>} event id -> view, kept so that an open text stays open */
    this.artifacts = new Map();
    this.title = make("h2", "");
    this.title.tabIndex = -1;
    this.sub = make("div", "cdiag-dim");
    this.body = make("section", "cdiag-detail-body");
    this.body.tabIndex = 0;
    const close = makeButton("cdiag-close", "close", actions.close);
    const head = make("div", "cdiag-detail-head", make("div", "", this.title, this.sub), close);
    this.node = make("aside", "cdiag-detail", head, this.body);
    this.node.setAttribute("aria-label", "detail");
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    /** @type {Element | null} what had the focus when it was opened by key */
    this.opener = null;
    /** @type {Target | null} */
    this.target = null;
    /** @type {unknown[] | null} what was painted last */
    this.shape = null;
    setShown(this.node, false);
  }

  /**
   * Shows a compile, led by the section of the target's table; or one row that has no compile. The focus goes with it
   * if it was opened by key, and back when it is closed.
   * @param {Target | null} target
   */
  open(target) {
    const before = this.target === null ? document.activeElement : this.opener;
    const hadFocus = this.node.contains(document.activeElement);
    this.target = target;
    this.shape = null;
    this.artifacts.clear();
    setShown(this.node, target !== null);
    if (!target) {
      if (hadFocus && this.opener instanceof HTMLElement) this.opener.focus({ preventScroll: true });
      return;
    }
    this.opener = before;
    this.paint();
    if (hadFocus || before?.matches(":focus-visible")) this.title.focus({ preventScroll: true });
    this.body.scrollTop = 0;
    const { name } = target.table;
    if (target.key === null || name in DERIVED_PANELS || LED_BY_THE_TOP.has(name)) return;
    /** @type {HTMLElement | null} */
    const section = this.body.querySelector(`[data-section="${name}"]`);
    this.body.scrollTop = section?.offsetTop ?? 0;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.actions.close();
  }

  paint() {
    if (!this.target) return;
    const { key, table, row } = this.target;
    const current = row && (table.byId(row[0]) ?? row);
    if (current && table.name in DERIVED_PANELS) this.paintDerived(table, current);
    else if (key !== null) this.paintCompile(key);
    else if (current) this.paintPlainRow(table, current);
  }

  /**
   * True if `shape` is not what was painted last.
   * @param {unknown[]} shape
   */
  hasChanged(shape) {
    const before = this.shape;
    if (before && shape.length === before.length && shape.every((item, i) => item === before[i])) return false;
    this.shape = shape;
    return true;
  }

  /** @param {Child[]} parts */
  replaceBody(parts) {
    const kept = this.body.scrollTop;
    const shown = parts.filter((part) => part !== null && part !== undefined);
    this.body.replaceChildren(...shown);
    this.body.scrollTop = kept;
  }

  /** @param {string} key */
  paintCompile(key) {
    const rows = new Map(MEMBERS.map((name) => [name, this.groups.members(name, key)]));
    if (!this.hasChanged([...[...rows.values()].flat(), this.store.texts.size, this.store.tables])) return;
    const refused = rows.get("refused_calls") ?? [];
    this.paintTitle(key, rows.get("compiles") ?? [], refused);
    const parts = SECTIONS.map(([name, heading, isUsual]) => {
      const list = rows.get(name) ?? [];
      if (!list.length) return this.makeGap(name, heading, isUsual && !refused.length);
      return makeSection(name, heading, ...buildSome(list, (some) => this.makeItems(name, some, rows)));
    });
    parts.splice(3, 0, this.makeCallStack(rows));
    const isEmpty = parts.every((part) => part === null);
    this.replaceBody(isEmpty ? [makeDim("nothing recorded about this compile yet")] : parts);
  }

  /**
   * @param {string} key
   * @param {Cells[]} compiles
   * @param {Cells[]} refused a stance that skips guards is not of any function
   */
  paintTitle(key, compiles, refused) {
    const owner = this.groups.functionOf(key);
    const flight = this.store.now.find((candidate) => keyOfFlight(candidate) === key);
    const id = compiles.length ? this.store.table("compiles").get(compiles[0], "compile_id") : this.findCompileId(key);
    const by = refused.length ? this.store.table("refused_calls").get(refused[0], "refused_by") : null;
    this.title.textContent = `${owner?.name ?? formatFunction(flight?.function) ?? by ?? "compile"} ${id ?? flight?.compile_id ?? ""}`;
    const file = owner?.file ?? flight?.file;
    this.sub.textContent = oneLine(file ? `${file}:${owner?.line ?? flight?.line ?? ""}` : "", PATH);
  }

  /**
   * torch's id of a compile that has no row of its own.
   * @param {string} key
   * @returns {string | null}
   */
  findCompileId(key) {
    const name = MEMBERS.find((candidate) => this.groups.members(candidate, key).length);
    return name === undefined ? null : this.store.table(name).get(this.groups.members(name, key)[0], "compile_id");
  }

  /**
   * What stands for a section without rows: nothing, or that its table was not collected.
   * @param {string} name
   * @param {string} heading
   * @param {boolean} isUsual
   */
  makeGap(name, heading, isUsual) {
    const isGap = isUsual && this.store.observed[name] === false;
    return isGap ? makeSection(name, heading, makeDim("not collected")) : null;
  }

  /**
   * The items of a section.
   * @param {string} name
   * @param {Cells[]} list
   * @param {Map<string, Cells[]>} rows of all sections
   * @returns {Child[]}
   */
  makeItems(name, list, rows) {
    const { store } = this;
    switch (name) {
      case "refused_calls":
        return this.makeWhy(name, list, rows, makeRefusal);
      case "recompiles":
        return this.makeWhy(name, list, rows, (get) => makeCause(get, this.actions.explore));
      case "compiles":
        return list.flatMap((row) => makeCompile(store.table(name).reader(row)));
      case "cache_lookups":
        return list.map((row) => makeLookup(store.table(name).reader(row)).node);
      case "tunings":
        return list.map((row) => makeTuningLine(store.table(name).reader(row), () => this.actions.open?.(store.table(name), row)));
      case "cudagraphs":
        return list.map((row) => makeGraphAction(store.table(name).reader(row)).node);
      case "kernels":
        return makeKernels(list.map((row) => store.table(name).reader(row)));
      case "graph_breaks":
        return list.map((row) => makeGraphBreak(store.table(name).reader(row)));
      case "dynamic_decisions":
        return list.map((row) => makeDecision(store.table(name).reader(row)));
      case "symbolic_shapes":
        return list.map((row) => makeShape(store.table(name).reader(row), this.makeStacks(store.table(name).reader(row))));
      case "collectives":
        return list.map((row) => makeCollective(store.table(name).reader(row)));
      case "artifacts":
        return this.makeArtifacts(list);
      case "phases":
        return makePhases(list.map((row) => store.table(name).reader(row)));
      default:
        return [];
    }
  }

  /**
   * Why code was compiled again, or was not: the cause, and every guard that failed.
   * @param {string} name
   * @param {Cells[]} list
   * @param {Map<string, Cells[]>} rows of all sections
   * @param {(get: Get<any>) => Child[]} makeLead
   */
  makeWhy(name, list, rows, makeLead) {
    const guards = this.store.table("guard_failures");
    const failures = rows.get("guard_failures") ?? [];
    const readers = list.map((row) => this.store.table(name).reader(row));
    const isBlind = !failures.length && this.store.observed.guard_failures === false;
    return [
      ...readers.flatMap(makeLead),
      ...(isBlind ? [makeDim("failing guards: not collected")] : makeFailures(failures.map((row) => guards.reader(row)))),
      ...readers.map((get) => get("reason")).filter((reason) => reason !== null).map(makeReason),
    ];
  }

  /**
   * The call stack that ends in the function that was compiled, or that was called.
   * @param {Map<string, Cells[]>} rows of all sections
   */
  makeCallStack(rows) {
    const stacks = ["compiles", "refused_calls"].flatMap((name) => {
      return (rows.get(name) ?? []).map((row) => this.store.table(name).get(row, "stack"));
    });
    const key = stacks.find((found) => found !== null);
    const frames = key ? this.stacks.framesOf(key) : [];
    return frames.length ? makeSection("stacks", "Called from", makeStack(frames)) : null;
  }

  /**
   * The user's and torch's stacks of a row, each behind a label.
   * @param {Get<any>} get
   */
  makeStacks(get) {
    const made = STACK_LABELS.map(([label, name]) => {
      return get(name) === null ? null : makeStackDetails(label, this.stacks.framesOf(get(name)));
    });
    return made.filter((node) => node !== null);
  }

  /**
   * Texts by stage of the compiler, and a link to graphs and code side by side.
   * @param {Cells[]} list
   */
  makeArtifacts(list) {
    const table = this.store.table("artifacts");
    const stages = groupByStage(list, (row) => table.get(row, "name") ?? "");
    /** @type {Child[]} */
    const made = stages.flatMap(([heading, rows]) => [make("h4", "", heading), ...rows.map((row) => this.makeArtifact(row))]);
    const graphs = findTracedGraphs(list.map((row) => ({ id: row[0], name: table.get(row, "name") })));
    if (!graphs.some(({ code }) => this.store.texts.get(code.id)?.z)) return made;
    const title = this.title.textContent ?? "";
    const label = "from graph to code, line by line ›";
    const link = makeButton("cdiag-link cdiag-to-provenance", label, () => this.actions.showProvenance?.(title, graphs));
    return [link, ...made];
  }

  /** @param {Cells} row */
  makeArtifact(row) {
    const get = this.store.table("artifacts").reader(row);
    const stored = this.store.texts.get(row[0]);
    const known = this.artifacts.get(row[0]);
    if (known && known.stored === stored) return known.node;
    const view = new ArtifactView(row[0], get("name") ?? "text", get("size"), stored);
    this.artifacts.set(row[0], view);
    return view.node;
  }

  /**
   * A row that sums up others: what they are, and which compiles they belong to.
   * @param {Table<any>} table
   * @param {Cells} row
   */
  paintDerived(table, row) {
    if (!this.hasChanged([row, this.store.tables])) return;
    const panel = DERIVED_PANELS[table.name];
    const get = table.reader(row);
    const source = this.store.sourceOf(table);
    const readers = source ? this.store.members(table, row).map((member) => source.reader(member)) : [];
    this.title.textContent = oneLine(panel.title(get), TITLE);
    this.sub.textContent = oneLine(get("file") ? `${get("file")}:${get("line") ?? ""}` : "", PATH);
    this.replaceBody(panel.makeParts(get, readers, (each) => this.linkCompile(each)));
  }

  /**
   * A button that opens the whole compile; "" for what belongs to none.
   * @param {Get<{compile_id: string | null, compile_key: string | null}>} get
   */
  linkCompile(get) {
    const key = get("compile_key");
    if (key === null) return "";
    const link = makeButton("cdiag-link", `compile ${get("compile_id")}`, () => this.actions.openCompile?.(key));
    return make("span", "", " ", link);
  }

  /**
   * @param {Table<any>} table
   * @param {Cells} row
   */
  paintPlainRow(table, row) {
    const get = table.reader(row);
    const panel = this.store.panels.find((each) => each.name === table.name);
    const name = get("name") ?? get("op") ?? get("expression") ?? formatCode(table.name);
    this.title.textContent = oneLine(String(panel?.label ?? name), TITLE);
    this.sub.textContent = "";
    const known = table.columns.filter((column) => column.name !== "c0" && get(column.name) !== null && !STACKS.has(column.name));
    /** @type {[string, unknown][]} */
    const facts = known.map((column) => [column.label, formatValue(get(column.name), column.type)]);
    this.body.replaceChildren(makeFacts(facts), ...this.makeStacks(get));
  }
}
