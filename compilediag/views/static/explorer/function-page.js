// The page of one function: its recompiles by entry, as a grid in which arrow keys move; the guards that failed; its entries.
import { At, joinKnown, PlainTable, Section, whenKnown } from "../core/blocks.js";
import { findAll, targetOf } from "../core/dom.js";
import {
  formatAmount, formatCount, formatMicroseconds, formatSeconds, formatTimes, MISSING, oneLine,
} from "../core/format.js";
import { html } from "../core/view.js";
import { Change, Findings, functionName, GuardLink, Kinds, Tag } from "./explorer-blocks.js";
import { useState } from "../vendor/hooks.js";

const MOST_ROWS = 40; // recompiles shown at first, the latest
const MOST_TAGS = 4; // guards named in one cell
const HEADS = ["recompile", "at", "change", "lost"];

/**
 * The grid of a function, the latest recompiles only at first.
 * @param {{context: FunctionContext}} props
 */
function RecompileGrid({ context }) {
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

const MOST_VALUES = 8;
const ALONE = "failed alone: recompiles where some entry had no other failing guard";
const GUARD_HEADS = ["guard", "kind", "failures", "failed alone", "lost", "values"];

/** @param {{context: FunctionContext}} props */
export function FunctionPage({ context }) {
  const { found, documents } = context;
  return html`
    <${Head} found=${found} />
    <${Findings} context=${context} findings=${documents.findingsOf(found, null)} />
    ${found.rows.length > 0 && html`
      <${Section} heading="Recompiles, and which guards failed in which entry"><${RecompileGrid} context=${context} /><//>`}
    ${found.guards.length > 0 && html`
      <${Section} heading="Guards that failed"><${Guards} context=${context} /><p class="cdiag-dim">${ALONE}</p><//>`}
    <${Section} heading="Entries, in lookup order"><${Entries} context=${context} /><//>`;
}

/** @param {{found: FunctionDocument}} props */
function Head({ found }) {
  const { once, eager } = found;
  const facts = joinKnown(
    formatAmount(found.compiles, "compile"),
    formatAmount(found.recompiles, "recompile"),
    whenKnown(found.lost_s, (seconds) => `${formatSeconds(seconds)} lost`),
    once?.count ? `${formatAmount(once.count, "entry", "entries")} called once, ${formatSeconds(once.seconds)}` : null,
    eager?.calls ? `${formatAmount(eager.calls, "call")} ran eagerly, ${formatSeconds(eager.total_s)}` : null,
  );
  return html`
    <div class="cdiag-page-head">
      <h2 class="cdiag-page-title" title=${found.file}>${functionName(found)}</h2><p class="cdiag-dim">${facts}</p>
    </div>`;
}

/** @param {{context: FunctionContext}} props */
function Guards({ context }) {
  return html`
    <${PlainTable} name="cdiag-guards" label="guards" heads=${GUARD_HEADS} numeric=${new Set([2, 3, 4])}>
      ${context.found.guards.map((guard, at) => html`
        <tr key=${guard.key}>
          <td><${GuardLink} context=${context} at=${at} /></td>
          <td><${Kinds} kinds=${guard.kinds} /></td>
          <td class="is-number">${formatCount(guard.recompiles)}</td>
          <td class="is-number">${formatCount(guard.alone)}</td>
          <td class="is-number">${formatSeconds(guard.lost_s)}</td>
          <td>${listValues(guard)}</td>
        </tr>`)}
    <//>`;
}

/** @param {GuardDocument} guard */
function listValues(guard) {
  const shown = guard.values.slice(0, MOST_VALUES).map(([text]) => oneLine(text, 40)).join(", ");
  const rest = guard.values.length - MOST_VALUES;
  return (rest > 0 ? `${shown} and ${formatCount(rest)} more` : shown) || MISSING;
}

/** @param {{context: FunctionContext}} props */
function Entries({ context }) {
  const { found } = context;
  /** @param {EntryDocument} entry */
  const orderOf = (entry) => entry.order ?? Infinity;
  const entries = [...found.entries].sort((a, b) => orderOf(a) - orderOf(b) || (b.time ?? 0) - (a.time ?? 0));
  const calls = callColumns(found);
  const callHeads = calls.map(([head]) => head);
  const heads = ["position", "entry", "compiled at", "reason", "cost", "tree", ...callHeads, "failed here"];
  const numeric = new Set([0, 4, 5, ...calls.map((_, at) => 6 + at)]);
  const omitted = found.entries.length < found.compiles ? " Compiles without an entry, and very old ones, are not listed." : "";
  const note = `Positions are those of the last recompile: a hit moves its entry to the front. ${describeCalls(found)}${omitted}`;
  return html`
    <${PlainTable} name="cdiag-entries" label="cache entries" heads=${heads} numeric=${numeric}>
      ${entries.map((entry) => {
        const cells = [
          formatCount(entry.order),
          html`<code>${entry.compile_id}</code>`,
          entry.time === null ? "before the watch" : html`<${At} ms=${entry.time} start=${context.start} />`,
          html`<${Reason} found=${found} entry=${entry} />`,
          formatSeconds(entry.seconds),
          html`<${TreeLink} context=${context} entry=${entry} />`,
          ...calls.map(([, writeCell]) => writeCell(entry)),
          listFailures(found, entry),
        ];
        return html`<tr>${cells.map((cell, i) => html`<td class=${numeric.has(i) ? "is-number" : ""} data-column=${heads[i]}>${cell}</td>`)}</tr>`;
      })}
    <//>
    <p class="cdiag-dim">${note}</p>`;
}

/**
 * The columns of calls, if they were counted. What an entry saves is known where eager calls were timed too.
 * @param {FunctionDocument} found
 * @returns {[head: string, writeCell: (entry: EntryDocument) => string][]}
 */
function callColumns({ eager }) {
  if (eager === null) return [];
  /** @type {[string, (entry: EntryDocument) => string][]} */
  const columns = [
    ["calls", (entry) => formatCount(entry.calls)],
    ["one call", (entry) => formatSeconds(entry.mean_s)],
    ["guard check", (entry) => formatMicroseconds(entry.guard_check_us)],
  ];
  if (eager.mean_s === null) return columns;
  return [
    ...columns,
    ["saved", (entry) => formatSeconds(entry.won_s)],
    ["break-even calls", (entry) => (entry.won_s !== null && entry.won_s <= 0 ? "never" : formatCount(entry.break_even))],
  ];
}

/** @param {FunctionDocument} found */
function describeCalls({ eager }) {
  if (eager === null) return "Calls were not counted; watch(calls=True) counts them on Python 3.12 or later.";
  const means = "Calls: while this was watched. One call: time on the host, without the first call. Guard check: what each call pays before it.";
  if (eager.mean_s === null) return means;
  return `${means} Saved, break-even calls: compared with an eager call, ${formatSeconds(eager.mean_s)}.`;
}

/**
 * Why an entry was compiled.
 * @param {{found: FunctionDocument, entry: EntryDocument}} props
 */
function Reason({ found, entry }) {
  if (entry.made_at === null) return entry.event === null ? MISSING : "first";
  return html`<${Change} found=${found} row=${found.rows[entry.made_at]} />`;
}

/** @param {{context: FunctionContext, entry: EntryDocument}} props */
function TreeLink({ context: { documents, go, id }, entry: { tree, guard_count } }) {
  if (tree === null || !documents.trees.get(tree)) return formatCount(guard_count);
  return html`
    <button type="button" class="cdiag-link" data-key=${`tree ${tree}`} onClick=${() => go({ function: id, tree })}>
      ${formatAmount(guard_count, "guard")}
    </button>`;
}

/**
 * How often each guard failed in an entry: recompiles, and torch's own count where it is higher.
 * @param {FunctionDocument} found
 * @param {EntryDocument} entry
 */
function listFailures(found, entry) {
  const failures = entry.failed.map(([guard, times, count]) => {
    const more = count !== null && count > times ? ` (torch's counter: ${formatCount(count)})` : "";
    return `${found.guards[guard].name} ${formatTimes(times)}${more}`;
  });
  return failures.length ? oneLine(failures.join(" · "), 300) : MISSING;
}
