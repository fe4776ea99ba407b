// A table of any length: only the rows in view are elements. One tab stop; arrow keys move, Enter opens.
import { findAll, make, setShown, setText, targetOf } from "../core/dom.js";
import { formatDate, isNumeric, MISSING } from "../core/format.js";
import { explain } from "../core/glossary.js";
import { Inputs } from "../core/inputs.js";
import { findCellNumber, hasCells, selectLine } from "../core/notebook-cell.js";
import { draw, html } from "../core/view.js";
import { classOf, fitColumns, listColumns, makeContext, readLine, tabName, WITH_BARS, writeCell } from "./columns.js";

/** @typedef {string | number | null} Key */
/** @typedef {{node: HTMLElement, inputs: Inputs}} RowElement an element, and what it was made of */

const ROW = 30; // px, as in the style sheet
const SPARE = 4; // rows kept above and below the view
const SAMPLE = 80; // rows that the widths of columns are taken from

const COLLATOR = new Intl.Collator("en", { numeric: true });

/**
 * Positions sorted by their keys; null last in either direction, equal keys newest first.
 * @param {number[]} positions
 * @param {Key[]} keys
 * @param {number} direction
 */
function sortPositions(positions, keys, direction) {
  const keyed = positions.map((position, i) => ({ position, key: keys[i] }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null) || b.position - a.position;
    const areNumbers = typeof a.key === "number" && typeof b.key === "number";
    const order = areNumbers ? Number(a.key) - Number(b.key) : COLLATOR.compare(String(a.key), String(b.key));
    return direction * order || b.position - a.position;
  });
  return keyed.map((entry) => entry.position);
}

export class DataTable {
  /**
   * @param {Compiles} compiles
   * @param {Tab} tab the tab that is shown first
   * @param {(table: Table, row: Cells) => void} onOpen runs on a click or Enter
   */
  constructor(compiles, tab, onOpen) {
    this.compiles = compiles;
    this.tab = tab;
    /** @type {Table} */
    this.table = compiles.store.table(tab.table);
    this.onOpen = onOpen;
    this.isShown = false;
    /** @type {Map<string, Sort>} name of a tab -> how it is sorted */
    this.sorts = new Map();
    /** @type {number[]} */
    this.passed = [];
    /** @type {number[]} positions of the rows in the order of the table */
    this.order = [];
    /** @type {TabColumn[]} */
    this.columns = [];
    /** @type {Map<number, RowElement>} event id -> row element in view */
    this.elements = new Map();
    this.active = 0; // index in order that holds the tab stop
    /** @type {number | null} */
    this.openId = null;
    this.inputs = new Inputs(); // of the layout
    this.hadFocus = false;
    this.isMarked = false; // the active row is a hit of the search
    this.width = 0;
    this.head = make("div", "cdiag-head");
    this.head.setAttribute("role", "row");
    this.canvas = make("div", "cdiag-rows");
    this.canvas.setAttribute("role", "rowgroup");
    this.scroller = make("div", "cdiag-scroller", this.head, this.canvas);
    this.scroller.setAttribute("role", "grid");
    this.note = make("div", "cdiag-note");
    this.node = make("div", "cdiag-table", this.note, this.scroller);
    this.scroller.addEventListener("scroll", () => this.paint());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("click", (event) => this.onClick(event));
    this.watcher = new ResizeObserver(() => this.onResize());
    this.watcher.observe(this.scroller);
  }

  destroy() {
    this.watcher.disconnect();
  }

  /**
   * Shows the rows of a tab that passed the filter, and says why there are none, or what they leave out.
   * @param {Tab} tab
   * @param {number[]} passed
   * @param {{note: string | null, isWarning: boolean}} said
   */
  show(tab, passed, { note, isWarning }) {
    const table = this.compiles.store.table(tab.table);
    setText(this.note, note ?? "");
    setShown(this.note, note !== null);
    this.note.classList.toggle("is-warning", isWarning);
    const isOther = !this.isShown || this.tab !== tab;
    if (isOther || this.table !== table) this.dropElements();
    const index = Math.floor(this.scroller.scrollTop / ROW);
    const id = this.idAt(index);
    const anchor = isOther || index < 1 || id === undefined ? null : { id, index };
    Object.assign(this, { isShown: true, tab, table, passed });
    this.layOut();
    this.reorder();
    if (isOther) this.scroller.scrollTop = 0;
    this.keepInPlace(anchor);
    this.paint();
  }

  /** @param {number | null} id */
  setOpen(id) {
    this.openId = id;
    this.elements.forEach(({ node }, key) => node.classList.toggle("is-open", key === id));
  }

  /** Gives the focus back to the row that had it. */
  focusRow() {
    this.elements.get(this.idAt(this.active) ?? NaN)?.node.focus({ preventScroll: true });
  }

