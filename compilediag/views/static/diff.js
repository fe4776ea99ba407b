// The page of a diff: a tab a kind of change, in the report's own tables.
import { Detail } from "./dashboard/detail-pane.js";
import { make, setShown, setText } from "./core/dom.js";
import { Filter } from "./dashboard/filter.js";
import { Groups } from "./core/compile-groups.js";
import { Store } from "./core/store.js";
import { DataTable } from "./dashboard/data-table.js";
import { Tabs } from "./dashboard/tab-bar.js";
import { followTheme } from "./core/theme.js";
import { panelTabsOf } from "./dashboard/tab-columns.js";

class DiffPage {
  constructor(root, told) {
    this.store = new Store(true);
    this.store.receive({ seq: 1, reset: true, panels: told.panels });
    const groups = new Groups(this.store);
    this.filter = new Filter(this.store, groups);
    this.kinds = panelTabsOf(this.store);
    this.kind = this.kinds[0];
    this.table = new DataTable(groups, (table, row) => this.open({ group: null, table, row }));
    this.detail = new Detail(this.store, groups, { close: () => this.open(null) });
    const main = make("div", "cdiag-main", this.table.node, this.detail.node);
    main.id = "cdiag-panel-diff";
    this.tabs = new Tabs(main, (kind) => this.show(kind));
    root.classList.add("cdiag");
    root.replaceChildren(this.head(told), make("div", "cdiag-tabline", this.tabs.node), main, this.foot(told));
    [this.tabs.node.parentNode, main, this.search].forEach((part) => setShown(part, this.kinds.length > 0));
    followTheme(root, () => {});
    this.paint();
  }

  head({ names, totals }) {
    this.search = make("input", "cdiag-search");
    this.search.type = "search";
    this.search.placeholder = "search everything";
    this.search.setAttribute("aria-label", "search");
    this.search.addEventListener("input", () => this.paint());
    const title = make("h1", "cdiag-diff-title", names.join(" → "));
    const lines = totals.map((line) => make("p", "cdiag-dim", line));
    return make("header", "", make("div", "cdiag-diff-top", title, this.search), ...lines);
  }

  foot({ gaps }) {
    return make("footer", "cdiag-foot", ...gaps.map((line) => make("div", "", line)));
  }

  show(kind) {
    this.kind = kind;
    this.paint();
  }

  open(target) {
    this.detail.open(target);
    this.table.setOpen(target?.row[0] ?? null);
  }

  paint() {
    if (!this.kind) return;
    this.filter.setQuery(this.search.value);
    const { passed } = this.filter.run(this.kinds.map((kind) => kind.table));
    const counts = this.kinds.map(({ table }) => [
      table,
      { shown: passed.get(table).length, all: this.store.table(table).rows.length, blind: false },
    ]);
    this.tabs.paint(this.kinds, this.kind.table, new Map(counts));
    this.table.show(this.kind, this.store.table(this.kind.table), passed.get(this.kind.table));
    this.table.setNote(passed.get(this.kind.table).length ? null : "nothing matches", false);
  }
}

new DiffPage(
  document.getElementById("cdiag-report"),
  JSON.parse(document.getElementById("cdiag-data").textContent),
);
