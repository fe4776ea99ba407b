// A table of any length: only the rows in view are elements. One tab stop; arrow keys move, Enter opens.
import { explain } from "../core/blocks.js";
import { findAll, onKeys, targetOf } from "../core/dom.js";
import { formatDate, isNumeric, MISSING } from "../core/format.js";
import { findCellNumber, hasCells, NotebookCell } from "../core/notebook-cell.js";
import { html } from "../core/view.js";
import { classOf, fitColumns, listColumns, makeContext, readLine, WITH_BARS, writeCell } from "./columns.js";
import { useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";

const ROW = 30; // px, as in the style sheet
const SPARE = 4; // rows kept above and below the view
const SAMPLE = 80; // rows that the widths of columns are taken from

const COLLATOR = new Intl.Collator("en", { numeric: true });

/**
 * Positions of rows as a tab sorts them; a missing value is last in either direction, equal ones are the newest first.
 * @type {(positions: number[], tab: Tab, sort: Sort, compiles: Compiles) => number[]}
 */
function sortPositions(positions, tab, [label, direction], compiles) {
  const table = compiles.store.table(tab.table);
  const { text, sortBy, name = "" } = tab.columns.find((column) => column.label === label) ?? {};
  /** @param {Cells} row */
  const readKey = (row) => (sortBy || !text ? table.get(row, sortBy ?? name) : text(table.reader(row), makeContext(table, row, compiles)));
  const keyed = positions.map((position) => ({ position, key: readKey(table.rows[position]) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null) || b.position - a.position;
    const areNumbers = typeof a.key === "number" && typeof b.key === "number";
    const order = areNumbers ? a.key - b.key : COLLATOR.compare(String(a.key), String(b.key));
    return direction * order || b.position - a.position;
  });
  return keyed.map(({ position }) => position);
}

/** @type {Component<DataTableProps>} The rows of a tab that passed the filter, and what is said of them. */
export function DataTable({ compiles, tab, passed, said, openId, onOpen, handle, isHidden = false }) {
  /** @type {Table} */
  const table = compiles.store.table(tab.table);
  const scroller = useRef(/** @type {HTMLElement | null} */ (null));
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const [sorts, setSorts] = useState(/** @type {Record<string, Sort>} name of a tab -> how it is sorted */ ({}));
  const [view, setView] = useState({ top: 0, width: 0, height: 0 }); // px
  const [reached, setReached] = useState({ index: 0, isMarked: false, hasFocus: false }); // the row that has the tab stop
  const last = useRef({ tab, table, order: /** @type {number[]} */ ([]) }); // what was drawn
  const sort = sorts[tab.name] ?? tab.sort;
  const available = view.width || 1000;
  const size = Math.ceil(Math.log2(table.rows.length + 1)); // so that widths change rarely while rows come in
  const columns = useMemo(() => listColumns(tab, table, available), [tab, table.columns, available]);
  const widths = useMemo(() => {
    const every = Math.max(1, Math.floor(table.rows.length / SAMPLE));
    const texts = table.rows.filter((_, i) => i % every === 0).map((row) => {
      const context = makeContext(table, row, compiles);
      return columns.map((column) => writeCell(column, table, context));
    });
    return fitColumns(columns, texts, available);
  }, [columns, table, size]);
  const order = useMemo(() => sortPositions(passed, tab, sort, compiles), [passed, tab, sort]);
  const active = Math.max(0, Math.min(reached.index, order.length - 1));
  /** @type {HTMLElement | null | undefined} the row that has the focus */
  const focused = body.current?.contains(document.activeElement) ? document.activeElement?.closest(".cdiag-row") : null;

  const look = () => {
    const { scrollTop: top = 0, clientWidth: width = 0, clientHeight: height = 0 } = scroller.current ?? {};
    setView((known) => (known.top === top && known.width === width && known.height === height ? known : { top, width, height }));
  };
  const focusRow = () => findAll(body.current, '.cdiag-row[tabindex="0"]')[0]?.focus({ preventScroll: true });
  /** @type {TableHandle["moveTo"]} */
  const moveTo = (index, hasFocus) => {
    const node = scroller.current;
    if (!node || !order.length) return;
    const next = Math.max(0, Math.min(order.length - 1, index));
    const visible = node.clientHeight - (findAll(node, ".cdiag-head")[0]?.offsetHeight ?? 0);
    node.scrollTop = Math.max((next + 1) * ROW - visible, Math.min(next * ROW, node.scrollTop));
    look();
    setReached({ index: next, isMarked: !hasFocus, hasFocus }); // what has the focus needs no mark
  };
  handle.current = { moveTo, focusRow };

  useLayoutEffect(() => {
    const watcher = new ResizeObserver(look);
    if (scroller.current) watcher.observe(scroller.current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { tab: before, table: old, order: oldOrder } = last.current;
    last.current = { tab, table, order };
    const node = scroller.current;
    if (!node) return;
    // Rows that came in above the reader do not move what is read.
    const index = Math.floor(view.top / ROW);
    const now = order.indexOf(table.place.get(old.rows[oldOrder[index]]?.[0]) ?? -1);
    if (before !== tab) node.scrollTop = 0;
    else if (index > 0 && now >= 0 && now !== index) node.scrollTop += (now - index) * ROW;
    look();
  }, [order]);
  useLayoutEffect(() => {
    if (reached.hasFocus) focusRow();
  }, [reached]);
  useLayoutEffect(() => {
    if (!isHidden && active !== reached.index) setReached({ ...reached, index: active, hasFocus: false });
  }, [order]);
  useLayoutEffect(() => {
    if (!focused?.contains(document.activeElement)) focused?.focus({ preventScroll: true }); // its element may have moved
  }, [order]);

  /** @param {TabColumn} column */
  const sortBy = (column) => {
    const first = isNumeric(column.type) || column.type === "time" ? -1 : 1;
    setSorts((known) => ({ ...known, [tab.name]: [column.label, sort[0] === column.label ? -sort[1] : first] }));
    if (scroller.current) scroller.current.scrollTop = 0;
  };
  const page = Math.max(1, Math.floor(view.height / ROW) - 2);
  const openActive = () => onOpen(table, table.rows[order[active]]);
  const onKey = onKeys({
    ArrowDown: () => moveTo(active + 1, true),
    ArrowUp: () => moveTo(active - 1, true),
    PageDown: () => moveTo(active + page, true),
    PageUp: () => moveTo(active - page, true),
    Home: () => moveTo(0, true),
    End: () => moveTo(Infinity, true),
    Enter: openActive,
    " ": openActive,
  });
  /** @param {number} index */
  const open = (index) => {
    moveTo(index, true);
    onOpen(table, table.rows[order[index]]);
  };

  const from = Math.max(0, Math.floor(view.top / ROW) - SPARE);
  const shown = Array.from(order.slice(from, Math.ceil((view.top + view.height) / ROW) + SPARE), (_, i) => from + i);
  if (focused && order.length && !shown.includes(active)) shown[active < from ? "unshift" : "push"](active);
  const bar = columns.find(({ look: kind }) => kind === "bar")?.name;
  const largest = useMemo(() => (bar ? table.rows.reduce((most, row) => Math.max(most, table.get(row, bar) ?? 0), 0) : 0), [bar, order]);
  const minWidth = `${widths.reduce((sum, width) => sum + width, 0)}px`;
  return html`
    <div class=${available >= WITH_BARS ? "cdiag-table has-bars" : "cdiag-table"} hidden=${isHidden}
      style=${{ "--columns": widths.map((width) => `${width}px`).join(" ") }}>
      <div class=${said.isWarning ? "cdiag-note is-warning" : "cdiag-note"} hidden=${said.note === null}>${said.note}</div>
      <div class="cdiag-scroller" role="grid" aria-rowcount=${order.length + 1} ref=${scroller} onScroll=${look}>
        <div class="cdiag-head" role="row" style=${{ minWidth }} hidden=${!order.length}>
          ${columns.map((column) => html`<${HeadCell} key=${column.label} column=${column} table=${table} sort=${sort} onSort=${() => sortBy(column)} />`)}
        </div>
        <div class="cdiag-rows" role="rowgroup" ref=${body} onKeyDown=${onKey}
          style=${{ minWidth, height: `${order.length * ROW}px`, "--largest": largest ? String(largest) : null }}>
          ${shown.map((index) => {
            const row = table.rows[order[index]];
            const isMarked = reached.isMarked && index === active;
            return html`
              <div role="row" class=${`cdiag-row${row[0] === openId ? " is-open" : ""}${isMarked ? " is-marked" : ""}`} key=${row[0]} data-event-id=${row[0]}
                tabindex=${index === active ? 0 : -1} aria-rowindex=${index + 2} style=${{ top: `${index * ROW}px` }} onClick=${() => open(index)}>
                <${RowCells} compiles=${compiles} table=${table} row=${row} columns=${columns} canGo=${hasCells(body.current)} />
              </div>`;
          })}
        </div>
      </div>
    </div>`;
}

/** @param {{column: TabColumn, table: Table, sort: Sort, onSort: () => void}} props */
function HeadCell({ column: { label, name, type }, table, sort: [sorted, direction], onSort }) {
  const [order, sign] = label !== sorted ? ["none", ""] : direction > 0 ? ["ascending", " ▲"] : ["descending", " ▼"];
  const hint = explain(label) ?? table.columns.find((known) => known.name === name)?.doc;
  return html`
    <div role="columnheader" class=${isNumeric(type) ? "is-number" : ""} aria-sort=${order} data-column=${label}>
      <button type="button" data-hint=${hint || null} onClick=${onSort}>${label + sign}</button>
    </div>`;
}

/** @type {Component<RowCellsProps>} The cells of a row, drawn again only if what they say has changed. */
function RowCells({ compiles, table, row, columns, canGo }) {
  const context = makeContext(table, row, compiles);
  const [file, line] = readLine(table.reader(row));
  const cell = canGo ? findCellNumber(file) : null;
  /** @param {MouseEvent} event */
  const go = (event) => {
    if (new NotebookCell(targetOf(event), cell ?? 0).selectLine(line ?? 1)) event.stopPropagation(); // the cell may have run again since
  };
  return useMemo(() => columns.map((column) => {
    const text = writeCell(column, table, context);
    const value = table.get(row, column.name ?? "");
    return html`
      <div role="gridcell" class=${classOf(column)} data-column=${column.label} title=${column.type === "time" ? formatDate(value) : null}>
        ${column.look === "line" && cell !== null ? html`<button type="button" class="cdiag-link cdiag-go" tabindex="-1" data-hint="go to this line" onClick=${go}>${text.replace(/^Cell /, "")}</button>`
          : column.look === "steps" && text !== MISSING ? text.split(" ").map((step) => html`<span class="cdiag-step-number">${step}</span>`) : text}
        ${column.look === "bar" && value !== null && html`<span class="cdiag-lost"><i style=${{ "--value": String(value) }}></i></span>`}
      </div>`;
  }), [row, columns, context.owner?.lane, context.start, compiles.inputs.last, cell]);
}
