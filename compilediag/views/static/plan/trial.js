// Trying the plan: the button, the progress of the runs, and the verdict. A search finds and proves the smallest change.
import { Icon, Prose } from "../core/blocks.js";
import { formatAmount, formatCount, formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";

const RUNS = 2; // of the proof without the changes, and as many with them
const START_S = 4; // what a fresh process takes before it runs anything
const IDLE = "The search begins when the kernel is idle.";

export class Trial {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.isAsking = false; // the kernel has not answered yet
    this.isCancelled = false;
    /** @type {string | null} what a reader has to accept before the search begins */
    this.offer = null;
    this.error = "";
    this.changes = 0;
  }

  get isRunning() {
    return this.isAsking || (this.store.search?.running ?? false);
  }

  /** @param {{is_accepted?: boolean, on_cpu?: boolean}} options */
  async start(options) {
    const { kernel } = this.store;
    if (!kernel) return;
    this.set({ isAsking: true, isCancelled: false, offer: null, error: "" });
    const { notice, error } = await kernel.ask({ type: "fix", action: "start", ...options });
    this.set({ isAsking: false, offer: this.isCancelled ? null : notice ?? null, error: error ?? "" });
  }

  stop() {
    if (this.offer === null) void this.store.kernel?.ask({ type: "fix", action: "cancel" });
    this.set({ isCancelled: this.offer === null, offer: null });
  }

  /** @param {Partial<Trial>} values */
  set(values) {
    Object.assign(this, values);
    this.changes += 1;
    this.store.notify(true);
  }
}

/** @param {{trial: Trial, plan: Plan}} props */
export function TrialButton({ trial, plan }) {
  const { store, offer, isRunning } = trial;
  const hasCause = plan.recompiles > 0 || store.totals.graph_breaks > 0;
  if (!store.canSearch || !hasCause || offer !== null) return null;
  if (isRunning) return html`<button type="button" class="cdiag-button cdiag-try" disabled>Trying</button>`;
  const isAgain = Boolean(plan.searched || plan.tried);
  const expected = isAgain ? "" : estimate(store, plan);
  return html`<button type="button" class=${`cdiag-button cdiag-try ${isAgain ? "" : "is-main"}`} onClick=${() => void trial.start({})}>
    ${isAgain ? "Try again" : "Try it"}${expected && html` <span class="cdiag-try-time">· ${expected}</span>`}
  </button>`;
}

/** @type {(store: Store, plan: Plan) => string} "about 1 min": runs that prove a change, half of them without recompiles */
function estimate({ meta }, { seconds_saved: saved }) {
  if (!meta.started_ms || !meta.stopped_ms) return "";
  const run = (meta.stopped_ms - meta.started_ms) / 1000;
  const seconds = RUNS * (2 * run - saved + 2 * START_S);
  const rounded = seconds < 60 ? Math.ceil(seconds / 5) * 5 : Math.round(seconds / 60) * 60;
  return `about ${formatSeconds(rounded).replace(/\.0 s$/, " s")}`;
}

/** @param {{trial: Trial, plan: Plan, explore: (place: Place) => void}} props */
export function TrialMessage({ trial, plan, explore }) {
  const { search, canSearch } = trial.store;
  if (trial.offer !== null) {
    return html`<${Message} kind="warn" text=${trial.offer}>
      <button type="button" class="cdiag-button" onClick=${() => void trial.start({ is_accepted: true })}>Run beside it</button>
      <button type="button" class="cdiag-button" onClick=${() => void trial.start({ on_cpu: true })}>Fast, on the CPU</button>
      <button type="button" class="cdiag-button" onClick=${() => trial.stop()}>Cancel</button>
    <//>`;
  }
  if (trial.isRunning && (canSearch || trial.isAsking)) return html`<${Progress} trial=${trial} />`;
  const error = trial.error || search?.error || (search?.running ? "The kernel has stopped, and the search with it." : "");
  return error ? html`<${Message} kind="bad" text=${error} />` : html`<${Verdict} plan=${plan} explore=${explore} />`;
}

/** @type {Record<string, string>} kind of a message -> its icon; progress has none */
const ICONS = { good: "good", warn: "warning", bad: "stop" };

