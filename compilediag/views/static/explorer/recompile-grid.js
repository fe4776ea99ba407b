// Recompiles x entries: a line per recompile, a column per entry, in a cell the guards that failed. Arrow keys move in it.
import { make, makeButton, targetOf } from "../core/dom.js";
import { formatAmount, formatClock, formatCount, formatSeconds, MISSING } from "../core/format.js";
import { guardTag } from "./documents.js";
import { makeChange } from "./explorer-blocks.js";
/** @import { Child } from "../core/dom.js" */
/** @import { Failure, FunctionContext, RecompileLine } from "./document-types" */

/** @typedef {{row: RecompileLine, at: number}} NumberedLine */

const MOST_ROWS = 40; // recompiles shown at first, the latest
const MOST_TAGS = 4; // guards named in one cell

/**
 * The grid of a function, the latest recompiles only at first.
 * @param {FunctionContext} context
 */
export function makeGrid(context) {
  const { found } = context;
  const frame = make("div", "cdiag-grid-frame");
  /** @param {NumberedLine[]} rows */
  const show = (rows) => frame.replaceChildren(makeTable(context, rows));
  const all = found.rows.map((row, at) => ({ row, at }));
  const foot = make("p", "cdiag-dim", make("span", "cdiag-closest-key", "◆"), " the entry with the fewest failing guards");
  const node = make("div", "", frame, foot);
  frame.addEventListener("keydown", (event) => onGridKey(event, frame));
  show(all.slice(-MOST_ROWS));
  if (all.length > MOST_ROWS) {
    const more = makeButton("cdiag-link", `show all ${formatAmount(all.length, "recompile")}`, () => {
      show(all);
      more.remove();
    });
    more.dataset.key = "all recompiles";
    node.append(more);
  }
  if (found.recompiles > all.length) {
    foot.append(` · the last ${formatCount(all.length)} of ${formatAmount(found.recompiles, "recompile")}`);
  }
  return node;
}

/**
 * @param {FunctionContext} context
 * @param {NumberedLine[]} rows
 */
function makeTable(context, rows) {
  const { found } = context;
  const named = new Set(rows.flatMap(({ row }) => [...row.cells.map(([entry]) => entry), row.closest]));
  const columns = found.entries.map((_, at) => at).filter((at) => named.has(at));
  const heads = columns.map((at) => {
    const head = make("th", "cdiag-entry-head", found.entries[at].compile_id);
    head.scope = "col";
    return head;
  });
  if (rows.some(({ row }) => row.others > 0)) {
    const others = make("th", "cdiag-entry-head", "others");
    others.scope = "col";
    heads.push(others);
  }
  const lead = ["recompile", "time", "change", "lost"].map((text) => make("th", "", text));
  const body = rows.map(({ row, at }) => makeLine(context, row, at, columns));
  const table = make("table", "cdiag-grid", make("thead", "", make("tr", "", ...lead, ...heads)), make("tbody", "", ...body));
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", "recompiles by entry");
  /** @type {HTMLElement | null} */
  const first = table.querySelector("[data-cell]");
  if (first) first.tabIndex = 0;
  return table;
}

/**
 * @param {FunctionContext} context
 * @param {RecompileLine} row
 * @param {number} at
 * @param {number[]} columns
 */
function makeLine(context, row, at, columns) {
  const { found } = context;
  const tag = row.guard === null ? [] : [make("span", "cdiag-tagged", guardTag(row.guard))];
  const change = makeCellButton(context, row.guard, `${at} change`, [...tag, makeChange(found, row)]);
  const name = make("th", "", make("code", "", row.compile_id ?? MISSING));
  name.scope = "row";
  const cells = new Map(row.cells);
  return make(
    "tr",
    "",
    name,
    make("td", "cdiag-dim", formatClock(row.time)),
    make("td", "cdiag-change-cell", change),
    make("td", "is-number", formatSeconds(row.lost_s)),
    ...columns.map((entry) => makeCell(context, row, at, entry, cells.get(entry))),
    makeOthers(row),
  );
}

/**
 * The entries that were only counted.
 * @param {RecompileLine} row
 */
