// Everything about one compile, or about one row that belongs to none.
import { Dim, drawSome, Facts, Section } from "../core/blocks.js";
import { CallStacks, Stack, Stacks } from "../core/call-stacks.js";
import { Copy } from "../core/clipboard.js";
import { findAll } from "../core/dom.js";
import { formatCode, formatFunction, formatValue, oneLine } from "../core/format.js";
import { writeLink } from "../core/place.js";
import { Prose } from "../core/text.js";
import { html } from "../core/view.js";
import { Artifact, groupByStage } from "./artifacts.js";
import {
  Cause, Collective, CompileTime, Decision, GraphBreak, GuardFailures, Kernels, Phases, Refusal, SymbolicShape,
  TorchReason,
} from "./compile-details.js";
import { GRAPH_PANEL, GraphAction, Lookup, LOOKUP_PANEL, TUNING_PANEL, TuningLine } from "./derived-panels.js";
import { findTracedGraphs } from "./provenance.js";
import { useLayoutEffect, useMemo, useRef } from "../vendor/hooks.js";

/** @typedef {{key: string | null, table: Table<any>, row: Cells | null}} Target a compile by its key, or one row without a compile */
/**
 * @typedef {object} DetailActions
 * @property {() => void} close
 * @property {() => void} [focusRow] gives the focus to the row that the details are of
 * @property {(table: Table<any>, row: Cells) => void} [open] shows another row
 * @property {(key: string) => void} [openCompile]
 * @property {(place: Place) => void} [explore]
 * @property {(title: string, graphs: TracedGraph[]) => void} [showProvenance] shows graphs and code side by side
 */
/** @typedef {{title: string, place: string, body: ComponentChild, events: number[]}} Detail what is shown, and of which events */
/**
 * @template Row, Part
 * @typedef {object} DerivedPanel what is shown of a row that sums up many events
 * @property {(get: Get<Row>) => string} title
 * @property {(props: {get: Get<Row>, readers: Get<Part>[], start: number, linkCompile: (get: Get<any>) => ComponentChild}) => ComponentChild} Body
 * gets a reader of the row, and one of each event in it in order of time; `start` is in Unix ms, `linkCompile` makes a link to an event's compile
 */
/** @typedef {Map<string, Cells[]>} Members table -> the rows of a compile */

const PATH = 4000; // characters of a path
const TITLE = 200; // characters of a title
const STACKS = new Set(["user_stack", "torch_stack", "stack"]); // keys, which are shown as the stacks that they name
/** @type {[string, string][]} label, column */
const STACK_LABELS = [["your stack", "user_stack"], ["torch's stack", "torch_stack"], ["stack", "stack"]];
/** @type {Record<string, DerivedPanel<any, any>>} derived table -> its panel */
const DERIVED_PANELS = { cache_groups: LOOKUP_PANEL, tunings: TUNING_PANEL, graph_functions: GRAPH_PANEL };
const LED_BY_THE_TOP = new Set(["refused_calls", "recompiles", "compiles"]); // sections that come first anyway

/** @type {[name: string, heading: string, isUsual: boolean][]} sections of a compile; most compiles have the usual ones */
const SECTIONS = [
  ["refused_calls", "Refused calls", false],
  ["recompiles", "Why it recompiled", false],
  ["compiles", "Time", true],
  ["stacks", "Called from", false],
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
const MEMBERS = [...SECTIONS.map(([name]) => name).filter((name) => name !== "stacks"), "guard_failures"];

/**
 * Shows a compile, led by the section of the target's table; or one row that has no compile. The focus goes with it if
 * it was opened by key, and back when it is closed. It is described again only if something was added since.
 * @param {{details: Details, target: Target, isHidden?: boolean}} props
 */
export function DetailPane({ details, target, isHidden = false }) {
  const { store, actions } = details;
  const node = useRef(/** @type {HTMLElement | null} */ (null));
  const hadFocus = node.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    const opener = /** @type {HTMLElement | null} */ (document.activeElement);
    return () => {
      if (!node.current?.contains(document.activeElement)) return;
      if (opener?.isConnected) opener.focus({ preventScroll: true });
      else actions.focusRow?.(); // its element was made again meanwhile
    };
  }, []);
  useLayoutEffect(() => {
    if (hadFocus || document.activeElement?.matches(":focus-visible")) findAll(node.current, "h2")[0]?.focus({ preventScroll: true });
    const { name } = target.table;
    if (target.key === null || name in DERIVED_PANELS || LED_BY_THE_TOP.has(name)) return;
    const [body, section] = [".cdiag-detail-body", `[data-section="${name}"]`].map((selector) => findAll(node.current, selector)[0]);
    if (body && section) body.scrollTop = section.offsetTop;
  }, [target]);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    actions.close();
  };
  // The target is the key, so that nothing of an earlier one stays open.
  const content = useMemo(() => {
    const { title, place, body, events } = details.describe(target);
    return html`
      <div class="cdiag-detail-head" key=${target}>
        <div><h2 tabindex="-1">${title}</h2><div class="cdiag-dim">${place}</div></div>
        <button type="button" class="cdiag-close" onClick=${actions.close}>close</button>
      </div>
      <section class="cdiag-detail-body" tabindex="0" key=${target}>
        <${FindingLinks} store=${store} events=${new Set(events)} />
        ${body}
      </section>`;
  }, [target, store.seq, store.part, store.tables]);
  return html`<aside class="cdiag-detail" aria-label="detail" hidden=${isHidden} ref=${node} onKeyDown=${onKey}>${content}</aside>`;
}

