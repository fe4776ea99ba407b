// The search for a change that runs prove: its button, a line for each run while it runs, and what it found.
import { make, makeButton, setSentences, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount } from "../core/format.js";
import { CodeBlock, Fold } from "./code-block.js";
/** @import { Plan, SearchOutcome } from "../core/page-types" */
/** @import { Store } from "../core/store.js" */

const IDLE = "The search begins when the kernel is idle.";

export class FixView {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.isAsking = false; // the kernel has not answered yet
    this.isCancelled = false;
    /** @type {string | null} what a reader has to accept before the search begins */
    this.offer = null;
    this.error = "";
    this.button = makeButton("cdiag-button", "Try it", () => void this.start({}));
    this.text = make("span", "cdiag-fix-text");
    this.bar = make("progress", "cdiag-fix-bar");
    this.bar.setAttribute("aria-label", "runs of the search");
    this.cancel = makeButton("cdiag-button", "Cancel", () => this.stop());
    this.accept = makeButton("cdiag-button", "Run beside it", () => void this.start({ is_accepted: true }));
    this.small = makeButton("cdiag-button", "Fast, on the CPU", () => void this.start({ on_cpu: true }));
    const buttons = make("span", "cdiag-fix-buttons", this.accept, this.small, this.cancel);
    this.band = make("div", "cdiag-fix-band", this.text, this.bar, buttons);
    this.band.setAttribute("role", "status");
    this.lines = make("ol", "cdiag-fix-lines");
    this.linesFold = new Fold(this.lines);
    this.patch = new CodeBlock("copy the proven patch", "diff");
    this.left = make("ul", "cdiag-reasons");
    this.leftPart = make("div", "", make("h3", "", "What is left"), this.left);
    this.rejected = make("ul", "cdiag-reasons");
    this.rejectedFold = new Fold(this.rejected);
    this.notes = make("div", "cdiag-fix-notes");
    this.found = make("div", "", this.patch.node, this.leftPart, this.rejectedFold.node, this.notes);
    this.node = make("div", "cdiag-fix", this.band, this.found, this.linesFold.node);
  }

  /** What `paint` shows beside the plan. */
  get shape() {
    return [this.store.search, this.store.canSearch, this.isAsking, this.isCancelled, this.offer, this.error];
  }

  /** @param {Plan} plan */
  paint(plan) {
    const { search, canSearch } = this.store;
    const isRunning = search?.running ?? false;
    const hasCause = plan.recompiles > 0 || this.store.totals.graph_breaks > 0;
    setShown(this.button, canSearch && hasCause && this.offer === null);
    this.button.disabled = isRunning || this.isAsking;
    setText(this.button, isRunning ? "Trying" : plan.searched || plan.tried ? "Try again" : "Try it");
    const outcome = isRunning || this.isAsking || this.offer !== null ? null : plan.searched;
    this.paintBand(outcome);
    this.paintOutcome(outcome);
    this.paintLines();
    setShown(this.node, !this.band.hidden || !this.linesFold.node.hidden);
  }

  /** @param {SearchOutcome | null} outcome */
  paintBand(outcome) {
    const { search, canSearch } = this.store;
    const isRunning = (search?.running ?? false) && canSearch;
    const error = this.error || search?.error || (search?.running && !canSearch ? "The kernel has stopped, and the search with it." : "");
    const [kind, text] = this.offer !== null ? ["warn", this.offer]
      : this.isAsking ? ["run", IDLE]
      : isRunning ? ["run", describeRun(search?.done ?? 0, search?.now ?? "")]
      : error ? ["bad", error]
      : outcome ? [outcome.holds ? "good" : "warn", outcome.headline]
      : ["", ""];
    this.band.dataset.kind = kind;
    setText(this.text, text);
    setShown(this.band, text !== "");
    setShown(this.bar, isRunning && !this.isAsking && this.offer === null);
    this.bar.max = Math.max(1, search?.total ?? 1);
    this.bar.value = search?.done ?? 0;
    setShown(this.accept, this.offer !== null);
    setShown(this.small, this.offer !== null);
    setShown(this.cancel, isRunning || this.offer !== null);
    this.cancel.disabled = this.isCancelled && isRunning;
    setText(this.cancel, this.cancel.disabled ? "Cancelling" : "Cancel");
    if (!isRunning) this.isCancelled = false;
  }

  /** @param {SearchOutcome | null} outcome */
  paintOutcome(outcome) {
    setShown(this.found, outcome !== null);
    if (!outcome) return;
    setShown(this.patch.node, outcome.patch !== "");
    this.patch.show(outcome.patch.replace(/\n$/, ""));
    setShown(this.leftPart, outcome.left.length > 0);
    setSentences(this.left, "li", outcome.left);
    setShown(this.rejectedFold.node, outcome.rejected.length > 0);
    this.rejectedFold.setTitle(`${formatAmount(outcome.rejected.length, "change")} tried and rejected`);
    setSentences(this.rejected, "li", outcome.rejected);
    setSentences(this.notes, "p", outcome.notes);
  }

  paintLines() {
    const lines = this.store.search?.lines ?? [];
    setShown(this.linesFold.node, lines.length > 0);
    this.linesFold.setTitle("Runs");
    this.linesFold.suggest(this.store.search?.running ?? false);
    setSentences(this.lines, "li", lines);
  }

  /** @param {{is_accepted?: boolean, on_cpu?: boolean}} options */
  async start(options) {
    const { kernel } = this.store;
    if (!kernel) return;
    Object.assign(this, { isAsking: true, offer: null, error: "" });
    this.store.notify(true);
    const { notice, error } = await kernel.ask({ type: "fix", action: "start", ...options });
    Object.assign(this, { isAsking: false, offer: notice ?? null, error: error ?? "" });
    this.store.notify(true);
  }

  stop() {
    if (this.offer === null) {
      this.isCancelled = true;
      void this.store.kernel?.ask({ type: "fix", action: "cancel" });
    }
    this.offer = null;
    this.store.notify(true);
  }
}

/**
 * @param {number} done
 * @param {string} now
 */
function describeRun(done, now) {
  return now ? `Run ${formatCount(done + 1)} in a fresh process: ${now}` : "The first run begins";
}
