// The artifacts of a compile (graphs, guards, generated code) by stage of the compiler; a text is inflated here, and shown
// a page at a time.
import { CodeHighlighter, isCode } from "../core/code.js";
import { formatAmount, formatBytes, formatCount } from "../core/format.js";
import { inflate } from "../core/page-data.js";
import { Link } from "../core/text.js";
import { html } from "../core/view.js";
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
];
const OTHERS = "Other artifacts";

/** @param {string} name */
function stageOf(name) {
  const at = STAGES.findIndex(([, pattern]) => pattern.test(name));
  return at < 0 ? STAGES.length : at;
}

/**
 * Groups rows by stage: [heading, rows] of each stage that has any, within a stage in order of time.
 * @template Row
 * @param {Row[]} rows
 * @param {(row: Row) => string} nameOf
 * @returns {[string, Row[]][]}
 */
export function groupByStage(rows, nameOf) {
  const order = [...Map.groupBy(rows, (row) => stageOf(nameOf(row)))].sort(([a], [b]) => a - b);
  return order.map(([stage, found]) => [STAGES[stage]?.[0] ?? OTHERS, found]);
}

const PAGE = 60_000; // characters shown at first and added by "show more"
const COLORED = 400_000; // characters that are colored; more elements would make the page slow
const CHUNK = 200_000; // characters that are added per frame when everything is shown
const ADDRESS = /^https?:\/\/\S+$/;

/**
 * @param {{id: number, name: string, size: number | null, stored: StoredText | undefined}} props `id` names the artifact
 * in the kernel, `size` is in bytes, `stored` is missing if the text is not in the page
 */
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

/** @param {{id: number, name: string, stored: StoredText | undefined}} props */
function ArtifactText({ id, name, stored }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [pages, setPages] = useState(/** @type {ComponentChild[]} */ ([])); // each is drawn once
  const [isGrowing, setGrowing] = useState(false);
  const shown = useRef(0);
  const highlighter = useRef(isCode(name) ? new CodeHighlighter() : null);
  /**
   * @param {string} whole
   * @param {number} length
   */
  const addPage = (whole, length) => {
    const part = whole.slice(shown.current, findEnd(whole, shown.current, length));
    shown.current += part.length;
    const colors = shown.current > COLORED ? null : highlighter.current;
    setPages((before) => [...before, html`<pre key=${before.length}>${drawText(part, colors)}</pre>`]);
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

/**
 * The end of a page of about `length` characters: that of a line, unless lines are too long.
 * @param {string} text
 * @param {number} begin
 * @param {number} length
 */
function findEnd(text, begin, length) {
  const end = text.indexOf("\n", begin + length) + 1 || text.length;
  return end - begin > 2 * length ? begin + length : end;
}

/**
 * A part of a text: code in colors, an address as a link.
 * @param {string} part
 * @param {CodeHighlighter | null} highlighter null without colors
 */
function drawText(part, highlighter) {
  if (ADDRESS.test(part)) return html`<${Link} url=${part} title=${part} />`;
  if (!highlighter) return part;
  return part.split("\n").map((line, at) => html`${at ? "\n" : ""}${highlighter.colorLine(line)}`);
}
