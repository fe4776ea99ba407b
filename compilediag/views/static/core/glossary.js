import { WORDS } from "./words.js";

/**
 * What a word means, in a sentence or two, shown on hover and on focus; null for one that needs no explanation.
 * @param {string} word a total, a tab, a label of a column, a mark or a kind of guard
 */
export function explain(word) {
  return Object.hasOwn(WORDS.meanings, word) ? WORDS.meanings[word] : null;
}
