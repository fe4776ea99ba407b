// Colors Python and C++ as Inductor writes them: keywords, numbers, strings and comments.
import { html } from "./view.js";

const PYTHON = "False None True and as assert async await break class continue def del elif else except finally for from "
  + "global if import in is lambda nonlocal not or pass raise return try while with yield";
const CPP = "alignas auto bool break case char class const constexpr continue default delete do double else enum extern "
  + "false float for if inline int int32_t int64_t int8_t long namespace new nullptr operator private public return "
  + "short signed sizeof static static_cast struct switch template this throw true typedef typename uint8_t unsigned "
  + "using void volatile while";
const QUOTED = `[rbfu]{0,2}"(?:[^"\\\\\\n]|\\\\.)*"|[rbfu]{0,2}'(?:[^'\\\\\\n]|\\\\.)*'`;
const NUMBER = String.raw`\b\d[\w.]*`;

/**
 * @param {string} comment
 * @param {string} words
 */
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

/** @param {string} name */
export function isCode(name) {
  return CODE_NAMES.test(name);
}

/** Colors lines one after the other; the language of a line depends on those before it. */
export class CodeHighlighter {
  constructor() {
    /** @type {"python" | "cpp" | null} the language of the kernel whose source these lines are */
    this.kernel = null;
  }

  /**
   * The pieces of one line.
   * @param {string} text
   */
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