  /**
   * Scrolls so that rows that came in above the reader do not move what is read.
   * @param {{id: number, index: number} | null} anchor
   */
  keepInPlace(anchor) {
    const place = anchor === null ? undefined : this.table.place.get(anchor.id);
    if (anchor === null || place === undefined) return;
    const index = this.order.indexOf(place);
    if (index >= 0 && index !== anchor.index) this.scroller.scrollTop += (index - anchor.index) * ROW;
  }

  layOut() {
    const columns = listColumns(this.tab, this.table, this.scroller.clientWidth || 1000);
    const sort = this.currentSort();
    const size = Math.ceil(Math.log2(this.table.rows.length + 1)); // so that widths change rarely while rows come in
    const labels = columns.map((column) => column.label);
    if (!this.inputs.haveChanged(this.tab, this.table.columns, ...labels, ...sort, this.scroller.clientWidth, size)) return;
    this.columns = columns;
    this.hadFocus = this.canvas.contains(document.activeElement);
    draw(this.head, html`${columns.map((column) => this.drawHeadCell(column, sort))}`);
    this.fitColumns();
    this.dropElements();
  }

  fitColumns() {
    const { rows } = this.table;
    const every = Math.max(1, Math.floor(rows.length / SAMPLE));
    const texts = rows.filter((_, i) => i % every === 0).map((row) => {
      const context = makeContext(this.table, row, this.compiles);
      return this.columns.map((column) => writeCell(column, this.table, context));
    });
    const available = this.scroller.clientWidth || 1000;
    this.node.classList.toggle("has-bars", available >= WITH_BARS);
    const widths = fitColumns(this.columns, this.columns.map(({ label }) => label), texts, available);
    this.node.style.setProperty("--columns", widths.map((width) => `${width}px`).join(" "));
    const total = `${widths.reduce((sum, width) => sum + width, 0)}px`;
    for (const part of [this.head, this.canvas]) part.style.minWidth = total;
  }

  /**
   * @param {TabColumn} column
   * @param {Sort} sort
   */
  drawHeadCell(column, [sorted, direction]) {
    const { label } = column;
    const [order, sign] = label !== sorted ? ["none", ""] : direction > 0 ? ["ascending", " ▲"] : ["descending", " ▼"];
    const hint = explain(label) ?? this.table.columns.find((known) => known.name === column.name)?.doc;
    return html`
      <div role="columnheader" class=${isNumeric(column.type) ? "is-number" : ""} aria-sort=${order} data-column=${label} key=${label}>
        <button type="button" data-hint=${hint || null} onClick=${() => this.sortBy(column)}>${label + sign}</button>
      </div>`;
  }

  currentSort() {
    return this.sorts.get(tabName(this.tab)) ?? this.tab.sort;
  }

  /** @param {TabColumn} column */
  sortBy(column) {
    const [label, direction] = this.currentSort();
    const first = isNumeric(column.type) || column.type === "time" ? -1 : 1;
    this.sorts.set(tabName(this.tab), [column.label, label === column.label ? -direction : first]);
    this.layOut();
    this.reorder();
    this.scroller.scrollTop = 0;
    this.paint();
    findAll(this.head, `[data-column="${CSS.escape(column.label)}"] button`)[0]?.focus();
  }

  reorder() {
    const [label, direction] = this.currentSort();
    const column = this.tab.columns.find((candidate) => candidate.label === label);
    const { rows } = this.table;
    const { text, sortBy, name = "" } = column ?? {};
    /** @type {(row: Cells) => Key} */
    const keyOf = (row) => {
      if (sortBy || !text) return this.table.get(row, sortBy ?? name);
      return text(this.table.reader(row), makeContext(this.table, row, this.compiles));
    };
    const keys = this.passed.map((i) => keyOf(rows[i]));
    this.order = sortPositions(this.passed, keys, direction);
    this.active = Math.max(0, Math.min(this.active, this.order.length - 1));
    this.canvas.style.height = `${this.order.length * ROW}px`;
    setShown(this.head, this.order.length > 0);
    for (const { look, name = "" } of this.columns) {
      const most = look === "bar" && rows.reduce((largest, row) => Math.max(largest, this.table.get(row, name) ?? 0), 0);
      if (most) this.canvas.style.setProperty("--largest", String(most));
    }
    this.scroller.setAttribute("aria-rowcount", String(this.order.length + 1));
  }

  onResize() {
    const width = this.scroller.clientWidth;
    if (!this.isShown || width === this.width) return;
    this.width = width;
    this.layOut();
    this.paint();
  }

  dropElements() {
    this.elements.clear();
    this.canvas.replaceChildren();
  }

