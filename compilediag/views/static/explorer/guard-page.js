// The page of one guard: its values over time, the user's line that it comes from, what failed with it, what to change.
import { joinKnown, whenKnown } from "../core/blocks.js";
import { make, makeButton } from "../core/dom.js";
import { formatAmount, formatCount, formatPlace, formatSeconds, oneLine } from "../core/format.js";
import { guardTag } from "./documents.js";
import { makeFinding, makeKinds, makePageSection, makePlainTable, makeUpLink, WIDEST } from "./explorer-blocks.js";
import { drawValues } from "./value-plot.js";
/** @import { FunctionContext, Guard } from "./document-types" */

const LONGEST = 2000; // characters of one text
const NO_LINE = "No line of your code needs this guard: it belongs to an argument, or to torch itself.";

/**
 * @param {FunctionContext} context
 * @param {number} at
 */
export function makeGuardPage(context, at) {
  const { found, documents, store } = context;
  const guard = found.guards[at];
  const findings = documents.findingsOf(found, at).map((finding) => makeFinding(context, finding));
  const parts = [
    makeGuardHead(context, at),
    whenKnown(guard.verdict, (verdict) => make("p", "cdiag-verdict", verdict)),
    guard.points.length ? makePageSection("Values over time", drawValues(found, guard)) : null,
    guard.with.length ? makePageSection("Failed together with", makeCompanions(context, guard)) : null,
    findings.length ? makePageSection("What to change", ...findings) : null,
    makePageSection("Your code", ...makeUserCode(guard, store.meta.redacted === true)),
    makePageSection("What torch checks", ...makeChecks(guard)),
  ];
  return parts.filter((part) => part !== null);
}

/**
 * @param {FunctionContext} context
 * @param {number} at
 */
function makeGuardHead(context, at) {
  const { found } = context;
  const guard = found.guards[at];
  const facts = joinKnown(
    `failed in ${formatCount(guard.recompiles)} of ${formatAmount(found.recompiles, "recompile")}`,
    whenKnown(guard.lost_s, (seconds) => `${formatSeconds(seconds)} lost where it was the reason`),
  );
  const title = make("h2", "cdiag-page-title", make("span", "cdiag-tagged", guardTag(at)), make("code", "", guard.name));
  return make("div", "cdiag-page-head", makeUpLink(context), title, make("p", "cdiag-dim", makeKinds(guard.kinds), ` · ${facts}`));
}

/**
 * The guards that failed with this one.
 * @param {FunctionContext} context
 * @param {Guard} guard
 */
function makeCompanions({ found, go, id }, guard) {
  const rows = guard.with.map(([at, times]) => {
    const other = found.guards[at];
    const link = makeButton("cdiag-guard-link", "", () => go({ function: id, guard: other.key }));
    link.append(make("span", "cdiag-tagged", guardTag(at)), make("code", "", oneLine(other.name, WIDEST)));
    link.dataset.key = `guard ${other.key}`;
    return [link, makeKinds(other.kinds), `${formatCount(times)} of ${formatCount(guard.recompiles)}`];
  });
  return makePlainTable("cdiag-guards", "guards that fail together", ["guard", "kind", "recompiles"], rows, new Set([2]));
}

/**
 * The user's line with the lines around it where they are certain; else the line; else where it comes from.
 * @param {Guard} guard
 * @param {boolean} isRedacted
 * @returns {HTMLElement[]}
 */
function makeUserCode(guard, isRedacted) {
  const place = formatPlace(guard.user_file, guard.user_line);
  if (isRedacted) return [make("p", "cdiag-dim", place ? `${place} (a redacted report has no code)` : "redacted")];
  /** @type {HTMLElement[]} */
  const parts = [];
  if (place) {
    const line = make("p", "cdiag-dim", place);
    line.title = `${guard.user_file}:${guard.user_line}`;
    parts.push(line);
  }
  if (guard.around) parts.push(makeCodeAround(guard.around, guard.user_line));
  else if (guard.user_code) parts.push(make("pre", "cdiag-code", clip(guard.user_code)));
  if (!parts.length) parts.push(make("p", "cdiag-dim", NO_LINE));
  if (guard.framework) parts.push(makeFold(`comes from torch's own ${guard.framework}`, guard.framework_code ?? ""));
  if (guard.stack) parts.push(makeFold("call stack", guard.stack));
  return parts;
}

/**
 * @param {[number: number, text: string][]} around
 * @param {number | null} userLine
 */
function makeCodeAround(around, userLine) {
  const width = String(around[around.length - 1]?.[0] ?? "").length;
  const lines = around.map(([number, text]) => {
    const isIt = number === userLine;
    const label = make("span", "cdiag-code-number", `${isIt ? "▸" : " "}${String(number).padStart(width)}  `);
    return make("span", isIt ? "cdiag-code-line is-it" : "cdiag-code-line", label, `${text}\n`);
  });
  return make("pre", "cdiag-code cdiag-around", ...lines);
}

/** @param {Guard} guard */
function makeChecks(guard) {
  const texts = guard.texts.map((text) => make("pre", "cdiag-code", clip(text)));
  const hint = guard.hint ? [make("p", "cdiag-dim", `torch's hint: ${clip(guard.hint)}`)] : [];
  return texts.length ? [...texts, ...hint] : [make("p", "cdiag-dim", "not recorded"), ...hint];
}

/**
 * @param {string} heading
 * @param {string} text
 */
function makeFold(heading, text) {
  const body = text ? make("pre", "cdiag-code", clip(text)) : null;
  return make("details", "cdiag-words", make("summary", "", heading), body);
}

/** @param {string} text */
function clip(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
