// A worked example of a finding's rule, on request: a small program, what compilediag prints for it, and the changes that work.
import { make, setShown } from "../core/dom.js";
import { CodeBlock, Fold } from "./code-block.js";
/** @import { Example, ExampleChange } from "../core/page-types" */

export class ExampleFold {
  constructor() {
    /** @type {Example | undefined} */
    this.example = undefined;
    this.content = make("div", "");
    this.fold = new Fold(this.content);
    this.fold.setTitle("Example");
    this.node = this.fold.node;
    this.node.classList.add("cdiag-example");
    setShown(this.node, false);
  }

  /** @param {Example | undefined} example none if the rule has none, such as one of a plug-in */
  update(example) {
    if (example?.program === this.example?.program) return;
    this.example = example;
    setShown(this.node, example !== undefined);
    this.content.replaceChildren(...(example ? makeParts(example) : []));
  }
}

/** @param {Example} example */
function makeParts({ symptom, program, printed, changes }) {
  const head = make("p", "", "compilediag prints:");
  const code = makeBlock("copy the program of the example", "python", program);
  return [make("p", "", symptom), code, head, make("pre", "cdiag-snippet", printed), ...changes.flatMap(makeChange)];
}

/** @param {ExampleChange} change */
function makeChange({ outcome, diff }) {
  return [make("p", "", outcome), ...(diff ? [makeBlock("copy the change of the example", "diff", diff)] : [])];
}

/**
 * @param {string} label
 * @param {"python" | "diff"} language
 * @param {string} text
 */
function makeBlock(label, language, text) {
  const block = new CodeBlock(label, language);
  block.show(text);
  return block.node;
}
