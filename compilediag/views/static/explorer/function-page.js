// The page of one function: its recompiles by entry, as a grid in which arrow keys move; the guards that failed; its entries.
import { At, joinKnown, PlainTable, Section, whenKnown } from "../core/blocks.js";
import { findAll, onKeys, targetOf } from "../core/dom.js";
import {
  formatAmount, formatCount, formatMicroseconds, formatSeconds, formatTimes, MISSING, oneLine,
} from "../core/format.js";
import { html } from "../core/view.js";
import { Change, Findings, functionName, GuardLink, Kinds, Tag } from "./explorer-blocks.js";
import { useState } from "../vendor/hooks.js";

const MOST_ROWS = 40; // recompiles shown at first, the latest
const MOST_TAGS = 4; // guards named in one cell
const HEADS = ["recompile", "at", "change", "lost"];

/** @param {{context: FunctionContext}} props */
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
  /** @param {Event} event @param {number} down @param {number} right */
  const move = (event, down, right) => {
    const here = targetOf(event).closest("[data-cell]");
    if (!here) return false;
    const row = here.closest("tr");
    const line = findAll(right ? row : down > 0 ? row?.nextElementSibling : row?.previousElementSibling, "[data-cell]");
    /** @param {Element} button */
    const columnOf = (button) => button.closest("td")?.cellIndex ?? 0;
    /** @param {Element} button */
    const distance = (button) => Math.abs(columnOf(button) - columnOf(here));
    // The next button of the line, or the nearest of the line above or below.
    const next = right ? line[line.findIndex((button) => button === here) + right] : line.sort((a, b) => distance(a) - distance(b))[0];
    if (!next) return undefined;
    setStop(next.dataset.cell ?? null);
    return next.focus();
  };
  const onKey = onKeys({
    ArrowDown: (event) => move(event, 1, 0),
    ArrowUp: (event) => move(event, -1, 0),
    ArrowRight: (event) => move(event, 0, 1),
    ArrowLeft: (event) => move(event, 0, -1),
  });
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

/** @param {GridRowProps & {columns: number[]}} props */
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