function makeOthers(row) {
  if (!row.others) return null;
  const cell = make("td", "cdiag-cell cdiag-dim", `+${formatCount(row.others)}`);
  cell.title = `${formatAmount(row.others, "more entry", "more entries")} did not fit; only those with the fewest failing guards are analyzed`;
  return cell;
}

/**
 * @param {FunctionContext} context
 * @param {RecompileLine} row
 * @param {number} at
 * @param {number} entry
 * @param {Failure[] | undefined} failures
 */
function makeCell(context, row, at, entry, failures) {
  const isClosest = row.closest === entry;
  if (!failures && !isClosest) return make("td", "cdiag-cell", "");
  const guards = failures ?? [];
  /** @type {Child[]} */
  const tags = guards.slice(0, MOST_TAGS).map(([guard]) => make("span", "cdiag-tagged", guardTag(guard)));
  if (isClosest) tags.unshift(make("span", "cdiag-closest-mark", "◆"));
  if (guards.length > MOST_TAGS) tags.push(make("span", "cdiag-dim", `+${guards.length - MOST_TAGS}`));
  const button = makeCellButton(context, guards[0]?.[0] ?? row.guard, `${at} ${entry}`, tags);
  button.title = describeCell(context, row, entry, guards) + (isClosest ? " (fewest failing guards)" : "");
  button.setAttribute("aria-label", `${button.textContent}: ${button.title}`);
  return make("td", isClosest ? "cdiag-cell is-closest" : "cdiag-cell", button);
}

/**
 * @param {FunctionContext} context
 * @param {RecompileLine} row
 * @param {number} entry
 * @param {Failure[]} failures
 */
function describeCell({ found }, row, entry, failures) {
  const names = failures.map(([guard, isFirst, , expected]) => {
    return `${found.guards[guard].name}${expected === null ? "" : ` (expected ${expected})`}${isFirst ? ", failed first" : ""}`;
  });
  return `${row.compile_id} compared with ${found.entries[entry].compile_id}: ${names.join("; ") || "failed"}`;
}

/**
 * A button of the grid that opens a guard; arrow keys move to it.
 * @param {FunctionContext} context
 * @param {number | null} guard
 * @param {string} key
 * @param {Child[]} children
 */
function makeCellButton({ found, go, id }, guard, key, children) {
  const target = guard === null ? undefined : found.guards[guard];
  const button = makeButton("cdiag-cell-button", "", () => target && go({ function: id, guard: target.key }));
  for (const child of children) if (child) button.append(child);
  button.tabIndex = -1;
  button.dataset.cell = key;
  button.dataset.key = `cell ${key}`;
  return button;
}

/** @type {Record<string, [down: number, right: number]>} */
const STEPS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

/**
 * @param {KeyboardEvent} event
 * @param {HTMLElement} frame
 */
function onGridKey(event, frame) {
  const here = targetOf(event).closest("[data-cell]");
  const step = STEPS[event.key];
  if (!here || !step) return;
  event.preventDefault();
  event.stopPropagation();
  const next = findNeighbor(here, step);
  if (!next) return;
  /** @type {NodeListOf<HTMLElement>} */
  const stops = frame.querySelectorAll('[data-cell][tabindex="0"]');
  stops.forEach((node) => (node.tabIndex = -1));
  next.tabIndex = 0;
  next.focus();
}

/**
 * The next button of the line, or the one in the same column (or nearest to it) of the line above or below.
 * @param {Element} here
 * @param {[down: number, right: number]} step
 * @returns {HTMLElement | undefined}
 */
function findNeighbor(here, [down, right]) {
  const row = here.closest("tr");
  if (right) {
    const all = findButtons(row);
    return all[all.findIndex((button) => button === here) + right];
  }
  const place = columnOf(here);
  const all = findButtons(down > 0 ? row?.nextElementSibling : row?.previousElementSibling);
  return all.sort((a, b) => Math.abs(columnOf(a) - place) - Math.abs(columnOf(b) - place))[0];
}

/**
 * @param {Element | null | undefined} row
 * @returns {HTMLElement[]}
 */
function findButtons(row) {
  return [...(row?.querySelectorAll("[data-cell]") ?? [])].filter((node) => node instanceof HTMLElement);
}

/** @param {Element} button */
function columnOf(button) {
  return button.closest("td")?.cellIndex ?? 0;
}
