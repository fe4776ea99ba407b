// The entry of the page that compares two sessions: a tab per kind of change, in the report's own tables.
import { SearchField } from "./core/blocks.js";
import { Compiles } from "./core/compiles.js";
import { make } from "./core/dom.js";
import { formatAmount } from "./core/format.js";
import { Hints } from "./core/hints.js";
import { openPage, unpackPatch } from "./core/page-data.js";
import { Store } from "./core/store.js";
import { followTheme } from "./core/theme.js";
import { draw, Held, html } from "./core/view.js";
import { TabBar } from "./dashboard/tab-bar.js";
import { DetailPane, Details } from "./details/detail-pane.js";
import { DataTable } from "./tables/data-table.js";
import { Filter } from "./tables/filter.js";
import { panelTabs } from "./tables/tabs.js";
import { TimelineLanes } from "./timeline/lanes.js";
import { Timeline } from "./timeline/timeline.js";

const PANEL_ID = "cdiag-panel-diff";

/** @param {HTMLElement} root @param {DiffData} data */
function showDiff(root, { names, totals, gaps, panels, timelines: packed, evidence }) {
  const store = new Store(true);
  store.receive({ seq: 1, reset: true, panels });
  const compiles = new Compiles(store);
  const filter = new Filter(compiles);
  const kinds = panelTabs(store);
  /** @type {Tab | undefined} undefined if nothing differs */
  let kind = kinds[0];
  const currentTable = () => store.table(kind?.table ?? "");
  /** @type {Target | null} */
  let target = null;
  const table = { current: /** @type {TableHandle | null} */ (null) };
  const details = new Details(compiles, { close: () => open(null), focusRow: () => table.current?.focusRow() });
  /** @type {DiffChange[]} those of the compile that was chosen, one of which is open */
  let chosen = [];
  const timelines = makeTimelines(packed, (side, key) => {
    /** @type {DiffChange[]} that the compile belongs to */
    const changes = kinds.flatMap((tab) => {
      const { rows } = store.table(tab.table);
      return (evidence[tab.table] ?? []).flatMap((keys, i) => (key !== null && keys[side].includes(key) ? [{ tab, row: rows[i] }] : []));
    });
    if (changes.length) openChange(changes[0], changes);
  });
  /** @param {DiffChange} change @param {DiffChange[]} changes */
  const openChange = ({ tab, row }, changes) => {
    show(tab);
    open({ key: null, table: currentTable(), row }, changes);
  };
  const view = make("div", { class: "cdiag-view" });
  root.classList.add("cdiag");
  root.replaceChildren(view);

  /** @param {Target | null} opened @param {DiffChange[]} [changes] of the compile that led to it */
  const open = (opened, changes = []) => {
    target = opened;
    chosen = changes;
    paint();
    const row = target?.row ? -1 - target.row[0] : null;
    timelines.forEach((timeline, side) => {
      timeline.model.lit = row === null ? null : new Set(evidence[kind?.table ?? ""]?.[row]?.[side]);
      timeline.paint();
    });
  };
  /** @param {string} text */
  const search = (text) => {
    filter.setQuery(text);
    paint();
  };
  /** @param {Tab} picked */
  const show = (picked) => {
    kind = picked;
    paint();
  };
  const paint = () => {
    filter.run(kinds.map((each) => each.table));
    const passed = kind ? filter.pass(kind) : [];
    draw(view, html`
      <header>
        <div class="cdiag-diff-top">
          <h1 class="cdiag-diff-title">${names.join(" → ")}</h1>
          ${kind && html`<${SearchField} label="search" placeholder="search everything" onInput=${search} />`}
        </div>
        ${totals.map((line) => html`<p class="cdiag-dim">${line}</p>`)}
      </header>
      ${timelines.map((timeline, side) => html`
        <h2 class="cdiag-diff-name">${side ? "After" : "Before"}: ${names[side]}</h2>
        <${Held} node=${timeline.node} />`)}
      ${chosen.length > 1 && html`
        <p class="cdiag-diff-changes" role="status">This compile belongs to ${formatAmount(chosen.length, "change")}:
          ${chosen.map((change) => html` <button type="button" class="cdiag-link" aria-pressed=${change.row === target?.row}
            onClick=${() => openChange(change, chosen)}>${change.tab.label}: ${store.table(change.tab.table).get(change.row, "c3")}</button>`)}
        </p>`}
      ${kind && html`
        <div class="cdiag-tabline">
          <${TabBar} panelId=${PANEL_ID} tabs=${kinds} current=${kind} counts=${filter.count(kinds)} isFiltered=${filter.isActive} onPick=${show} />
        </div>`}
      <div class="cdiag-main" key="main" id=${PANEL_ID} role="tabpanel" aria-labelledby=${kind && `${PANEL_ID}-${kind.name}`} hidden=${!kind}>
        ${kind && html`
          <${DataTable} compiles=${compiles} tab=${kind} passed=${passed} handle=${table} openId=${target?.row?.[0] ?? null}
            said=${{ note: passed.length ? null : "nothing matches", isWarning: false }}
            onOpen=${(/** @type {Table} */ from, /** @type {Cells} */ row) => open({ key: null, table: from, row })} />`}
        ${target && html`<${DetailPane} details=${details} target=${target} />`}
      </div>
      <div class="cdiag-foot">${gaps.map((line) => html`<div>${line}</div>`)}</div>`);
  };
  timelines.forEach((timeline, side) => {
    timeline.onRange = (range) => timelines[1 - side].follow(range);
  });
  new Hints(root);
  followTheme(root, undefined, () => {});
  paint();
}

/**
 * The timelines of the two sessions, on one scale: each begins with its first compile.
 * @param {PackedPatch[]} packed
 * @param {(side: number, key: string | null) => void} onPick
 */
function makeTimelines(packed, onPick) {
  const made = packed.map((patch, side) => {
    const store = new Store(true);
    store.receive(unpackPatch(patch));
    const own = new Compiles(store);
    const lanes = new TimelineLanes(own);
    [own, lanes].forEach((part) => part.refresh());
    return { lanes, timeline: new Timeline(lanes, (key) => onPick(side, key)) };
  });
  const length = Math.max(...made.map(({ lanes }) => lanes.extent.to - lanes.extent.from));
  return made.map(({ lanes, timeline }) => {
    lanes.extent = { from: lanes.extent.from, to: lanes.extent.from + length };
    timeline.model.isShared = true;
    return timeline;
  });
}

void openPage(showDiff);
