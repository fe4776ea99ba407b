// The dashboard: puts its parts together and decides when to paint.
import { Ago, Copy, Icon, Prose } from "../core/blocks.js";
import { Compiles } from "../core/compiles.js";
import { findAll, targetOf } from "../core/dom.js";
import { formatAmount, formatCount, formatSeconds, formatShare } from "../core/format.js";
import { recall, remember, SessionMemory } from "../core/memory.js";
import { MarkedWords } from "../core/marked-words.js";
import { Page } from "../core/page.js";
import { draw, Held, html } from "../core/view.js";
import { EndNotice } from "./end-notice.js";
import { Exports } from "./export-menu.js";
import { Findings, isLimit, listAdvice, listFindings } from "./findings.js";
import { Header } from "./header.js";
import { HitBar, Hits, SearchBox } from "./search-box.js";
import { hasRows, TabBar } from "./tab-bar.js";
import { LARGE_SHARE, Totals } from "./totals.js";
import { DetailPane, Details } from "../details/detail-pane.js";
import { Provenance } from "../details/provenance.js";
import { listLargeCosts, PlanCard } from "../plan/plan-card.js";
import { CallSites } from "../tables/call-site-tree.js";
import { DataTable } from "../tables/data-table.js";
import { Filter } from "../tables/filter.js";
import { PrintDialog, PrintedTable, USUAL } from "../tables/print-tables.js";
import { allTabs, SEARCHED, TABS } from "../tables/tabs.js";
import { TimelineLanes } from "../timeline/lanes.js";
import { Timeline } from "../timeline/timeline.js";

const LIVE_TICK_MS = 250; // how often a bar in flight grows
const REST = 3; // after a painting of n ms the page rests 3n ms, so that data never blocks the browser
const LONGEST_REST_MS = 400;
const LARGE_COST = 0.1; // of the compile time: less than that makes no plan worth reading
const LEAN = 'watch(detail="lean")';
const MISSED = "Some updates were missed. The kernel sends them when its cell has ended.";

/** @type {(run: (deadline: Deadline) => void) => unknown} when the browser has nothing else to do; Safari has no such call */
const whenIdle = globalThis.requestIdleCallback ?? ((run) => setTimeout(() => run({ timeRemaining: () => 5 }), 50));
/** Under which the size is remembered, for all sessions of a notebook: the address is all that a page knows of it. */
const nameOfSize = () => `size:${location.pathname}`;

let count = 0; // of dashboards in this page

