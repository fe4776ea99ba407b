// A block of Python or of a unified diff, with a button that copies it, and a fold around one.
import { makeCopyButton } from "../core/clipboard.js";
import { make, setText } from "../core/dom.js";
import { CodeHighlighter } from "./code-highlight.js";
/** @import { Child } from "../core/dom.js" */

/** @typedef {"python" | "diff"} Language */

export class CodeBlock {
  /**
   * @param {string} label what is copied, for screen readers
   * @param {Language} [language]
   */
  constructor(label, language = "python") {
    this.language = language;
    this.text = "";
    this.pre = make("pre", `cdiag-snippet is-${language}`);
    this.node = make("div", "cdiag-code-block", this.pre, makeCopyButton(label, () => this.text));
  }

  /**
   * Shows a text. An equal one changes nothing, so that a selection stays.
   * @param {string} text
   */
  show(text) {
    if (text === this.text) return;
    this.text = text;
    this.pre.replaceChildren(...(this.language === "diff" ? colorDiff(text) : colorPython(text)));
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
    if (event.key !== "Escape" || !this.node.open) return;
    event.stopPropagation();
    this.node.open = false;
    this.summary.focus();
  }
}
