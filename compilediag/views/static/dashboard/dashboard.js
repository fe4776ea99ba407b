// Puts the parts together and decides when to paint.
import { Detail } from "./detail-pane.js";
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { Filter } from "./filter.js";
import { Findings } from "./findings-panel.js";
import { formatClock, formatCount } from "../core/format.js";
import { Groups } from "../core/compile-groups.js";
import { Header } from "./header.js";
import { Lanes } from "./timeline-lanes.js";
import { NowPanel } from "./in-flight-panel.js";
import { ProvenanceView } from "./provenance-view.js";
import { DataTable } from "./data-table.js";
import { Tabs } from "./tab-bar.js";
import { followTheme } from "../core/theme.js";
import { Timeline } from "./timeline.js";
import { FILTERED, tabName, tabsOf, TABS, whySilent } from "./tab-columns.js";
import { WhereView } from "./origin-tree.js";

const LIVE_TICK_MS = 250; // how often a bar in flight grows
const REST = 3; // after a painting of n ms the page rests 3n ms, so that data never takes the browser over
const LONGEST_REST_MS = 400;

/** Runs a function when the browser has nothing else to do; Safari has no word for that. */
const whenIdle = globalThis.requestIdleCallback ?? ((run) => setTimeout(() => run({ timeRemaining: () => 5 }), 50));

let appCount = 0;

export class App {
  /** `onExplore(place)` leads to the explorer, `onRanks()` to the ranks. */
  constructor(root, store, onExplore, onRanks) {
    this.root = root;
    this.store = store;
    this.onExplore = onExplore;
    this.onRanks = onRanks;
    this.groups = new Groups(store);
    this.filter = new Filter(store, this.groups);
    this.lanes = new Lanes(store, this.groups);
    this.tab = TABS[0];
    this.selected = null;
    this.shownBy = new Map(); // tab with `only` -> row -> whether it is one of its rows
    this.painting = null; // the frame that will paint
    this.rest = null; // the timer of a rest
    this.notBefore = 0;
    this.build();
    this.unfollow = followTheme(root, () => this.timeline.paint());
    this.listener = (isUrgent) => this.plan(isUrgent);
    store.listeners.add(this.listener);
    this.ticker = setInterval(() => this.tick(), LIVE_TICK_MS);
    this.paint();
  }

  build() {
    const { store, root } = this;
    root.classList.add("cdiag");
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's command mode would take our arrow keys
    this.header = new Header(store, (text) => this.onQuery(text));
    this.now = new NowPanel(store, (flight) => this.openGroup(this.groups.ofFlight(flight), null));
    this.findings = new Findings(store, (finding) => this.onFinding(finding), this.onExplore);
    this.timeline = new Timeline(store, this.lanes, (group, id) => this.openGroup(group, id));
    this.table = new DataTable(this.groups, (table, row) => this.openRow(table, row));
    this.provenance = new ProvenanceView(store, () => this.showProvenance(null));
    this.detail = new Detail(store, this.groups, {
      close: () => this.closeDetail(),
      open: (table, row) => this.openRow(table, row),
      compile: (group) => this.openGroup(group, null),
      explore: this.onExplore,
      provenance: (title, sets) => this.showProvenance(title, sets),
    });
    this.where = new WhereView(store, this.detail.stacks, (table, row) => this.openRow(table, row));
    this.chip = makeButton("cdiag-chip", "", () => this.onFinding(null));
    this.chip.title = "show everything again";
    const main = make("div", "cdiag-main", this.table.node, this.where.node, this.provenance.node, this.detail.node);
    appCount += 1;
    main.id = `cdiag-panel-${appCount}`;
    this.tabs = new Tabs(main, (tab) => this.showTab(tab));
    this.foot = make("footer", "cdiag-foot");
    const explore = makeButton("cdiag-link cdiag-to-explorer", "guard explorer ›", () => this.onExplore({}));
    this.toRanks = makeButton("cdiag-link cdiag-to-ranks", "", () => this.onRanks());
    const strip = make("div", "cdiag-tabline", this.tabs.node, this.chip, this.toRanks, explore);
    const parts = [this.header, this.now, this.findings, this.timeline].map((part) => part.node);
    root.replaceChildren(...parts, strip, main, this.foot);
  }

  destroy() {
    this.store.listeners.delete(this.listener);
    clearInterval(this.ticker);
    cancelAnimationFrame(this.painting);
    clearTimeout(this.rest);
    [this.now, this.timeline, this.table].forEach((part) => part.destroy());
    this.unfollow();
  }

  /** Patches that come within a frame, or while the page rests, are painted together; a person does not wait. */
  plan(isUrgent) {
    const wait = isUrgent ? 0 : this.notBefore - performance.now();
    if (this.painting !== null || (wait > 0 && this.rest !== null)) return;
    clearTimeout(this.rest);
    this.rest = wait > 0 ? setTimeout(() => this.nextFrame(), wait) : null;
    if (wait <= 0) this.nextFrame();
  }

  nextFrame() {
    this.rest = null;
    this.painting = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.painting = null;
    const begin = performance.now();
    this.header.paint();
    if (!this.store.paused) this.now.paint();
    this.groups.refresh();
    this.lanes.refresh();
    this.findings.paint();
    this.paintFiltered();
    this.detail.paint();
    this.paintFoot();
    this.paintRanks();
    this.root.dataset.seq = String(this.store.seq ?? ""); // what is on the screen
    this.warm();
    const end = performance.now();
    this.notBefore = end + Math.min(REST * (end - begin), LONGEST_REST_MS);
  }

  /** The first keystroke of a search should be as quick as the others. */
  warm() {
    if (this.warming) return;
    this.warming = true;
    whenIdle((deadline) => {
      this.warming = false;
      if (!this.filter.warm(FILTERED, deadline)) this.warm();
    });
  }

