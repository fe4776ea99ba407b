// A table of any length: only the rows in view are elements. One tab stop; arrow keys move, Enter opens.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { isNumeric } from "../core/format.js";
import { columnKey, columnText, tabName } from "./tab-columns.js";

const ROW = 26; // px, as in the style sheet
const SPARE = 4; // rows kept above and below the view

const COLLATOR = new Intl.Collator("en", { numeric: true });

function compareKeys(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : COLLATOR.compare(String(a), String(b));
}

/** Positions sorted by their keys; null last in either direction, equal keys newest first. */
export function sortPositions(positions, keys, direction) {
  const order = positions.map((position, i) => ({ position, key: keys[i] }));
  order.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || b.position - a.position;
    return direction * compareKeys(a.key, b.key) || b.position - a.position;
  });
  return order.map((entry) => entry.position);
}

export class DataTable {
  /** `onOpen(table, row)` runs on a click or Enter; `groups` names the function of a row's compile. */
  constructor(groups, onOpen) {
    this.groups = groups;
    this.onOpen = onOpen;
    this.sorts = new Map(); // name of a tab -> [column label, direction]
    this.order = [];
    this.elements = new Map(); // event id -> row element in view
    this.active = 0; // index in order that holds the tab stop
    this.openId = null;
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
    this.width = 0;
    this.watcher = new ResizeObserver(() => this.onResize());
    this.watcher.observe(this.scroller);
  }

  destroy() {
    this.watcher.disconnect();
  }

  /** Shows the rows of a tab that passed the filter. */
  show(tab, table, passed) {
    const other = this.tab !== tab;
    if (other || this.table !== table) this.dropElements();
    const anchor = other || this.scroller.scrollTop < ROW ? null : this.topRow();
    this.tab = tab;
    this.table = table;
    this.passed = passed;
    this.layOut();
    this.reorder();
    if (other) this.scroller.scrollTop = 0;
    this.keepInPlace(anchor);
    this.paint();
  }

  /** Says why there is nothing, or what the rows leave out. */
  setNote(text, isWarning) {
    setText(this.note, text ?? "");
    setShown(this.note, text !== null);
    this.note.classList.toggle("is-warning", isWarning);
  }

  setOpen(id) {
    this.openId = id;
    this.elements.forEach((element, key) => element.classList.toggle("is-open", key === id));
  }

  topRow() {
    const index = Math.floor(this.scroller.scrollTop / ROW);
    const position = this.order[index];
    return position === undefined ? null : { id: this.table.rows[position][0], index };
  }

  /** Rows that came in above the reader must not move what is read. */
  keepInPlace(anchor) {
    const place = anchor && this.table.place.get(anchor.id);
    if (place === undefined || place === null) return;
    const index = this.order.indexOf(place);
    if (index >= 0 && index !== anchor.index) this.scroller.scrollTop += (index - anchor.index) * ROW;
  }

  columnsThatFit() {
    const width = this.scroller.clientWidth || 1000;
    const known = (column) => column.text || this.table.at.has(column.name) || this.table.columns.length === 0;
    return this.tab.columns.filter((column) => known(column) && (column.from ?? 0) <= width);
  }

