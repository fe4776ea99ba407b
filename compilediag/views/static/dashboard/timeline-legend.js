// What the colors and signs of the timeline mean; each explains itself in a sentence when the pointer rests on it.
import { make, setShown } from "../core/dom.js";
import { PHASE_MEANINGS, PHASE_WORDS } from "./phases.js";

/** @type {Record<string, [word: string, meaning: string]>} */
const MARKS = {
  recompile: ["recompile", "A function that was compiled before is compiled again, because a guard of each earlier version failed."],
  failed: ["failed", "The compile ended with an error; the function runs without torch.compile, or the error is raised."],
  hit: ["cache hit", "The compiled graph was in a cache of an earlier run or compile, so it was loaded and not built."],
  miss: ["cache miss", "The compiled graph was not in the cache, so it was built."],
  break: ["graph break", "Dynamo could not trace this line; the function continues in Python and is compiled again after it."],
  capture: ["CUDA graph captured", "The launches of all kernels were recorded once, to be replayed as a whole."],
  recapture: ["CUDA graph re-recorded", "A recorded CUDA graph could not be replayed, so it was recorded again."],
  skip: ["CUDA graphs skipped", "The function runs without CUDA graphs; the mark says why."],
};
const CAPTURE_MARKS = ["capture", "recapture", "skip"];

export class Legend {
  constructor() {
    const phases = Object.entries(PHASE_WORDS).map(([kind, word]) => makeKey(kind, word, PHASE_MEANINGS[kind]));
    const marks = Object.entries(MARKS).map(([name, [word, meaning]]) => makeKey(name, word, meaning));
    this.node = make("div", "cdiag-legend", ...phases, ...marks);
    /** @type {Map<string, HTMLElement>} */
    this.keys = new Map([...Object.keys(PHASE_WORDS), ...Object.keys(MARKS)].map((name, i) => [name, [...phases, ...marks][i]]));
  }

  /**
   * Leaves out what this session does not have.
   * @param {boolean} hasCaptures
   * @param {boolean} hasFailures
   */
  paint(hasCaptures, hasFailures) {
    this.keys.forEach((key, name) => {
      if (CAPTURE_MARKS.includes(name)) setShown(key, hasCaptures);
      if (name === "failed") setShown(key, hasFailures);
    });
  }
}

/**
 * @param {string} name
 * @param {string} word
 * @param {string} meaning
 */
function makeKey(name, word, meaning) {
  const key = make("span", `cdiag-key is-${name}`, word);
  key.title = meaning;
  return key;
}
