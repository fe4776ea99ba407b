// The dashboard: puts its parts together and decides when to paint.
import { CompileGroups, keyOfFlight } from "../core/compile-groups.js";
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatAmount, formatClock, formatCount } from "../core/format.js";
import { Hints, setHint } from "../core/hints.js";
import { followPrint } from "../core/print.js";
import { followTheme } from "../core/theme.js";
import { draw, html } from "../core/view.js";
import { CallSiteTree } from "./call-site-tree.js";
import { tabName } from "./columns.js";
import { DashboardMemory } from "./dashboard-memory.js";
import { DataTable } from "./data-table.js";
import { DetailPane } from "./detail-pane.js";
import { Filter } from "./filter.js";
import { EndNotice } from "./end-notice.js";
import { ExportMenu } from "./export-menu.js";
import { FindingsPanel } from "./findings-panel.js";
import { Header } from "./header.js";
import { InFlightPanel } from "./in-flight-panel.js";
import { PlanCard } from "./plan-card.js";
import { PrintTables } from "./print-tables.js";
import { ProvenanceView } from "./provenance-view.js";
import { TabBar } from "./tab-bar.js";
import { TabRows } from "./tab-rows.js";
import { allTabs, SEARCHED, TABS } from "./tabs.js";
import { TimelineLanes } from "./timeline-lanes.js";
import { Timeline } from "./timeline.js";
/** @import { Cells } from "../core/page-types" */
/** @import { Place } from "../core/types" */
/** @import { Store, Table } from "../core/store.js" */
/** @import { Choices } from "./dashboard-memory.js" */
/** @import { Target } from "./detail-pane.js" */
/** @import { Picked } from "./plan-step.js" */
/** @import { TracedGraph } from "./provenance-links.js" */
/** @import { Tab } from "./tab-types" */

const LIVE_TICK_MS = 250; // how often a bar in flight grows
const REST = 3; // after a painting of n ms the page rests 3n ms, so that data never blocks the browser
const LONGEST_REST_MS = 400;

/**
 * Runs a function when the browser has nothing else to do; Safari has no such call.
 * @type {(run: (deadline: {timeRemaining: () => number}) => void) => unknown}
 */
const whenIdle = globalThis.requestIdleCallback ?? ((run) => setTimeout(() => run({ timeRemaining: () => 5 }), 50));

let count = 0; // of dashboards in this page

