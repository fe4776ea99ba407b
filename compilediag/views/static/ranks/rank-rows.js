// The rows of the page of ranks: a difference, and a compile over all ranks.
import { joinKnown } from "../core/blocks.js";
import {
  formatAmount,
  formatCode,
  formatCount,
  formatFunction,
  formatMilliseconds,
  formatPlace,
  formatSeconds,
  formatShare,
  MISSING,
  oneLine,
} from "../core/format.js";
import { html } from "../core/view.js";

const FEW = 24; // ranks whose squares fit in a line
const DETAILED = ["guard", "collectives", "caches"]; // kinds of difference that are shown per rank

/**
 * A difference in a sentence; where it was a recompile of this session, with a link to its guard.
 * @param {{difference: RankDifference, isFirst: boolean, explore: (() => void) | null}} props
 */
export function Difference({ difference, isFirst, explore }) {
  const kind = difference.kind === "way" ? "different path" : formatCode(difference.kind);
  return html`
    <li class=${isFirst ? "is-first" : ""}>
      <span class="cdiag-tag">${kind}</span><span>${difference.sentence}</span>
      ${explore && html`<button type="button" class="cdiag-link" onClick=${explore}>explore ›</button>`}
    </li>`;
}

/**
 * Ranks that compiled the same: how many there are, what they compiled, and how long that took.
 * @param {{group: RankGroup, count: number}} props `count`: ranks of the job
 */
export function GroupRows({ group, count }) {
  const name = group.count > 1 ? `${formatAmount(group.count, "rank")} like rank ${group.rank}` : `rank ${group.rank}`;
  const slowest = `${group.count > 1 ? `rank ${group.slowest_rank}, ` : ""}${formatSeconds(group.slowest_s)}`;
  const numbers = [group.compiles, group.recompiles, group.graph_breaks].map(formatCount);
  const cells = [formatShare(group.count / count), ...numbers, formatSeconds(group.median_s), slowest];
  return html`
    <tr data-rank=${group.rank}>
      <td title=${listRanks(group.ranks, group.count)}>${name}</td>${cells.map((text) => html`<td>${text}</td>`)}
    </tr>
    ${group.difference !== null && html`<tr><td class="cdiag-rank-detail" colspan=${1 + cells.length}>${group.difference}</td></tr>`}`;
}

/**
 * A compile over all ranks: its row, and one with what each rank has where that differs.
 * @param {{row: RankGraph, ranks: Ranks}} props
 */
export function GraphRows({ row, ranks: { shown, count } }) {
  const have = row.missed ? `${formatCount(row.ranks)} of ${formatCount(count)}` : "all";
  const missing = row.missed ? `not on ${listRanks(row.missing, row.missed)}` : null;
  const differs = [missing, ...row.differs.map(formatCode)].filter(Boolean).join(", ");
  return html`
    <tr data-compile=${row.compile_id ?? ""}>
      <td>
        <code>${row.compile_id ?? MISSING} ${oneLine(formatFunction(row.function) ?? "?", 60)}</code>
        ${row.trigger === "lazy_backward" && html`<span class="cdiag-dim"> backward</span>`}
      </td>
      <td><code>${formatPlace(row.file, row.line) ?? MISSING}</code></td>
      <td>${have} <${Squares} row=${row} shown=${shown} /></td>
      <td>${row.slowest_s === null ? MISSING : `rank ${row.slowest_rank}, ${formatSeconds(row.slowest_s)}`}</td>
      <td>${formatSeconds(row.median_s)}</td>
      <td>${formatSeconds(row.spread_s)}</td>
      <td>${formatMilliseconds(row.runtime_ms)}</td>
      <td class=${differs ? "cdiag-differs" : ""}>${differs || MISSING}</td>
    </tr>
    ${(row.missed > 0 || row.differs.some((kind) => DETAILED.includes(kind))) && html`<${DetailRow} row=${row} shown=${shown} />`}`;
}

/**
 * What ranks have of a compile: guards with their values, collectives in their order.
 * @param {{row: RankGraph, shown: number[]}} props
 */
function DetailRow({ row, shown }) {
  const texts = row.cells.map((cell) => (cell === null ? "did not compile it" : describeCell(cell)));
  const groups = Map.groupBy(shown, (_, at) => texts[at]);
  return html`
    <tr>
      <td class="cdiag-rank-detail" colspan="8">
        ${[...groups].map(([text, ranks]) => html`<div>${listRanks(ranks, ranks.length)}: <code>${text}</code></div>`)}
      </td>
    </tr>`;
}

/** @param {RankCell} cell */
function describeCell(cell) {
  const values = [cell.expected, cell.actual].map((value) => (value === null ? MISSING : oneLine(value, 40)));
  const guard = cell.guard === null ? "no recompile" : `guard ${oneLine(cell.guard, 80)} ${values.join(" → ")}`;
  return joinKnown(guard, cell.caches && `caches ${cell.caches}`, cell.collectives.join(" > "));
}

/** @param {{row: RankGraph, shown: number[]}} props */
function Squares({ row, shown }) {
  return html`
    <span class=${shown.length > FEW ? "cdiag-squares is-many" : "cdiag-squares"} aria-hidden="true">
      ${row.cells.map((cell, at) => {
        const name = cell === null ? "is-missing" : cell.guard === null ? "" : "is-recompile";
        const text = cell === null ? "not compiled" : `${formatSeconds(cell.seconds)} · ${describeCell(cell)}`;
        return html`<span class=${name} title=${`rank ${shown[at]}: ${text}`}></span>`;
      })}
    </span>`; // the text beside it says the same
}

/**
 * @param {number[]} ranks
 * @param {number} all how many there are, of which `ranks` are some
 */
function listRanks(ranks, all) {
  const listed = ranks.slice(0, 6).join(", ");
  return `${all === 1 ? "rank" : "ranks"} ${listed}${all > 6 ? ` and ${formatCount(all - 6)} more` : ""}`;
}
