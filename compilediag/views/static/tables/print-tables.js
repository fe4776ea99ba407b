// What is printed: the tables that the reader chooses, with all of their rows; plan, findings and timeline are always.
import { formatAmount, formatCount, isNumeric } from "../core/format.js";
import { html } from "../core/view.js";
import { classOf, listColumns, makeContext, writeCell } from "./columns.js";
import { useLayoutEffect, useRef } from "../vendor/hooks.js";

const MOST_ROWS = 1000; // of one table
const PAPER_WIDTH = 900; // px of a screen that shows as many columns as a page of paper
/** The tabs that are printed if the reader chooses no others. */
export const USUAL = ["recompiles", "compiles", "failures", "refused_calls", "graph_breaks"];

/** @param {{tabs: ShownTab[], chosen: string[], onChoose: (names: string[]) => void, onClose: () => void}} props */
export function PrintDialog({ tabs, chosen, onChoose, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => dialog.current?.showModal(), []);
  /** @param {string} name */
  const flip = (name) => onChoose(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name]);
  const print = () => {
    dialog.current?.close();
    globalThis.print();
  };
  return html`
    <dialog class="cdiag-print-dialog" aria-label="print" ref=${dialog} onClose=${onClose}
      onKeyDown=${(/** @type {Event} */ event) => event.stopPropagation()}>
      <h2>Tables to print</h2>
      <div class="cdiag-print-choices">${tabs.map(({ tab, positions }) => html`
        <label key=${tab.name}><input type="checkbox" checked=${chosen.includes(tab.name)} onChange=${() => flip(tab.name)} />
          ${` ${tab.label} `}<span class="cdiag-count">${formatCount(positions.length)}</span></label>`)}
      </div>
      <div class="cdiag-print-buttons">
        <button type="button" class="cdiag-button" onClick=${print}>Print</button>
        <button type="button" class="cdiag-button" onClick=${() => dialog.current?.close()}>Cancel</button>
      </div>
    </dialog>`;
}

/** @type {Component<ShownTab & {compiles: Compiles}>} All rows of a table; the table on the screen has only those in view. */
export function PrintedTable({ compiles, tab, positions }) {
  const table = compiles.store.table(tab.table);
  const columns = listColumns(tab, table, PAPER_WIDTH);
  const rest = positions.length - MOST_ROWS;
  return html`<h2>${tab.label}</h2>
    <table>
      <thead><tr>${columns.map((column) => html`<th class=${isNumeric(column.type) ? "is-number" : ""}>${column.label}</th>`)}</tr></thead>
      <tbody>${positions.slice(0, MOST_ROWS).map((position) => {
        const context = makeContext(table, table.rows[position], compiles);
        return html`<tr>${columns.map((column) => html`<td class=${classOf(column)}>${writeCell(column, table, context)}</td>`)}</tr>`;
      })}</tbody>
    </table>
    ${rest > 0 && html`<p>and ${formatAmount(rest, "more row", "more rows")}</p>`}`;
}
