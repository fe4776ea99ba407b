// The page of one function: its recompiles by entry, the guards that failed, its entries.
import { joinKnown, whenKnown } from "../core/blocks.js";
import { make, makeButton } from "../core/dom.js";
import { formatAmount, formatClock, formatCount, formatMicroseconds, formatSeconds, formatTimes, MISSING, oneLine } from "../core/format.js";
import { guardTag } from "./documents.js";
import { functionName, makeChange, makeFinding, makeKinds, makePageSection, makePlainTable, WIDEST } from "./explorer-blocks.js";
import { makeGrid } from "./recompile-grid.js";
/** @import { Child } from "../core/dom.js" */
/** @import { Entry, FunctionContext, FunctionDocument, Guard } from "./document-types" */

const MOST_VALUES = 8;
const ALONE = "failed alone: recompiles where some entry had no other failing guard";

/** @param {FunctionContext} context */
export function makeFunctionPage(context) {
  const { found, documents } = context;
  const findings = documents.findingsOf(found, null).map((finding) => makeFinding(context, finding));
  const guards = () => makePageSection("Guards that failed", makeGuardTable(context), make("p", "cdiag-dim", ALONE));
  return [
    makeHead(found),
    ...findings,
    ...(found.rows.length ? [makePageSection("Recompiles, and which guards failed in which entry", makeGrid(context))] : []),
    ...(found.guards.length ? [guards()] : []),
    makePageSection("Entries, in lookup order", ...makeEntryTable(context)),
  ];
}

/** @param {FunctionDocument} found */
function makeHead(found) {
  const { once, eager } = found;
  const facts = joinKnown(
    formatAmount(found.compiles, "compile"),
    formatAmount(found.recompiles, "recompile"),
    whenKnown(found.lost_s, (seconds) => `${formatSeconds(seconds)} lost`),
    once?.count ? `${formatAmount(once.count, "entry", "entries")} called once, ${formatSeconds(once.seconds)}` : null,
    eager?.calls ? `${formatAmount(eager.calls, "call")} ran eagerly, ${formatSeconds(eager.total_s)}` : null,
  );
  const title = make("h2", "cdiag-page-title", functionName(found));
  if (found.file) title.title = found.file;
  return make("div", "cdiag-page-head", title, make("p", "cdiag-dim", facts));
}

/** @param {FunctionContext} context */
function makeGuardTable({ found, go, id }) {
  const rows = found.guards.map((guard, at) => {
    const open = makeButton("cdiag-guard-link", "", () => go({ function: id, guard: guard.key }));
    open.append(make("span", "cdiag-tagged", guardTag(at)), make("code", "", oneLine(guard.name, WIDEST)));
    open.dataset.key = `guard ${guard.key}`;
    return [
      open,
      makeKinds(guard.kinds),
      formatCount(guard.recompiles),
      formatCount(guard.alone),
      formatSeconds(guard.lost_s),
      listValues(guard),
    ];
  });
  const heads = ["guard", "kind", "failures", "failed alone", "lost", "values"];
  return makePlainTable("cdiag-guards", "guards", heads, rows, new Set([2, 3, 4]));
}

/** @param {Guard} guard */
function listValues(guard) {
  const shown = guard.values.slice(0, MOST_VALUES).map(([text]) => oneLine(text, 40)).join(", ");
  const rest = guard.values.length - MOST_VALUES;
  return (rest > 0 ? `${shown} and ${formatCount(rest)} more` : shown) || MISSING;
}

/** @param {FunctionContext} context */
function makeEntryTable(context) {
  const { found } = context;
  /** @param {Entry} entry */
  const orderOf = (entry) => entry.order ?? Infinity;
  const entries = [...found.entries].sort((a, b) => orderOf(a) - orderOf(b) || (b.time ?? 0) - (a.time ?? 0));
  const calls = callColumns(found);
  const rows = entries.map((entry) => [
    formatCount(entry.order),
    make("code", "", entry.compile_id),
    entry.time === null ? "before the watch" : formatClock(entry.time),
    explainEntry(found, entry),
    formatSeconds(entry.seconds),
    formatMicroseconds(entry.guard_latency_us),
    makeTreeLink(context, entry) ?? formatCount(entry.guard_count),
    ...calls.map(([, writeCell]) => writeCell(entry)),
    listFailures(found, entry),
  ]);
  const callHeads = calls.map(([head]) => head);
  const heads = ["position", "entry", "compiled", "reason", "cost", "guard check", "tree", ...callHeads, "failed here"];
  const omitted = found.entries.length < found.compiles ? " Compiles without an entry, and very old ones, are not listed." : "";
  const note = `Positions are those of the last recompile: a hit moves its entry to the front. ${describeCalls(found)}${omitted}`;
  const numeric = new Set([0, 4, 5, 6, ...calls.map((_, at) => 7 + at)]);
  return [makePlainTable("cdiag-entries", "cache entries", heads, rows, numeric), make("p", "cdiag-dim", note)];
}

/**
 * The columns of calls, if they were counted. What an entry saves is known where eager calls were timed too.
 * @param {FunctionDocument} found
 * @returns {[head: string, writeCell: (entry: Entry) => string][]}
 */
function callColumns({ eager }) {
  if (eager === null) return [];
  /** @type {[string, (entry: Entry) => string][]} */
  const columns = [
    ["calls", (entry) => formatCount(entry.calls)],
    ["one call", (entry) => formatSeconds(entry.mean_s)],
  ];
  if (eager.mean_s === null) return columns;
  return [
    ...columns,
    ["saved", (entry) => formatSeconds(entry.won_s)],
    ["break-even calls", (entry) => (entry.won_s !== null && entry.won_s <= 0 ? "never" : formatCount(entry.break_even))],
  ];
}

/** @param {FunctionDocument} found */
function describeCalls({ eager }) {
  if (eager === null) return "Calls were not counted; watch(calls=True) counts them on Python 3.12 or later.";
  const means = "Calls: while this was watched. One call: time on the host, without the first call.";
  if (eager.mean_s === null) return means;
  return `${means} Saved, break-even calls: compared with an eager call, ${formatSeconds(eager.mean_s)}.`;
}

/**
 * Why an entry was compiled.
 * @param {FunctionDocument} found
 * @param {Entry} entry
 */
function explainEntry(found, entry) {
  if (entry.made_at === null) return entry.event === null ? MISSING : "first";
  return makeChange(found, found.rows[entry.made_at]);
}

/**
 * @param {FunctionContext} context
 * @param {Entry} entry
 */
function makeTreeLink({ documents, go, id }, entry) {
  const { tree } = entry;
  if (tree === null || !documents.trees.get(tree)) return null;
  const link = makeButton("cdiag-link", formatAmount(entry.guard_count, "guard"), () => go({ function: id, tree }));
  link.dataset.key = `tree ${tree}`;
  return link;
}

/**
 * How often each guard failed in an entry: recompiles, and torch's own count where it is higher.
 * @param {FunctionDocument} found
 * @param {Entry} entry
 * @returns {Child}
 */
function listFailures(found, entry) {
  const failures = entry.failed.map(([guard, times, count]) => {
    const more = count !== null && count > times ? ` (torch's counter: ${formatCount(count)})` : "";
    return `${found.guards[guard].name} ${formatTimes(times)}${more}`;
  });
  return failures.length ? make("span", "", oneLine(failures.join(" · "), 300)) : MISSING;
}
