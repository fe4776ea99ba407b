// The page of models that vLLM compiles: each part with its configuration, and its pieces for each range of sizes.
import { buildSome, joinKnown, makeDim, makeFacts, makeSection, makeTableFrame, whenKnown } from "../core/blocks.js";
import { make, setText } from "../core/dom.js";
import { formatAmount, formatCount, formatSeconds, formatSizes, MISSING } from "../core/format.js";
import { SidePage } from "../core/side-page.js";
import { ArtifactView } from "../dashboard/artifact-view.js";
/** @import { VllmPart, VllmParts, VllmPiece, VllmRange } from "../core/page-types" */
/** @import { Trail } from "../core/place.js" */
/** @import { Store } from "../core/store.js" */

const WHAT = "vLLM cuts the graph at the splitting operators and compiles each piece once per size or range of sizes (numbers of tokens)";
const GRAPH_SIZE = "vLLM marks this size for the capture of a CUDA graph";
/** @type {[string, string][]} what a fact is called, and its column */
const FACTS = [
  ["model", "model"],
  ["mode", "mode"],
  ["backend", "backend"],
  ["compiled or loaded", "origin"],
  ["CUDA graphs", "cudagraph_mode"],
  ["compile sizes", "compile_sizes"],
  ["ranges end at", "range_ends"],
  ["splitting operators", "splitting_ops"],
  ["custom operators", "custom_ops"],
  ["passes", "enabled_passes"],
  ["added passes", "inductor_passes"],
  ["dynamic shapes", "dynamic_shapes"],
];

export class VllmPage extends SidePage {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {Trail} trail
   */
  constructor(root, store, trail) {
    super(root, store, trail, "cdiag-vllm", "vLLM");
    this.shape = "";
    root.replaceChildren(this.makeBar("vLLM"), this.page);
  }

  paint() {
    this.beginPaint();
    const { vllm } = this.store;
    setText(this.status, vllm ? formatAmount(vllm.compiles, "compile") : "vLLM compiled nothing in this session");
    const shape = JSON.stringify(vllm);
    if (shape === this.shape) return;
    this.shape = shape;
    this.page.replaceChildren(...(vllm ? this.makeSections(vllm) : []));
  }

  /** @param {VllmParts} vllm */
  makeSections({ count, parts }) {
    const rest = count > parts.length ? [makeDim(`and ${formatCount(count - parts.length)} more`)] : [];
    return [makeDim(WHAT), ...parts.map((part) => this.makePart(part)), ...rest];
  }

  /** @param {VllmPart} part */
  makePart(part) {
    const texts = part.texts.map((text) => ({ ...text, stored: this.store.texts.get(text.event_id) }));
    const views = buildSome(texts, (some) => some.map((text) => new ArtifactView(text.event_id, text.name, text.size, text.stored).node));
    const graphs = views.length ? [make("h4", "", "Graphs"), ...views] : [];
    const name = part.config.part ?? "a model";
    return makeSection("vllm-part", name, makeDim(describePart(part)), makeFacts(listFacts(part)), makeTable(part), ...graphs);
  }
}

/** @param {VllmPart} part */
function describePart(part) {
  const { ranks } = part;
  return joinKnown(
    formatAmount(part.piece_count, "piece"),
    formatAmount(part.ranges.length, "size or range", "sizes and ranges"),
    formatAmount(part.compiles, "compile"),
    whenKnown(part.seconds, formatSeconds),
    ranks.length > 1 ? `${formatAmount(ranks.length, "rank")}, the slowest is rank ${part.rank}` : whenKnown(part.rank, (rank) => `rank ${rank}`),
    whenKnown(part.compile_id, (id) => `compile ${id}`),
  );
}

/**
 * @param {VllmPart} part
 * @returns {[string, string | null][]}
 */
function listFacts({ config }) {
  return FACTS.map(([label, name]) => [label, formatSetting(config[name])]);
}

/**
 * A setting as text; null if it is not known or an empty list.
 * @param {unknown} value
 */
function formatSetting(value) {
  if (Array.isArray(value)) return value.length ? value.join(", ") : null;
  return value === null || value === undefined ? null : String(value);
}

/** @param {VllmPart} part */
function makeTable({ pieces, piece_count, ranges, seconds }) {
  const heads = ["piece", "calls", ...ranges.map(makeRangeHead), "all"];
  const head = make("thead", "", make("tr", "", ...heads.map((text, at) => make("th", at ? "is-number" : "", text))));
  const most = Math.max(...pieces.flatMap((piece) => piece.cells.map((cell) => cell?.seconds ?? 0)), 1e-9);
  const rows = pieces.map((piece) => makePieceRow(piece, most));
  const totals = [...ranges.map((range) => range.seconds), seconds].map((value) => makeNumber(formatSeconds(value)));
  const foot = make("tfoot", "", make("tr", "", make("td", "", "all"), make("td", ""), ...totals));
  const table = make("table", "cdiag-plain cdiag-vllm-pieces", head, make("tbody", "", ...rows), foot);
  const cut = piece_count > pieces.length ? makeDim(`the first ${formatCount(pieces.length)} of ${formatAmount(piece_count, "piece")}`) : null;
  return make("div", "", makeTableFrame(table, "pieces by sizes"), cut);
}

/** @param {VllmRange} range */
function makeRangeHead({ start, end, is_cudagraph_size }) {
  const head = make("span", "", formatSizes(start, end));
  if (is_cudagraph_size) {
    head.append(make("span", "cdiag-tag", "CUDA graph"));
    head.title = GRAPH_SIZE;
  }
  return head;
}

/**
 * @param {VllmPiece} piece
 * @param {number} most s of any cell
 */
function makePieceRow(piece, most) {
  const cells = piece.cells.map((cell) => {
    const node = makeNumber(cell === null ? "" : formatSeconds(cell.seconds));
    node.style.setProperty("--share", String((cell?.seconds ?? 0) / most));
    return node;
  });
  const calls = makeNumber(piece.graph_ops === null ? MISSING : formatCount(piece.graph_ops));
  return make("tr", "", make("td", "", make("code", "", piece.name)), calls, ...cells, makeNumber(formatSeconds(piece.seconds)));
}

/** @param {string} text */
function makeNumber(text) {
  return make("td", "is-number", text);
}
