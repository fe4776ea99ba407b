// The page of one function: its recompiles against its entries, the guards that failed, its entries.
import { make, makeButton } from "../core/dom.js";
import { guardTag } from "./documents.js";
import { makeGrid } from "./recompile-grid.js";
import { changeOf, findingLine, functionName, plainTable, pageSection, WIDEST } from "./explorer-blocks.js";
import { counted, formatClock, formatCount, formatMicros, formatSeconds, MISSING, oneLine } from "../core/format.js";

const MOST_VALUES = 8;
const ALONE = "alone at: recompiles at which some entry had nothing against it but this guard";

export function functionPage(context) {
  const { found, documents } = context;
  const findings = documents.findingsOf(found, null);
  return [
    head(context),
    ...findings.map((finding) => findingLine(context, finding)),
    ...(found.rows.length ? [pageSection("Recompiles, and which guards failed in which entry", makeGrid(context))] : []),
    ...(found.guards.length ? [pageSection("Guards that failed", guardTable(context), make("p", "cdiag-dim", ALONE))] : []),
    pageSection("Entries, in the order of a look-up", ...entryTable(context)),
  ];
}

function head({ found }) {
  const facts = [
    counted(found.compiles, "compile", "compiles"),
    counted(found.recompiles, "recompile", "recompiles"),
    found.lost_s === null ? null : `${formatSeconds(found.lost_s)} lost`,
    found.once?.count ? `${counted(found.once.count, "entry", "entries")} called once, ${formatSeconds(found.once.seconds)}` : null,
    found.eager?.calls ? `${counted(found.eager.calls, "call", "calls")} ran eagerly, ${formatSeconds(found.eager.total_s)}` : null,
  ];
  const title = make("h2", "cdiag-page-title", functionName(found));
  if (found.file) title.title = found.file;
  return make("div", "cdiag-page-head", title, make("p", "cdiag-dim", facts.filter(Boolean).join(" · ")));
}

function guardTable(context) {
  const { found, go, id } = context;
  const rows = found.guards.map((guard, at) => {
    const open = makeButton("cdiag-guard-link", "", () => go({ function: id, guard: guard.key }));
    open.append(make("span", "cdiag-tagged", guardTag(at)), make("code", "", oneLine(guard.name, WIDEST)));
    open.dataset.key = `guard ${guard.key}`;
    const shown = guard.values.slice(0, MOST_VALUES).map(([text]) => oneLine(text, 40)).join(", ");
    const more = guard.values.length > MOST_VALUES ? ` and ${guard.values.length - MOST_VALUES} more` : "";
    return [
      open,
      guard.kinds.join(", ").replaceAll("_", " "),
      formatCount(guard.recompiles),
      formatCount(guard.alone),
      guard.lost_s === null ? MISSING : formatSeconds(guard.lost_s),
      shown + more || MISSING,
    ];
  });
  const heads = ["guard", "kind", "failed at", "alone at", "lost", "values seen"];
  return plainTable("cdiag-guards", heads, rows, new Set([2, 3, 4]));
}

function entryTable(context) {
  const { found, id, go, documents } = context;
  const order = (entry) => entry.order ?? Infinity;
  const entries = [...found.entries].sort((a, b) => order(a) - order(b) || (b.time ?? 0) - (a.time ?? 0));
  const called = callColumns(found);
  const rows = entries.map((entry) => [
    entry.order === null ? MISSING : String(entry.order),
    make("code", "", entry.compile_id),
    entry.time === null ? "before the watch" : formatClock(entry.time),
    why(found, entry),
    entry.seconds === null ? MISSING : formatSeconds(entry.seconds),
    formatMicros(entry.guard_latency_us),
    treeLink(context, entry) ?? formatCount(entry.guard_count),
    ...called.map(([, cell]) => cell(entry)),
    failedIn(found, entry),
  ]);
  const heads = ["turn", "entry", "made", "because", "cost", "a check, µs", "tree", ...called.map(([head]) => head), "failed here"];
  const left = found.entries.length < found.compiles ? " Compiles that left no entry, and very old ones, are left out." : "";
  const note = `Turns are those of the last recompile: a hit moves its entry to the front. ${callNote(found)}${left}`;
  const numbers = new Set([0, 4, 5, 6, ...called.map((_, at) => 7 + at)]);
  return [plainTable("cdiag-entries", heads, rows, numbers), make("p", "cdiag-dim", note)];
}

/** The columns of calls, if they were counted: [head, cell]. What they won is known where eager calls were timed, too. */
function callColumns({ eager }) {
  const columns = [
    ["calls", (entry) => formatCount(entry.calls)],
    ["a call, µs", (entry) => (entry.mean_s === null ? MISSING : formatMicros(entry.mean_s * 1e6))],
  ];
  const won = [
    ["won", (entry) => (entry.won_s === null ? MISSING : formatWon(entry.won_s))],
    ["pays after", (entry) => (entry.won_s <= 0 && entry.won_s !== null ? "never" : formatCount(entry.break_even))],
  ];
  return eager === null ? [] : eager.mean_s === null ? columns : [...columns, ...won];
}

function formatWon(seconds) {
  return seconds < 0 ? `−${formatSeconds(-seconds)}` : formatSeconds(seconds);
}

function callNote({ eager }) {
  if (eager === null) return "Calls: not counted; watch(calls=True) counts them, on Python 3.12 or later.";
  const means = "Calls: those while this watched. A call: on the host, without the first one.";
  const won = ` Won, pays after (calls): against an eager call, ${formatMicros(eager.mean_s * 1e6)} µs.`;
  return eager.mean_s === null ? means : means + won;
}

function why(found, entry) {
  if (entry.made_at === null) return entry.event === null ? MISSING : "first";
  return changeOf(found, found.rows[entry.made_at]);
}

function treeLink({ documents, go, id }, entry) {
  if (entry.tree === null || !documents.trees.get(entry.tree)) return null;
  const link = makeButton("cdiag-link", `${formatCount(entry.guard_count)} guards`, () => go({ function: id, tree: entry.tree }));
  link.dataset.key = `tree ${entry.tree}`;
  return link;
}

/** How often each guard failed in an entry: recompiles, and torch's own count where it met the guard more often. */
function failedIn(found, entry) {
  const told = entry.failed.map(([guard, times, count]) => {
    const more = count !== null && count > times ? `, ${formatCount(count)} by torch's count` : "";
    return `${found.guards[guard].name} ${formatCount(times)}×${more}`;
  });
  return told.length ? make("span", "", oneLine(told.join(" · "), 300)) : MISSING;
}
