// The page of a job's ranks: where they first differ, each rank, each compile over all of them, stragglers first.
import { Bar, Dim, joinKnown, PlainTable, Section, whenKnown } from "../core/blocks.js";
import { formatAmount, formatCount, formatSeconds, oneLine } from "../core/format.js";
import { PageBar } from "../core/page.js";
import { html } from "../core/view.js";
import { useState } from "../vendor/hooks.js";
import { Difference, GraphRows, GroupRows } from "./rank-rows.js";

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
                return html`<${Difference} difference=${one} isFirst=${at === 0} explore=${event === undefined ? null : () => trail.explore({ event })} />`;
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

/** @param {RankRow} row */
function writeFacts(row) {
  return joinKnown(
    formatSeconds(row.compile_s),
    formatAmount(row.compiles, "compile"),
    formatAmount(row.recompiles, "recompile"),
    row.graph_breaks ? formatAmount(row.graph_breaks, "graph break") : null,
    row.lookups ? `caches ${oneLine(row.lookups, 60)}` : null,
    whenKnown(row.first_difference, (difference) => `differs: ${difference}`),
  );
}
