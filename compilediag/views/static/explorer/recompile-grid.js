// Recompiles x entries: a line per recompile, a column per entry, in a cell the guards that failed. Arrow keys move in it.
import { useState } from "../vendor/hooks.js";
import { findAll, targetOf } from "../core/dom.js";
import { formatAmount, formatCount, formatSeconds, MISSING } from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
import { Change, Tag } from "./explorer-blocks.js";
/** @import { FunctionContext } from "./document-types" */

const MOST_ROWS = 40; // recompiles shown at first, the latest
const MOST_TAGS = 4; // guards named in one cell
const HEADS = ["recompile", "at", "change", "lost"];

/**
 * The grid of a function, the latest recompiles only at first.
 * @param {{context: FunctionContext}} props
 */
export function RecompileGrid({ context }) {
  const { found } = context;
  const [showsAll, setShowsAll] = useState(false);
  const [stop, setStop] = useState(/** @type {string | null} cell that is reached with Tab; null for the first */ (null));
  const begin = showsAll ? 0 : Math.max(0, found.rows.length - MOST_ROWS);
  const rows = found.rows.slice(begin);
  const named = new Set(rows.flatMap((row) => [...row.cells.map(([entry]) => entry), row.closest]));
  const columns = found.entries.map((_, at) => at).filter((at) => named.has(at));
  const hasOthers = rows.some((row) => row.others > 0);
  const first = `${begin} change`;
  const isStop = (/** @type {string} */ name) => name === (stop ?? first);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    const here = targetOf(event).closest("[data-cell]");
    const step = STEPS[event.key];
    if (!here || !step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = findNeighbor(here, step);
    if (!next) return;
    setStop(next.dataset.cell ?? null);
    next.focus();
  };
  return html`
    <div>
      <div class="cdiag-grid-frame" onKeyDown=${onKey}>
        <table class="cdiag-grid" role="grid" aria-label="recompiles by entry">
          <thead>
            <tr>
              ${HEADS.map((text) => html`<th>${text}</th>`)}
              ${columns.map((at) => html`<th class="cdiag-entry-head" scope="col">${found.entries[at].compile_id}</th>`)}
              ${hasOthers && html`<th class="cdiag-entry-head" scope="col">others</th>`}
            </tr>
          </thead>
          <tbody>
            ${rows.map((row, i) => html`
              <${Line} key=${begin + i} context=${context} row=${row} at=${begin + i} columns=${columns} isStop=${isStop} />`)}
          </tbody>
        </table>
      </div>
      <p class="cdiag-dim"><span class="cdiag-closest-key">◆</span> the entry with the fewest failing guards${
        found.recompiles > found.rows.length && ` · the last ${formatCount(found.rows.length)} of ${formatAmount(found.recompiles, "recompile")}`}</p>
      ${begin > 0 && html`
        <button type="button" class="cdiag-link" onClick=${() => setShowsAll(true)}>show all ${formatAmount(found.rows.length, "recompile")}</button>`}
    </div>`;
}

/** @typedef {(name: string) => boolean} IsStop whether a cell is the one that is reached with Tab */

/** @param {{context: FunctionContext, row: RecompileDocument, at: number, columns: number[], isStop: IsStop}} props */
function Line({ context, row, at, columns, isStop }) {
  const cells = new Map(row.cells);
  const more = `${formatAmount(row.others, "more entry", "more entries")} did not fit; only those with the fewest failing guards are analyzed`;
  return html`
    <tr>
      <th scope="row"><code>${row.compile_id ?? MISSING}</code></th>
      <td class="cdiag-dim"><${At} ms=${row.time} start=${context.start} /></td>
      <td class="cdiag-change-cell">
        <${CellButton} context=${context} guard=${row.guard} name=${`${at} change`} isStop=${isStop}>
          ${row.guard !== null && html`<${Tag} guard=${row.guard} />`}<${Change} found=${context.found} row=${row} />
        <//>
      </td>
      <td class="is-number">${formatSeconds(row.lost_s)}</td>
      ${columns.map((entry) => html`
        <${Cell} key=${entry} context=${context} row=${row} at=${at} entry=${entry} failures=${cells.get(entry)} isStop=${isStop} />`)}
      ${row.others > 0 && html`<td class="cdiag-cell cdiag-dim" title=${more}>+${formatCount(row.others)}</td>`}
    </tr>`;
}

/**
 * @param {{
 *   context: FunctionContext, row: RecompileDocument, at: number, entry: number, failures: FailedGuard[] | undefined, isStop: IsStop
 * }} props
 */
function Cell({ context, row, at, entry, failures, isStop }) {
  const isClosest = row.closest === entry;
  if (!failures && !isClosest) return html`<td class="cdiag-cell"></td>`;
  const guards = failures ?? [];
  const title = describeCell(context, row, entry, guards) + (isClosest ? " (fewest failing guards)" : "");
  const rest = guards.length - MOST_TAGS;
  return html`
    <td class=${isClosest ? "cdiag-cell is-closest" : "cdiag-cell"}>
      <${CellButton} context=${context} guard=${guards[0]?.[0] ?? row.guard} name=${`${at} ${entry}`} title=${title} isStop=${isStop}>
        ${isClosest && html`<span class="cdiag-closest-mark">◆</span>`}
        ${guards.slice(0, MOST_TAGS).map(([guard]) => html`<${Tag} guard=${guard} />`)}
        ${rest > 0 && html`<span class="cdiag-dim">+${rest}</span>`}
      <//>
    </td>`;
}

/**
 * @param {FunctionContext} context
 * @param {RecompileDocument} row
 * @param {number} entry
 * @param {FailedGuard[]} failures
 */
function describeCell({ found }, row, entry, failures) {
  const names = failures.map(([guard, isFirst, , expected]) => {
    return `${found.guards[guard].name}${expected === null ? "" : ` (expected ${expected})`}${isFirst ? ", failed first" : ""}`;
  });
  return `${row.compile_id} compared with ${found.entries[entry].compile_id}: ${names.join("; ") || "failed"}`;
}

/**
 * A button of the grid that opens a guard; arrow keys move to it. Its title is also what is read aloud.
 * @param {{
 *   context: FunctionContext, guard: number | null, name: string, title?: string, isStop: IsStop, children: ComponentChild
 * }} props
 */
function CellButton({ context: { found, go, id }, guard, name, title, isStop, children }) {
  const target = guard === null ? undefined : found.guards[guard];
  return html`
    <button type="button" class="cdiag-cell-button" tabindex=${isStop(name) ? 0 : -1} data-cell=${name} title=${title} aria-label=${title}
      onClick=${() => target && go({ function: id, guard: target.key })}>${children}</button>`;
}

/** @type {Record<string, [down: number, right: number]>} */
const STEPS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

/**
 * The next button of the line, or the one in the same column (or nearest to it) of the line above or below.
 * @param {Element} here
 * @param {[down: number, right: number]} step
 * @returns {HTMLElement | undefined}
 */
function findNeighbor(here, [down, right]) {
  const row = here.closest("tr");
  if (right) {
    const all = findAll(row, "[data-cell]");
    return all[all.findIndex((button) => button === here) + right];
  }
  const place = columnOf(here);
  const all = findAll(down > 0 ? row?.nextElementSibling : row?.previousElementSibling, "[data-cell]");
  return all.sort((a, b) => Math.abs(columnOf(a) - place) - Math.abs(columnOf(b) - place))[0];
}

/** @param {Element} button */
function columnOf(button) {
  return button.closest("td")?.cellIndex ?? 0;
}
