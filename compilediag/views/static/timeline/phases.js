// torch's phase names, in kinds that have a color and a word each, and in words.
import { lookUp } from "../core/format.js";
import { WORDS } from "../core/words.js";

/** @type {[RegExp, string][]} what names look like, and their kind; the first that matches counts */
const KINDS = WORDS.phaseNames.map(([pattern, kind]) => [new RegExp(`^(?:${pattern})$`), kind]);
/** @type {[RegExp, string][]} names that hold a number or the name of a pass */
const FAMILIES = WORDS.patterns.map(([pattern, words]) => [new RegExp(pattern), words]);

/** Kind -> its word in the legend, and what happens in it. */
export const PHASE_KINDS = WORDS.phaseKinds;

/** @type {Map<string, string | null>} */
const kindOfName = new Map();

/**
 * The kind of one of torch's phase names; null if it belongs to the phase that contains it.
 * @param {string} name
 */
export function phaseKind(name) {
  let kind = kindOfName.get(name);
  if (kind === undefined) {
    kind = KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
    kindOfName.set(name, kind);
  }
  return kind;
}

/**
 * A phase in words. Of a name without known words, its last part: `Scheduler.fuse_nodes` is `fuse nodes`.
 * @param {string} name
 */
export function phaseLabel(name) {
  const words = lookUp(WORDS.phases, name) ?? FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
  const last = name.split(".").at(-1)?.replace(/^_+|_+$/g, "") ?? "";
  return words ?? (last.replace(/(?<=[a-z])(?=[A-Z])/g, " ").replaceAll("_", " ") || name);
}