export class Dashboard extends Page {
  /** @param {PageHost} host */
  constructor(host) {
    super(host);
    const { root, store, trail } = host;
    this.explore = (/** @type {Place} */ place) => trail.explore(place);
    /** @type {OpenRow} */
    this.openRow = (table, row) => this.show({ key: this.compiles.keyOf(table, row), table, row });
    /** @type {string | null} name of the tab that the reader has chosen */
    this.chosen = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} the timer of a rest */
    this.rest = undefined;
    this.notBefore = 0;
    /** @type {unknown} a preparation of the search, so that its first keystroke is as fast as the others */
    this.warmer = null;
    count += 1;
    this.panelId = `cdiag-panel-${count}`;
    this.compiles = new Compiles(store);
    this.filter = new Filter(this.compiles);
    /** @type {Map<string, TabCount>} */
    this.counts = new Map();
    this.hits = new Hits(() => this.draw());
    this.marks = new MarkedWords(this.view, ".cdiag-steps, .cdiag-whole, .cdiag-rows");
    this.lanes = new TimelineLanes(this.compiles);
    /** @type {PlanActions} */
    this.planActions = {
      pick: (picked) => this.onPick(picked),
      explore: this.explore,
      mark: (evidence) => {
        this.timeline.model.lit = evidence ? this.filter.findKeys(evidence) : this.filter.lit;
        if (this.size !== "line") this.timeline.paint();
      },
      showStretch: (evidence) => this.showStretch(evidence),
    };
    this.isPrinting = false;
    this.timeline = new Timeline(this.lanes, (key, id) => this.openCompile(key, id));
    this.table = { current: /** @type {TableHandle | null} */ (null) };
    /** @type {Target | null} what the details show */
    this.target = null;
    /** @type {{title: string, graphs: TracedGraph[]} | null} what is shown in place of the table and the details */
    this.traced = null;
    this.details = new Details(this.compiles, {
      close: () => this.show(null),
      focusRow: () => this.table.current?.focusRow(),
      open: this.openRow,
      openCompile: (key) => this.openCompile(key, null),
      explore: this.explore,
      showProvenance: (title, graphs) => this.update({ traced: { title, graphs } }),
    });
    this.isChoosing = false; // which tables to print
    this.printed = USUAL;
    this.exports = new Exports(store, {
      readTable: () => ({ tab: this.tab, positions: this.filter.pass(this.tab) }),
      readRange: () => this.readRange(),
      print: () => this.update({ isChoosing: true }),
    });
    this.notice = new EndNotice(store);
    this.memory = new SessionMemory("dashboard"); // of which table, search and step the reader chose
    this.isFull = store.isFrozen || recall(nameOfSize()) === "full";
    this.isWorthSaying = false;
    root.addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("beforeprint", () => this.setPrinting(true), this.end);
    addEventListener("afterprint", () => this.setPrinting(false), this.end);
    this.ticker = setInterval(() => this.tick(), LIVE_TICK_MS);
  }

  destroy() {
    super.destroy();
    clearInterval(this.ticker);
    clearTimeout(this.rest);
    this.timeline.destroy();
    this.notice.unmark();
    this.marks.destroy();
  }

  onTheme() {
    this.timeline?.paint(); // not there yet while the page is made
  }

  /**
   * Plans a painting. Patches that come within a frame, or while the page rests, are painted together; a person does
   * not wait.
   * @param {boolean} isUrgent
   */
  planPaint(isUrgent) {
    const wait = isUrgent ? 0 : this.notBefore - performance.now();
    if (this.painting !== null || (wait > 0 && this.rest !== undefined)) return;
    clearTimeout(this.rest);
    this.rest = wait > 0 ? setTimeout(() => this.planPaint(true), wait) : undefined;
    if (wait <= 0) super.planPaint(true);
  }

  paint() {
    this.painting = null;
    const begin = performance.now();
    const { tab, query, picked } = this.memory.restore(this.store.meta) ?? {}; // before the page was drawn again or reloaded
    if (tab) this.chosen = tab;
    if (query) this.filter.setQuery(query);
    if (picked) this.filter.picked = picked;
    this.notice.follow();
    this.compiles.refresh();
    this.lanes.refresh();
    this.paintFiltered();
    this.root.dataset.seq = String(this.store.seq ?? ""); // what is on the screen
    this.warmer ??= whenIdle((deadline) => this.warmSearch(deadline));
    const end = performance.now();
    this.notBefore = end + Math.min(REST * (end - begin), LONGEST_REST_MS);
  }

  /** @param {Deadline} deadline */
  warmSearch(deadline) {
    this.warmer = this.filter.warm(SEARCHED, deadline) ? null : whenIdle((next) => this.warmSearch(next));
  }

  /** The tab that is shown: the one that was chosen, else the first with rows. */
  get tab() {
    const tabs = allTabs(this.store);
    const chosen = tabs.find((tab) => tab.name === this.chosen);
    return chosen ?? tabs.find((tab) => this.store.table(tab.table).rows.length > 0 && !tab.isAside) ?? TABS[0];
  }

  /** How much is shown: one line until something is worth saying, then the answer, and everything on request. */
  get size() {
    if (this.isFull) return "full";
    const { totals, plan, findings, problem } = this.store;
    const costs = this.store.isLive() ? [] : plan?.costs ?? []; // what may still pay off is no cost yet
    const isCostly = costs.some(({ code, seconds }) => code !== null && seconds > LARGE_COST * totals.compile_s);
    this.isWorthSaying ||= totals.recompiles > 0 || Boolean(plan?.steps.length) || isCostly;
    this.isWorthSaying ||= problem !== null || listAdvice(findings).length > 0;
    return this.isWorthSaying ? "compact" : "line"; // it grows once
  }

  paintFiltered() {
    this.memory.save({ tab: this.chosen, query: this.filter.query, picked: this.filter.picked });
    this.filter.run([...SEARCHED, ...this.store.panels.map((panel) => panel.name)]);
    this.timeline.model.lit = this.filter.lit;
    this.counts = this.filter.count(allTabs(this.store));
    this.hits.places = this.filter.terms.length ? this.findHits() : [];
    this.draw();
    this.marks.show(this.filter.terms);
    if (this.size !== "line") this.timeline.paint();
  }

  /** Where the search has hits: steps of the plan, and rows by tab. */
  findHits() {
    const { plan } = this.store;
    const steps = (plan?.steps ?? []).map((step) => [step.title, step.place, step.what, step.why, step.change, ...step.title_values]);
    const costs = plan ? listLargeCosts(plan, this.store.isLive()).map(({ title, what, advice }) => [title, what, advice]) : [];
    const found = [...steps, ...costs].flatMap((texts, i) => (this.filter.matches(() => texts.join("\n").toLowerCase()) ? [i] : []));
    /** @param {number} i */
    const goToStep = (i) => findAll(this.view, ".cdiag-step")[found[i]]?.scrollIntoView({ block: "nearest" });
    /** @type {HitPlace[]} */
    const places = [{ label: "Plan", count: found.length, go: goToStep }];
    for (const tab of allTabs(this.store)) {
      const go = (/** @type {number} */ i) => {
        this.showTab(tab);
        if (!tab.view) this.table.current?.moveTo(i, false);
        findAll(this.view, ".cdiag-main")[0].scrollIntoView({ block: "nearest" });
      };
      places.push({ label: tab.label, count: this.counts.get(tab.name)?.shown ?? 0, go });
    }
    return places.filter(({ count: hits }) => hits > 0);
  }

  /** Draws everything but the timeline. The keys keep the state of the table while parts before it come and go. */
  draw() {
    const { store, size, tab } = this;
    const isFull = size === "full";
    const tabs = allTabs(store);
    const tabCount = tabs.filter((each) => hasRows(each, this.counts.get(each.name))).length;
    const hasGaps = tabs.some((each) => !each.isOnRequest && this.counts.get(each.name)?.isBlind);
    const hasTables = tabCount > 0 || hasGaps || !store.isLive(); // a table without rows says why
    Object.assign(this.root.dataset, { size, live: String(store.isLive()) });
    const commands = store.isLive() ? [...this.exports.commands, this.notice.command] : this.exports.commands;
    const pick = (/** @type {Finding} */ finding) => this.onPick({ label: finding.title, evidence: finding.evidence });
    const fly = (/** @type {RunningCompile} */ flight) => this.openCompile(flight.compile_key, null);
    const search = (/** @type {string} */ text) => {
      this.hits.at = -1;
      this.filter.setQuery(text);
      this.paintFiltered();
    };
    const { query, picked, isActive } = this.filter;
    const printed = this.isPrinting ? this.listPrintable().filter((each) => this.printed.includes(each.tab.name)) : [];
    const { target, traced } = this;
    const passed = this.filter.pass(tab);
    const said = this.filter.describe(tab, passed);
    const table = store.table(tab.table);
    const minor = table.rows.filter((row) => tab.minor?.is(table.reader(row))).length;
    const { unfolded } = this.filter;
    const toggleMinor = () => {
      if (!unfolded.delete(tab.name)) unfolded.add(tab.name);
      this.paintFiltered();
    };
    draw(this.view, html`
      <${Header} store=${store} compiles=${this.compiles} size=${size} commands=${commands} onFlight=${fly}
        onSize=${() => this.setFull(!isFull)}>
        <${SearchBox} query=${query} hits=${this.hits} onQuery=${search} />
      <//>
      ${isFull && query && html`<${HitBar} hits=${this.hits} tableCount=${tabCount} />`}
      <${Problem} store=${store} />
      ${this.exports.message && html`<div class="cdiag-exported" role="status">${this.exports.message}</div>`}
      ${this.isChoosing && html`
        <${PrintDialog} tabs=${this.listPrintable()} chosen=${this.printed} onClose=${() => this.update({ isChoosing: false })}
            onChoose=${(/** @type {string[]} */ printed) => this.update({ printed })} />`}
      ${size !== "line" && html`
        <${PlanCard} store=${store} actions=${this.planActions} picked=${picked?.label ?? null} isPrinting=${this.isPrinting}>
          ${isFull && !store.isLive() && html`<${Limits} store=${store} onPick=${pick} />`}
        <//>`}
      ${isFull && !store.isLive() && html`<${OwnCost} store=${store} />`}
      <div class="cdiag-full" hidden=${!isFull}><${Totals} store=${store} /></div>
      ${size !== "line" && html`<${Held} node=${this.timeline.node} />`}
      ${size === "compact" && html`<${MoreFindings} store=${store} onOpen=${() => this.setFull(true)} />`}
      ${isFull && html`<${Findings} store=${store} picked=${picked?.label ?? null} onPick=${pick} onExplore=${this.explore} />`}
      <div class="cdiag-full" key="tables" hidden=${!isFull || !hasTables}>
        <div class="cdiag-tabline">
          <${TabBar} panelId=${this.panelId} tabs=${tabs} current=${tab} counts=${this.counts} isFiltered=${isActive}
            onPick=${(/** @type {Tab} */ other) => this.showTab(other)} />
          ${picked && html`
            <button type="button" class="cdiag-chip" data-hint="show everything again" onClick=${() => this.onPick(null)}>
              only: ${picked.label}  ✕
            </button>`}
          <${Ways} store=${store} trail=${this.trail} />
        </div>
        ${minor > 0 && !isActive && html`
          <button type="button" class="cdiag-link cdiag-minor" onClick=${toggleMinor}>
            ${this.filter.hidesMinor(tab) ? "show" : "hide"} ${tab.minor?.describe(minor)}
          </button>`}
        <div class="cdiag-main" key="main" id=${this.panelId} role="tabpanel" aria-labelledby=${`${this.panelId}-${tab.name}`}>
          <${DataTable} compiles=${this.compiles} tab=${tab} passed=${isFull && !tab.view ? passed : []} said=${said} openId=${target?.row?.[0] ?? null}
            onOpen=${this.openRow} handle=${this.table} isHidden=${!isFull || Boolean(tab.view) || traced !== null} />
          ${isFull && tab.view && !traced && html`
            <${CallSites} stacks=${this.details.stacks} positions=${passed} filter=${this.filter} note=${said.note}
              openId=${target?.row?.[0] ?? null} onOpen=${this.openRow} />`}
          ${traced && html`
            <${Provenance} key=${traced.title} title=${traced.title} graphs=${traced.graphs} texts=${store.texts}
              onClose=${() => this.update({ traced: null })} />`}
          ${target && html`<${DetailPane} details=${this.details} target=${target} isHidden=${traced !== null} />`}
        </div>
      </div>
      <div class="cdiag-paper">
        ${printed.map((each) => html`
          <${PrintedTable} key=${each.tab.name} compiles=${this.compiles} tab=${each.tab} positions=${each.positions} />`)}
      </div>
      ${isFull && !store.isFrozen && html`<${Foot} store=${store} />`}`);
  }

  /** @param {boolean} isPrinting paper is white: everything is drawn in the light theme */
  setPrinting(isPrinting) {
    if (isPrinting) this.screenTheme = this.root.dataset.theme;
    this.root.dataset.theme = isPrinting ? "light" : this.screenTheme;
    this.isPrinting = isPrinting;
    this.draw();
    this.timeline.setPrinting(isPrinting);
  }

  listPrintable() {
    const tabs = allTabs(this.store).filter((tab) => !tab.view);
    return tabs.map((tab) => ({ tab, positions: this.filter.pass(tab) })).filter(({ positions }) => positions.length > 0);
  }

  /** @param {Partial<Dashboard>} values */
  update(values) {
    Object.assign(this, values);
    this.draw();
  }

  tick() {
    const isFlying = this.store.isLive() && this.store.now.length > 0 && !this.store.paused;
    if (isFlying && this.timeline.isFollowing && this.size !== "line") this.timeline.paint();
  }

  /** @param {boolean} isFull */
  setFull(isFull) {
    this.isFull = isFull;
    remember(nameOfSize(), isFull ? "full" : "compact");
    this.paint();
  }

  /** @param {Picked | null} picked a finding or a step of the plan; null, or the same one again, selects none */
  onPick(picked) {
    const isSelected = picked !== null && this.filter.picked?.label !== picked.label;
    this.filter.picked = isSelected ? picked : null;
    if (isSelected) this.goToEvidence(picked.evidence);
    this.paintFiltered();
  }

  /** @returns {[from: number, to: number]} what the timeline shows, in s since the start */
  readRange() {
    const { extent } = this.lanes;
    const { from, to } = this.timeline.model.zoom ?? extent;
    return [(from - extent.from) / 1000, (to - extent.from) / 1000];
  }

  /** @param {Place} place what a link names: a finding, or a stretch of the timeline */
  goTo({ finding, range }) {
    this.paint();
    const found = finding && this.store.findings.find(({ id }) => id === finding);
    if (found && this.filter.picked?.label !== found.title) this.onPick({ label: found.title, evidence: found.evidence });
    if (found) findAll(this.view, ".cdiag-detail")[0]?.scrollIntoView({ block: "nearest" });
    if (!range) return;
    const [from, to] = range.map((seconds) => this.lanes.extent.from + 1000 * seconds);
    this.timeline.model.zoom = { from, to };
    this.timeline.paint();
  }

  /** @param {number[]} evidence events: the timeline shows when they were compiled, and a tenth of that on both sides */
  showStretch(evidence) {
    const table = this.store.table("compiles");
    const rows = [...this.filter.findKeys(evidence)].flatMap((key) => this.compiles.members("compiles", key));
    const ends = rows.flatMap((row) => [table.get(row, "time"), table.get(row, "time") + 1000 * (table.get(row, "duration_s") ?? 0)]);
    if (!ends.length) return;
    const [from, to] = [Math.min(...ends), Math.max(...ends)].map((ms) => (ms - this.lanes.extent.from) / 1000);
    const beside = Math.max(0.01, (to - from) / 10);
    if (!this.isFull) this.setFull(true);
    this.goTo({ page: "dashboard", range: [from - beside, to + beside] });
    this.timeline.node.scrollIntoView({ block: "nearest" });
  }

  /** @param {number[]} evidence events; the tab that has most of them is shown, and the detail of the first one */
  goToEvidence(evidence) {
    const held = TABS.map((tab) => {
      const table = this.store.table(tab.table);
      return { tab, rows: evidence.map((id) => this.store.rowOf(table, id)).filter((row) => row !== null) };
    });
    const { tab, rows } = held.reduce((best, next) => (next.rows.length > best.rows.length ? next : best));
    if (!rows.length) return;
    this.chosen = tab.name;
    this.openRow(this.store.table(tab.table), rows[0]);
  }

  /** @param {Tab} tab */
  showTab(tab) {
    this.chosen = tab.name;
    this.traced = null;
    this.paintFiltered();
  }

  /** @type {(key: string | null, id: number | null) => void} `id` is the event id of its row, null while it is in flight */
  openCompile(key, id) {
    const table = this.store.table("compiles");
    this.show({ key, table, row: id === null ? null : table.byId(id) });
  }

  /** @param {Target | null} target what the details show */
  show(target) {
    this.hints.hide();
    if (target && !this.isFull) this.setFull(true);
    this.update({ traced: null, target });
    const compile = target?.table.name === "compiles" ? target.row : this.compiles.members("compiles", target?.key ?? null)[0];
    this.timeline.setSelected(compile?.[0] ?? null);
  }

  /**
   * The keys of the page. Letters count only outside of fields, and only while the focus is in the page, so that the
   * notebook's own keys stay.
   * @param {KeyboardEvent} event
   */
  onKey(event) {
    if (event.defaultPrevented) return;
    if (event.key === "Escape" && this.target && !this.traced) {
      event.stopPropagation();
      return this.show(null);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || targetOf(event).closest("input, select, textarea, [contenteditable]")) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      "/": () => {
        if (!this.isFull) this.setFull(true);
        findAll(this.view, ".cdiag-search")[0]?.focus();
      },
      e: () => this.store.isFrozen || this.setFull(!this.isFull),
      j: () => this.moveStep(1),
      k: () => this.moveStep(-1),
      c: () => findAll(this.view, ".cdiag-whole .cdiag-copy")[0]?.click(),
    };
    const run = Object.hasOwn(keys, event.key.toLowerCase()) && keys[event.key.toLowerCase()];
    if (!run) return;
    run();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} direction 1 gives the focus to the next step of the plan, -1 to the one before */
  moveStep(direction) {
    const steps = findAll(this.view, ".cdiag-step");
    const here = steps.findIndex((step) => step.contains(document.activeElement));
    findAll(steps[here < 0 && direction < 0 ? steps.length - 1 : here + direction], "button, summary")[0]?.focus();
  }
}

/** @param {{store: Store, trail: Trail}} props */
function Ways({ store: { ranks, vllm }, trail }) {
  const loaded = ranks?.loaded.length ? `, rows of ${formatCount(ranks.loaded.length)}` : "";
  const title = loaded && "the tables have the rows of one rank of each group that compiled the same";
  return html`<div class="cdiag-ways">
    ${vllm && html`
      <button type="button" class="cdiag-link cdiag-to-vllm" onClick=${() => trail.go({ page: "vllm" })}>
        vLLM: ${formatAmount(vllm.compiles, "compile")} ›
      </button>`}
    ${ranks && html`
      <button type="button" class="cdiag-link cdiag-to-ranks" title=${title || null} onClick=${() => trail.go({ page: "ranks" })}>
        ${formatAmount(ranks.count, "rank")}${loaded} ›
      </button>`}
    <button type="button" class="cdiag-link cdiag-to-explorer" onClick=${() => trail.explore({})}>guard explorer ›</button>
  </div>`;
}

/** @param {{store: Store}} props what went wrong between the kernel and the page */
function Problem({ store: { problem, catchingUp } }) {
  const text = problem ?? (catchingUp ? MISSED : null);
  return text && html`<div class="cdiag-notice" role="alert">${text}</div>`;
}

/** @param {{store: Store, onPick: (finding: Finding) => void}} props what runs uncompiled, once the run has ended */
function Limits({ store, onPick }) {
  return listFindings(store.findings).filter(isLimit).map(([finding]) => html`
    <div class="cdiag-message is-bad" key=${finding.title}>
      <${Icon} name="stop" />
      <div class="cdiag-message-text">
        <b><${Prose} text=${finding.title} />.</b>${" "}
        ${store.plan?.steps.length ? null : html`<span class="cdiag-plain"><${Prose} text=${finding.suggestion} /></span>`}
      </div>
      <button type="button" class="cdiag-link" onClick=${() => onPick(finding)}>Show it</button>
    </div>`);
}

/** @type {Component<{store: Store}>} Recording that took much, once the run has ended. */
function OwnCost({ store }) {
  const { own_share: share, own_s: own, compile_s: compiling } = store.totals;
  if (!(share > LARGE_SHARE)) return null;
  const isLean = store.meta.detail === "lean";
  return html`<div class="cdiag-message is-warn cdiag-warning cdiag-own-cost">
    <${Icon} name="warning" />
    <div class="cdiag-message-text">
      <b>compilediag itself took ${formatShare(share)}</b> (${formatSeconds(own)} of ${formatSeconds(compiling)}).${" "}
      <span class="cdiag-plain">${isLean ? "It records as little as it can." : html`<code>${LEAN}</code> records less.`}</span>
    </div>
    ${!isLean && html`<${Copy} text=${LEAN} hint="copy the setting" />`}
  </div>`;
}

/** @type {Component<{store: Store, onOpen: () => void}>} One line for what the plan has no step for. */
function MoreFindings({ store, onOpen }) {
  const advice = listAdvice(store.findings);
  if (!advice.length) return null;
  const label = formatAmount(advice.length, store.plan?.steps.length ? "other finding" : "finding");
  return html`<button type="button" class="cdiag-link cdiag-more-findings" onClick=${onOpen}>${label} ›</button>`;
}

/** @type {Component<{store: Store}>} With which versions the session was recorded, and how; a report has that in its head. */
function Foot({ store }) {
  const { meta } = store;
  return html`<div class="cdiag-foot">
    ${meta.torch && html`<span>torch ${meta.torch}${meta.device ? ` (${meta.device})` : ""}</span>`}
    ${meta.python && html`<span>Python ${meta.python}</span>`} ${meta.detail && html`<span>detail ${meta.detail}</span>`}
    ${meta.started_ms && html`<span>started <${Ago} ms=${meta.started_ms} now=${store.kernelNow()} /></span>`}
  </div>`;
}
