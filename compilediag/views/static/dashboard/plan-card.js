// The plan: what to change, in which order, and what that saves. It keeps focus, selection and open folds when it changes.
import { arrange, make, makeButton, makeProse, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount } from "../core/format.js";
import { CodeBlock, Fold } from "./code-block.js";
import { StepView } from "./plan-step.js";
/** @import { Outcome, Plan, PlanStep, Unresolved } from "../core/page-types" */
/** @import { Store } from "../core/store.js" */
/** @import { PlanActions } from "./plan-step.js" */

const FIRST = 5; // steps that are shown before "show all"

export class PlanCard {
  /**
   * @param {Store} store
   * @param {PlanActions} actions
   */
  constructor(store, actions) {
    this.store = store;
    this.actions = actions;
    /** @type {unknown[]} what was painted last */
    this.shape = [];
    this.showsAll = false;
    /** @type {string | null} label of the selected step */
    this.picked = null;
    /** @type {Map<string, StepView>} */
    this.views = new Map();
    this.title = make("h2", "");
    this.headline = make("p", "cdiag-plan-headline");
    this.headline.setAttribute("role", "status"); // the only part that a screen reader announces
    this.headline.setAttribute("aria-live", "polite");
    this.outcome = make("p", "cdiag-outcome-line");
    this.steps = make("ol", "cdiag-steps");
    this.more = makeButton("cdiag-link", "", () => {
      this.showsAll = !this.showsAll;
      this.paint();
    });
    this.code = new CodeBlock("copy all changes");
    this.together = make("div", "cdiag-plan-code", make("h3", "", "All changes together"), this.code.node);
    this.patch = new CodeBlock("copy the patch", "diff");
    this.patchFold = new Fold(this.patch.node);
    this.patchFold.setTitle("Patch");
    this.unresolved = make("ul", "cdiag-reasons cdiag-unresolved");
    this.unresolvedFold = new Fold(this.unresolved);
    setShown(this.unresolvedFold.node, false);
    this.notes = make("div", "cdiag-plan-notes");
    const head = make("div", "cdiag-plan-head", this.title, this.headline, this.outcome);
    const rest = [this.together, this.patchFold.node, this.unresolvedFold.node, this.notes];
    this.node = make("section", "cdiag-plan", head, this.steps, this.more, ...rest);
    this.node.setAttribute("aria-label", "plan");
  }

  paint() {
    const { plan } = this.store;
    const shape = [plan, this.store.isLive(), this.showsAll, this.picked, this.store.table("recompiles").version];
    if (shape.every((part, i) => part === this.shape[i])) return;
    this.shape = shape;
    setShown(this.node, plan !== null);
    if (plan) this.paintPlan(plan);
  }

  /** @param {Plan} plan */
  paintPlan(plan) {
    setText(this.title, this.store.isLive() ? "Plan so far" : "Plan");
    setText(this.headline, plan.headline);
    this.node.classList.toggle("is-empty", plan.steps.length === 0);
    this.paintOutcome(plan.tried);
    this.paintSteps(plan.steps);
    const isWhole = plan.steps.length === 1 && plan.steps[0].can_be_applied && plan.steps[0].change === plan.code;
    setShown(this.together, plan.code !== "" && !isWhole);
    this.code.show(plan.code);
    setShown(this.patchFold.node, Boolean(plan.patch));
    this.patch.show(plan.patch ?? "");
    this.paintUnresolved(plan);
    arrangeTexts(this.notes, "p", plan.notes);
  }

  /** @param {Outcome | null} tried */
  paintOutcome(tried) {
    setShown(this.outcome, tried !== null);
    if (!tried) return;
    setText(this.outcome, tried.text);
    this.outcome.classList.toggle("is-good", tried.holds);
  }

  /** @param {PlanStep[]} steps */
  paintSteps(steps) {
    const keys = makeKeys(steps);
    this.views = new Map(keys.map((key) => [key, this.views.get(key) ?? new StepView(this.store, this.actions)]));
    const nodes = steps.map((step, i) => {
      const view = /** @type {StepView} */ (this.views.get(keys[i]));
      view.update(step, i + 1, this.picked);
      view.node.classList.toggle("is-later", i >= FIRST && !this.showsAll);
      return view.node;
    });
    arrange(this.steps, nodes);
    setShown(this.steps, steps.length > 0);
    setShown(this.more, steps.length > FIRST);
    setText(this.more, this.showsAll ? "show fewer steps" : `show all ${formatCount(steps.length)} steps`);
  }

  /**
   * The reasons are folded below steps. Without any step they are what the reader wants, so they are open at first.
   * @param {Plan} plan
   */
  paintUnresolved({ unresolved, steps }) {
    if (this.unresolvedFold.node.hidden && !steps.length) this.unresolvedFold.node.open = true;
    setShown(this.unresolvedFold.node, unresolved.length > 0);
    this.unresolvedFold.setTitle(`${formatAmount(unresolved.length, "cause")} without a change, and why`);
    arrangeTexts(this.unresolved, "li", unresolved.map(describeUnresolved));
  }

  /** @param {string | null} label */
  setPicked(label) {
    this.picked = label;
    this.paint();
  }
}

/**
 * A key for each step, the same one as long as its rule and its place are the same.
 * @param {PlanStep[]} steps
 */
function makeKeys(steps) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  return steps.map(({ rule, file, line, expression }) => {
    const key = JSON.stringify([rule, file, line, expression]);
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return `${key} ${count}`;
  });
}

/**
 * Gives an element one child per text; a child whose text is the same stays.
 * @param {HTMLElement} parent
 * @param {"li" | "p"} tag
 * @param {string[]} texts
 */
function arrangeTexts(parent, tag, texts) {
  const known = new Map([...parent.children].map((child) => [child.textContent, child]));
  arrange(parent, texts.map((text) => {
    const made = make(tag, "", ...makeProse(text));
    return known.get(made.textContent) ?? made;
  }));
}

/** @param {Unresolved} cause */
function describeUnresolved({ what, reason, place }) {
  return [place, what, reason].filter(Boolean).join(": ");
}
