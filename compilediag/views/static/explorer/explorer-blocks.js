// The blocks that the explorer's pages share.
import { makeFindingMark, makeTableFrame } from "../core/blocks.js";
import { make, makeButton, makeProse } from "../core/dom.js";
import { formatCode, formatPlace, MISSING, oneLine } from "../core/format.js";
import { explain } from "../core/glossary.js";
import { makeTerm } from "../core/hints.js";
/** @import { Child } from "../core/dom.js" */
/** @import { Finding } from "../core/page-types" */
/** @import { FunctionContext, FunctionDocument, RecompileLine } from "./document-types" */

export const WIDEST = 120; // characters of a name or value

/**
 * @param {string} heading
 * @param {Child[]} children
 */
export function makePageSection(heading, ...children) {
  return make("section", "cdiag-section", make("h3", "", heading), ...children);
}

/**
 * "forward (model.py:30)".
 * @param {FunctionDocument} found
 */
export function functionName({ function: name, file, line }) {
  const place = formatPlace(file, line);
  return oneLine(place ? `${name ?? "?"} (${place})` : name ?? "?", WIDEST);
}

/**
 * "k: 1 → 2" of a recompile.
 * @param {FunctionDocument} found
 * @param {RecompileLine} row
 */
export function makeChange(found, row) {
  const name = found.guards[row.guard ?? -1]?.name ?? "a guard";
  const [before, after] = [row.expected, row.now];
  if (before === null && after === null) return make("code", "", oneLine(name, WIDEST));
  const values = `${oneLine(before ?? MISSING, WIDEST)} → ${oneLine(after ?? MISSING, WIDEST)}`;
  return make("code", "", make("strong", "", oneLine(name, WIDEST)), `: ${values}`);
}

/**
 * A finding with its advice; it opens its guard.
 * @param {FunctionContext} context
 * @param {Finding} finding
 */
export function makeFinding({ documents, go }, finding) {
  const title = make("span", "cdiag-finding-title", finding.title);
  const button = makeButton("cdiag-finding", "", () => go(documents.resolve({ events: finding.evidence })));
  button.append(make("span", "cdiag-finding-top", makeFindingMark(finding), title));
  button.append(make("span", "cdiag-advice", ...makeProse(finding.suggestion ?? "")));
  button.dataset.key = `finding ${finding.title}`;
  return make("div", "cdiag-finding-box", button);
}

/**
 * The kinds of a guard, each with what it checks.
 * @param {string[]} kinds
 */
export function makeKinds(kinds) {
  return make("span", "", ...kinds.flatMap((kind, i) => [i ? ", " : "", makeTerm(formatCode(kind), explain(kind))]));
}

/**
 * A table; the columns in `numeric` are aligned to the right.
 * @param {string} name
 * @param {string} label what it shows, to be read aloud
 * @param {string[]} heads
 * @param {Child[][]} rows
 * @param {Set<number>} numeric
 */
export function makePlainTable(name, label, heads, rows, numeric) {
  /**
   * @param {"th" | "td"} tag
   * @param {Child} content
   * @param {number} i
   */
  const makeCell = (tag, content, i) => {
    const node = make(tag, numeric.has(i) ? "is-number" : "", content);
    node.dataset.column = heads[i];
    return node;
  };
  const head = make("thead", "", make("tr", "", ...heads.map((text, i) => makeCell("th", text, i))));
  const lines = rows.map((row) => make("tr", "", ...row.map((content, i) => makeCell("td", content, i))));
  const table = make("table", `cdiag-plain ${name}`, head, make("tbody", "", ...lines));
  return makeTableFrame(table, label);
}

/**
 * A link that leads one step up, to the function.
 * @param {FunctionContext} context
 */
export function makeUpLink({ found, go, id }) {
  const up = makeButton("cdiag-link cdiag-up", `‹ ${functionName(found)}`, () => go({ function: id }));
  up.dataset.key = "up";
  return up;
}