/** Describes what the details show. */
export class Details {
  /**
   * @param {Compiles} compiles
   * @param {DetailActions} actions
   */
  constructor(compiles, actions) {
    this.compiles = compiles;
    this.store = compiles.store;
    this.stacks = new CallStacks(this.store);
    this.actions = actions;
  }

  /**
   * @param {Target} target
   * @returns {Detail}
   */
  describe({ key, table, row }) {
    const current = row && (table.byId(row[0]) ?? row);
    if (current && table.name in DERIVED_PANELS) return this.describeGroup(table, current);
    if (key !== null) return this.describeCompile(key);
    return current ? this.describeRow(table, current) : { title: "", place: "", body: null, events: [] };
  }

  /**
   * @param {string} key
   * @returns {Detail}
   */
  describeCompile(key) {
    /** @type {Members} */
    const rows = new Map(MEMBERS.map((name) => [name, this.compiles.members(name, key)]));
    const [compiled, refused] = [rows.get("compiles") ?? [], rows.get("refused_calls") ?? []];
    const owner = this.compiles.functionOf(key);
    const flight = this.store.now.find((candidate) => candidate.compile_key === key);
    const [table, first] = [...rows].find(([, list]) => list.length) ?? ["compiles", []];
    const id = first.length ? this.store.table(compiled.length ? "compiles" : table).get(compiled[0] ?? first[0], "compile_id") : null;
    const by = refused.length ? this.store.table("refused_calls").get(refused[0], "refused_by") : null; // a stance is of no function
    const title = `${owner?.name ?? formatFunction(flight?.function) ?? by ?? "compile"} ${id ?? flight?.compile_id ?? ""}`;
    const file = owner?.file ?? flight?.file;
    const sections = SECTIONS.map(([name, heading, isUsual]) => {
      const content = this.drawSection(name, rows, title) ?? (isUsual && !refused.length ? this.drawGap(name) : null);
      return content && html`<${Section} name=${name} key=${name} heading=${heading}>${content}<//>`;
    });
    const isEmpty = sections.every((section) => section === null);
    return {
      title,
      place: oneLine(file ? `${file}:${owner?.line ?? flight?.line ?? ""}` : "", PATH),
      body: isEmpty ? html`<${Dim}>nothing recorded about this compile yet<//>` : sections,
      events: [...rows.values()].flatMap((list) => list.map((row) => row[0])),
    };
  }

  /**
   * What stands for a usual section without rows: nothing, or why its table has none.
   * @param {string} name
   */
  drawGap(name) {
    if (this.store.meta.left_out?.rows[name]) return html`<${Dim}>left out of this report, as its head says<//>`;
    return this.store.observed[name] === false ? html`<${Dim}>not collected<//>` : null;
  }

  /**
   * The content of a section; null if the compile has nothing for it.
   * @param {string} name
   * @param {Members} rows
   * @param {string} title
   * @returns {ComponentChild}
   */
  drawSection(name, rows, title) {
    if (name === "stacks") return this.drawCallStack(rows);
    const table = this.store.table(name);
    const list = rows.get(name) ?? [];
    if (!list.length) return null;
    const readers = list.map((row) => table.reader(row));
    const { start } = this.compiles;
    /** @type {Record<string, (get: Get<any>, at: number) => ComponentChild>} what draws one row of a section */
    const items = {
      compiles: (get) => html`<${CompileTime} get=${get} start=${start} />`,
      cache_lookups: (get) => html`<${Lookup} get=${get} />`,
      tunings: (get, at) => html`<${TuningLine} get=${get} onOpen=${() => this.actions.open?.(table, list[at])} />`,
      cudagraphs: (get) => html`<${GraphAction} get=${get} start=${start} />`,
      graph_breaks: (get) => html`<${GraphBreak} get=${get} />`,
      dynamic_decisions: (get) => html`<${Decision} get=${get} />`,
      symbolic_shapes: (get) => html`<${SymbolicShape} get=${get} stacks=${this.findStacks(get)} />`,
      collectives: (get) => html`<${Collective} get=${get} />`,
    };
    switch (name) {
      case "refused_calls":
        return this.drawWhy(readers, rows, (get) => html`<${Refusal} get=${get} />`);
      case "recompiles":
        return this.drawWhy(readers, rows, (get) => html`<${Cause} get=${get} explore=${this.actions.explore} />`);
      case "kernels":
        return html`<${Kernels} readers=${readers} />`;
      case "phases":
        return html`<${Phases} readers=${readers} />`;
      case "artifacts":
        return this.drawArtifacts(list, title);
      default:
        return drawSome(readers, items[name]);
    }
  }