  layOut() {
    const columns = this.columnsThatFit();
    const sort = this.sortOf();
    const shape = JSON.stringify([tabName(this.tab), columns.map((column) => column.label), sort]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.columns = columns;
    this.hadFocus = this.canvas.contains(document.activeElement);
    this.node.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.head.replaceChildren(...columns.map((column) => this.headCell(column, sort)));
    this.dropElements();
  }

  headCell(column, [label, direction]) {
    const sorted = column.label === label;
    const text = sorted ? `${column.label} ${direction > 0 ? "▲" : "▼"}` : column.label;
    const button = makeButton("", text, () => this.sortBy(column));
    button.title = this.table.columns.find((known) => known.name === column.name)?.doc ?? column.label;
    const cell = make("div", isNumeric(column.type) ? "is-number" : "", button);
    cell.setAttribute("role", "columnheader");
    cell.setAttribute("aria-sort", sorted ? (direction > 0 ? "ascending" : "descending") : "none");
    cell.dataset.column = column.label;
    return cell;
  }

  sortOf() {
    return this.sorts.get(tabName(this.tab)) ?? this.tab.sort;
  }

  sortBy(column) {
    const [label, direction] = this.sortOf();
    const first = isNumeric(column.type) || column.type === "time" ? -1 : 1;
    this.sorts.set(tabName(this.tab), [column.label, label === column.label ? -direction : first]);
    this.layOut();
    this.reorder();
    this.scroller.scrollTop = 0;
    this.paint();
    this.head.querySelector(`[data-column="${CSS.escape(column.label)}"] button`)?.focus();
  }

  reorder() {
    const [label, direction] = this.sortOf();
    const column = this.tab.columns.find((candidate) => candidate.label === label);
    const { rows } = this.table;
    const needsOwner = column.text && !column.sortBy;
    const keys = this.passed.map((i) => columnKey(column, this.table, rows[i], needsOwner && this.ownerOf(rows[i])));
    this.order = sortPositions(this.passed, keys, direction);
    this.active = Math.max(0, Math.min(this.active, this.order.length - 1));
    this.canvas.style.height = `${this.order.length * ROW}px`;
    setShown(this.head, this.order.length > 0);
    this.scroller.setAttribute("aria-rowcount", String(this.order.length + 1));
  }

  ownerOf(row) {
    const group = this.groups.of(this.table, row);
    return group && this.groups.functionOf(group);
  }

  onResize() {
    const width = this.scroller.clientWidth;
    if (!this.tab || width === this.width) return;
    this.width = width;
    this.layOut();
    this.paint();
  }

  dropElements() {
    this.elements.clear();
    this.canvas.replaceChildren();
  }

  /** Brings the elements in line with what is in view; a row that stays keeps its element, and so its focus. */
  paint() {
    if (!this.tab) return;
    const top = this.scroller.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW) - SPARE);
    const last = Math.min(this.order.length, Math.ceil((top + this.scroller.clientHeight) / ROW) + SPARE);
    const wanted = new Map();
    for (let i = first; i < last; i += 1) wanted.set(this.idAt(i), i);
    const hasFocus = this.canvas.contains(document.activeElement);
    if (hasFocus && this.order.length) wanted.set(this.idAt(this.active), this.active);
    for (const [id, element] of this.elements) {
      if (wanted.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    wanted.forEach((index, id) => this.paintRow(index, id));
    if (this.hadFocus) this.elements.get(this.idAt(this.active))?.focus({ preventScroll: true });
    this.hadFocus = false;
  }

  idAt(index) {
    return this.table.rows[this.order[index]]?.[0];
  }

  paintRow(index, id) {
    const row = this.table.rows[this.order[index]];
    const owner = this.ownerOf(row);
    let element = this.elements.get(id);
    if (!element) {
      element = make("div", "cdiag-row");
      element.setAttribute("role", "row");
      element.dataset.eventId = String(id);
      this.elements.set(id, element);
      this.canvas.append(element);
    }
    if (element.shownRow !== row || element.shownOwner !== owner?.lane) {
      element.shownRow = row;
      element.shownOwner = owner?.lane;
      element.replaceChildren(...this.columns.map((column) => this.cell(column, row, owner)));
    }
    element.style.top = `${index * ROW}px`;
    element.tabIndex = index === this.active ? 0 : -1;
    element.setAttribute("aria-rowindex", String(index + 2));
    element.classList.toggle("is-odd", index % 2 === 1);
    element.classList.toggle("is-open", id === this.openId);
  }

  cell(column, row, owner) {
    const text = columnText(column, this.table, row, owner);
    const cell = make("div", column.code ? "is-code" : isNumeric(column.type) ? "is-number" : "", text);
    cell.setAttribute("role", "gridcell");
    cell.dataset.column = column.label;
    cell.title = text;
    return cell;
  }

  onClick(event) {
    const element = event.target.closest(".cdiag-row");
    if (!element) return;
    this.moveTo(this.order.findIndex((i) => String(this.table.rows[i][0]) === element.dataset.eventId));
    this.open();
  }

  open() {
    const row = this.table.rows[this.order[this.active]];
    if (row) this.onOpen(this.table, row);
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.moveTo(this.active + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.open();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  moveTo(index) {
    if (!this.order.length) return;
    this.active = Math.max(0, Math.min(this.order.length - 1, index));
    const top = this.active * ROW;
    const room = this.scroller.clientHeight - this.head.offsetHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top + ROW > this.scroller.scrollTop + room) this.scroller.scrollTop = top + ROW - room;
    this.paint();
    this.elements.get(this.idAt(this.active))?.focus({ preventScroll: true });
  }
}
