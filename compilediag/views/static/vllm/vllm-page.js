// The page of models that vLLM compiles: each part with its configuration, and its pieces for each range of sizes.
import { Dim, drawSome, Facts, joinKnown, PlainTable, Section, whenKnown } from "../core/blocks.js";
import { formatAmount, formatCount, formatSeconds, formatSizes, MISSING } from "../core/format.js";
import { PageBar } from "../core/page.js";
import { html } from "../core/view.js";
import { Artifact } from "../details/artifacts.js";

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

/** @param {{store: Store, trail: Trail}} props */
export function VllmPage({ store: { vllm, texts }, trail }) {
  const rest = vllm ? vllm.count - vllm.parts.length : 0;
  return html`
    <${PageBar} title="vLLM" trail=${trail} status=${vllm ? formatAmount(vllm.compiles, "compile") : "vLLM compiled nothing in this session"} />
    <div class="cdiag-page" tabindex="-1">
      ${vllm && html`<${Dim}>${WHAT}<//>${vllm.parts.map((part) => html`<${Part} part=${part} texts=${texts} />`)}`}
      ${rest > 0 && html`<${Dim}>and ${formatCount(rest)} more<//>`}
    </div>`;
}

/** @param {{part: VllmPart, texts: Map<number, StoredText>}} props */
function Part({ part, texts }) {
  const { config, ranks } = part;
  const words = joinKnown(
    formatAmount(part.piece_count, "piece"),
    formatAmount(part.ranges.length, "size or range", "sizes and ranges"),
    formatAmount(part.compiles, "compile"),
    whenKnown(part.seconds, formatSeconds),
    ranks.length > 1 ? `${formatAmount(ranks.length, "rank")}, the slowest is rank ${part.rank}` : whenKnown(part.rank, (rank) => `rank ${rank}`),
    whenKnown(part.compile_id, (id) => `compile ${id}`),
  );
  return html`
    <${Section} name="vllm-part" heading=${config.part ?? "a model"}>
      <${Dim}>${words}<//>
      <${Facts} entries=${FACTS.map(([label, name]) => [label, Array.isArray(config[name]) ? config[name].join(", ") || null : config[name]])} />
      <${Pieces} part=${part} />
      ${part.texts.length > 0 && html`<h4>Graphs</h4>`}
      ${drawSome(part.texts, ({ event_id, name, size }) => html`
        <${Artifact} key=${event_id} id=${event_id} name=${name} size=${size} stored=${texts.get(event_id)} />`)}
    <//>`;
}

/** @param {{part: VllmPart}} props */
function Pieces({ part: { pieces, piece_count, ranges, seconds } }) {
  const most = Math.max(...pieces.flatMap((piece) => piece.cells.map((cell) => cell?.seconds ?? 0)), 1e-9);
  const sizes = ranges.map(({ start, end, is_cudagraph_size }) => html`
    <span title=${is_cudagraph_size ? GRAPH_SIZE : null}>${formatSizes(start, end)}${is_cudagraph_size && html`<span class="cdiag-tag">CUDA graph</span>`}</span>`);
  const heads = ["piece", "calls", ...sizes, "all"];
  const foot = html`<tr>
    <td>all</td><td></td>
    ${[...ranges.map((range) => range.seconds), seconds].map((sum) => html`<td class="is-number">${formatSeconds(sum)}</td>`)}
  </tr>`;
  return html`
    <div>
      <${PlainTable} label="pieces by sizes" name="cdiag-vllm-pieces" heads=${heads} numeric=${new Set(heads.map((_, i) => i).slice(1))} foot=${foot}>
        ${pieces.map((piece) => html`
          <tr>
            <td><code>${piece.name}</code></td>
            <td class="is-number">${piece.graph_ops === null ? MISSING : formatCount(piece.graph_ops)}</td>
            ${piece.cells.map((cell) => html`
              <td class="is-number" style=${{ "--share": String((cell?.seconds ?? 0) / most) }}>${cell === null ? "" : formatSeconds(cell.seconds)}</td>`)}
            <td class="is-number">${formatSeconds(piece.seconds)}</td>
          </tr>`)}
      <//>
      ${piece_count > pieces.length && html`<${Dim}>the first ${formatCount(pieces.length)} of ${formatAmount(piece_count, "piece")}<//>`}
    </div>`;
}