  /** Updates the elements to what is in view; a row that stays keeps its element, and so its focus. */
  paint() {
    if (!this.isShown) return;
    const wanted = this.wantedRows();
    for (const [id, { node }] of this.elements) {
      if (wanted.has(id)) continue;
      node.remove();
      this.elements.delete(id);
    }
    wanted.forEach((index, id) => this.paintRow(index, id));
    if (this.hadFocus) this.focusRow();
    this.hadFocus = false;
  }

  /** Event id -> index of each row that needs an element: those in view, and the one that has the focus. */
  wantedRows() {
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - SPARE);
    const last = Math.min(this.order.length, Math.ceil((top + this.scroller.clientHeight) / ROW) + SPARE);
    const indexes = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i);
    if (this.order.length && this.canvas.contains(document.activeElement)) indexes.push(this.active);
    return new Map(indexes.map((index) => [this.table.rows[this.order[index]][0], index]));
  }

  /** @param {number} index */
  idAt(index) {
    return this.table.rows[this.order[index] ?? -1]?.[0];
  }

  /**
   * @param {number} index
   * @param {number} id
   */
  paintRow(index, id) {
    const row = this.table.rows[this.order[index]];
    const context = makeContext(this.table, row, this.compiles);
    const element = this.elements.get(id) ?? this.makeRow(id);
    if (element.inputs.haveChanged(row, context.owner?.lane, context.start, this.compiles.inputs.last, hasCells(this.node))) {
      draw(element.node, html`${this.columns.map((column) => this.drawCell(column, context))}`);
    }
    const { node } = element;
    node.style.top = `${index * ROW}px`;
    node.tabIndex = index === this.active ? 0 : -1;
    node.setAttribute("aria-rowindex", String(index + 2));
    node.classList.toggle("is-open", id === this.openId);
    node.classList.toggle("is-marked", this.isMarked && index === this.active);
  }

  /** @param {number} id */
  makeRow(id) {
    const node = make("div", "cdiag-row");
    node.setAttribute("role", "row");
    node.dataset.eventId = String(id);
    const element = { node, inputs: new Inputs() };
    this.elements.set(id, element);
    this.canvas.append(node);
    return element;
  }

  /**
   * @param {TabColumn} column
   * @param {CellContext} context
   */
  drawCell(column, context) {
    const text = writeCell(column, this.table, context);
    const value = this.table.get(context.row, column.name ?? "");
    const areSteps = column.look === "steps" && text !== MISSING;
    return html`
      <div role="gridcell" class=${classOf(column)} data-column=${column.label} title=${column.type === "time" ? formatDate(value) : null}>
        ${this.canGo(column, context.row) ? html`<button type="button" class="cdiag-link cdiag-go" tabindex="-1" data-hint="go to this line">${text.replace(/^Cell /, "")}</button>`
          : areSteps ? text.split(" ").map((step) => html`<span class="cdiag-step-number">${step}</span>`) : text}
        ${column.look === "bar" && value !== null && html`<span class="cdiag-lost"><i style=${{ "--value": String(value) }}></i></span>`}
      </div>`;
  }

  /**
   * True for a line of a cell in the notebook around the table.
   * @param {TabColumn} column
   * @param {Cells} row
   */
  canGo(column, row) {
    return column.look === "line" && hasCells(this.node) && findCellNumber(readLine(this.table.reader(row))[0]) !== null;
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    /** @type {HTMLElement | null} */
    const element = targetOf(event).closest(".cdiag-row");
    if (!element) return;
    if (targetOf(event).closest(".cdiag-go")) {
      const [file, line] = readLine(this.table.reader(this.table.byId(Number(element.dataset.eventId)) ?? []));
      if (selectLine(this.node, findCellNumber(file) ?? 0, line ?? 1)) return; // the cell may have run again since
    }
    this.moveTo(this.order.findIndex((i) => String(this.table.rows[i][0]) === element.dataset.eventId));
    this.open();
  }

  open() {
    const row = this.table.rows[this.order[this.active]];
    if (row) this.onOpen(this.table, row);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.moveTo(this.active + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.open();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Makes a row the one that the keys move from, and shows it.
   * @param {number} index
   * @param {boolean} [hasFocus]
   */
  moveTo(index, hasFocus = true) {
    if (!this.order.length) return;
    this.active = Math.max(0, Math.min(this.order.length - 1, index));
    const top = this.active * ROW;
    const visible = this.scroller.clientHeight - this.head.offsetHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top + ROW > this.scroller.scrollTop + visible) this.scroller.scrollTop = top + ROW - visible;
    this.isMarked = !hasFocus; // what has the focus needs no mark
    this.paint();
    if (hasFocus) this.focusRow();
  }
}
