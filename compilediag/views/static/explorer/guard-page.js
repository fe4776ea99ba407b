// The page of one guard: what it was over time, whose line made it, what failed with it, what to change.
import { make, makeButton } from "../core/dom.js";
import { guardTag } from "./documents.js";
import { findingLine, functionName, plainTable, pageSection, WIDEST } from "./explorer-blocks.js";
import { drawValues } from "./value-plot.js";
import { counted, formatCount, formatPlace, formatSeconds, oneLine } from "../core/format.js";

const LONGEST = 2000; // characters of one text

export function guardPage(context, at) {
  const { found, documents, store } = context;
  const guard = found.guards[at];
  const findings = documents.findingsOf(found, at);
  return [
    guardHead(context, at),
    guard.verdict === null ? null : make("p", "cdiag-verdict", guard.verdict),
    guard.points.length ? pageSection("Values over time", drawValues(found, guard)) : null,
    guard.with.length ? pageSection("Failed with it", company(context, guard)) : null,
    findings.length ? pageSection("What to change", ...findings.map((finding) => findingLine(context, finding))) : null,
    pageSection("Your code", ...userCode(guard, store.meta.redacted)),
    pageSection("What torch checks", ...checks(guard)),
  ].filter(Boolean);
}

function guardHead({ found, go, id }, at) {
  const guard = found.guards[at];
  const up = makeButton("cdiag-link cdiag-up", `‹ ${functionName(found)}`, () => go({ function: id }));
  up.dataset.key = "up";
  const facts = [
    guard.kinds.join(", ").replaceAll("_", " "),
    `failed at ${counted(guard.recompiles, "recompile", "recompiles")} of ${formatCount(found.recompiles)}`,
    guard.lost_s === null ? null : `${formatSeconds(guard.lost_s)} lost where it was the reason`,
  ];
  const title = make("h2", "cdiag-page-title", make("span", "cdiag-tagged", guardTag(at)), make("code", "", guard.name));
  return make("div", "cdiag-page-head", up, title, make("p", "cdiag-dim", facts.filter(Boolean).join(" · ")));
}

function company({ found, go, id }, guard) {
  const rows = guard.with.map(([at, times]) => {
    const other = found.guards[at];
    const link = makeButton("cdiag-guard-link", "", () => go({ function: id, guard: other.key }));
    link.append(make("span", "cdiag-tagged", guardTag(at)), make("code", "", oneLine(other.name, WIDEST)));
    link.dataset.key = `guard ${other.key}`;
    return [link, other.kinds.join(", ").replaceAll("_", " "), `${formatCount(times)} of ${formatCount(guard.recompiles)}`];
  });
  return plainTable("cdiag-guards", ["guard", "kind", "recompiles"], rows, new Set([2]));
}

/** The user's line with those around it where they are known for sure; else the line; else where it comes from. */
function userCode(guard, isRedacted) {
  const place = formatPlace(guard.user_file, guard.user_line);
  if (isRedacted) return [make("p", "cdiag-dim", place ? `${place} (code is left out of a redacted report)` : "left out")];
  const head = place ? [make("p", "cdiag-dim", place)] : [];
  if (head.length) head[0].title = `${guard.user_file}:${guard.user_line}`;
  if (guard.around) head.push(codeAround(guard));
  else if (guard.user_code) head.push(make("pre", "cdiag-code", clip(guard.user_code)));
  if (!head.length) head.push(make("p", "cdiag-dim", "No line of yours asks for it: it belongs to an argument, or to torch itself."));
  if (guard.framework) head.push(folded(`made in torch's own ${guard.framework}`, guard.framework_code ?? ""));
  if (guard.stack) head.push(folded("the stack", guard.stack));
  return head;
}

function codeAround(guard) {
  const width = String(guard.around.at(-1)[0]).length;
  const lines = guard.around.map(([number, text]) => {
    const isIt = number === guard.user_line;
    const line = make("span", isIt ? "cdiag-code-line is-it" : "cdiag-code-line");
    line.append(make("span", "cdiag-code-number", `${isIt ? "▸" : " "}${String(number).padStart(width)}  `), `${text}\n`);
    return line;
  });
  return make("pre", "cdiag-code cdiag-around", ...lines);
}

function checks(guard) {
  const texts = guard.texts.map((text) => make("pre", "cdiag-code", clip(text)));
  if (!texts.length) texts.push(make("p", "cdiag-dim", "not recorded"));
  return guard.hint ? [...texts, make("p", "cdiag-dim", `torch says: ${clip(guard.hint)}`)] : texts;
}

function folded(heading, text) {
  return make("details", "cdiag-words", make("summary", "", heading), text ? make("pre", "cdiag-code", clip(text)) : null);
}

function clip(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
