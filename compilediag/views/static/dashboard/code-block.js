// A block of Python or of a unified diff, with a button that copies it, and a fold around one.
import { makeCopyButton } from "../core/clipboard.js";
import { make, makeButton, setText } from "../core/dom.js";
import { canInsertCell, insertCell } from "../core/notebook-cell.js";
import { CodeHighlighter } from "./code-highlight.js";
/** @import { Child } from "../core/dom.js" */

/** @typedef {"python" | "diff"} Language */

const INSERT = "Insert as new cell";
const LOOKS_MS = [50, 1500]; // when it looks for the notebook: a host may put the page in place later
const SHOWN_MS = 2000; // how long the button says what happened

export class CodeBlock {
  /**
   * @param {string} label what is copied, for screen readers
   * @param {Language} [language]
   */
  constructor(label, language = "python") {
    this.language = language;
    this.text = "";
    this.pre = make("pre", `cdiag-snippet is-${language}`);
    this.buttons = make("div", "cdiag-code-buttons", makeCopyButton(label, () => this.text));
    this.node = make("div", "cdiag-code-block", this.pre, this.buttons);
    /** @type {HTMLButtonElement | null} inserts a cell; made once it is known that the notebook can */
    this.insert = null;
  }

  /**
   * Shows a text. An equal one changes nothing, so that a selection stays.
   * @param {string} text
   */
  show(text) {
    if (text === this.text) return;
    if (this.language === "python") LOOKS_MS.forEach((wait) => setTimeout(() => this.addInsert(), wait));
    this.text = text;
    this.pre.replaceChildren(...(this.language === "diff" ? colorDiff(text) : colorPython(text)));
  }

  addInsert() {
    if (this.insert || !canInsertCell(this.node)) return;
    const button = makeButton("cdiag-copy", INSERT, async () => {
      setText(button, (await insertCell(this.node, this.text)) ? "Inserted" : "Not inserted");
      setTimeout(() => setText(button, INSERT), SHOWN_MS);
    });
    this.insert = button;
    this.buttons.prepend(button);
  }
}

/** @param {string} text */
function colorPython(text) {
  const highlighter = new CodeHighlighter();
  return text.split("\n").flatMap((line, i) => [i ? "\n" : "", ...highlighter.colorLine(line)]);
}

/** @param {string} text */
function colorDiff(text) {
  return text.split("\n").flatMap((line, i) => [i ? "\n" : "", colorDiffLine(line)]);
}

/** @param {string} line */
function colorDiffLine(line) {
  if (/^(?:---|\+\+\+|@@)/.test(line)) return make("span", "is-comment", line);
  if (line.startsWith("+")) return make("span", "is-added", line);
  return line.startsWith("-") ? make("span", "is-removed", line) : line;
}

/** What is shown on request. Escape closes it. */
export class Fold {
  /** @param {Child[]} content */
  constructor(...content) {
    this.summary = make("summary", "cdiag-link");
    this.node = make("details", "cdiag-more", this.summary, ...content);
    this.isChosen = false; // the reader has opened or closed it
    this.summary.addEventListener("click", () => (this.isChosen = true));
    this.node.addEventListener("keydown", (event) => this.onKey(event));
  }

  /**
   * Opens or closes it, unless the reader has chosen.
   * @param {boolean} isOpen
   */
  suggest(isOpen) {
    if (!this.isChosen && !this.node.matches(":focus-within")) this.node.open = isOpen;
  }

  /** @param {string} text */
  setTitle(text) {
    setText(this.summary, text);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key !== "Escape" || !this.node.open || this.summary.hidden) return;
    event.stopPropagation();
    this.node.open = false;
    this.summary.focus();
  }
}
