// The page of a job's ranks: where they parted, each rank, each compile over all of them, stragglers first.
import { make, makeButton, setText } from "../core/dom.js";
import { changeOfGuard, differenceLine } from "./rank-differences.js";
import { counted, formatCount, formatMs, formatPlace, formatSeconds, MISSING, oneLine } from "../core/format.js";
import { SidePage } from "../core/side-page.js";
import { bar, section } from "../core/blocks.js";

const LETTERS = "caches: H hit, M miss, G guard miss, B bypassed, - off, F failed";
const FEW = 24; // ranks whose squares have room in a line
const ALIKE = "All ranks compiled the same, for the same reasons, in the same order.";

export class RanksPage extends SidePage {
  constructor(root, store, trail) {
    super(root, store, trail, "cdiag-ranks");
    this.inOrder = false;
    root.replaceChildren(this.makeBar("Ranks"), this.page);
  }

  paint() {
    this.painting = null;
    const { ranks } = this.store;
    this.root.dataset.seq = String(this.store.seq ?? "");
    setText(this.status, ranks ? counted(ranks.count, "rank", "ranks") : "there are not two ranks in this session");
    const shape = JSON.stringify([ranks, this.inOrder]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.page.replaceChildren(...(ranks ? this.parts(ranks) : []));
  }

  parts(ranks) {
    return [this.differences(ranks), this.rankBars(ranks), this.graphs(ranks)];
  }

  differences({ differences }) {
    const explore = (event) => this.trail.go({ page: "explorer", event });
    const isRecompile = (id) => this.store.table("recompiles").byId(id) !== null;
    const lines = differences.map((one, at) => differenceLine(one, at === 0, isRecompile, explore));
    const list = lines.length ? make("ol", "cdiag-differences", ...lines) : make("p", "", ALIKE);
    return section("differences", "Where they first differ", list);
  }

  rankBars({ ranks, count }) {
    const most = Math.max(...ranks.map((row) => row.compile_s), 1e-9);
    const rows = ranks.map((row) => {
      const facts = [
        formatSeconds(row.compile_s),
        counted(row.compiles, "compile", "compiles"),
        counted(row.recompiles, "recompile", "recompiles"),
        row.graph_breaks ? counted(row.graph_breaks, "graph break", "graph breaks") : null,
        row.lookups ? `caches ${oneLine(row.lookups, 60)}` : null,
        row.first_difference ? `differs: ${row.first_difference}` : null,
      ];
      const node = bar(`rank ${row.rank}`, row.compile_s, most, "aot", facts.filter(Boolean).join(" · "));
      node.dataset.rank = row.rank;
      return node;
    });
    const left = count > ranks.length ? [make("p", "cdiag-dim", `the first ${ranks.length} of ${formatCount(count)}`)] : [];
    const list = make("div", "cdiag-rank-list", ...rows);
    list.tabIndex = 0; // it scrolls
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "ranks by seconds compiling");
    return section("rank-bars", "Ranks, the one that compiled longest first", list, ...left, this.letters(ranks));
  }

  letters(ranks) {
    return ranks.some((row) => row.lookups) ? make("p", "cdiag-dim", LETTERS) : null;
  }

  graphs(ranks) {
    const label = this.inOrder ? "stragglers first" : "in the order of compiling";
    const turn = makeButton("cdiag-link", label, () => {
      this.inOrder = !this.inOrder;
      this.paint();
    });
    const rows = this.inOrder ? [...ranks.graphs].sort((a, b) => a.order - b.order) : ranks.graphs;
    const heads = ["compile", "line", "ranks", "slowest", "median", "behind", "a run, expected", "differs"];
    const table = make("table", "cdiag-plain cdiag-rank-graphs", make("thead", "", headRow(heads)));
    table.append(make("tbody", "", ...rows.flatMap((row) => graphRows(row, ranks))));
    const name = this.inOrder ? "Compiles, in order" : "Compiles, the slowest straggler first";
    const left = ranks.graph_count > rows.length ? ` · the first ${rows.length} of ${formatCount(ranks.graph_count)}` : "";
    const note = "a square a rank: filled, it compiled it; empty, it did not; marked, it recompiled by a guard";
    return section("rank-graphs", name, turn, make("div", "cdiag-plain-frame", table), make("p", "cdiag-dim", note + left));
  }
}

