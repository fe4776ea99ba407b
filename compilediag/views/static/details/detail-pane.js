// Everything about one compile, or about one row that belongs to none.
import { Copy, Dim, drawSome, Facts, longText, Prose, Section, Words } from "../core/blocks.js";
import { CallStacks, Stack, Stacks } from "../core/call-stacks.js";
import { findAll, onKeys } from "../core/dom.js";
import { formatCode, formatFunction, formatValue, oneLine } from "../core/format.js";
import { writeLink } from "../core/place.js";
import { html } from "../core/view.js";
import { Artifacts } from "./artifacts.js";
import { GuardFailures, ITEMS, PANELS } from "./rows.js";
import { useLayoutEffect, useMemo, useRef } from "../vendor/hooks.js";

const PATH = 4000; // characters of a path
const TITLE = 200; // characters of a title
/** @type {[string, string][]} label, column: keys, which are shown as the stacks that they name */
const STACKS = [["your stack", "user_stack"], ["torch's stack", "torch_stack"], ["stack", "stack"]];
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
 * @type {Component<DetailPaneProps>}
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
      else actions.focusRow(); // its element was made again meanwhile
    };
  }, []);
  useLayoutEffect(() => {
    if (hadFocus || document.activeElement?.matches(":focus-visible")) findAll(node.current, "h2")[0]?.focus({ preventScroll: true });
    const { name } = target.table;
    if (target.key === null || name in PANELS || LED_BY_THE_TOP.has(name)) return;
    const [body, section] = [".cdiag-detail-body", `[data-section="${name}"]`].map((selector) => findAll(node.current, selector)[0]);
    if (body && section) body.scrollTop = section.offsetTop;
  }, [target]);
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
  return html`<aside class="cdiag-detail" aria-label="detail" hidden=${isHidden} ref=${node} onKeyDown=${onKeys({ Escape: actions.close })}>${content}</aside>`;
}

/** Describes what the details show. */
export class Details {
  /** @param {Compiles} compiles @param {DetailActions} actions */
  constructor(compiles, actions) {
    this.compiles = compiles;
    this.store = compiles.store;
    this.stacks = new CallStacks(this.store);
    this.actions = actions;
  }

  /** The time that all others are since, Unix ms. */
  get start() {
    return this.compiles.start;
  }

  /** @type {(target: Target) => Detail} */
  describe({ key, table, row }) {
    const current = row && (table.byId(row[0]) ?? row);
    if (current && table.name in PANELS) return this.describeGroup(table, current);
    if (key !== null) return this.describeCompile(key);
    return current ? this.describeRow(table, current) : { title: "", place: "", body: null, events: [] };
  }

  /** @type {(key: string) => Detail} */
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

  /** @type {Draw<string>} What stands for a usual section without rows: nothing, or why its table has none. */
  drawGap(name) {
    if (this.store.meta.left_out?.rows[name]) return html`<${Dim}>left out of this report, as its head says<//>`;
    return this.store.observed[name] === false ? html`<${Dim}>not collected<//>` : null;
  }

  /** @type {(name: string, rows: Members, title: string) => ComponentChild} null if the compile has nothing for a section */
  drawSection(name, rows, title) {
    if (name === "stacks") return this.drawCallStack(rows);
    const table = this.store.table(name);
    const list = rows.get(name) ?? [];
    if (!list.length) return null;
    if (name === "artifacts") return html`<${Artifacts} rows=${list} title=${title} details=${this} />`;
    /** @param {Cells} row */
    const secondsOf = (row) => table.get(row, "duration_s") ?? 0;
    const longest = Math.max(...list.map(secondsOf));
    const View = /** @type {Record<string, unknown>} */ (ITEMS)[name];
    const ordered = name === "kernels" ? [...list].sort((a, b) => secondsOf(b) - secondsOf(a)) : list; // the longest first
    const items = drawSome(ordered, (row) => html`<${View} get=${table.reader(row)} row=${row} longest=${longest} details=${this} />`);
    return name === "recompiles" || name === "refused_calls" ? this.drawWhy(name, rows, items) : items;
  }

