// The page of a job's ranks: where they first differ, each rank, each compile over all of them, stragglers first.
import { Bar, Dim, joinKnown, PlainTable, Section, whenKnown } from "../core/blocks.js";
import {
  formatAmount, formatCode, formatCount, formatFunction, formatMilliseconds, formatPlace, formatSeconds, formatShare,
  MISSING, oneLine,
} from "../core/format.js";
import { PageBar } from "../core/page.js";
import { html } from "../core/view.js";
import { useState } from "../vendor/hooks.js";

const LETTERS = "caches: H hit, M miss, G guard miss, B bypassed, - off, F failed";
const SAME = "All ranks compiled the same, for the same reasons, in the same order.";
const SQUARES = "one square per rank; filled = compiled, empty = not compiled, marked = recompiled by a guard";
const GROUPS = "ranks that compiled the same functions, for the same reasons, in the same order";
const LOADED = "the other tables have the rows of the first rank of each group; seconds on this page are those of each rank";
const GROUP_HEADS = ["ranks", "of the job", "compiles", "recompiles", "graph breaks", "median", "slowest"];
const HEADS = ["compile", "line", "ranks", "slowest", "median", "behind", "one run, estimated", "differs"];

/** @param {{store: Store, trail: Trail}} props */
export function RanksPage({ store, trail }) {
  const { ranks } = store;
  const recompiles = store.table("recompiles");
  return html`
    <${PageBar} title="Ranks" trail=${trail} status=${ranks ? formatAmount(ranks.count, "rank") : "this session has fewer than two ranks"} />
    <div class="cdiag-page" tabindex="-1">
      ${ranks && html`
        <${Section} name="differences" heading="Where they first differ">
          ${ranks.differences.length === 0 ? html`<p>${SAME}</p>` : html`
            <ol class="cdiag-differences">
              ${ranks.differences.map((one, at) => {
                const event = one.evidence.find((id) => recompiles.byId(id) !== null);
                return html`
                  <li class=${at === 0 ? "is-first" : ""}>
                    <span class="cdiag-tag">${one.kind === "way" ? "different path" : formatCode(one.kind)}</span><span>${one.sentence}</span>
                    ${event !== undefined && html`<button type="button" class="cdiag-link" onClick=${() => trail.explore({ event })}>explore ›</button>`}
                  </li>`;
              })}
            </ol>`}
        <//>
        ${ranks.group_count < ranks.count && html`<${Groups} ranks=${ranks} />`}
        <${RankBars} ranks=${ranks} />
        <${Graphs} ranks=${ranks} />`}
    </div>`;
}

/** @param {{ranks: Ranks}} props */
function Graphs({ ranks }) {
  const [inOrder, setInOrder] = useState(false);
  const rows = inOrder ? [...ranks.graphs].sort((a, b) => a.order - b.order) : ranks.graphs;
  const cut = ranks.graph_count > rows.length && ` · the first ${formatCount(rows.length)} of ${formatAmount(ranks.graph_count, "compile")}`;
  return html`
    <${Section} name="rank-graphs" heading=${inOrder ? "Compiles, in order" : "Compiles, the slowest straggler first"}>
      <button type="button" class="cdiag-link" onClick=${() => setInOrder(!inOrder)}>${inOrder ? "stragglers first" : "in compile order"}</button>
      <${PlainTable} label="compiles by rank" name="cdiag-rank-graphs" heads=${HEADS}>
        ${rows.map((row) => html`<${GraphRows} row=${row} ranks=${ranks} />`)}
      <//>
      <${Dim}>${SQUARES}${cut}<//>
    <//>`;
}

/** @param {{ranks: Ranks}} props */
function Groups({ ranks: { groups, group_count, count, loaded } }) {
  const cut = group_count > groups.length ? `the first ${formatCount(groups.length)} of ${formatCount(group_count)}` : null;
  return html`
    <${Section} name="rank-groups" heading=${`${formatAmount(group_count, "group")} of ranks`}>
      <${PlainTable} label="groups of ranks" name="cdiag-rank-groups" heads=${GROUP_HEADS}>
        ${groups.map((group) => html`<${GroupRows} group=${group} count=${count} />`)}
      <//>
      <${Dim}>${joinKnown(GROUPS, loaded.length ? LOADED : null, cut)}<//>
    <//>`;
}

/** @param {{ranks: Ranks}} props */
function RankBars({ ranks: { ranks, count } }) {
  const most = Math.max(...ranks.map((row) => row.compile_s), 1e-9);
  /** @param {RankRow} row */
  const writeFacts = (row) => joinKnown(
    formatSeconds(row.compile_s),
    formatAmount(row.compiles, "compile"),
    formatAmount(row.recompiles, "recompile"),
    row.graph_breaks ? formatAmount(row.graph_breaks, "graph break") : null,
    row.lookups ? `caches ${oneLine(row.lookups, 60)}` : null,
    whenKnown(row.first_difference, (difference) => `differs: ${difference}`),
  );
  return html`
    <${Section} name="rank-bars" heading="Ranks, the one that compiled longest first">
      <div class="cdiag-rank-list" tabindex="0" role="region" aria-label="ranks by seconds compiling">
        ${ranks.map((row) => html`
          <${Bar} key=${row.rank} rank=${row.rank} label=${`rank ${row.rank}`} value=${row.compile_s} total=${most} kind="aot" text=${writeFacts(row)} />`)}
      </div>
      ${count > ranks.length && html`<${Dim}>the first ${formatCount(ranks.length)} of ${formatAmount(count, "rank")}<//>`}
      ${ranks.some((row) => row.lookups) && html`<${Dim}>${LETTERS}<//>`}
    <//>`;
}

const FEW = 24; // ranks whose squares fit in a line
const DETAILED = ["guard", "collectives", "caches"]; // kinds of difference that are shown per rank

/** @param {{group: RankGroup, count: number}} props ranks that compiled the same, and how many ranks the job has */
function GroupRows({ group, count }) {
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

/** @param {{row: RankGraph, ranks: Ranks}} props of a compile over all ranks, with a row for what differs between them */
function GraphRows({ row, ranks: { shown, count } }) {
  const have = row.missed ? `${formatCount(row.ranks)} of ${formatCount(count)}` : "all";
  const missing = row.missed ? `not on ${listRanks(row.missing, row.missed)}` : null;
  const differs = [missing, ...row.differs.map(formatCode)].filter(Boolean).join(", ");
  const texts = row.cells.map((cell) => (cell === null ? "did not compile it" : describeCell(cell)));
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
    ${(row.missed > 0 || row.differs.some((kind) => DETAILED.includes(kind))) && html`
      <tr>
        <td class="cdiag-rank-detail" colspan="8">
          ${[...Map.groupBy(shown, (_, at) => texts[at])].map(([text, alike]) => html`<div>${listRanks(alike, alike.length)}: <code>${text}</code></div>`)}
        </td>
      </tr>`}`;
}

/** @type {Write<RankCell>} */
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

/** @param {number[]} ranks @param {number} all how many there are, of which `ranks` are some */
function listRanks(ranks, all) {
  const listed = ranks.slice(0, 6).join(", ");
  return `${all === 1 ? "rank" : "ranks"} ${listed}${all > 6 ? ` and ${formatCount(all - 6)} more` : ""}`;
}
