// The page of a job's ranks: where they first differ, each rank, each compile over all of them, stragglers first.
import { joinKnown, makeBar, makeSection, makeTableFrame, whenKnown } from "../core/blocks.js";
import { make, makeButton, setText } from "../core/dom.js";
import { formatAmount, formatCount, formatSeconds, oneLine } from "../core/format.js";
import { SidePage } from "../core/side-page.js";
import { makeDifference, makeGraphRows, makeGroupRows } from "./rank-rows.js";
/** @import { Ranks, RankRow } from "../core/page-types" */
/** @import { Trail } from "../core/place.js" */
/** @import { Store } from "../core/store.js" */

const LETTERS = "caches: H hit, M miss, G guard miss, B bypassed, - off, F failed";
const SAME = "All ranks compiled the same, for the same reasons, in the same order.";
const SQUARES = "one square per rank; filled = compiled, empty = not compiled, marked = recompiled by a guard";
const GROUPS = "ranks that compiled the same functions, for the same reasons, in the same order";
const LOADED = "the other tables have the rows of the first rank of each group; seconds on this page are those of each rank";
const GROUP_HEADS = ["ranks", "of the job", "compiles", "recompiles", "graph breaks", "median", "slowest"];
const HEADS = ["compile", "line", "ranks", "slowest", "median", "behind", "one run, estimated", "differs"];

export class RanksPage extends SidePage {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {Trail} trail
   */
  constructor(root, store, trail) {
    super(root, store, trail, "cdiag-ranks", "ranks");
    this.inOrder = false;
    this.shape = "";
    root.replaceChildren(this.makeBar("Ranks"), this.page);
  }

  paint() {
    this.beginPaint();
    const { ranks } = this.store;
    setText(this.status, ranks ? formatAmount(ranks.count, "rank") : "this session has fewer than two ranks");
    const shape = JSON.stringify([ranks, this.inOrder]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.page.replaceChildren(...(ranks ? this.makeSections(ranks) : []));
  }

  /** @param {Ranks} ranks */
  makeSections(ranks) {
    const groups = ranks.group_count < ranks.count ? [makeGroups(ranks)] : [];
    return [this.makeDifferences(ranks), ...groups, makeRankBars(ranks), this.makeGraphs(ranks)];
  }

  /** @param {Ranks} ranks */
  makeDifferences({ differences }) {
    const recompiles = this.store.table("recompiles");
    /** @param {number} event */
    const explore = (event) => this.trail.go({ page: "explorer", event });
    const lines = differences.map((one, at) => {
      const event = one.evidence.find((id) => recompiles.byId(id) !== null);
      return makeDifference(one, at === 0, event === undefined ? null : () => explore(event));
    });
    const list = lines.length ? make("ol", "cdiag-differences", ...lines) : make("p", "", SAME);
    return makeSection("differences", "Where they first differ", list);
  }

  /** @param {Ranks} ranks */
  makeGraphs(ranks) {
    const label = this.inOrder ? "stragglers first" : "in compile order";
    const turn = makeButton("cdiag-link", label, () => {
      this.inOrder = !this.inOrder;
      this.paint();
    });
    const rows = this.inOrder ? [...ranks.graphs].sort((a, b) => a.order - b.order) : ranks.graphs;
    const head = make("thead", "", make("tr", "", ...HEADS.map((text) => make("th", "", text))));
    const body = make("tbody", "", ...rows.flatMap((row) => makeGraphRows(row, ranks)));
    const table = make("table", "cdiag-plain cdiag-rank-graphs", head, body);
    const heading = this.inOrder ? "Compiles, in order" : "Compiles, the slowest straggler first";
    const cut = ranks.graph_count > rows.length
      ? ` · the first ${formatCount(rows.length)} of ${formatAmount(ranks.graph_count, "compile")}`
      : "";
    const note = make("p", "cdiag-dim", SQUARES + cut);
    return makeSection("rank-graphs", heading, turn, makeTableFrame(table, "compiles by rank"), note);
  }
}

/** @param {Ranks} ranks */
function makeGroups({ groups, group_count, count, loaded }) {
  const head = make("thead", "", make("tr", "", ...GROUP_HEADS.map((text) => make("th", "", text))));
  const body = make("tbody", "", ...groups.flatMap((group) => makeGroupRows(group, count)));
  const table = make("table", "cdiag-plain cdiag-rank-groups", head, body);
  const cut = group_count > groups.length ? `the first ${formatCount(groups.length)} of ${formatCount(group_count)}` : null;
  const note = make("p", "cdiag-dim", joinKnown(GROUPS, loaded.length ? LOADED : null, cut));
  const heading = `${formatAmount(group_count, "group")} of ranks`;
  return makeSection("rank-groups", heading, makeTableFrame(table, "groups of ranks"), note);
}

/** @param {Ranks} ranks */
function makeRankBars({ ranks, count }) {
  const most = Math.max(...ranks.map((row) => row.compile_s), 1e-9);
  const list = make("div", "cdiag-rank-list", ...ranks.map((row) => makeRankBar(row, most)));
  list.tabIndex = 0; // it scrolls
  list.setAttribute("role", "region");
  list.setAttribute("aria-label", "ranks by seconds compiling");
  const cut = count > ranks.length
    ? make("p", "cdiag-dim", `the first ${formatCount(ranks.length)} of ${formatAmount(count, "rank")}`)
    : null;
  const letters = ranks.some((row) => row.lookups) ? make("p", "cdiag-dim", LETTERS) : null;
  return makeSection("rank-bars", "Ranks, the one that compiled longest first", list, cut, letters);
}

/**
 * @param {RankRow} row
 * @param {number} most s
 */
function makeRankBar(row, most) {
  const facts = joinKnown(
    formatSeconds(row.compile_s),
    formatAmount(row.compiles, "compile"),
    formatAmount(row.recompiles, "recompile"),
    row.graph_breaks ? formatAmount(row.graph_breaks, "graph break") : null,
    row.lookups ? `caches ${oneLine(row.lookups, 60)}` : null,
    whenKnown(row.first_difference, (difference) => `differs: ${difference}`),
  );
  const { node } = makeBar(`rank ${row.rank}`, row.compile_s, most, "aot", facts);
  node.dataset.rank = String(row.rank);
  return node;
}
