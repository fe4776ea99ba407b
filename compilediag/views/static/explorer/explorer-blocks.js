// Pieces that the explorer's pages share.
import { make, makeButton, prose } from "../core/dom.js";
import { formatPlace, MISSING, oneLine } from "../core/format.js";

export const WIDEST = 120; // characters of a name or value

export function pageSection(heading, ...children) {
  return make("section", "cdiag-section", make("h3", "", heading), ...children);
}

/** "forward (model.py:30)". */
export function functionName({ function: name, file, line }) {
  const place = formatPlace(file, line);
  return oneLine(place ? `${name ?? "?"} (${place})` : name ?? "?", WIDEST);
}

/** "k: 1 → 2" of a recompile. */
export function changeOf(found, row) {
  const name = found.guards[row.guard]?.name ?? "a guard";
  const [before, after] = [row.expected, row.now];
  if (before === null && after === null) return make("code", "", oneLine(name, WIDEST));
  const values = `${oneLine(before ?? MISSING, WIDEST)} → ${oneLine(after ?? MISSING, WIDEST)}`;
  return make("code", "", make("strong", "", oneLine(name, WIDEST)), `: ${values}`);
}

/** A finding with its advice; it opens the guard that it is about. */
export function findingLine({ documents, go }, finding) {
  const severity = make("span", "cdiag-severity", finding.severity);
  severity.dataset.severity = finding.severity;
  const title = make("span", "cdiag-finding-title", finding.title);
  const button = makeButton("cdiag-finding", "", () => go(documents.resolve({ events: finding.evidence })));
  button.append(make("span", "cdiag-finding-top", severity, title));
  button.append(make("span", "cdiag-advice", ...prose(finding.suggestion ?? "")));
  button.dataset.key = `finding ${finding.title}`;
  return make("div", "cdiag-finding-box", button);
}

/** A table whose cells are texts or elements; columns in `numeric` are set flush right. */
export function plainTable(name, heads, rows, numeric = new Set()) {
  const cell = (tag, content, i) => {
    const node = make(tag, numeric.has(i) ? "is-number" : "", content);
    node.dataset.column = heads[i];
    if (tag === "td") node.title = node.textContent;
    return node;
  };
  const head = make("thead", "", make("tr", "", ...heads.map((text, i) => cell("th", text, i))));
  const body = make("tbody", "", ...rows.map((row) => make("tr", "", ...row.map((text, i) => cell("td", text, i)))));
  return make("div", "cdiag-plain-frame", make("table", `cdiag-plain ${name}`, head, body));
}
