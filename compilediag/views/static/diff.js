// The entry of the page that compares two sessions: a tab per kind of change, in the report's own tables.
import { CompileGroups } from "./core/compile-groups.js";
import { make, makeSearch, setShown } from "./core/dom.js";
import { Hints } from "./core/hints.js";
import { Recompiles } from "./core/recompiles.js";
import { openPage } from "./core/page-data.js";
import { Store } from "./core/store.js";
import { followTheme } from "./core/theme.js";
import { draw, html } from "./core/view.js";
import { tabName } from "./tables/columns.js";
import { DataTable } from "./tables/data-table.js";
import { DetailPane } from "./details/detail-pane.js";
import { Filter } from "./dashboard/filter.js";
import { panelTabs } from "./tables/panel-tabs.js";
import { TabBar } from "./dashboard/tab-bar.js";
/** @import { Panel } from "./core/page-types" */
/** @import { Target } from "./details/detail-pane.js" */
/** @import { Tab } from "./tables/tab-types" */

/** @typedef {{names: string[], totals: string[], gaps: string[], panels: Panel[]}} DiffData */

class DiffPage {
  /**
   * @param {HTMLElement} root
   * @param {DiffData} data
   */
  constructor(root, data) {
    this.store = new Store(true);
    this.store.receive({ seq: 1, reset: true, panels: data.panels });
    const groups = new CompileGroups(this.store);
    this.filter = new Filter(this.store, groups);
    this.kinds = panelTabs(this.store);
    this.search = makeSearch("search everything", "search", () => this.paint());
    this.detail = new DetailPane(this.store, groups, { close: () => this.open(null) });
    const main = make("div", "cdiag-main", this.detail.node);
    main.id = "cdiag-panel-diff";
    /** @type {Tab | undefined} */
    this.kind = this.kinds[0];
    /** @type {DataTable | null} null if nothing differs */
    this.table = null;
    if (this.kind) {
      const table = this.store.table(this.kind.table);
      this.table = new DataTable(new Recompiles(this.store, groups), this.kind, table, (_, row) => this.open({ key: null, table: this.currentTable(), row }));
      main.prepend(this.table.node);
    }
    main.setAttribute("role", "tabpanel");
    this.main = main;
    this.strip = make("div", "cdiag-tabline");
    const foot = make("div", "cdiag-foot", ...data.gaps.map((line) => make("div", "", line)));
    root.classList.add("cdiag");
    root.replaceChildren(this.makeHead(data), this.strip, main, foot);
    [this.strip, main, this.search].forEach((part) => setShown(part, this.kinds.length > 0));
    new Hints(root);
    followTheme(root, () => {});
    this.paint();
  }

  /** @param {DiffData} data */
  makeHead({ names, totals }) {
    const title = make("h1", "cdiag-diff-title", names.join(" → "));
    const lines = totals.map((line) => make("p", "cdiag-dim", line));
    return make("header", "", make("div", "cdiag-diff-top", title, this.search), ...lines);
  }

  currentTable() {
    return this.store.table(this.kind?.table ?? "");
  }

  /** @param {Tab} kind */
  show(kind) {
    this.kind = kind;
    this.paint();
  }

  /** @param {Target | null} target */
  open(target) {
    this.detail.open(target);
    this.table?.setOpen(target?.row?.[0] ?? null);
  }

  paint() {
    if (!this.kind || !this.table) return;
    this.filter.setQuery(this.search.value);
    const { passed } = this.filter.run(this.kinds.map((kind) => kind.table));
    const counts = new Map(this.kinds.map((kind) => {
      const all = this.store.table(kind.table).rows.length;
      return [tabName(kind), { shown: passed.get(kind.table)?.length ?? 0, all, isBlind: false }];
    }));
    const { kind, kinds } = this;
    const onPick = (/** @type {Tab} */ picked) => this.show(picked);
    const isFiltered = this.filter.isActive;
    draw(this.strip, html`<${TabBar} panelId=${this.main.id} tabs=${kinds} current=${kind} counts=${counts} isFiltered=${isFiltered} onPick=${onPick} />`);
    this.main.setAttribute("aria-labelledby", `${this.main.id}-${tabName(kind)}`);
    const shown = passed.get(this.kind.table) ?? [];
    this.table.show(this.kind, this.currentTable(), shown);
    this.table.setNote(shown.length ? null : "nothing matches", false);
  }
}

void openPage((root, data) => new DiffPage(root, data));
