// The plan: a verdict, where the time went, the steps, the whole change, and what trying it showed.
import { Copy, Prose } from "../core/blocks.js";
import { Code, Fold } from "../core/code.js";
import { formatAmount, formatSeconds, keepDurations } from "../core/format.js";
import { html, useTicks } from "../core/view.js";
import { Cost, CostRow, PlanStepRow, Sentences } from "./plan-step.js";
import { Trial, TrialButton, TrialMessage } from "./trial.js";
import { useCells, WholeChange } from "./whole-change.js";
import { useMemo, useRef, useState } from "../vendor/hooks.js";

const FIRST = 5; // steps that are shown before "show all"
const FIRST_LIVE = 2; // while they can change: the card has the height of two from the start
const LEAST_SHARE = 0.1; // of the compile time: what costs less is folded; what costs at each call has no seconds
const TICK_MS = 1000; // of the time that is needed so far
const WAITING = [
  "The changes appear here as soon as something recompiles.",
  "The first compile of a function is needed; the next calls reuse it.",
];

/** @type {Component<PlanCardProps>} The card; nothing without a plan. It is drawn again only if what it shows has changed. */
export function PlanCard({ store, actions, picked = null, isPrinting = false, children = null }) {
  const { plan, search, canSearch, isFrozen, meta, examples, torch_docs } = store;
  const isLive = store.isLive();
  const node = useRef(/** @type {HTMLElement | null} */ (null));
  const trial = useMemo(() => new Trial(store), [store]);
  const [cells, look] = useCells(node, plan);
  return useMemo(() => {
    if (!plan) return null;
    const costs = listLargeCosts(plan, isLive);
    const isEmpty = !plan.steps.length && !costs.length;
    /** @type {Card} */
    const card = { store, actions, plan, isLive, costs, isEmpty, picked, isPrinting, node, look };
    return html`
      <section class="cdiag-plan" aria-label="Plan" ref=${node} onPointerOver=${look} onFocusIn=${look}>
        <div class="cdiag-plan-top">
          <div class="cdiag-plan-verdict">
            <p class="cdiag-plan-kind">${trial.isRunning ? "Plan · trying" : describeState(card)}</p>
            <h2 class="cdiag-plan-headline" aria-live="polite">${keepDurations(plan.headline)}${isLive && !plan.recompiles && !plan.leads && " so far"}</h2>
          </div>
          <div class="cdiag-plan-actions">
            <${TrialButton} trial=${trial} plan=${plan} />
            ${isFrozen && !isEmpty && plan.try_command && html`<${Copy} text=${plan.try_command} label="Copy the try command" hint=${plan.try_command} />`}
          </div>
        </div>
        <${TrialMessage} trial=${trial} plan=${plan} explore=${actions.explore} />
        ${children}
        <${TimeSplit} store=${store} plan=${plan} />
        ${isLive && isEmpty ? html`<ol class="cdiag-steps is-waiting">${WAITING.map((text) => html`<li key=${text}>${text}</li>`)}<li aria-hidden="true"></li></ol>`
          : !isEmpty && html`<${Steps} card=${card} />`}
        <${Rest} card=${card} />
        ${plan.notes.map((note) => html`<p class="cdiag-plan-note" key=${note}><${Prose} text=${note} /></p>`)}
        ${search?.lines.length ? html`<${Fold} title="Runs" isOpen=${trial.isRunning} name="cdiag-trial-runs">
          <ol class="cdiag-trial-lines">${search.lines.map((line, i) => html`<li key=${i}><${Prose} text=${line} /></li>`)}</ol>
        <//>` : null}
      </section>`;
  }, [plan, isLive, search, canSearch, meta.stopped_ms, examples, torch_docs, picked, isPrinting, trial.changes, cells, Boolean(children) && store.findings]);
}

/** @type {(plan: Plan, isLive: boolean) => CompileCost[]} those that have lines of their own */
export function listLargeCosts(plan, isLive) {
  return plan.costs.filter(({ title, seconds }) => title && !isLive && (!seconds || seconds >= LEAST_SHARE * plan.seconds));
}

/** @type {Write<Card>} */
function describeState({ plan: { searched, tried }, isLive, isEmpty }) {
  if (isLive) return "Plan so far";
  if (searched || tried) return "Plan · tried";
  return isEmpty ? "Plan" : "Plan · not tried yet";
}

/** @type {Component<{store: Store, plan: Plan}>} Live, it has its place from the start: the steps below do not move. */
function TimeSplit({ store, plan }) {
  const isLive = store.isLive();
  const found = listParts(plan).filter(({ seconds }) => seconds > 0);
  const isCounting = found.length < 2 && isLive && !plan.recompiles;
  useTicks(isCounting && !store.paused ? TICK_MS : 0);
  const parts = isCounting ? [measureNeeded(store)] : found;
  if (parts.length < 2 && !isLive) return null;
  const label = parts.map((part) => `${part.label} ${formatSeconds(part.seconds)}`).join(", ");
  return html`<div class=${parts.length && parts[0].seconds ? "cdiag-split" : "cdiag-split is-empty"}>
    <div class="cdiag-split-bar" role="img" aria-label=${label}>
      ${parts.map(({ kind, seconds, step, label: name }) => html`<i key=${name} class=${kind} data-step=${step} style=${`flex-grow: ${seconds}`}></i>`)}
    </div>
    <p class="cdiag-split-keys" aria-hidden="true">
      ${parts.map(({ kind, seconds, label: name }) => html`<span key=${name}><i class=${kind}></i>${name} <b>${formatSeconds(seconds)}</b>${parts.length < 2 && " so far"}</span>`)}
    </p>
  </div>`;
}

/** @type {(store: Store) => TimePart} Nothing has recompiled: all that has compiled, and what compiles now, is needed. */
function measureNeeded(store) {
  const began = Math.min(...store.now.map((flight) => flight.started_ms), store.kernelNow());
  const seconds = (store.totals.compile_s ?? 0) + Math.floor((store.kernelNow() - began) / 100) / 10;
  return { kind: "is-needed", label: "needed", seconds };
}

/** @type {(plan: Plan) => TimePart[]} */
function listParts({ seconds, seconds_saved: saved, steps, costs, leads, searched, tried }) {
  const measured = searched?.holds ? searched : tried?.holds ? tried : null;
  const [before, after] = [measured?.compile_seconds_before ?? null, measured?.compile_seconds_after ?? null];
  if (before !== null && after !== null) {
    return [{ kind: "is-needed", label: "needed", seconds: after }, { kind: "is-saved", label: "saved", seconds: before - after }];
  }
  const cost = costs.find(({ kind }) => kind === leads);
  if (cost) {
    const label = cost.kind === "tuning" ? "tuning" : "this";
    return [{ kind: "is-needed", label: "other compile time", seconds: seconds - cost.seconds }, { kind: `is-${cost.kind}`, label, seconds: cost.seconds }];
  }
  if (!saved) return [];
  const own = steps.map((step, i) => ({
    kind: i % 2 === steps.length % 2 ? "is-saved is-hatched" : "is-saved",
    label: `step ${i + 1} saves`,
    seconds: step.seconds_gained,
    step: i + 1,
  }));
  return [{ kind: "is-needed", label: "needed", seconds: seconds - saved }, ...own];
}

/** @param {{card: Card}} props */
function Steps({ card }) {
  const { isLive, costs, plan: { steps, sources, code } } = card;
  const [showsAll, setShowsAll] = useState(false);
  const keys = makeKeys(steps.map(({ rule, file, line, expression }) => [rule, file, line, expression]));
  const first = isLive ? FIRST_LIVE : FIRST;
  const later = steps.length - first;
  const more = showsAll ? "Show fewer steps" : isLive ? formatAmount(later, "more step") : `Show all ${steps.length} steps`;
  const isBeside = isLive && Boolean(sources.length || code); // so that nothing below moves when it comes
  const toggle = later > 0 && html`<button type="button" class="cdiag-link cdiag-more-steps" aria-expanded=${showsAll} onClick=${() => setShowsAll(!showsAll)}>${more}</button>`;
  return html`
    <div class="cdiag-steps-frame">
      <ol class="cdiag-steps">
        ${steps.map((step, i) => html`<${PlanStepRow} key=${keys[i]} card=${card} step=${step} number=${i + 1} isLater=${i >= first && !showsAll} />`)}
        ${costs.map((cost, i) => html`<${CostRow} key=${`${cost.kind} ${i}`} card=${card} cost=${cost} />`)}
      </ol>
      ${!isBeside && toggle}
      <${WholeChange} card=${card}>${isBeside && toggle}<//>
    </div>`;
}

/**
 * What no step resolves, what costs less, and specifications that can replace steps: folded, but open if there is
 * nothing else.
 * @param {{card: Card}} props
 */
function Rest({ card: { plan, costs: large, isEmpty, isLive } }) {
  const { unresolved, specs, searched } = plan;
  const costs = plan.costs.filter((cost) => !large.includes(cost));
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

/** @type {(identities: unknown[][]) => string[]} keys of what stays the same while an item changes; equal ones are numbered */
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
