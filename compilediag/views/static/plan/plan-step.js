// A step of the plan, one line: the cause, the place, what it saves. Opened, it shows why, the change, and the evidence.
import { Copy, Icon, Link, Prose } from "../core/blocks.js";
import { Code, Diff, ExampleView, Fold } from "../core/code.js";
import { formatAmount, formatCount, formatSeconds, oneLine } from "../core/format.js";
import { findCellNumber, NotebookCell } from "../core/notebook-cell.js";
import { html } from "../core/view.js";
import { useState } from "../vendor/hooks.js";

const WIDEST = 60; // characters of one value
const LONGEST = 300; // characters of a line of code

/** @type {Component<PlanRowProps>} A button that opens the row, and beside it a link to the place. */
function Row({ card, rule, number, title, place, saves, seconds, isLater = false, onPoint, children }) {
  const [isChosen, choose] = useState(false);
  const isOpen = isChosen || card.isPrinting;
  return html`<li class=${isLater ? "cdiag-step is-later" : "cdiag-step"} data-rule=${rule}
    onPointerEnter=${() => onPoint?.(true)} onPointerLeave=${() => onPoint?.(false)}>
    <div class=${isOpen ? "cdiag-step-row is-open" : "cdiag-step-row"}>
      <button type="button" class="cdiag-step-title" aria-expanded=${isOpen} onClick=${() => choose(!isChosen)}>
        <${Icon} name="open" />
        <span class="cdiag-step-number">${number ?? "–"}</span>
        <span class="cdiag-step-cause">${title}</span>
      </button>
      ${place}
      <span class="cdiag-step-count">${saves}</span>
      <b class="cdiag-step-seconds">${seconds > 0 && `−${formatSeconds(seconds)}`}</b>
    </div>
    ${isOpen && children}
  </li>`;
}

/** @param {{card: Card, step: PlanStep, number: number, isLater: boolean}} props */
export function PlanStepRow({ card, step, number, isLater }) {
  const { plan, actions: { mark } } = card;
  const values = step.title_values.map((value) => oneLine(value, WIDEST));
  const title = html`
    <b><${Prose} text=${oneLine(step.title || step.what, LONGEST)} /></b>
    <span class="cdiag-step-values">${values.map((value, i) => html`${i ? ", " : " "}<code key=${i}>${value}</code>`)}${step.has_more_values && ", …"}</span>`;
  return html`
    <${Row} card=${card} rule=${step.rule} number=${number} title=${title} place=${html`<${PlaceLink} card=${card} step=${step} />`}
      saves=${describeGain(plan, number)} seconds=${step.seconds_gained} isLater=${isLater}
      onPoint=${(/** @type {boolean} */ isInside) => mark?.(isInside ? step.evidence : null)}>
      <${StepBody} card=${card} step=${step} number=${number} />
    <//>`;
}

/** @param {{card: Card, cost: CompileCost}} props */
export function CostRow({ card, cost }) {
  const place = cost.place ? html`<code class="cdiag-step-place">${cost.place}</code>` : html`<span class="cdiag-step-place"></span>`;
  const title = html`<b><${Prose} text=${cost.title} /></b>`;
  return html`
    <${Row} card=${card} rule=${cost.kind} number=${null} title=${title} place=${place} saves="" seconds=${cost.seconds}>
      <div class="cdiag-step-body"><${Cost} cost=${cost} /></div>
    <//>`;
}

/** @param {{cost: CompileCost}} props */
export function Cost({ cost: { what, code, advice, details } }) {
  return html`
    <p class="cdiag-cost-what"><${Prose} text=${`${what}.`} /></p>
    ${code && html`<${Code} code=${code} hint="copy the change that saves this" />`}
    ${advice && html`<p><${Prose} text=${advice} /></p>`}
    ${details.length > 0 && html`<${Fold} title=${formatAmount(details.length, "detail")}><${Sentences} texts=${details} /><//>`}`;
}

/** @param {{texts: string[]}} props */
export function Sentences({ texts }) {
  return html`<ul class="cdiag-sentences">${texts.map((text, i) => html`<li key=${`${i} ${text}`}><${Prose} text=${text} /></li>`)}</ul>`;
}

/**
 * "−3 recompiles", "−2 more, after step 1"; the step that has to be made too, if this one alone saves nothing.
 * @type {(plan: Plan, number: number) => string}
 */
function describeGain({ steps }, number) {
  const gained = steps[number - 1].recompiles_gained;
  if (gained > 0) return number === 1 ? `−${formatAmount(gained, "recompile")}` : `−${formatCount(gained)} more, after step ${number - 1}`;
  const next = steps.findIndex((step, i) => i >= number && step.recompiles_gained > 0);
  return next < 0 ? "" : `with step ${next + 1}`;
}

/** @type {Component<{card: Card, step: PlanStep}>} `In[4]:4`, a link that selects the line in the notebook, or `train.py:27`. */
function PlaceLink({ card, step: { file, line, place } }) {
  const cell = findCellNumber(file);
  if (cell === null || line === null) return html`<code class="cdiag-step-place" title=${[file, line].filter((part) => part !== null).join(":")}>${oneLine(place, WIDEST)}</code>`;
  const go = () => new NotebookCell(card.node.current, cell).selectLine(line);
  return html`<button type="button" class="cdiag-link cdiag-step-place" data-hint="go to this line" onClick=${go}>In[${cell}]:${line}</button>`;
}

