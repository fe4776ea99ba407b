// The artifacts of a compile (graphs, guards, generated code) by stage of the compiler; a text is inflated here, and shown
// a page at a time.
import { drawSome, Link } from "../core/blocks.js";
import { CodeHighlighter, isCode } from "../core/code.js";
import { formatAmount, formatBytes, formatCount } from "../core/format.js";
import { inflate } from "../core/page-data.js";
import { html } from "../core/view.js";
import { findTracedGraphs } from "./provenance.js";
import { useEffect, useRef, useState } from "../vendor/hooks.js";

/** @type {[string, RegExp][]} stage, and what its artifacts are called, in the order of the pipeline */
const STAGES = [
  ["Dynamo", /^(?:dynamo_|optimize_ddp|compiled_autograd|torch_dynamo|link: |.*BYTECODE$)/],
  ["vLLM", /^vllm_/],
  ["Inductor, on Dynamo's graph", /^(?:before_pre_grad|after_pre_grad|inductor_pre_grad)/],
  ["AOTAutograd", /^(?:aot_|before_joint|after_joint|aotautograd|torch\._functorch|min_cut|exported_program)/],
  ["Inductor, on AOTAutograd's graphs", /^(?:before_post_grad|after_post_grad|inductor_post_grad|fx_graph|inductor_input)/],
  ["Generated code", /^(?:inductor_output_code|inductor_provenance|triton_|cpp_|runtime_wrapper|compiled_f|backward_)/],
  ["Ranks", /^(?:inductor_collective|inductor_runtime|inductor_tlparse|graph_execution|collective)/],
  ["Other artifacts", /^/],
];
const PAGE = 60_000; // characters shown at first and added by "show more"
const COLORED = 400_000; // characters that are colored; more elements would make the page slow
const CHUNK = 200_000; // characters that are added per frame when everything is shown
const ADDRESS = /^https?:\/\/\S+$/;

/** @type {Component<ArtifactsProps>} Texts by stage, within a stage in order of time, and a link to graphs and code side by side. */
export function Artifacts({ rows, title, details: { store, actions } }) {
  const table = store.table("artifacts");
  const graphs = findTracedGraphs(rows.map((row) => ({ id: row[0], name: table.get(row, "name") })));
  const isTraced = graphs.some(({ code }) => store.texts.get(code.id)?.z);
  const stages = Map.groupBy(rows, (row) => STAGES.findIndex(([, pattern]) => pattern.test(table.get(row, "name") ?? "")));
  return html`
    ${isTraced && html`
      <button type="button" class="cdiag-link cdiag-to-provenance" onClick=${() => actions.showProvenance?.(title, graphs)}>
        from graph to code, line by line ›
      </button>`}
    ${[...stages].sort(([a], [b]) => a - b).map(([stage, found]) => html`<${Stage} key=${stage} stage=${stage} rows=${found} store=${store} />`)}`;
}

/** @param {{stage: number, rows: Cells[], store: Store}} props `stage`: position in STAGES */
function Stage({ stage, rows, store }) {
  const table = store.table("artifacts");
  return html`
    <h4>${STAGES[stage][0]}</h4>
    ${drawSome(rows, (row) => html`
      <${Artifact} key=${row[0]} id=${row[0]} name=${table.get(row, "name") ?? "text"} size=${table.get(row, "size")} stored=${store.texts.get(row[0])} />`)}`;
}

/** @type {Component<ArtifactProps>} */
export function Artifact({ id, name, size, stored }) {
  const [isOpen, setOpen] = useState(false);
  return html`
    <div class="cdiag-artifact" data-artifact=${id}>
      <button type="button" class="cdiag-artifact-toggle" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>
        <span class="cdiag-caret"></span><span>${name}</span><span class="cdiag-dim">${formatBytes(size)}</span>
      </button>
      ${isOpen && html`<${ArtifactText} key=${stored?.z} id=${id} name=${name} stored=${stored} />`}
    </div>`;
}

/** @type {Component<Omit<ArtifactProps, "size">>} */
function ArtifactText({ id, name, stored }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [pages, setPages] = useState(/** @type {ComponentChild[]} */ ([])); // each is drawn once
  const [isGrowing, setGrowing] = useState(false);
  const shown = useRef(0);
  const highlighter = useRef(isCode(name) ? new CodeHighlighter() : null);
  // Adds about `length` characters, to the end of a line unless lines are too long: code in colors, an address as a link.
  const addPage = (/** @type {string} */ whole, /** @type {number} */ length) => {
    const end = whole.indexOf("\n", shown.current + length) + 1 || whole.length;
    const part = whole.slice(shown.current, end - shown.current > 2 * length ? shown.current + length : end);
    shown.current += part.length;
    const colors = shown.current > COLORED ? null : highlighter.current;
    const drawn = ADDRESS.test(part) ? html`<${Link} url=${part} title=${part} />`
      : colors ? part.split("\n").map((line, at) => html`${at ? "\n" : ""}${colors.colorLine(line)}`)
      : part;
    setPages((before) => [...before, html`<pre key=${before.length}>${drawn}</pre>`]);
  };
  useEffect(() => {
    if (!stored?.z) return setProblem(`not in this page; in Python: session.artifact(${id})`);
    inflate(stored).then(
      (inflated) => {
        setText(inflated);
        addPage(inflated, PAGE);
      },
      (error) => setProblem(`this text cannot be read: ${error instanceof Error ? error.message : error}`),
    );
  }, []);
  useEffect(() => {
    // A chunk per frame, so that ten megabytes do not freeze the page.
    if (isGrowing && shown.current < text.length) requestAnimationFrame(() => addPage(text, CHUNK));
  }, [isGrowing, pages]);
  const { length } = text;
  const isCut = shown.current < length;
  const amount = `${isCut ? `${formatCount(shown.current)} of ` : ""}${formatAmount(length, "character")}`;
  const cut = stored?.cut ? ` · cut to fit; the whole text in Python: session.artifact(${id})` : "";
  return html`
    <div class="cdiag-artifact-body">
      <section class="cdiag-pages" tabindex="0">${pages}</section>
      <div class="cdiag-artifact-foot">
        <span class="cdiag-dim">${problem || (pages.length > 0 && amount + cut)}</span>
        ${isCut && html`
          <button type="button" class="cdiag-link" onClick=${() => addPage(text, PAGE)}>show more</button>
          <button type="button" class="cdiag-link" onClick=${() => setGrowing(true)}>show all</button>`}
      </div>
    </div>`;
}