function headRow(heads) {
  return make("tr", "", ...heads.map((head) => make("th", "", head)));
}

function graphRows(row, { shown, count }) {
  const name = make("code", "", `${row.compile_id ?? MISSING} ${oneLine(row.function ?? "?", 60)}`);
  const backward = row.trigger === "lazy_backward" ? make("span", "cdiag-dim", " backward") : null;
  const place = formatPlace(row.file, row.line) ?? MISSING;
  const have = row.missed ? `${formatCount(row.ranks)} of ${formatCount(count)}` : "all";
  const slowest = row.slowest_s === null ? MISSING : `rank ${row.slowest_rank}, ${formatSeconds(row.slowest_s)}`;
  const lack = row.missed ? `not on ${formatRanks(row.missing, row.missed)}` : null;
  const differs = [lack, ...row.differs.map((kind) => kind.replaceAll("_", " "))].filter(Boolean).join(", ");
  const cells = [
    make("td", "", name, backward),
    make("td", "", make("code", "", place)),
    make("td", "", `${have} `, squares(row, shown)),
    make("td", "", slowest),
    make("td", "", formatSeconds(row.median_s)),
    make("td", "", formatSeconds(row.spread_s)),
    make("td", "", row.runtime_ms === null ? MISSING : `${formatMs(row.runtime_ms)} ms`),
    make("td", row.missed || row.differs.length ? "cdiag-differs" : "", differs || MISSING),
  ];
  const line = make("tr", "", ...cells);
  line.dataset.compile = row.compile_id ?? "";
  const more = detailRow(row, shown, cells.length);
  return more ? [line, more] : [line];
}

/** What ranks have of a compile where that differs: guards with their values, collectives in their order. */
function detailRow(row, shown, width) {
  if (!row.missed && !row.differs.some((kind) => ["guard", "collectives", "caches"].includes(kind))) return null;
  const told = new Map(); // what a rank has -> the ranks that have just that
  row.cells.forEach((cell, at) => {
    const text = cell === null ? "did not compile it" : whatItHas(cell);
    told.set(text, [...(told.get(text) ?? []), shown[at]]);
  });
  const lines = [...told].map(([text, ranks]) => make("div", "", `${formatRanks(ranks, ranks.length)}: `, make("code", "", text)));
  const cell = make("td", "cdiag-rank-detail", ...lines);
  cell.colSpan = width;
  return make("tr", "", cell);
}

function whatItHas(cell) {
  const guard = cell.guard === null ? "no recompile" : `guard ${changeOfGuard(cell)}`;
  const collectives = cell.collectives.length ? cell.collectives.join(" > ") : null;
  return [guard, cell.caches && `caches ${cell.caches}`, collectives].filter(Boolean).join(" · ");
}

function squares(row, shown) {
  const box = make("span", shown.length > FEW ? "cdiag-squares is-many" : "cdiag-squares");
  box.setAttribute("aria-hidden", "true"); // The text before and behind it says the same.
  row.cells.forEach((cell, at) => {
    const square = make("span", cell === null ? "is-missing" : cell.guard === null ? "" : "is-recompile");
    square.title = `rank ${shown[at]}: ${cell === null ? "not compiled" : `${formatSeconds(cell.seconds)} · ${whatItHas(cell)}`}`;
    box.append(square);
  });
  return box;
}

function formatRanks(ranks, all) {
  const listed = ranks.slice(0, 6).join(", ");
  return `${all === 1 ? "rank" : "ranks"} ${listed}${all > 6 ? ` and ${formatCount(all - 6)} more` : ""}`;
}
