// Code as a component: blocks of Python, lines of a diff; what is shown on request; worked examples.
import { useState } from "../vendor/hooks.js";
import { Copy } from "./clipboard.js";
import { CodeHighlighter } from "./code-highlight.js";
import { html } from "./view.js";

/**
 * Lines of Python with a button that copies them.
 * @param {{code: string, hint: string}} props
 */
export function Code({ code, hint }) {
  const highlighter = new CodeHighlighter();
  const lines = code.split("\n").map((line, i) => html`${i ? "\n" : ""}${highlighter.colorLine(line)}`);
  return html`<div class="cdiag-code-block"><pre class="cdiag-snippet">${lines}</pre><${Copy} text=${code} hint=${hint} kind="is-small" /></div>`;
}

/**
 * The lines of a diff, each with its number before the change and the step that it is of.
 * @param {{lines: DiffLine[], label: string}} props
 */
export function Diff({ lines, label }) {
  const highlighter = new CodeHighlighter();
  let last = 0; // the number of the last line that was there before
  const rows = lines.map(([number, mark, text, step], i) => {
    const hasGap = number !== null && i > 0 && number > last + 1;
    last = number ?? last;
    const kind = mark === "+" ? "is-added" : mark === "-" ? "is-removed" : "";
    return html`
      ${hasGap && html`<div class="cdiag-diff-gap" key=${`${i} gap`}>⋯</div>`}
      <div class=${kind} key=${i} data-step=${step}>
        <span class="cdiag-diff-number">${mark === "-" || number === null ? "" : number}</span>
        <span>${step !== null && html`<span class="cdiag-step-number">${step}</span>`}</span>
        <span class="cdiag-diff-mark">${mark}</span>
        <code>${highlighter.colorLine(text)}</code>
      </div>`;
  });
  return html`<div class="cdiag-diff" role="region" aria-label=${label} tabindex="0">${rows}</div>`;
}

/**
 * A unified diff as lines: of an example, whose file has no name.
 * @param {string} text
 * @returns {DiffLine[]}
 */
function readDiff(text) {
  const lines = text.split("\n").filter((line) => !/^(?:---|\+\+\+|@@|\\)/.test(line));
  return lines.map((line) => [null, /^[+-]/.test(line) ? line[0] : " ", line.slice(1), null]);
}

/**
 * What is shown on request. Escape closes it. `isOpen` counts until the reader has chosen.
 * @param {{title: ComponentChild, isOpen?: boolean, name?: string, children: ComponentChild}} props
 */
export function Fold({ title, isOpen = false, name = "", children }) {
  const [chosen, choose] = useState(/** @type {boolean | null} */ (null));
  const shown = chosen ?? isOpen;
  /** @param {MouseEvent} event */
  const toggle = (event) => {
    event.preventDefault();
    choose(!shown);
  };
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key !== "Escape" || !shown) return;
    event.stopPropagation();
    choose(false);
    const fold = /** @type {HTMLElement} */ (event.currentTarget);
    fold.querySelector("summary")?.focus();
  };
  return html`<details class="cdiag-more ${name}" open=${shown} onKeyDown=${onKey}>
    <summary class="cdiag-link" onClick=${toggle}>${title}</summary>
    ${children}
  </details>`;
}

/**
 * A worked example of a rule: a small program, what compilediag prints for it, and the changes that work.
 * @param {{example: Example | undefined}} props none if the rule has none, such as one of a plug-in
 */
export function ExampleView({ example }) {
  if (!example) return null;
  const { symptom, program, printed, changes } = example;
  return html`<${Fold} title="Example" name="cdiag-example">
    <p>${symptom}</p>
    <${Code} code=${program} hint="copy the program of the example" />
    <p>compilediag prints:</p>
    <pre class="cdiag-snippet">${printed}</pre>
    ${changes.map(({ outcome, diff }, i) => html`<div key=${i}><p>${outcome}</p>${diff && html`<${Diff} lines=${readDiff(diff)} label="the change of the example" />`}</div>`)}
  <//>`;
}