  /**
   * Why code was compiled again, or was not: the cause, every guard that failed, and torch's message.
   * @type {(name: string, rows: Members, causes: ComponentChild) => ComponentChild}
   */
  drawWhy(name, rows, causes) {
    const [table, guards] = [this.store.table(name), this.store.table("guard_failures")];
    const failures = (rows.get("guard_failures") ?? []).map((row) => guards.reader(row));
    const gap = failures.length ? null : this.drawGap("guard_failures");
    const reasons = (rows.get(name) ?? []).map((row) => table.get(row, "reason")).filter((reason) => reason !== null);
    return html`
      ${causes}
      ${gap && html`<h4>Failing guards</h4>${gap}`}
      <${GuardFailures} readers=${failures} />
      ${reasons.map((text) => html`<${Words} heading="torch's message"><p>${longText(text)}</p><//>`)}`;
  }

  /** @type {Draw<Members>} The call stack that ends in the function that was compiled, or that was called. */
  drawCallStack(rows) {
    const keys = ["compiles", "refused_calls"].flatMap((name) => (rows.get(name) ?? []).map((row) => this.store.table(name).get(row, "stack")));
    const key = keys.find((each) => each !== null);
    const frames = key ? this.stacks.framesOf(key) : [];
    return frames.length ? html`<${Stack} frames=${frames} />` : null;
  }

  /** @param {Get<any>} get */
  findStacks(get) {
    return STACKS.filter(([, name]) => get(name) !== null).map(([label, name]) => ({ label, frames: this.stacks.framesOf(get(name)) }));
  }

  /** @type {(table: Table<any>, row: Cells) => Detail} of a row that sums up others, and of their compiles */
  describeGroup(table, row) {
    const { title, Body } = /** @type {Record<string, DerivedPanel<any, any>>} */ (PANELS)[table.name];
    const get = table.reader(row);
    const source = this.store.sourceOf(table);
    const members = this.store.members(table, row);
    return {
      title: oneLine(title(get), TITLE),
      place: oneLine(get("file") ? `${get("file")}:${get("line") ?? ""}` : "", PATH),
      body: html`<${Body} get=${get} readers=${members.map((member) => source?.reader(member))} details=${this} />`,
      events: members.map((member) => member[0]),
    };
  }

  /** @type {(table: Table<any>, row: Cells) => Detail} */
  describeRow(table, row) {
    const get = table.reader(row);
    const panel = this.store.panels.find((each) => each.name === table.name);
    const name = get("name") ?? get("op") ?? get("expression") ?? formatCode(table.name);
    const hidden = ["c0", ...STACKS.map(([, column]) => column)];
    const known = table.columns.filter((column) => get(column.name) !== null && !hidden.includes(column.name));
    const facts = known.map((column) => [column.label, formatValue(get(column.name), column.type)]);
    return {
      title: oneLine(String(panel?.label ?? name), TITLE),
      place: "",
      body: html`<${Facts} entries=${facts} /><${Stacks} stacks=${this.findStacks(get)} />`,
      events: panel ? [] : [row[0]],
    };
  }
}

/** @param {{store: Store, events: Set<number>}} props a report has a link to each finding that these events are evidence of */
function FindingLinks({ store, events }) {
  if (!store.isFrozen) return null;
  const found = store.findings.filter(({ evidence }) => evidence.some((id) => events.has(id)));
  return found.map(({ id, title, step }) => html`
    <p class="cdiag-finding-link" key=${id}>
      <span>${step === null ? "" : `Step ${step}: `}<${Prose} text=${title} /></span>
      <${Copy} text=${writeLink({ finding: id })} label="Copy link" hint="copy a link to this finding of the report" kind="is-small" />
    </p>`);
}
