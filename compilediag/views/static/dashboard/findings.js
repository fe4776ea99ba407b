// The findings that no step of the plan has: those with something to do, and one closed line with the others.
import { FindingMark, Link, Prose } from "../core/blocks.js";
import { ExampleView } from "../core/code.js";
import { formatAmount, formatCount, formatPlace, formatSeconds, oneLine } from "../core/format.js";
import { html } from "../core/view.js";
import { useState } from "../vendor/hooks.js";

const FIRST = 3; // findings that are shown before "show all"
const VALUES = 20; // values that the tooltip lists

/** @typedef {(findings: Finding[]) => Finding[][]} ListFindings */
/** @typedef {{store: Store, picked: string | null, onPick: (finding: Finding) => void, onExplore: (place: Place) => void}} Props */

/** @type {ListFindings} alike ones are one, with the events of all; what the plan has is left out */
export function listFindings(findings) {
  const listed = findings.filter(({ step, is_cost }) => step === null && !is_cost);
  return [...Map.groupBy(listed, ({ rule, suggestion, is_expected }) => `${rule}\n${suggestion}\n${is_expected}`).values()];
}

/** @type {ListFindings} */
export function listAdvice(findings) {
  return listFindings(findings).filter(([first]) => !first.is_expected);
}

/** @type {Is<Finding[]>} functions that run uncompiled; once the run has ended, that is a warning of its own */
export function isLimit([{ rule }]) {
  return rule === "recompile_limit";
}

/** @param {Props} props */
export function Findings(props) {
  const { store } = props;
  const [showsAll, setShowsAll] = useState(false);
  const advice = listAdvice(store.findings).filter((alike) => store.isLive() || !isLimit(alike));
  const notes = listFindings(store.findings).filter(([first]) => first.is_expected);
  if (!advice.length && !notes.length) return null;
  /** @param {Finding[][]} groups @param {boolean} isNumbered */
  const list = (groups, isNumbered) => html`<ol class="cdiag-finding-list">
    ${groups.map((findings, i) => html`
      <${Item} props=${props} key=${findings[0].rule + (findings[0].evidence[0] ?? "")} findings=${findings}
        number=${isNumbered ? i + 1 : 0} isLater=${isNumbered && i >= FIRST && !showsAll} />`)}
  </ol>`;
  return html`<section class="cdiag-findings">
    ${advice.length > 0 && html`<h2>${store.plan?.steps.length ? "Other findings" : "Findings"}</h2>${list(advice, true)}`}
    ${advice.length > FIRST && html`
      <button type="button" class="cdiag-link" onClick=${() => setShowsAll(!showsAll)}>
        ${showsAll ? "show fewer" : `show all ${formatCount(advice.length)}`}
      </button>`}
    ${notes.length > 0 && html`
      <details class="cdiag-notes">
        <summary class="cdiag-link">${formatAmount(notes.length, "note")} with nothing to do</summary>
        ${list(notes, false)}
      </details>`}
  </section>`;
}

/** @param {{props: Props, findings: Finding[], number: number, isLater: boolean}} own */
function Item({ props: { store, picked, onPick, onExplore }, findings, number, isLater }) {
  const [finding, ...others] = findings;
  const all = others.length ? { ...finding, evidence: findings.flatMap(({ evidence }) => evidence) } : finding;
  const seconds = findings.reduce((sum, each) => sum + each.seconds_recoverable, 0);
  const event = finding.evidence.find((id) => store.table("recompiles").byId(id));
  const docs = store.torch_docs[finding.rule];
  return html`<li class=${isLater ? "is-later" : ""}>
    <${Title} finding=${finding} picked=${picked} onPick=${() => onPick(all)}>
      ${number > 0 && html`<span class="cdiag-rank">${formatCount(number)}</span>`} <${FindingMark} finding=${finding} />
      <span class="cdiag-finding-title"><${Prose} text=${finding.title} /></span>
      ${seconds > 0 && html`<span class="cdiag-finding-lost">can save ${formatSeconds(seconds)}</span>`}
    <//>
    ${event !== undefined && html`
      <button type="button" class="cdiag-link cdiag-explore-link" aria-label=${`explore: ${finding.title}`} onClick=${() => onExplore({ event })}>
        explore ›
      </button>`}
    ${others.length > 0 && html`
      <details class="cdiag-more">
        <summary class="cdiag-link">and ${formatCount(others.length)} more like it</summary>
        ${others.map((other) => html`
          <${Title} key=${other.title} finding=${other} picked=${picked} onPick=${() => onPick(other)}><${Prose} text=${other.title} /><//>`)}
      </details>`}
    <p class="cdiag-advice"><${Prose} text=${finding.suggestion ?? ""} /></p>
    ${docs && html`<p class="cdiag-docs">torch's documentation: <${Link} url=${docs.url} title=${docs.title} /></p>`}
    <${ExampleView} example=${store.examples[finding.rule]} />
  </li>`;
}

/** @param {{finding: Finding, picked: string | null, onPick: () => void, children: any}} props the line that shows its evidence */
function Title({ finding, picked, onPick, children }) {
  const values = (finding.values ?? []).slice(0, VALUES).map((value) => oneLine(String(value), 60)).join(", ");
  const hint = [formatPlace(finding.file, finding.line), values && `values: ${values}`].filter(Boolean).join("\n");
  return html`
    <button type="button" class="cdiag-finding" data-rule=${finding.rule} data-hint=${hint || null}
      aria-pressed=${String(picked === finding.title)} onClick=${onPick}>
      <span class="cdiag-finding-top">${children}</span>
    </button>`;
}
