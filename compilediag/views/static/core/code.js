// Code as a component: blocks of Python in colors, lines of a diff; what is shown on request; worked examples.
import { Copy } from "./blocks.js";
import { onKeys } from "./dom.js";
import { html } from "./view.js";
import { useState } from "../vendor/hooks.js";

const PYTHON = "False None True and as assert async await break class continue def del elif else except finally for from "
  + "global if import in is lambda nonlocal not or pass raise return try while with yield";
const CPP = "alignas auto bool break case char class const constexpr continue default delete do double else enum extern "
  + "false float for if inline int int32_t int64_t int8_t long namespace new nullptr operator private public return "
  + "short signed sizeof static static_cast struct switch template this throw true typedef typename uint8_t unsigned "
  + "using void volatile while";
const QUOTED = `[rbfu]{0,2}"(?:[^"\\\\\\n]|\\\\.)*"|[rbfu]{0,2}'(?:[^'\\\\\\n]|\\\\.)*'`;
const NUMBER = String.raw`\b\d[\w.]*`;

/** @param {string} comment @param {string} words */
function makePattern(comment, words) {
  return new RegExp(`(?<comment>${comment})|(?<text>${QUOTED})|(?<number>${NUMBER})|\\b(?<word>${words.split(" ").join("|")})\\b`, "g");
}

const LANGUAGES = {
  python: makePattern("#.*", PYTHON),
  cpp: makePattern(String.raw`//.*|/\*.*?\*/|^\s*#\w+`, CPP),
};
/** Generated code holds the source of a kernel between three quotes. */
const KERNEL = /(?:'''|""")/;
const IS_CPP = /\.(?:cpp|cpp_pybinding|cuda|metal)\(/;
/** Names of artifacts that are code. */
const CODE_NAMES = /graph|code|program|guards|runnable|BYTECODE|_wrapper|_forward$|_backward$|_prologue$|_epilogue$/;

/** @type {Is<string>} */
export function isCode(name) {
  return CODE_NAMES.test(name);
}

/** Colors lines one after the other; the language of a line depends on those before it. */
export class CodeHighlighter {
  constructor() {
    /** @type {"python" | "cpp" | null} the language of the kernel whose source these lines are */
    this.kernel = null;
  }

  /** @param {string} text */
  colorLine(text) {
    const quotes = text.split(KERNEL).length - 1;
    const language = this.kernel ?? "python";
    if (quotes % 2 === 1) this.kernel = this.kernel === null ? (IS_CPP.test(text) ? "cpp" : "python") : null;
    /** @type {ComponentChild[]} */
    const pieces = [];
    let from = 0;
    for (const found of text.matchAll(LANGUAGES[quotes ? "python" : language])) {
      const kinds = Object.entries(found.groups ?? {});
      const kind = kinds.find(([, part]) => part !== undefined)?.[0] ?? "word";
      if (found.index > from) pieces.push(text.slice(from, found.index));
      pieces.push(html`<span class="is-${kind}">${found[0]}</span>`);
      from = found.index + found[0].length;
    }
    if (from < text.length) pieces.push(text.slice(from));
    return pieces;
  }
}

/** @param {{code: string, hint: string}} props */
export function Code({ code, hint }) {
  const highlighter = new CodeHighlighter();
  const lines = code.split("\n").map((line, i) => html`${i ? "\n" : ""}${highlighter.colorLine(line)}`);
  return html`<div class="cdiag-code-block"><pre class="cdiag-snippet">${lines}</pre><${Copy} text=${code} hint=${hint} kind="is-small" /></div>`;
}

/** @type {Component<{lines: DiffLine[], label: string}>} Each line with its number before the change, and the step it is of. */
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

/** @type {Component<FoldProps>} What is shown on request. Escape closes it. */
export function Fold({ title, isOpen = false, name = "", children }) {
  const [chosen, choose] = useState(/** @type {boolean | null} */ (null));
  const shown = chosen ?? isOpen;
  /** @param {MouseEvent} event */
  const toggle = (event) => {
    event.preventDefault();
    choose(!shown);
  };
  /** @param {KeyboardEvent} event */
  const close = (event) => {
    choose(false);
    const fold = /** @type {HTMLElement} */ (event.currentTarget);
    fold.querySelector("summary")?.focus();
  };
  return html`<details class="cdiag-more ${name}" open=${shown} onKeyDown=${shown && onKeys({ Escape: close })}>
    <summary class="cdiag-link" onClick=${toggle}>${title}</summary>
    ${children}
  </details>`;
}

/** @type {Component<{example: Example | undefined}>} The worked example of a rule; rules of plug-ins have none. */
export function ExampleView({ example }) {
  if (!example) return null;
  const { symptom, program, printed, changes } = example;
  /** @type {(text: string) => DiffLine[]} of a unified diff; the file of an example has no name */
  const readDiff = (text) => {
    const lines = text.split("\n").filter((line) => !/^(?:---|\+\+\+|@@|\\)/.test(line));
    return lines.map((line) => [null, /^[+-]/.test(line) ? line[0] : " ", line.slice(1), null]);
  };
  return html`<${Fold} title="Example" name="cdiag-example">
    <p>${symptom}</p>
    <${Code} code=${program} hint="copy the program of the example" />
    <p>compilediag prints:</p>
    <pre class="cdiag-snippet">${printed}</pre>
    ${changes.map(({ outcome, diff }, i) => html`<div key=${i}><p>${outcome}</p>${diff && html`<${Diff} lines=${readDiff(diff)} label="the change of the example" />`}</div>`)}
  <//>`;
}