  /**
   * Why code was compiled again, or was not: the cause, and every guard that failed.
   * @param {Get<any>[]} readers
   * @param {Members} rows
   * @param {(get: Get<any>) => ComponentChild} drawLead
   */
  drawWhy(readers, rows, drawLead) {
    const guards = this.store.table("guard_failures");
    const failures = (rows.get("guard_failures") ?? []).map((row) => guards.reader(row));
    const gap = failures.length ? null : this.drawGap("guard_failures");
    const reasons = readers.map((get) => get("reason")).filter((reason) => reason !== null);
    return html`
      ${drawSome(readers, drawLead)}
      ${gap && html`<h4>Failing guards</h4>${gap}`}
      <${GuardFailures} readers=${failures} />
      ${reasons.map((text) => html`<${TorchReason} text=${text} />`)}`;
  }

  /**
   * The call stack that ends in the function that was compiled, or that was called.
   * @param {Members} rows
   */
  drawCallStack(rows) {
    const stacks = ["compiles", "refused_calls"].flatMap((name) => {
      return (rows.get(name) ?? []).map((row) => this.store.table(name).get(row, "stack"));
    });
    const key = stacks.find((found) => found !== null);
    const frames = key ? this.stacks.framesOf(key) : [];
    return frames.length ? html`<${Stack} frames=${frames} />` : null;
  }

  /**
   * The user's and torch's stacks of a row.
   * @param {Get<any>} get
   */
  findStacks(get) {
    return STACK_LABELS.filter(([, name]) => get(name) !== null).map(([label, name]) => ({ label, frames: this.stacks.framesOf(get(name)) }));
  }

  /**
   * Texts by stage of the compiler, and a link to graphs and code side by side.
   * @param {Cells[]} list
   * @param {string} title
   */
  drawArtifacts(list, title) {
    const table = this.store.table("artifacts");
    const graphs = findTracedGraphs(list.map((row) => ({ id: row[0], name: table.get(row, "name") })));
    const isTraced = graphs.some(({ code }) => this.store.texts.get(code.id)?.z);
    return html`
      ${isTraced && html`
        <button type="button" class="cdiag-link cdiag-to-provenance" onClick=${() => this.actions.showProvenance?.(title, graphs)}>
          from graph to code, line by line ›
        </button>`}
      ${groupByStage(list, (row) => table.get(row, "name") ?? "").map(([heading, rows]) => html`
        <h4>${heading}</h4>
        ${drawSome(rows, (row) => html`
          <${Artifact} key=${row[0]} id=${row[0]} name=${table.get(row, "name") ?? "text"} size=${table.get(row, "size")}
            stored=${this.store.texts.get(row[0])} />`)}`)}`;
  }

  /**
   * A row that sums up others: what they are, and which compiles they belong to.
   * @param {Table<any>} table
   * @param {Cells} row
   * @returns {Detail}
   */
  describeGroup(table, row) {
    const { title, Body } = DERIVED_PANELS[table.name];
    const get = table.reader(row);
    const source = this.store.sourceOf(table);
    const members = source ? this.store.members(table, row) : [];
    /** @param {Get<{compile_id: string | null, compile_key: string | null}>} each */
    const linkCompile = (each) => {
      const key = each("compile_key");
      return key !== null && html` <button type="button" class="cdiag-link" onClick=${() => this.actions.openCompile?.(key)}>compile ${each("compile_id")}</button>`;
    };
    return {
      title: oneLine(title(get), TITLE),
      place: oneLine(get("file") ? `${get("file")}:${get("line") ?? ""}` : "", PATH),
      body: html`<${Body} get=${get} readers=${members.map((member) => source?.reader(member))} start=${this.compiles.start} linkCompile=${linkCompile} />`,
      events: members.map((member) => member[0]),
    };
  }

  /**
   * @param {Table<any>} table
   * @param {Cells} row
   * @returns {Detail}
   */
  describeRow(table, row) {
    const get = table.reader(row);
    const panel = this.store.panels.find((each) => each.name === table.name);
    const name = get("name") ?? get("op") ?? get("expression") ?? formatCode(table.name);
    const known = table.columns.filter((column) => column.name !== "c0" && get(column.name) !== null && !STACKS.has(column.name));
    const facts = known.map((column) => [column.label, formatValue(get(column.name), column.type)]);
    return {
      title: oneLine(String(panel?.label ?? name), TITLE),
      place: "",
      body: html`<${Facts} entries=${facts} /><${Stacks} stacks=${this.findStacks(get)} />`,
      events: panel ? [] : [row[0]],
    };
  }
}

/**
 * The findings that these events are evidence of, in a report with a link to each.
 * @param {{store: Store, events: Set<number>}} props
 */
function FindingLinks({ store, events }) {
  if (!store.isFrozen) return null;
  const found = store.findings.filter(({ evidence }) => evidence.some((id) => events.has(id)));
  return found.map(({ id, title, step }) => html`
    <p class="cdiag-finding-link" key=${id}>
      <span>${step === null ? "" : `Step ${step}: `}<${Prose} text=${title} /></span>
      <${Copy} text=${writeLink({ finding: id })} label="Copy link" hint="copy a link to this finding of the report" kind="is-small" />
    </p>`);
}