/** @type {Component<GridCellProps>} */
function Cell({ context, row, at, entry, failures, isStop }) {
  const { found } = context;
  const isClosest = row.closest === entry;
  if (!failures && !isClosest) return html`<td class="cdiag-cell"></td>`;
  const guards = failures ?? [];
  const names = guards.map(([guard, isFirst, , expected]) => {
    return `${found.guards[guard].name}${expected === null ? "" : ` (expected ${expected})`}${isFirst ? ", failed first" : ""}`;
  });
  const compared = `${row.compile_id} compared with ${found.entries[entry].compile_id}: ${names.join("; ") || "failed"}`;
  const title = compared + (isClosest ? " (fewest failing guards)" : "");
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

/** @type {Component<CellButtonProps>} A button of the grid that opens a guard; arrow keys move to it. */
function CellButton({ context: { found, go, id }, guard, name, title, isStop, children }) {
  const target = guard === null ? undefined : found.guards[guard];
  return html`
    <button type="button" class="cdiag-cell-button" tabindex=${isStop(name) ? 0 : -1} data-cell=${name} title=${title} aria-label=${title}
      onClick=${() => target && go({ function: id, guard: target.key })}>${children}</button>`;
}

const MOST_VALUES = 8;
const ALONE = "failed alone: recompiles where some entry had no other failing guard";
const UNCOUNTED = "Calls were not counted; watch(calls=True) counts them on Python 3.12 or later.";
const CALLS = "Calls: while this was watched. One call: time on the host, without the first call. Guard check: what each call pays before it.";
const GUARD_HEADS = ["guard", "kind", "failures", "failed alone", "lost", "values"];

/** @param {{context: FunctionContext}} props */
export function FunctionPage({ context }) {
  const { found, documents } = context;
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
    </div>
    <${Findings} context=${context} findings=${documents.findingsOf(found, null)} />
    ${found.rows.length > 0 && html`
      <${Section} heading="Recompiles, and which guards failed in which entry"><${RecompileGrid} context=${context} /><//>`}
    ${found.guards.length > 0 && html`
      <${Section} heading="Guards that failed">
        <${PlainTable} name="cdiag-guards" label="guards" heads=${GUARD_HEADS} numeric=${new Set([2, 3, 4])}>
          ${found.guards.map((guard, at) => {
            const values = guard.values.slice(0, MOST_VALUES).map(([text]) => oneLine(text, 40)).join(", ");
            const rest = guard.values.length - MOST_VALUES;
            return html`
              <tr key=${guard.key}>
                <td><${GuardLink} context=${context} at=${at} /></td>
                <td><${Kinds} kinds=${guard.kinds} /></td>
                <td class="is-number">${formatCount(guard.recompiles)}</td>
                <td class="is-number">${formatCount(guard.alone)}</td>
                <td class="is-number">${formatSeconds(guard.lost_s)}</td>
                <td>${(rest > 0 ? `${values} and ${formatCount(rest)} more` : values) || MISSING}</td>
              </tr>`;
          })}
        <//>
        <p class="cdiag-dim">${ALONE}</p>
      <//>`}
    <${Section} heading="Entries, in lookup order"><${Entries} context=${context} /><//>`;
}

/** @param {{context: FunctionContext}} props */
function Entries({ context: { found, documents, go, id, start } }) {
  const { eager } = found;
  const isTimed = eager !== null && eager.mean_s !== null; // so what an entry saves is known
  /** @param {EntryDocument} entry */
  const orderOf = (entry) => entry.order ?? Infinity;
  const entries = [...found.entries].sort((a, b) => orderOf(a) - orderOf(b) || (b.time ?? 0) - (a.time ?? 0));
  /** @param {EntryDocument} entry how often each guard failed in it: recompiles, and torch's own count where it is higher */
  const listFailures = (entry) => entry.failed.map(([guard, times, count]) => {
    const more = count !== null && count > times ? ` (torch's counter: ${formatCount(count)})` : "";
    return `${found.guards[guard].name} ${formatTimes(times)}${more}`;
  }).join(" · ");
  /** @param {EntryDocument} entry */
  const linkTree = ({ tree, guard_count }) => (tree === null || !documents.trees.get(tree) ? formatCount(guard_count) : html`
    <button type="button" class="cdiag-link" data-key=${`tree ${tree}`} onClick=${() => go({ function: id, tree })}>
      ${formatAmount(guard_count, "guard")}
    </button>`);
  /** @type {EntryColumn[]} */
  const columns = [
    ["position", true, (entry) => formatCount(entry.order)],
    ["entry", false, (entry) => html`<code>${entry.compile_id}</code>`],
    ["compiled at", false, ({ time }) => (time === null ? "before the watch" : html`<${At} ms=${time} start=${start} />`)],
    ["reason", false, ({ made_at, event }) => (made_at !== null ? html`<${Change} found=${found} row=${found.rows[made_at]} />` : event === null ? MISSING : "first")],
    ["cost", true, (entry) => formatSeconds(entry.seconds)],
    ["tree", true, linkTree],
    .../** @type {EntryColumn[]} */ (eager === null ? [] : [
      ["calls", true, (entry) => formatCount(entry.calls)],
      ["one call", true, (entry) => formatSeconds(entry.mean_s)],
      ["guard check", true, (entry) => formatMicroseconds(entry.guard_check_us)],
    ]),
    .../** @type {EntryColumn[]} */ (!isTimed ? [] : [
      ["saved", true, (entry) => formatSeconds(entry.won_s)],
      ["break-even calls", true, ({ won_s, break_even }) => (won_s !== null && won_s <= 0 ? "never" : formatCount(break_even))],
    ]),
    ["failed here", false, (entry) => oneLine(listFailures(entry), 300) || MISSING],
  ];
  const calls = eager === null ? UNCOUNTED : isTimed ? `${CALLS} Saved, break-even calls: compared with an eager call, ${formatSeconds(eager.mean_s)}.` : CALLS;
  const omitted = found.entries.length < found.compiles ? " Compiles without an entry, and very old ones, are not listed." : "";
  const numeric = new Set(columns.flatMap(([, isNumber], i) => (isNumber ? [i] : [])));
  return html`
    <${PlainTable} name="cdiag-entries" label="cache entries" heads=${columns.map(([head]) => head)} numeric=${numeric}>
      ${entries.map((entry) => html`<tr>${columns.map(([head, isNumber, writeCell]) => html`
        <td class=${isNumber ? "is-number" : ""} data-column=${head}>${writeCell(entry)}</td>`)}</tr>`)}
    <//>
    <p class="cdiag-dim">Positions are those of the last recompile: a hit moves its entry to the front. ${calls}${omitted}</p>`;
}
