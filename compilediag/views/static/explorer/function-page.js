// The page of one function: its recompiles by entry, the guards that failed, its entries.
import { joinKnown, PlainTable, Section, whenKnown } from "../core/blocks.js";
import { formatAmount, formatCount, formatMicroseconds, formatSeconds, formatTimes, MISSING, oneLine } from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
import { Change, Findings, functionName, GuardLink, Kinds } from "./explorer-blocks.js";
import { RecompileGrid } from "./recompile-grid.js";
/** @import { FunctionContext } from "./document-types" */

const MOST_VALUES = 8;
const ALONE = "failed alone: recompiles where some entry had no other failing guard";
const GUARD_HEADS = ["guard", "kind", "failures", "failed alone", "lost", "values"];

/** @param {{context: FunctionContext}} props */
export function FunctionPage({ context }) {
  const { found, documents } = context;
  return html`
    <${Head} found=${found} />
    <${Findings} context=${context} findings=${documents.findingsOf(found, null)} />
    ${found.rows.length > 0 && html`
      <${Section} heading="Recompiles, and which guards failed in which entry"><${RecompileGrid} context=${context} /><//>`}
    ${found.guards.length > 0 && html`
      <${Section} heading="Guards that failed"><${Guards} context=${context} /><p class="cdiag-dim">${ALONE}</p><//>`}
    <${Section} heading="Entries, in lookup order"><${Entries} context=${context} /><//>`;
}

/** @param {{found: FunctionDocument}} props */
function Head({ found }) {
  const { once, eager } = found;
  const facts = joinKnown(
    formatAmount(found.compiles, "compile"),
    formatAmount(found.recompiles, "recompile"),
    whenKnown(found.lost_s, (seconds) => `${formatSeconds(seconds)} lost`),
    once?.count ? `${formatAmount(once.count, "entry", "entries")} called once, ${formatSeconds(once.seconds)}` : null,
    eager?.calls ? `${formatAmount(eager.calls, "call")} ran eagerly, ${formatSeconds(eager.total_s)}` : null,
  );
  return html`
    <div class="cdiag-page-head">
      <h2 class="cdiag-page-title" title=${found.file}>${functionName(found)}</h2><p class="cdiag-dim">${facts}</p>
    </div>`;
}

/** @param {{context: FunctionContext}} props */
function Guards({ context }) {
  return html`
    <${PlainTable} name="cdiag-guards" label="guards" heads=${GUARD_HEADS} numeric=${new Set([2, 3, 4])}>
      ${context.found.guards.map((guard, at) => html`
        <tr key=${guard.key}>
          <td><${GuardLink} context=${context} at=${at} /></td>
          <td><${Kinds} kinds=${guard.kinds} /></td>
          <td class="is-number">${formatCount(guard.recompiles)}</td>
          <td class="is-number">${formatCount(guard.alone)}</td>
          <td class="is-number">${formatSeconds(guard.lost_s)}</td>
          <td>${listValues(guard)}</td>
        </tr>`)}
    <//>`;
}

/** @param {GuardDocument} guard */
function listValues(guard) {
  const shown = guard.values.slice(0, MOST_VALUES).map(([text]) => oneLine(text, 40)).join(", ");
  const rest = guard.values.length - MOST_VALUES;
  return (rest > 0 ? `${shown} and ${formatCount(rest)} more` : shown) || MISSING;
}

/** @param {{context: FunctionContext}} props */
function Entries({ context }) {
  const { found } = context;
  /** @param {EntryDocument} entry */
  const orderOf = (entry) => entry.order ?? Infinity;
  const entries = [...found.entries].sort((a, b) => orderOf(a) - orderOf(b) || (b.time ?? 0) - (a.time ?? 0));
  const calls = callColumns(found);
  const callHeads = calls.map(([head]) => head);
  const heads = ["position", "entry", "compiled at", "reason", "cost", "tree", ...callHeads, "failed here"];
  const numeric = new Set([0, 4, 5, ...calls.map((_, at) => 6 + at)]);
  const omitted = found.entries.length < found.compiles ? " Compiles without an entry, and very old ones, are not listed." : "";
  const note = `Positions are those of the last recompile: a hit moves its entry to the front. ${describeCalls(found)}${omitted}`;
  return html`
    <${PlainTable} name="cdiag-entries" label="cache entries" heads=${heads} numeric=${numeric}>
      ${entries.map((entry) => {
        const cells = [
          formatCount(entry.order),
          html`<code>${entry.compile_id}</code>`,
          entry.time === null ? "before the watch" : html`<${At} ms=${entry.time} start=${context.start} />`,
          html`<${Reason} found=${found} entry=${entry} />`,
          formatSeconds(entry.seconds),
          html`<${TreeLink} context=${context} entry=${entry} />`,
          ...calls.map(([, writeCell]) => writeCell(entry)),
          listFailures(found, entry),
        ];
        return html`<tr>${cells.map((cell, i) => html`<td class=${numeric.has(i) ? "is-number" : ""} data-column=${heads[i]}>${cell}</td>`)}</tr>`;
      })}
    <//>
    <p class="cdiag-dim">${note}</p>`;
}

/**
 * The columns of calls, if they were counted. What an entry saves is known where eager calls were timed too.
 * @param {FunctionDocument} found
 * @returns {[head: string, writeCell: (entry: EntryDocument) => string][]}
 */
function callColumns({ eager }) {
  if (eager === null) return [];
  /** @type {[string, (entry: EntryDocument) => string][]} */
  const columns = [
    ["calls", (entry) => formatCount(entry.calls)],
    ["one call", (entry) => formatSeconds(entry.mean_s)],
    ["guard check", (entry) => formatMicroseconds(entry.guard_check_us)],
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
  const means = "Calls: while this was watched. One call: time on the host, without the first call. Guard check: what each call pays before it.";
  if (eager.mean_s === null) return means;
  return `${means} Saved, break-even calls: compared with an eager call, ${formatSeconds(eager.mean_s)}.`;
}

/**
 * Why an entry was compiled.
 * @param {{found: FunctionDocument, entry: EntryDocument}} props
 */
function Reason({ found, entry }) {
  if (entry.made_at === null) return entry.event === null ? MISSING : "first";
  return html`<${Change} found=${found} row=${found.rows[entry.made_at]} />`;
}

/** @param {{context: FunctionContext, entry: EntryDocument}} props */
function TreeLink({ context: { documents, go, id }, entry: { tree, guard_count } }) {
  if (tree === null || !documents.trees.get(tree)) return formatCount(guard_count);
  return html`
    <button type="button" class="cdiag-link" data-key=${`tree ${tree}`} onClick=${() => go({ function: id, tree })}>
      ${formatAmount(guard_count, "guard")}
    </button>`;
}

/**
 * How often each guard failed in an entry: recompiles, and torch's own count where it is higher.
 * @param {FunctionDocument} found
 * @param {EntryDocument} entry
 */
function listFailures(found, entry) {
  const failures = entry.failed.map(([guard, times, count]) => {
    const more = count !== null && count > times ? ` (torch's counter: ${formatCount(count)})` : "";
    return `${found.guards[guard].name} ${formatTimes(times)}${more}`;
  });
  return failures.length ? oneLine(failures.join(" · "), 300) : MISSING;
}
