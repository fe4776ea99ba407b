// What the colors and signs of the timeline mean; each explains itself in a sentence, on hover and on focus.
import { make, setShown } from "../core/dom.js";
import { makeTerm } from "../core/hints.js";
import { PHASE_KINDS } from "../timeline/phases.js";

/** @type {Record<string, [word: string, meaning: string]>} */
const SIGNS = {
  recompile: ["recompile", "A function that was compiled before is compiled again, because a guard of each earlier version failed."],
  failed: ["failed", "The compile ended with an error; the function runs without torch.compile, or the error is raised."],
  hit: ["cache hit", "The compiled graph was in a cache of an earlier run or compile, so it was loaded and not built."],
  miss: ["cache miss", "The compiled graph was not in the cache, so it was built."],
  break: ["graph break", "Dynamo could not trace this line; the function continues in Python and is compiled again after it."],
  capture: ["CUDA graph captured", "The launches of all kernels were recorded once, to be replayed as a whole."],
  recapture: ["CUDA graph re-recorded", "A recorded CUDA graph could not be replayed, so it was recorded again."],
  skip: ["CUDA graphs skipped", "The function runs without CUDA graphs; the mark says why."],
};

export class Legend {
  constructor() {
    const phases = Object.entries(PHASE_KINDS).map(([kind, [word, meaning]]) => makeKey(kind, word, meaning));
    /** @type {Map<string, HTMLElement>} */
    this.signs = new Map(Object.entries(SIGNS).map(([name, [word, meaning]]) => [name, makeKey(name, word, meaning)]));
    this.node = make("div", "cdiag-legend", ...phases, ...this.signs.values());
  }

  /** @param {Set<string>} signs those that this session has */
  paint(signs) {
    this.signs.forEach((key, name) => setShown(key, signs.has(name)));
  }
}

/**
 * @param {string} name
 * @param {string} word
 * @param {string} meaning
 */
function makeKey(name, word, meaning) {
  const key = makeTerm(word, meaning);
  key.classList.add("cdiag-key", `is-${name}`);
  return key;
}
