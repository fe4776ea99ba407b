// torch's phase names, in five kinds that have a color and a word each.

import { lookUp } from "../core/format.js";
import { WORDS } from "../core/words.js";

/** @type {[string, RegExp][]} kind, and what its names look like; the first that matches counts */
const KINDS = [
  ["triton", /triton|caching_?autotuner|coordesc/i],
  ["codegen", /code_?gen|compile_to_(fn|module)|pycodecache|async_compile|cpp_?compil|compile_file/i],
  ["inductor", /inductor|compile_fx|graphlowering|scheduler|_passes|fx_codegen|fxgraphcache|lowering/i],
  ["aot", /aot|backend_compile|backward_compile|partition|joint|dispatcher|functionaliz/i],
];

/** @type {[RegExp, string][]} names that hold a number or the name of a pass */
const FAMILIES = WORDS.patterns.map(([pattern, words]) => [new RegExp(pattern), words]);

/** @type {Record<string, string>} kind -> its word in the legend */
export const PHASE_WORDS = {
  dynamo: "Dynamo",
  aot: "AOTAutograd",
  inductor: "Inductor",
  codegen: "code generation",
  triton: "Triton",
};

/** @type {Record<string, string>} kind -> what it does, in a sentence */
export const PHASE_MEANINGS = {
  dynamo: "Dynamo traces the Python code into a graph and writes the guards that say when the result can be used.",
  aot: "AOTAutograd derives the graph of the backward and simplifies both graphs.",
  inductor: "Inductor turns a graph into kernels: it chooses their layout and fuses operations.",
  codegen: "The code of the kernels is written, built by a compiler, and loaded.",
  triton: "Triton compiles kernels for the GPU, and times variants of them if autotuning is on.",
};

/** @type {Map<string, string>} */
const kindOfName = new Map();

/**
 * The kind of one of torch's phase names, a key of PHASE_WORDS.
 * @param {string | null} name
 */
export function phaseKind(name) {
  const text = name ?? "?";
  let kind = kindOfName.get(text);
  if (kind === undefined) {
    kind = KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? "dynamo";
    kindOfName.set(text, kind);
  }
  return kind;
}

/** @param {string} name */
function findWords(name) {
  return lookUp(WORDS.phases, name) ?? FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
}

/**
 * A phase in words. Of a name without known words, its last part: `Scheduler.fuse_nodes` is `fuse nodes`.
 * @param {string} name
 */
export function phaseLabel(name) {
  const last = name.split(".").at(-1)?.replace(/^_+|_+$/g, "") ?? "";
  return findWords(name) ?? (last.replace(/(?<=[a-z])(?=[A-Z])/g, " ").replaceAll("_", " ") || name);
}

/**
 * What to write on a phase: its words, if they fit, or those of its kind.
 * @param {string} name
 */
export function phaseChoices(name) {
  const kind = PHASE_WORDS[phaseKind(name)];
  return [findWords(name) ?? kind, kind];
}
