// torch's phase names, in kinds that have a color and a word each, and in words; what a compile was, and the time of its
// phases.
import { formatSeconds, lookUp } from "../core/format.js";
import { WORDS } from "../core/words.js";

/** @type {[RegExp, string][]} what names look like, and their kind; the first that matches counts */
const KINDS = WORDS.phaseNames.map(([pattern, kind]) => [new RegExp(`^(?:${pattern})$`), kind]);
/** @type {[RegExp, string][]} names that hold a number or the name of a pass */
const FAMILIES = WORDS.patterns.map(([pattern, words]) => [new RegExp(pattern), words]);

/** Kind -> its word in the legend, and what happens in it. */
export const PHASE_KINDS = WORDS.phaseKinds;

/** @type {Map<string, string | null>} */
const kindOfName = new Map();

/** @type {(name: string) => string | null} kind of one of torch's names; null if it belongs to the phase that contains it */
export function phaseKind(name) {
  let kind = kindOfName.get(name);
  if (kind === undefined) {
    kind = KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
    kindOfName.set(name, kind);
  }
  return kind;
}

/** @type {Write<string>} Of a name without known words, its last part: `Scheduler.fuse_nodes` is `fuse nodes`. */
export function phaseLabel(name) {
  const words = lookUp(WORDS.phases, name) ?? FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
  const last = name.split(".").at(-1)?.replace(/^_+|_+$/g, "") ?? "";
  return words ?? (last.replace(/(?<=[a-z])(?=[A-Z])/g, " ").replaceAll("_", " ") || name);
}

/** @type {Record<string, string>} what started a compile, where that is not a call */
const TRIGGERS = { lazy_backward: "its backward", compiled_autograd: "compiled autograd", precompile: "captured ahead of time" };

/** @type {Record<string, string>} */
const OUTCOMES = { skipped: "skipped, runs eagerly", empty: "nothing to compile" };
const SLACK_MS = 5; // the clock of phases is not that of compiles

/** @type {Write<Get<CompilesRow>>} What a compile was: "recompile", "first compile", "first compile: failed". */
export function nameCompile(get) {
  const outcome = get("outcome");
  const what = get("is_recompile") ? "recompile" : lookUp(TRIGGERS, get("trigger") ?? "") ?? "first compile";
  return outcome === null || outcome === "ok" ? what : `${what}: ${lookUp(OUTCOMES, outcome) ?? outcome}`;
}

/**
 * The seconds of a compile by kind of phase, without those of the phases inside, the longest first. `within`: Unix ms.
 * @type {(compiles: Compiles, key: string | null, within: {start: number, end: number} | null) => OwnTime[]}
 */
export function sumPhases(compiles, key, within) {
  const table = compiles.store.table("phases");
  const phases = compiles.members("phases", key).flatMap((row) => {
    const [begin, kind] = [table.get(row, "time"), phaseKind(table.get(row, "name") ?? "")];
    const stop = begin + (table.get(row, "duration_s") ?? 0) * 1e3;
    const isInside = !within || (begin >= within.start - SLACK_MS && stop <= within.end + SLACK_MS);
    return kind && isInside ? [{ begin, stop, kind }] : [];
  });
  phases.sort((a, b) => a.begin - b.begin || b.stop - a.stop);
  /** @type {Map<string, number>} */
  const own = new Map();
  /** @type {typeof phases} */
  const open = [];
  for (const phase of phases) {
    while (open.length && open[open.length - 1].stop <= phase.begin) open.pop();
    const outer = open.at(-1);
    const seconds = (Math.min(phase.stop, outer?.stop ?? Infinity) - phase.begin) / 1e3;
    if (outer) own.set(outer.kind, (own.get(outer.kind) ?? 0) - seconds);
    own.set(phase.kind, (own.get(phase.kind) ?? 0) + seconds);
    open.push(phase);
  }
  const times = [...own].map(([kind, seconds]) => ({ kind, seconds }));
  return times.filter(({ seconds }) => seconds > 1e-4).sort((a, b) => b.seconds - a.seconds);
}

/** @type {Write<OwnTime>} */
export function writeTime({ kind, seconds }) {
  return `${PHASE_KINDS[kind][0]} ${formatSeconds(seconds)}`;
}
