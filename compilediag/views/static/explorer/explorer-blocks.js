// The blocks that the explorer's pages share.
import { explain, FindingMark, Prose, Term } from "../core/blocks.js";
import { formatCode, formatPlace, MISSING, oneLine } from "../core/format.js";
import { html } from "../core/view.js";

export const WIDEST = 120; // characters of a name or value

/** @type {Write<FunctionDocument>} "forward (model.py:30)" */
export function functionName({ function: name, file, line }) {
  const place = formatPlace(file, line);
  return oneLine(place ? `${name ?? "?"} (${place})` : name ?? "?", WIDEST);
}

/** @type {Component<{found: FunctionDocument, row: RecompileDocument}>} "k: 1 → 2" of a recompile. */
export function Change({ found, row }) {
  const name = oneLine(found.guards[row.guard ?? -1]?.name ?? "a guard", WIDEST);
  if (row.expected === null && row.now === null) return html`<code>${name}</code>`;
  const [before, after] = [row.expected, row.now].map((value) => oneLine(value ?? MISSING, WIDEST));
  return html`<code><strong>${name}</strong>: ${before} → ${after}</code>`;
}

/** @type {Component<{context: FunctionContext, findings: Finding[]}>} Findings with their advice; each opens its guard. */
export function Findings({ context: { documents, go }, findings }) {
  return findings.map((finding) => html`
    <div class="cdiag-finding-box" key=${finding.id}>
      <button type="button" class="cdiag-finding" onClick=${() => go(documents.resolve({ events: finding.evidence }))}>
        <span class="cdiag-finding-top"><${FindingMark} finding=${finding} /><span class="cdiag-finding-title">${finding.title}</span></span>
        <span class="cdiag-advice"><${Prose} text=${finding.suggestion ?? ""} /></span>
      </button>
    </div>`);
}

/** @param {{kinds: string[]}} props */
export function Kinds({ kinds }) {
  return html`<span>${kinds.map((kind, i) => html`${i ? ", " : ""}<${Term} text=${formatCode(kind)} hint=${explain(kind)} />`)}</span>`;
}

/** @param {{context: FunctionContext, at: number}} props */
export function GuardLink({ context: { found, go, id }, at }) {
  const { key, name } = found.guards[at];
  return html`
    <button type="button" class="cdiag-guard-link" data-key=${`guard ${key}`} onClick=${() => go({ function: id, guard: key })}>
      <${Tag} guard=${at} /><code>${oneLine(name, WIDEST)}</code>
    </button>`;
}

/** @type {Component<{guard: number}>} A short name for a guard: A, B, ... Z, AA, ... */
export function Tag({ guard }) {
  return html`<span class="cdiag-tagged">${nameTag(guard)}</span>`;
}

/** @type {Write<number>} */
function nameTag(at) {
  const letter = String.fromCharCode(65 + (at % 26));
  return at < 26 ? letter : nameTag(Math.floor(at / 26) - 1) + letter;
}

/** @param {{context: FunctionContext, title: ComponentChild, children: ComponentChild}} props */
export function PageHead({ context: { found, go, id }, title, children }) {
  return html`
    <div class="cdiag-page-head">
      <button type="button" class="cdiag-link cdiag-up" onClick=${() => go({ function: id })}>‹ ${functionName(found)}</button>
      <h2 class="cdiag-page-title">${title}</h2>
      <p class="cdiag-dim">${children}</p>
    </div>`;
}
