// What is printed: the tables that the reader chooses, with all of their rows; plan, findings and timeline are always.
import { make } from "../core/dom.js";
import { formatAmount, formatCount, isNumeric } from "../core/format.js";
import { draw, html } from "../core/view.js";
import { listColumns, makeContext, tabName, writeCell } from "./columns.js";
/** @import { TabRows } from "./tab-rows.js" */
/** @import { Tab, TabColumn } from "./tab-types" */

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
    this.dialog = make("dialog", "cdiag-print-dialog");
    this.dialog.setAttribute("aria-label", "print");
    this.dialog.addEventListener("keydown", (event) => event.stopPropagation()); // the page has keys of its own
    this.paper = make("div", "cdiag-paper");
  }

  open() {
    const tabs = this.listTabs().filter((tab) => !tab.view && this.rows.pass(tab).length > 0);
    const print = () => {
      this.dialog.close();
      globalThis.print();
    };
    draw(this.dialog, html`<h2>Tables to print</h2>
      <div class="cdiag-print-choices">${tabs.map((tab) => this.drawChoice(tab))}</div>
      <div class="cdiag-print-buttons">
        <button type="button" class="cdiag-button" onClick=${print}>Print</button>
        <button type="button" class="cdiag-button" onClick=${() => this.dialog.close()}>Cancel</button>
      </div>`);
    this.dialog.showModal();
  }

  /** @param {Tab} tab */
  drawChoice(tab) {
    const name = tabName(tab);
    const flip = () => this.chosen.delete(name) || this.chosen.add(name);
    return html`<label key=${name}><input type="checkbox" checked=${this.chosen.has(name)} onChange=${flip} />
      ${` ${tab.label} `}<span class="cdiag-count">${formatCount(this.rows.pass(tab).length)}</span></label>`;
  }

  /** Makes the chosen tables; the table on the screen has only the rows in view. */
  fill() {
    const tabs = this.listTabs().filter((tab) => !tab.view && this.chosen.has(tabName(tab)) && this.rows.pass(tab).length > 0);
    draw(this.paper, html`${tabs.map((tab) => this.drawTable(tab))}`);
  }

  empty() {
    draw(this.paper, null);
  }

  /** @param {Tab} tab */
  drawTable(tab) {
    const table = this.store.table(tab.table);
    const passed = this.rows.pass(tab);
    const columns = listColumns(tab, table, PAPER_WIDTH);
    /** @param {number} position */
    const drawRow = (position) => {
      const context = makeContext(table, table.rows[position], this.recompiles);
      return html`<tr>${columns.map((column) => html`<td class=${classOf(column)}>${writeCell(column, table, context)}</td>`)}</tr>`;
    };
    const rest = passed.length - MOST_ROWS;
    return html`<h2>${tab.label}</h2>
      <table>
        <thead><tr>${columns.map((column) => html`<th class=${isNumeric(column.type) ? "is-number" : ""}>${column.label}</th>`)}</tr></thead>
        <tbody>${passed.slice(0, MOST_ROWS).map(drawRow)}</tbody>
      </table>
      ${rest > 0 && html`<p>and ${formatAmount(rest, "more row", "more rows")}</p>`}`;
  }
}

/** @param {TabColumn} column */
function classOf(column) {
  return column.isCode ? "is-code" : isNumeric(column.type) ? "is-number" : "";
}
