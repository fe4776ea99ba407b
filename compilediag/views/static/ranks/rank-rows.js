// The rows of the page of ranks: a difference, and a compile over all ranks.
import { joinKnown } from "../core/blocks.js";
import { make, makeButton } from "../core/dom.js";
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
/** @import { RankCell, RankDifference, RankGraph, RankGroup, Ranks } from "../core/page-types" */

const FEW = 24; // ranks whose squares fit in a line
const DETAILED = ["guard", "collectives", "caches"]; // kinds of difference that are shown per rank

/**
 * A difference in a sentence; where it was a recompile of this session, with a link to its guard.
 * @param {RankDifference} difference
 * @param {boolean} isFirst
 * @param {(() => void) | null} explore
 */
export function makeDifference(difference, isFirst, explore) {
  const kind = difference.kind === "way" ? "different path" : formatCode(difference.kind);
  const link = explore ? makeButton("cdiag-link", "explore ›", explore) : null;
  const sentence = make("span", "", difference.sentence);
  return make("li", isFirst ? "is-first" : "", make("span", "cdiag-tag", kind), sentence, link);
}

/**
 * Ranks that compiled the same: how many there are, what they compiled, and how long that took.
 * @param {RankGroup} group
 * @param {number} count ranks of the job
 */
export function makeGroupRows(group, count) {
  const name = group.count > 1 ? `${formatAmount(group.count, "rank")} like rank ${group.rank}` : `rank ${group.rank}`;
  const slowest = `${group.count > 1 ? `rank ${group.slowest_rank}, ` : ""}${formatSeconds(group.slowest_s)}`;
  const cells = [
    make("td", "", name),
    make("td", "", formatShare(group.count / count)),
    ...[group.compiles, group.recompiles, group.graph_breaks].map((number) => make("td", "", formatCount(number))),
    make("td", "", formatSeconds(group.median_s)),
    make("td", "", slowest),
  ];
  cells[0].title = listRanks(group.ranks, group.count);
  const line = make("tr", "", ...cells);
  line.dataset.rank = String(group.rank);
  if (group.difference === null) return [line];
  const detail = make("td", "cdiag-rank-detail", group.difference);
  detail.colSpan = cells.length;
  return [line, make("tr", "", detail)];
}

/**
 * A compile over all ranks: its row, and one with what each rank has where that differs.
 * @param {RankGraph} row
 * @param {Ranks} ranks
 */
export function makeGraphRows(row, { shown, count }) {
  const name = make("code", "", `${row.compile_id ?? MISSING} ${oneLine(formatFunction(row.function) ?? "?", 60)}`);
  const backward = row.trigger === "lazy_backward" ? make("span", "cdiag-dim", " backward") : null;
  const have = row.missed ? `${formatCount(row.ranks)} of ${formatCount(count)}` : "all";
  const slowest = row.slowest_s === null ? MISSING : `rank ${row.slowest_rank}, ${formatSeconds(row.slowest_s)}`;
  const missing = row.missed ? `not on ${listRanks(row.missing, row.missed)}` : null;
  const differs = [missing, ...row.differs.map(formatCode)].filter(Boolean).join(", ");
  const cells = [
    make("td", "", name, backward),
    make("td", "", make("code", "", formatPlace(row.file, row.line) ?? MISSING)),
    make("td", "", `${have} `, makeSquares(row, shown)),
    make("td", "", slowest),
    make("td", "", formatSeconds(row.median_s)),
    make("td", "", formatSeconds(row.spread_s)),
    make("td", "", formatMilliseconds(row.runtime_ms)),
    make("td", differs ? "cdiag-differs" : "", differs || MISSING),
  ];
  const line = make("tr", "", ...cells);
  line.dataset.compile = row.compile_id ?? "";
  const isDetailed = row.missed > 0 || row.differs.some((kind) => DETAILED.includes(kind));
  return isDetailed ? [line, makeDetailRow(row, shown, cells.length)] : [line];
}

/**
 * What ranks have of a compile: guards with their values, collectives in their order.
 * @param {RankGraph} row
 * @param {number[]} shown
 * @param {number} width
 */
function makeDetailRow(row, shown, width) {
  /** @type {Map<string, number[]>} what a rank has -> the ranks that have just that */
  const groups = new Map();
  row.cells.forEach((cell, at) => {
    const text = cell === null ? "did not compile it" : describeCell(cell);
    groups.set(text, [...(groups.get(text) ?? []), shown[at]]);
  });
  const lines = [...groups].map(([text, ranks]) => {
    return make("div", "", `${listRanks(ranks, ranks.length)}: `, make("code", "", text));
  });
  const cell = make("td", "cdiag-rank-detail", ...lines);
  cell.colSpan = width;
  return make("tr", "", cell);
}

/** @param {RankCell} cell */
function describeCell(cell) {
  const values = [cell.expected, cell.actual].map((value) => (value === null ? MISSING : oneLine(value, 40)));
  const guard = cell.guard === null ? "no recompile" : `guard ${oneLine(cell.guard, 80)} ${values.join(" → ")}`;
  return joinKnown(guard, cell.caches && `caches ${cell.caches}`, cell.collectives.join(" > "));
}

/**
 * @param {RankGraph} row
 * @param {number[]} shown
 */
function makeSquares(row, shown) {
  const box = make("span", shown.length > FEW ? "cdiag-squares is-many" : "cdiag-squares");
  box.setAttribute("aria-hidden", "true"); // the text before and after it says the same
  row.cells.forEach((cell, at) => {
    const square = make("span", cell === null ? "is-missing" : cell.guard === null ? "" : "is-recompile");
    const text = cell === null ? "not compiled" : `${formatSeconds(cell.seconds)} · ${describeCell(cell)}`;
    square.title = `rank ${shown[at]}: ${text}`;
    box.append(square);
  });
  return box;
}

/**
 * @param {number[]} ranks
 * @param {number} all how many there are, of which `ranks` are some
 */
function listRanks(ranks, all) {
  const listed = ranks.slice(0, 6).join(", ");
  return `${all === 1 ? "rank" : "ranks"} ${listed}${all > 6 ? ` and ${formatCount(all - 6)} more` : ""}`;
}