  paintFiltered() {
    const others = this.store.panels.map((panel) => panel.name);
    this.result = this.filter.run([...FILTERED, ...others]);
    this.timeline.setLit(this.result.lit);
    this.timeline.paint();
    this.paintTable();
    const { evidence } = this.filter;
    setShown(this.chip, evidence !== null);
    setText(this.chip, evidence ? `only: ${evidence.label}  ✕` : "");
  }

  paintTable() {
    const { store } = this;
    const tabs = tabsOf(store);
    const tab = (this.tab = tabs.find((known) => tabName(known) === tabName(this.tab)) ?? TABS[0]);
    this.tabs.paint(tabs, tabName(tab), this.counts(tabs));
    const table = store.table(tab.table);
    const passed = this.passed(tab);
    const [note, isWarning] = this.noteFor(table, passed);
    setShown(this.table.node, !tab.view && this.provenance.node.hidden);
    setShown(this.where.node, tab.view === "where" && this.provenance.node.hidden);
    if (tab.view) return this.where.show(passed, this.filter, note);
    this.table.show(tab, table, passed);
    this.table.setNote(note, isWarning);
  }

  /** Positions of a tab's rows that passed the filter. */
  passed(tab) {
    const [table, found] = [this.store.table(tab.table), this.result.passed.get(tab.table)];
    return tab.only ? found.filter((i) => this.isOf(tab, table, table.rows[i])) : found;
  }

  /** True if a tab that shows some rows of its table shows this one; found out once a row. */
  isOf(tab, table, row) {
    if (!this.shownBy.has(tab)) this.shownBy.set(tab, new WeakMap());
    const known = this.shownBy.get(tab);
    if (!known.has(row)) known.set(row, tab.only((name) => table.get(row, name)));
    return known.get(row);
  }

  counts(tabs) {
    return new Map(tabs.map((tab) => {
      const table = this.store.table(tab.table);
      const all = tab.only ? table.rows.filter((row) => this.isOf(tab, table, row)).length : table.rows.length;
      const blind = this.store.observed[tab.table] === false;
      return [tabName(tab), { shown: this.passed(tab).length, all, blind, rare: tab.rare === true }];
    }));
  }

  noteFor(table, passed) {
    if (this.store.observed[table.name] === false) {
      return [`not observed: ${whySilent(this.store.feeds[table.name] ?? [], this.store.table("sources"))}`, true];
    }
    if (passed.length) return [this.tab.note ?? null, false];
    const hides = this.filter.active && table.rows.length > 0;
    return hides ? ["nothing matches", false] : [this.tab.empty, Boolean(this.tab.note)];
  }

  paintFoot() {
    const { meta } = this.store;
    const known = (label, value) => (value === null || value === undefined ? null : `${label} ${value}`);
    const parts = [
      known("torch", meta.torch),
      known("Python", meta.python),
      known("pid", meta.pid),
      known("detail", meta.detail),
      meta.started_ms ? `from ${formatClock(meta.started_ms)}` : null,
      meta.stopped_ms ? `to ${formatClock(meta.stopped_ms)}` : null,
    ];
    setText(this.foot, parts.filter(Boolean).join(" · "));
  }

  paintRanks() {
    const { ranks } = this.store;
    setShown(this.toRanks, ranks !== null);
    setText(this.toRanks, ranks ? `${formatCount(ranks.count)} ranks ›` : "");
  }

  tick() {
    const isFlying = this.store.isLive() && this.store.now.length > 0 && !this.store.paused;
    if (isFlying && this.timeline.zoom === null && !this.timeline.drag) this.timeline.paint();
  }

  onQuery(text) {
    this.filter.setQuery(text);
    this.paintFiltered();
  }

  onFinding(finding) {
    const again = finding === null || this.filter.evidence?.label === finding.title;
    this.filter.setEvidence(again ? null : finding.title, again ? null : finding.evidence);
    this.findings.setPicked(again ? null : finding.title);
    if (!again) this.goToEvidence(finding);
    this.paintFiltered();
  }

  /** The tab that holds most of a finding's evidence, and the detail of its first event. */
  goToEvidence(finding) {
    const held = TABS.map((tab) => [tab, finding.evidence.filter((id) => this.store.rowOf(this.store.table(tab.table), id))]);
    const [tab, ids] = held.reduce((best, next) => (next[1].length > best[1].length ? next : best));
    if (!ids.length) return;
    this.tab = tab;
    const table = this.store.table(tab.table);
    this.openRow(table, this.store.rowOf(table, ids[0]));
  }

  showTab(tab) {
    this.tab = tab;
    this.provenance.close();
    this.paintTable();
  }

  /** Graphs and code side by side, in place of the table and the detail; null leads back to them. */
  showProvenance(title, sets) {
    if (title === null) this.provenance.close();
    else this.provenance.open(title, sets);
    setShown(this.detail.node, title === null && this.detail.target !== null);
    this.paintTable();
  }

  openRow(table, row) {
    this.show({ group: this.groups.of(table, row), table, row });
  }

  openGroup(group, id) {
    const table = this.store.table("compiles");
    this.show({ group, table, row: id === null ? [null] : table.byId(id) });
  }

  show(target) {
    this.provenance.close();
    this.detail.open(target);
    this.paintTable();
    this.table.setOpen(target.row[0]);
    this.where.setOpen(target.row[0]);
    const compile = target.group && this.groups.members("compiles", target.group)[0];
    this.timeline.setSelected(target.table.name === "compiles" ? target.row[0] : compile?.[0] ?? null);
  }

  closeDetail() {
    this.detail.open(null);
    this.table.setOpen(null);
    this.where.setOpen(null);
    this.timeline.setSelected(null);
    this.table.canvas.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }
}