/** @param {{card: Card, step: PlanStep, number: number}} props */
function StepBody({ card, step, number }) {
  const { store, plan, actions } = card;
  const { rule, why, what, saving, alternatives, evidence, proof } = step;
  const label = `step ${formatCount(number)}, ${oneLine(step.place, WIDEST)}`;
  const docs = store.torch_docs[rule];
  const isKnown = evidence.some((id) => store.table("recompiles").byId(id) !== null);
  // The recompiles at which a guard of this step failed first, then the others at which one failed.
  const own = [...store.findings.filter((finding) => finding.step === number).flatMap((finding) => finding.evidence), ...evidence];
  return html`<div class="cdiag-step-body">
    ${step.code && html`<pre class="cdiag-step-code">${oneLine(step.code.trim(), LONGEST)}</pre>`}
    ${!step.title_values.length && what !== step.title && html`<p class="cdiag-step-what"><${Prose} text=${`${what}.`} /></p>`}
    ${step.origin && html`<pre class="cdiag-step-code">${oneLine(step.origin, LONGEST)}</pre>`}
    ${why && html`<p class="cdiag-step-why"><${Prose} text=${why} /></p>`}
    <${StepChange} plan=${plan} step=${step} number=${number} />
    <p class="cdiag-step-saving"><${Prose} text=${saving} /></p>
    ${proof && html`<${Proof} proof=${proof} start=${store.meta.started_ms ?? null} />`}
    ${alternatives.length > 0 && html`<${Fold} title=${formatAmount(alternatives.length, "other way", "other ways")} name="cdiag-other-ways">
      ${alternatives.map((way, i) => html`<${Code} key=${i} code=${way} hint="copy this way" />`)}
    <//>`}
    <${ExampleView} example=${store.examples[rule]} />
    <p class="cdiag-step-links">
      ${isKnown && html`<button type="button" class="cdiag-link cdiag-step-evidence" aria-pressed=${card.picked === label} onClick=${() => actions.pick({ label, evidence })}>${formatAmount(evidence.length, "recompile")}</button>`}
      ${isKnown && actions.showStretch && html`<button type="button" class="cdiag-link cdiag-show-stretch" onClick=${() => actions.showStretch?.(evidence)}>Show in the timeline</button>`}
      ${isKnown && html`<button type="button" class="cdiag-link cdiag-explore-link" onClick=${() => actions.explore({ events: own })}>Guards</button>`}
      ${docs && html`<${Link} url=${docs.url} title=${`torch: ${docs.title}`} />`}
    </p>
  </div>`;
}

/** @param {{proof: Evidence, start: number | null}} props `start` of the recording, Unix ms */
function Proof({ proof: { function: name, names, compiles, hidden }, start }) {
  const label = `the compiles of ${name}`;
  const sample = compiles.flatMap(({ values, change }) => (change === null ? [] : values)).find(Boolean);
  return html`<div class="cdiag-proof">
    <h3>Evidence: the ${formatAmount(compiles.length + hidden, "compile")} of <code>${name}</code></h3>
    <div class="cdiag-box" role="region" tabindex="0" aria-label=${label}><table>
      <thead><tr>
        ${start !== null && html`<th>at</th>`}
        ${names.map((each) => html`<th class="cdiag-proof-value" key=${each}><code>${each}</code></th>`)}
        <th>what torch did, and why</th><th class="is-number">took</th>
      </tr></thead>
      <tbody>${compiles.map(({ event, time, values, change, is_own: isOwn, seconds }, i) => html`<tr key=${event ?? i}>
        ${start !== null && html`<td>${time <= start ? "0 s" : formatSeconds((time - start) / 1000)}</td>`}
        ${values.map((value, k) => html`<td class="cdiag-proof-value" key=${k}><code class=${value && change !== null ? "is-failed" : ""}>${value}</code></td>`)}
        <td>${change === null ? html`<span class="cdiag-dim">first compile</span>` : html`<span class=${isOwn ? "cdiag-proof-change" : ""}><${Icon} name="again" /> <code>${change}</code></span>`}</td>
        <td class="is-number">${formatSeconds(seconds)}</td>
      </tr>`)}</tbody>
    </table></div>
    ${hidden > 0 && html`<p class="cdiag-dim">and ${formatAmount(hidden, "more compile", "more compiles")}</p>`}
    ${sample && html`<p class="cdiag-dim cdiag-proof-value"><code class="is-failed">${sample}</code> a guard failed on this value</p>`}
  </div>`;
}

/**
 * The lines that a step changes, with those around them; without a source that can be read, its code; or what a person
 * has to do.
 * @param {{plan: Plan, step: PlanStep, number: number}} props
 */
function StepChange({ plan, step, number }) {
  if (!step.can_be_applied) return html`<p class="cdiag-step-advice"><${Prose} text=${step.change} /></p>`;
  const found = plan.sources.map((source) => ({ source, lines: selectLines(source, number) })).filter(({ lines }) => lines.length);
  if (!found.length) return html`<${Code} code=${step.change} hint="copy the change of this step" />`;
  return found.map(({ source, lines }) => html`<div class="cdiag-box" key=${source.place}>
    <div class="cdiag-box-title">
      <span>The change of this step, in <code>${source.place}</code></span>
      <${Copy} text=${lines.flatMap(([, mark, text]) => (mark === "+" ? [text] : [])).join("\n")} hint="copy the new lines" kind="is-quiet is-small" />
    </div>
    <${Diff} lines=${lines} label=${`the change of step ${number}`} />
  </div>`);
}

/** @type {(source: ChangedSource, number: number) => DiffLine[]} the lines of a step, with those around them */
function selectLines({ lines }, number) {
  const isOwn = lines.map(([, , , step]) => step === number);
  return lines.filter((line, i) => isOwn[i] || (line[1] === " " && (isOwn[i - 1] || isOwn[i + 1])));
}
