// The plan: what to change, in which order, and what that saves. It keeps focus, selection and open folds when it changes.
import { arrange, make, makeButton, setSentences, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount } from "../core/format.js";
import { CodeBlock, Fold } from "./code-block.js";
import { FixView } from "./fix-view.js";
import { CostView } from "./plan-cost.js";
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
    this.specs = make("div", "");
    /** @type {Map<string, SpecView>} */
    this.specViews = new Map();
    this.unresolved = make("ul", "cdiag-reasons cdiag-unresolved");
    this.unresolvedFold = new Fold(this.unresolved);
    this.costs = make("ul", "cdiag-costs");
    this.costsFold = new Fold(this.costs);
    /** @type {Map<string, CostView>} */
    this.costViews = new Map();
    this.notes = make("div", "cdiag-plan-notes");
    this.fix = new FixView(store);
    const top = make("div", "cdiag-plan-top", make("div", "", this.title, this.headline), this.fix.button);
    const head = make("div", "cdiag-plan-head", top, this.outcome);
    const rest = [this.together, this.patchFold.node, this.specs, this.unresolvedFold.node, this.costsFold.node, this.notes];
    this.prediction = new Fold(this.steps, this.more, ...rest);
    this.prediction.node.className = "cdiag-prediction";
    this.node = make("section", "cdiag-plan", head, this.fix.node, this.prediction.node);
    this.node.setAttribute("aria-label", "plan");
  }

  paint() {
    const { plan } = this.store;
    const { version } = this.store.table("recompiles");
    const shape = [plan, this.store.isLive(), this.showsAll, this.picked, version, ...this.fix.shape];
    if (shape.every((part, i) => part === this.shape[i])) return;
    this.shape = shape;
    setShown(this.node, plan !== null);
    if (plan) this.paintPlan(plan);
  }

  /** @param {Plan} plan */
  paintPlan(plan) {
    const isProven = plan.searched?.holds ?? false;
    setText(this.title, isProven ? "Proven change" : this.store.isLive() ? "Plan so far" : "Plan");
    setText(this.headline, plan.headline);
    setShown(this.headline, !isProven); // what was proven has a headline of its own
    this.node.classList.toggle("is-empty", plan.steps.length === 0);
    this.paintOutcome(plan.tried);
    this.fix.paint(plan);
    this.paintPrediction(isProven, plan.headline);
    // The code of a single step is the whole block, which also says where it belongs.
    const isSingle = plan.steps.length === 1 && plan.steps[0].can_be_applied;
    this.paintSteps(isSingle ? [{ ...plan.steps[0], change: plan.code }] : plan.steps);
    setShown(this.together, plan.code !== "" && !isSingle);
    this.code.show(plan.code);
    setShown(this.patchFold.node, Boolean(plan.patch));
    this.patch.show(plan.patch ?? "");
    this.paintSpecs(plan);
    this.paintUnresolved(plan);
    this.paintCosts(plan);
    setSentences(this.notes, "p", plan.notes);
  }

  /** @param {Outcome | null} tried */
  paintOutcome(tried) {
    setShown(this.outcome, tried !== null);
    if (!tried) return;
    setText(this.outcome, tried.text);
    this.outcome.classList.toggle("is-good", tried.holds);
  }

  /**
   * Once a change is proven, what the plan predicts is folded.
   * @param {boolean} isProven
   * @param {string} headline
   */
  paintPrediction(isProven, headline) {
    setShown(this.prediction.summary, isProven);
    if (isProven) this.prediction.suggest(false);
    else this.prediction.node.open = true;
    this.prediction.setTitle(isProven ? `What the plan predicts: ${headline}` : "");
  }

  /** @param {PlanStep[]} steps */
  paintSteps(steps) {
    const keys = makeKeys(steps.map(({ rule, file, line, expression }) => [rule, file, line, expression]));
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
   * Specifications that can replace steps.
   * @param {Plan} plan
   */
  paintSpecs({ specs }) {
    const keys = makeKeys(specs.map(({ title }) => [title]));
    this.specViews = new Map(keys.map((key) => [key, this.specViews.get(key) ?? new SpecView()]));
    arrange(this.specs, specs.map((spec, i) => {
      const view = /** @type {SpecView} */ (this.specViews.get(keys[i]));
      view.code.show(spec.code);
      view.fold.setTitle(spec.title.replace(/:$/, ""));
      return view.fold.node;
    }));
    setShown(this.specs, specs.length > 0);
  }

  /**
   * The reasons are folded below steps. Without any step they are what the reader wants, so they are open.
   * @param {Plan} plan
   */
  paintUnresolved({ unresolved, steps }) {
    this.unresolvedFold.suggest(!steps.length);
    setShown(this.unresolvedFold.node, unresolved.length > 0);
    this.unresolvedFold.setTitle(`${formatAmount(unresolved.length, "cause")} not resolved, and why`);
    setSentences(this.unresolved, "li", unresolved.map(describeUnresolved));
  }

  /**
   * What costs compile time without any recompile: open if there is nothing else to change.
   * @param {Plan} plan
   */
  paintCosts({ costs, steps }) {
    this.costsFold.suggest(!steps.length);
    setShown(this.costsFold.node, costs.length > 0);
    this.costsFold.setTitle("Where compile time goes");
    const keys = makeKeys(costs.map(({ kind, place, function: name }) => [kind, place, name]));
    this.costViews = new Map(keys.map((key) => [key, this.costViews.get(key) ?? new CostView()]));
    arrange(this.costs, costs.map((cost, i) => {
      const view = /** @type {CostView} */ (this.costViews.get(keys[i]));
      view.update(cost);
      return view.node;
    }));
  }

  /** @param {string | null} label */
  setPicked(label) {
    this.picked = label;
    this.paint();
  }
}

/** A specification below its title, folded. */
class SpecView {
  constructor() {
    this.code = new CodeBlock("copy this specification");
    this.fold = new Fold(this.code.node);
  }
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

/** @param {Unresolved} cause */
function describeUnresolved({ what, reason, place }) {
  return [place, what, reason].filter(Boolean).join(": ");
}