export class Dashboard {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {(place: Place) => void} onExplore leads to the explorer
   * @param {(page: "ranks" | "vllm") => void} onPage leads to another page
   */
  constructor(root, store, onExplore, onPage) {
    this.root = root;
    this.store = store;
    this.tab = TABS[0];
    /** @type {number | null} the frame that will paint */
    this.painting = null;
    /** @type {ReturnType<typeof setTimeout> | null} the timer of a rest */
    this.rest = null;
    this.notBefore = 0;
    this.isWarming = false;
    this.groups = new CompileGroups(store);
    this.filter = new Filter(store, this.groups);
    this.rows = new TabRows(store, this.filter);
    this.lanes = new TimelineLanes(store, this.groups);
    this.header = new Header(store, (text) => this.onQuery(text));
    this.inFlight = new InFlightPanel(store, (flight) => this.openCompile(keyOfFlight(flight), null));
    /** @param {Picked} picked */
    const pick = (picked) => this.onPick(picked);
    this.plan = new PlanCard(store, { pick, explore: onExplore });
    this.findings = new FindingsPanel(store, (finding) => pick({ label: finding.title, evidence: finding.evidence }), onExplore);
    this.timeline = new Timeline(store, this.lanes, (key, id) => this.openCompile(key, id));
    this.table = new DataTable(this.groups, this.tab, store.table(this.tab.table), (table, row) => this.openRow(table, row));
    this.provenance = new ProvenanceView(store, () => this.closeProvenance());
    this.detail = new DetailPane(store, this.groups, {
      close: () => this.closeDetail(),
      open: (table, row) => this.openRow(table, row),
      openCompile: (key) => this.openCompile(key, null),
      explore: onExplore,
      showProvenance: (title, graphs) => this.showProvenance(title, graphs),
    });
    this.callSites = new CallSiteTree(store, this.detail.stacks, (table, row) => this.openRow(table, row));
    this.minor = makeButton("cdiag-link cdiag-minor", "", () => this.toggleMinor());
    const main = make("div", "cdiag-main", this.table.node, this.callSites.node, this.provenance.node, this.detail.node);
    count += 1;
    main.id = `cdiag-panel-${count}`;
    this.tabs = new TabBar(main, (tab) => this.showTab(tab));
    this.chip = makeButton("cdiag-chip", "", () => this.onPick(null));
    setHint(this.chip, "show everything again");
    this.toRanks = makeButton("cdiag-link cdiag-to-ranks", "", () => onPage("ranks"));
    this.toVllm = makeButton("cdiag-link cdiag-to-vllm", "", () => onPage("vllm"));
    const toExplorer = makeButton("cdiag-link cdiag-to-explorer", "guard explorer ›", () => onExplore({}));
    const ways = make("div", "cdiag-ways", this.toVllm, this.toRanks, toExplorer);
    const strip = make("div", "cdiag-tabline", this.tabs.node, this.chip, ways);
    this.foot = make("div", "cdiag-foot");
    this.paper = new PrintTables(store, this.groups, this.rows, () => allTabs(store));
    this.exports = new ExportMenu(store, () => this.readTable(), () => this.paper.open());
    this.notice = new EndNotice(store);
    this.memory = new DashboardMemory(store);
    this.header.line.append(this.notice.button, this.exports.node);
    this.header.node.append(this.exports.status, this.paper.dialog);
    root.classList.add("cdiag");
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "torch.compile dashboard");
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's command mode would take our arrow keys
    root.addEventListener("keydown", (event) => this.onKey(event));
    const panels = [this.inFlight, this.findings, this.timeline].map((part) => part.node);
    root.replaceChildren(this.header.node, this.plan.node, this.header.tiles, ...panels, strip, this.minor, main, this.paper.paper, this.foot);
    this.hints = new Hints(root);
    this.unprint = followPrint(() => this.preparePrint(), () => this.endPrint());
    this.unfollow = followTheme(root, () => this.timeline.paint());
    /** @param {boolean} isUrgent */
    this.listener = (isUrgent) => this.planPaint(isUrgent);
    store.listeners.add(this.listener);
    this.ticker = setInterval(() => this.tick(), LIVE_TICK_MS);
    this.paint();
  }

  destroy() {
    this.store.listeners.delete(this.listener);
    clearInterval(this.ticker);
    if (this.painting !== null) cancelAnimationFrame(this.painting);
    if (this.rest !== null) clearTimeout(this.rest);
    [this.inFlight, this.timeline, this.table, this.hints, this.notice].forEach((part) => part.destroy());
    this.unfollow();
    this.unprint();
  }

  /**
   * Plans a painting. Patches that come within a frame, or while the page rests, are painted together; a person does
   * not wait.
   * @param {boolean} isUrgent
   */
  planPaint(isUrgent) {
    const wait = isUrgent ? 0 : this.notBefore - performance.now();
    if (this.painting !== null || (wait > 0 && this.rest !== null)) return;
    if (this.rest !== null) clearTimeout(this.rest);
    this.rest = wait > 0 ? setTimeout(() => this.requestPaint(), wait) : null;
    if (wait <= 0) this.requestPaint();
  }

  requestPaint() {
    this.rest = null;
    this.painting = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.painting = null;
    const begin = performance.now();
    this.restore(this.memory.restore());
    this.header.paint();
    this.notice.paint();
    if (!this.store.paused) this.inFlight.paint();
    this.groups.refresh();
    this.lanes.refresh();
    this.plan.paint();
    this.findings.paint();
    this.paintFiltered();
    this.detail.paint();
    this.paintFoot();
    this.paintLinks();
    this.root.dataset.seq = String(this.store.seq ?? ""); // what is on the screen
    this.warmSearch();
    const end = performance.now();
    this.notBefore = end + Math.min(REST * (end - begin), LONGEST_REST_MS);
  }

  /**
   * Shows what the reader had chosen before the page was drawn again or reloaded.
   * @param {Choices | null} choices
   */
  restore(choices) {
    if (!choices) return;
    this.tab = allTabs(this.store).find((tab) => tabName(tab) === choices.tab) ?? this.tab;
    this.header.search.value = choices.query;
    this.filter.setQuery(choices.query);
    if (!choices.picked) return;
    this.filter.setEvidence(choices.picked.label, choices.picked.evidence);
    for (const panel of [this.plan, this.findings]) panel.setPicked(choices.picked.label);
  }

  /** Prepares the search, so that its first keystroke is as fast as the others. */
  warmSearch() {
    if (this.isWarming) return;
    this.isWarming = true;
    whenIdle((deadline) => {
      this.isWarming = false;
      if (!this.filter.warm(SEARCHED, deadline)) this.warmSearch();
    });
  }

  paintFiltered() {
    this.memory.save({ tab: tabName(this.tab), query: this.header.search.value, picked: this.filter.picked });
    this.rows.result = this.filter.run([...SEARCHED, ...this.store.panels.map((panel) => panel.name)]);
    this.timeline.setLit(this.rows.result.lit);
    this.timeline.paint();
    this.paintTable();
    const { evidence } = this.filter;
    setShown(this.chip, evidence !== null);
    setText(this.chip, evidence ? `only: ${evidence.label}  ✕` : "");
  }

  paintTable() {
    const tabs = allTabs(this.store);
    const tab = tabs.find((known) => tabName(known) === tabName(this.tab)) ?? TABS[0];
    this.tab = tab;
    this.tabs.paint(tabs, tabName(tab), this.rows.count(tabs));
    this.paintMinor();
    const table = this.store.table(tab.table);
    const passed = this.rows.pass(tab);
    const { note, isWarning } = this.rows.describe(tab, passed);
    const isCovered = !this.provenance.node.hidden;
    setShown(this.table.node, !tab.view && !isCovered);
    setShown(this.callSites.node, tab.view === "call-sites" && !isCovered);
    if (tab.view) return this.callSites.show(passed, this.filter, note);
    this.table.show(tab, table, passed);
    this.table.setNote(note, isWarning);
  }

  /** The table that is shown, with the rows that passed the filter. */
  readTable() {
    return { name: tabName(this.tab), table: this.store.table(this.tab.table), positions: this.rows.pass(this.tab) };
  }

  /** Paper is white: everything is drawn in the light theme. */
  preparePrint() {
    this.screenTheme = this.root.dataset.theme;
    this.root.dataset.theme = "light";
    this.paper.fill();
  }

  endPrint() {
    this.root.dataset.theme = this.screenTheme;
    this.paper.empty();
  }

  /** Says how many rows the tab leaves out, with a button that shows them. */
  paintMinor() {
    const count = this.rows.countMinor(this.tab);
    setShown(this.minor, count > 0 && !this.filter.isActive);
    const action = this.rows.hidesMinor(this.tab) ? "show" : "hide";
    setText(this.minor, `${action} ${this.tab.minor?.describe(count) ?? ""}`);
  }

  toggleMinor() {
    this.rows.toggleMinor(this.tab);
    this.paintTable();
  }

  /** What was recorded with which versions; a report has that in its head. */
  paintFoot() {
    const { meta, isFrozen } = this.store;
    setShown(this.foot, !isFrozen);
    const parts = [
      meta.torch && `torch ${meta.torch}`,
      meta.python && `Python ${meta.python}`,
      meta.pid && `pid ${meta.pid}`,
      meta.detail && `detail ${meta.detail}`,
      meta.started_ms && `from ${formatClock(meta.started_ms)}`,
      meta.stopped_ms && `to ${formatClock(meta.stopped_ms)}`,
    ];
    draw(this.foot, html`${parts.filter(Boolean).join(" · ")}`);
  }

  paintLinks() {
    const { ranks, vllm } = this.store;
    setShown(this.toVllm, vllm !== null);
    setText(this.toVllm, vllm ? `vLLM: ${formatAmount(vllm.compiles, "compile")} ›` : "");
    setShown(this.toRanks, ranks !== null);
    const rows = ranks?.loaded.length ? `, rows of ${formatCount(ranks.loaded.length)}` : "";
    setText(this.toRanks, ranks ? `${formatAmount(ranks.count, "rank")}${rows} ›` : "");
    this.toRanks.title = rows ? "the tables have the rows of one rank of each group that compiled the same" : "";
  }

  tick() {
    this.header.paintState();
    const isFlying = this.store.isLive() && this.store.now.length > 0 && !this.store.paused;
    if (isFlying && this.timeline.isFollowing) this.timeline.paint();
  }

  /** @param {string} text */
  onQuery(text) {
    this.filter.setQuery(text);
    this.paintFiltered();
  }

  /**
   * Selects a finding or a step of the plan; null, or the same one again, selects none.
   * @param {Picked | null} picked
   */
  onPick(picked) {
    const isSelected = picked !== null && this.filter.evidence?.label !== picked.label;
    if (isSelected) this.filter.setEvidence(picked.label, picked.evidence);
    else this.filter.clearEvidence();
    for (const panel of [this.plan, this.findings]) panel.setPicked(isSelected ? picked.label : null);
    if (isSelected) this.goToEvidence(picked.evidence);
    this.paintFiltered();
  }

  /**
   * Shows the dashboard, and what a link names: a finding, or a stretch of the timeline.
   * @param {Place} place
   */
  goTo({ finding, range }) {
    this.paint();
    const found = this.store.findings.find(({ id }) => id === finding);
    if (found && this.filter.evidence?.label !== found.title) this.onPick({ label: found.title, evidence: found.evidence });
    if (found) this.detail.node.scrollIntoView({ block: "nearest" });
    if (!range) return;
    const [from, to] = range.map((seconds) => this.lanes.extent.from + 1000 * seconds);
    this.timeline.model.state.zoom = { from, to };
    this.timeline.paint();
  }

  /**
   * Opens the tab that has most of these events, and the detail of the first of them.
   * @param {number[]} evidence
   */
  goToEvidence(evidence) {
    const held = TABS.map((tab) => {
      const table = this.store.table(tab.table);
      return { tab, rows: evidence.map((id) => this.store.rowOf(table, id)).filter((row) => row !== null) };
    });
    const { tab, rows } = held.reduce((best, next) => (next.rows.length > best.rows.length ? next : best));
    if (!rows.length) return;
    this.tab = tab;
    this.openRow(this.store.table(tab.table), rows[0]);
  }

  /** @param {Tab} tab */
  showTab(tab) {
    this.tab = tab;
    this.provenance.close();
    this.paintFiltered();
  }

  /**
   * Shows graphs and code side by side, in place of the table and the detail.
   * @param {string} title
   * @param {TracedGraph[]} graphs
   */
  showProvenance(title, graphs) {
    void this.provenance.open(title, graphs);
    setShown(this.detail.node, false);
    this.paintTable();
  }

  closeProvenance() {
    this.provenance.close();
    setShown(this.detail.node, this.detail.target !== null);
    this.paintTable();
  }

  /**
   * @param {Table<any>} table
   * @param {Cells} row
   */
  openRow(table, row) {
    this.show({ key: this.groups.keyOf(table, row), table, row });
  }

  /**
   * Shows a compile by its key; `id` is the event id of its row, null while it is in flight.
   * @param {string | null} key
   * @param {number | null} id
   */
  openCompile(key, id) {
    const table = this.store.table("compiles");
    this.show({ key, table, row: id === null ? null : table.byId(id) });
  }

  /** @param {Target} target */
  show(target) {
    this.provenance.close();
    this.detail.open(target);
    this.paintTable();
    const id = target.row?.[0] ?? null;
    this.table.setOpen(id);
    this.callSites.setOpen(id);
    const compile = target.key === null ? undefined : this.groups.members("compiles", target.key)[0];
    this.timeline.setSelected(target.table.name === "compiles" ? id : compile?.[0] ?? null);
  }

  closeDetail() {
    const { node, opener } = this.detail;
    const isRowGone = node.contains(document.activeElement) && !opener?.isConnected;
    this.detail.open(null);
    this.table.setOpen(null);
    this.callSites.setOpen(null);
    this.timeline.setSelected(null);
    if (isRowGone) this.table.focusRow(); // its element was made again meanwhile
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || this.detail.node.hidden) return;
    event.stopPropagation();
    this.closeDetail();
  }
}