/** @param {{kind: string, text: ComponentChild, children?: ComponentChild}} props `children`: buttons after the text */
function Message({ kind, text, children }) {
  return html`<div class="cdiag-message cdiag-trial is-${kind}" role="status">
    ${kind in ICONS && html`<${Icon} name=${ICONS[kind]} />`}
    <span class="cdiag-message-text">${text}</span>
    ${children}
  </div>`;
}

/** @param {{trial: Trial}} props */
function Progress({ trial }) {
  const { search } = trial.store;
  const [done, total] = [search?.done ?? 0, Math.max(1, search?.total ?? 1)];
  const text = search?.now ? html`<b>Trying: run ${formatCount(done + 1)}</b>, ${search.now} <span class="cdiag-dim">· in a fresh process</span>` : "The first run begins";
  return html`<${Message} kind="run" text=${trial.isAsking ? IDLE : text}>
    ${!trial.isAsking && html`<progress class="cdiag-trial-bar" aria-label="runs of the search" max=${total} value=${done}></progress>`}
    <button type="button" class="cdiag-button" disabled=${trial.isCancelled} onClick=${() => trial.stop()}>${trial.isCancelled ? "Cancelling" : "Cancel"}</button>
  <//>`;
}

/** @param {{plan: Plan, explore: (place: Place) => void}} props */
function Verdict({ plan, explore }) {
  const { searched, tried, unresolved } = plan;
  const outcome = searched ?? tried;
  if (!outcome) return null;
  const left = searched ? searched.left : [];
  const [before, after] = [outcome.recompiles_before, outcome.recompiles_after];
  const isKnown = before !== null && after !== null && (outcome.holds || !searched);
  const isWhole = outcome.holds && !after;
  const lead = isWhole ? "Tried: it holds."
    : isKnown ? `Tried: ${Math.max(0, before - after)} of ${formatAmount(before, "recompile")} gone, ${formatCount(after)} ${after === 1 ? "is" : "are"} left.`
    : "Tried: it does not hold.";
  const rest = isWhole ? describeMeasured(outcome)
    : searched && !outcome.holds ? searched.headline
    : searched ? left[0] ?? ""
    : tried?.note ? `${tried.note}.`
    : describeMeasured(outcome);
  const others = searched && !outcome.holds ? left : left.slice(1);
  const events = unresolved.flatMap((cause) => cause.evidence);
  const text = html`<b>${lead}</b> <span class="cdiag-trial-facts"><${Prose} text=${rest} /></span>`;
  return html`<${Message} kind=${isWhole ? "good" : "warn"} text=${text}>
      ${!isWhole && events.length > 0 && html`<button type="button" class="cdiag-button" onClick=${() => explore({ events })}>Show the guard</button>`}
    <//>
    ${others.length > 0 && html`<ul class="cdiag-sentences cdiag-trial-left">${others.map((text, i) => html`<li key=${i}><${Prose} text=${text} /></li>`)}</ul>`}
    ${searched?.notes.map((note, i) => html`<p class="cdiag-plan-note" key=${i}><${Prose} text=${note} /></p>`)}`;
}

/** @type {Write<Outcome | SearchOutcome>} "8 → 0 recompiles · compiling 1 min 4 s → 26.1 s · run 1 min 18 s → 39.8 s · same output" */
function describeMeasured(outcome) {
  /** @type {[string, number | null, number | null, (value: number) => string, string][]} */
  const pairs = [
    ["", outcome.recompiles_before, outcome.recompiles_after, formatCount, " recompiles"],
    ["compiling ", outcome.compile_seconds_before, outcome.compile_seconds_after, formatSeconds, ""],
    ["run ", outcome.wall_seconds_before, outcome.wall_seconds_after, formatSeconds, ""],
  ];
  const known = pairs.filter(([, before, after]) => before !== null && after !== null);
  const parts = known.map(([name, before, after, format, unit]) => `${name}${format(before ?? 0)} → ${format(after ?? 0)}${unit}`);
  const isSame = "same_output" in outcome ? outcome.same_output : outcome.holds;
  return [...parts, isSame ? "same output" : null].filter(Boolean).join(" · ");
}
