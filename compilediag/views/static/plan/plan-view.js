// What the plan's card shows: the parts of it that have no state of their own.
import { Copy } from "../core/clipboard.js";
import { Code, Fold } from "../core/code.js";
import { formatAmount } from "../core/format.js";
import { Prose } from "../core/text.js";
import { html } from "../core/view.js";
import { Cost, Sentences } from "./cost.js";
import { TimeSplit } from "./time-split.js";
import { CostRow, PlanStepRow } from "./plan-step.js";
import { TrialButton, TrialMessage } from "./trial.js";
import { WholeChange } from "./whole-change.js";
/** @import { PlanCard } from "./plan-card.js" */

const FIRST = 5; // steps that are shown before "show all"
const FIRST_LIVE = 2; // while they can change: the card has the height of two from the start
const LEAST_SHARE = 0.1; // of the compile time: what costs less is folded
const WAITING = [
  "The changes appear here as soon as something recompiles.",
  "The first compile of a function is needed; the next calls reuse it.",
];

/** @param {{card: PlanCard, plan: Plan, isLive: boolean, isFrozen: boolean}} props */
export function PlanView({ card, plan, isLive, isFrozen }) {
  const { store, trial } = card;
  const large = plan.costs.filter((cost) => cost.title && cost.seconds >= LEAST_SHARE * plan.seconds && !isLive);
  const isEmpty = !plan.steps.length && !large.length;
  return html`
    <div class="cdiag-plan-top">
      <div class="cdiag-plan-verdict">
        <p class="cdiag-plan-kind">${describeState(plan, isLive, trial.isRunning, isEmpty)}</p>
        <h2 class="cdiag-plan-headline" aria-live="polite">${plan.headline}${isLive && !plan.recompiles && !plan.leads && " so far"}</h2>
      </div>
      <div class="cdiag-plan-actions">
        <${TrialButton} trial=${trial} plan=${plan} isLive=${isLive} />
        ${isFrozen && !isEmpty && plan.try_command && html`<${Copy} text=${plan.try_command} label="Copy the try command" hint=${plan.try_command} />`}
      </div>
    </div>
    <${TrialMessage} trial=${trial} plan=${plan} explore=${card.actions.explore} />
    <${TimeSplit} plan=${plan} />
    ${isLive && isEmpty ? html`<ol class="cdiag-steps is-waiting">${WAITING.map((text) => html`<li key=${text}>${text}</li>`)}</ol>`
      : !isEmpty && html`<${Steps} card=${card} plan=${plan} costs=${large} isLive=${isLive} />`}
    <${Rest} plan=${plan} costs=${plan.costs.filter((cost) => !large.includes(cost))} isEmpty=${isEmpty} isLive=${isLive} />
    ${plan.notes.map((note) => html`<p class="cdiag-plan-note" key=${note}><${Prose} text=${note} /></p>`)}
    ${store.search?.lines.length ? html`<${Fold} title="Runs" isOpen=${trial.isRunning} name="cdiag-trial-runs">
      <ol class="cdiag-trial-lines">${store.search.lines.map((line, i) => html`<li key=${i}><${Prose} text=${line} /></li>`)}</ol>
    <//>` : null}`;
}

/**
 * @param {Plan} plan
 * @param {boolean} isLive
 * @param {boolean} isTrying
 * @param {boolean} isEmpty
 */
function describeState({ searched, tried }, isLive, isTrying, isEmpty) {
  if (isTrying) return "Plan · trying";
  if (isLive) return "Plan so far";
  if (searched || tried) return "Plan · tried";
  return isEmpty ? "Plan" : "Plan · not tried yet";
}

/** @param {{card: PlanCard, plan: Plan, costs: CompileCost[], isLive: boolean}} props */
function Steps({ card, plan, costs, isLive }) {
  const keys = makeKeys(plan.steps.map(({ rule, file, line, expression }) => [rule, file, line, expression]));
  const first = isLive ? FIRST_LIVE : FIRST;
  const later = plan.steps.length - first;
  const more = card.showsAll ? "Show fewer steps" : isLive ? formatAmount(later, "more step") : `Show all ${plan.steps.length} steps`;
  return html`
    <div class="cdiag-steps-frame">
      <ol class="cdiag-steps">
        ${plan.steps.map((step, i) => html`<${PlanStepRow} key=${keys[i]} card=${card} plan=${plan} step=${step} number=${i + 1} id=${keys[i]} isLater=${i >= first && !card.showsAll} />`)}
        ${costs.map((cost, i) => html`<${CostRow} key=${`${cost.kind} ${i}`} card=${card} cost=${cost} id=${`${cost.kind} ${i}`} />`)}
      </ol>
      ${later > 0 && html`<button type="button" class="cdiag-link cdiag-more-steps" aria-expanded=${card.showsAll} onClick=${() => card.toggleAll()}>${more}</button>`}
      <${WholeChange} card=${card} plan=${plan} isLive=${isLive} />
    </div>`;
}

/**
 * What no step resolves, what costs less, and specifications that can replace steps: folded, but open if there is
 * nothing else.
 * @param {{plan: Plan, costs: CompileCost[], isEmpty: boolean, isLive: boolean}} props
 */
function Rest({ plan, costs, isEmpty, isLive }) {
  const { unresolved, specs, searched } = plan;
  return html`<div class="cdiag-plan-rest">
    ${searched && searched.rejected.length > 0 && html`<${Fold} title=${`${formatAmount(searched.rejected.length, "change")} tried and rejected`}><${Sentences} texts=${searched.rejected} /><//>`}
    ${specs.map(({ title, code }) => html`<${Fold} key=${title} title=${title.replace(/:$/, "")}><${Code} code=${code} hint="copy this specification" /><//>`)}
    ${unresolved.length > 0 && html`<${Fold} title=${`${formatAmount(unresolved.length, "cause")} not resolved, and why`} isOpen=${isEmpty} name="cdiag-unresolved">
      <${Sentences} texts=${unresolved.map(({ place, what, reason }) => [place, what, reason].filter(Boolean).join(": "))} />
    <//>`}
    ${costs.length > 0 && html`<${Fold} title="Where compile time goes" name="cdiag-costs" isOpen=${isEmpty && plan.recompiles > 0 && !isLive}>
      <ul class="cdiag-sentences">${costs.map((cost) => html`<li key=${`${cost.kind} ${cost.place} ${cost.function}`}><${Cost} cost=${cost} /></li>`)}</ul>
    <//>`}
  </div>`;
}

/**
 * A key for each item, made of what stays the same while the item changes. Equal ones are numbered.
 * @param {unknown[][]} identities
 */
function makeKeys(identities) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  return identities.map((identity) => {
    const key = JSON.stringify(identity);
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return `${key} ${count}`;
  });
}
