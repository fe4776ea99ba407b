// What is printed: the tables that the reader chooses, with all of their rows; plan, findings and timeline are always.
import { make, makeButton, setShown } from "../core/dom.js";
import { formatAmount, formatCount, isNumeric } from "../core/format.js";
import { makeContext, tabName, writeCell } from "./columns.js";
/** @import { Recompiles } from "../core/recompiles.js" */
/** @import { Store } from "../core/store.js" */
/** @import { TabRows } from "./tab-rows.js" */
/** @import { Tab } from "./tab-types" */

const MOST_ROWS = 1000; // of one table
const PAPER_WIDTH = 900; // px of a screen that shows as many columns as a page of paper
const USUAL = ["recompiles", "compiles", "failures", "refused_calls", "graph_breaks"];

export class PrintTables {
  /**
   * @param {Store} store
   * @param {Recompiles} recompiles
   * @param {TabRows} rows
   * @param {() => Tab[]} listTabs
   */
  constructor(store, recompiles, rows, listTabs) {
    this.store = store;
    this.recompiles = recompiles;
    this.rows = rows;
    this.listTabs = listTabs;
    /** @type {Set<string>} names of the tabs that are printed */
    this.chosen = new Set(USUAL);
    this.choices = make("div", "cdiag-print-choices");
    const print = makeButton("cdiag-button", "Print", () => {
      this.setOpen(false);
      globalThis.print();
    });
    const cancel = makeButton("cdiag-button", "Cancel", () => this.setOpen(false));
    const title = make("h2", "", "Tables to print");
    this.dialog = make("section", "cdiag-print-dialog", title, this.choices, make("div", "cdiag-print-buttons", print, cancel));
    this.dialog.setAttribute("aria-label", "print");
    this.dialog.addEventListener("keydown", (event) => event.key === "Escape" && this.onEscape(event));
    this.paper = make("div", "cdiag-paper");
    /** @type {Element | null} */
    this.opener = null;
    this.setOpen(false);
  }

  open() {
    this.opener = document.activeElement;
    const tabs = this.listTabs().filter((tab) => !tab.view && this.rows.pass(tab).length > 0);
    this.choices.replaceChildren(...tabs.map((tab) => this.makeChoice(tab)));
    this.setOpen(true);
    this.dialog.querySelector("input")?.focus();
  }

  /** @param {KeyboardEvent} event */
  onEscape(event) {
    event.stopPropagation();
    this.setOpen(false);
  }

  /** @param {boolean} isOpen */
  setOpen(isOpen) {
    setShown(this.dialog, isOpen);
    if (!isOpen && this.opener instanceof HTMLElement) this.opener.focus({ preventScroll: true });
  }

  /** @param {Tab} tab */
  makeChoice(tab) {
    const box = make("input", "");
    box.type = "checkbox";
    box.checked = this.chosen.has(tabName(tab));
    box.addEventListener("change", () => (box.checked ? this.chosen.add(tabName(tab)) : this.chosen.delete(tabName(tab))));
    return make("label", "", box, ` ${tab.label} `, make("span", "cdiag-count", formatCount(this.rows.pass(tab).length)));
  }

  /** Makes the chosen tables; the table on the screen has only the rows in view. */
  fill() {
    const tabs = this.listTabs().filter((tab) => !tab.view && this.chosen.has(tabName(tab)));
    this.paper.replaceChildren(...tabs.flatMap((tab) => this.makeTable(tab)));
  }

  empty() {
    this.paper.replaceChildren();
  }

  /** @param {Tab} tab */
  makeTable(tab) {
    const table = this.store.table(tab.table);
    const passed = this.rows.pass(tab);
    if (!passed.length) return [];
    const columns = tab.columns.filter((column) => (column.from ?? 0) <= PAPER_WIDTH);
    const heads = columns.map(({ label, type }) => make("th", isNumeric(type) ? "is-number" : "", label));
    const lines = passed.slice(0, MOST_ROWS).map((position) => {
      const context = makeContext(table, table.rows[position], this.recompiles);
      const cells = columns.map((column) => {
        const className = column.isCode ? "is-code" : isNumeric(column.type) ? "is-number" : "";
        return make("td", className, writeCell(column, table, context));
      });
      return make("tr", "", ...cells);
    });
    const rest = passed.length > MOST_ROWS ? [make("p", "", `and ${formatAmount(passed.length - MOST_ROWS, "more row", "more rows")}`)] : [];
    const head = make("thead", "", make("tr", "", ...heads));
    return [make("h2", "", tab.label), make("table", "", head, make("tbody", "", ...lines)), ...rest];
  }
}
