// One step of the plan: where, what varies, the change, why, and what it saves.
import { make, makeButton, makeLink, setProse, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount, oneLine } from "../core/format.js";
import { CodeBlock, Fold } from "./code-block.js";
import { ExampleFold } from "./example-view.js";
/** @import { Child } from "../core/dom.js" */
/** @import { Link, PlanStep } from "../core/page-types" */
/** @import { Place } from "../core/types" */
/** @import { Store } from "../core/store.js" */

/** @typedef {{label: string, evidence: number[]}} Picked what is selected: its name, and event ids */
/** @typedef {{pick: (picked: Picked) => void, explore: (place: Place) => void}} PlanActions */

const VALUES = 8; // values that are listed
const WIDEST = 60; // characters of one value
const LONGEST = 300; // characters of a line of code

export class StepView {
  /**
   * @param {Store} store
   * @param {PlanActions} actions
   */
  constructor(store, actions) {
    this.store = store;
    /** @type {Picked} */
    this.picked = { label: "", evidence: [] };
    this.step = 0;
    this.shape = "";
    this.number = make("span", "cdiag-step-number");
    this.place = make("code", "cdiag-step-place");
    this.code = make("code", "cdiag-step-code");
    this.what = make("p", "cdiag-step-what");
    this.advice = make("p", "");
    this.change = new CodeBlock("copy the change of this step");
    this.why = make("p", "cdiag-dim");
    this.saving = make("p", "cdiag-step-saving");
    this.ways = make("ul", "cdiag-reasons");
    this.others = new Fold(this.ways);
    this.docs = make("p", "cdiag-docs");
    this.example = new ExampleFold();
    this.show = makeButton("cdiag-link cdiag-step-evidence", "show recompiles", () => actions.pick(this.picked));
    this.guard = makeButton("cdiag-link cdiag-explore-link", "explore ›", () => actions.explore({ events: this.findOwnEvents() }));
    const links = make("p", "cdiag-step-links", this.show, this.guard);
    const top = make("div", "cdiag-step-top", this.place, this.code, links);
    const rest = [this.what, this.advice, this.change.node, this.saving, this.why, this.docs, this.others.node, this.example.node];
    this.node = make("li", "cdiag-step", this.number, make("div", "cdiag-step-body", top, ...rest));
  }

  /**
   * @param {PlanStep} step
   * @param {number} number from 1
   * @param {string | null} selected label of what is selected
   */
  update(step, number, selected) {
    this.example.update(this.store.examples[step.rule]);
    this.paintDocs(this.store.torchDocs[step.rule]);
    const shape = JSON.stringify([step, number, this.store.table("recompiles").version, selected]);
    if (shape === this.shape) return;
    this.shape = shape;
    this.step = number;
    this.picked = { label: nameStep(step, number), evidence: step.evidence };
    this.node.dataset.rule = step.rule;
    setText(this.number, formatCount(number));
    this.paintPlace(step);
    setProse(this.what, step.what, listValues(step));
    setProse(this.advice, step.can_be_applied ? "" : step.change);
    setShown(this.change.node, step.can_be_applied);
    this.change.show(step.can_be_applied ? step.change : "");
    setProse(this.why, step.why);
    setProse(this.saving, step.saving);
    this.paintWays(step.alternatives);
    this.paintLinks(step, number, selected);
  }

  /** The recompiles at which a guard of this step failed first, then the others at which one failed. */
  findOwnEvents() {
    const findings = this.store.findings.filter((finding) => finding.step === this.step);
    return [...findings.flatMap((finding) => finding.evidence), ...this.picked.evidence];
  }

  /** @param {PlanStep} step */
  paintPlace({ file, line, place, code }) {
    setShown(this.place, place !== "");
    setText(this.place, oneLine(place, LONGEST));
    this.place.title = [file, line].filter((part) => part !== null).join(":");
    setShown(this.code, Boolean(code));
    setText(this.code, oneLine((code ?? "").trim(), LONGEST));
  }

  /** @param {Link | undefined} page of torch's documentation about the cause */
  paintDocs(page) {
    setShown(this.docs, page !== undefined);
    if (page && !this.docs.childElementCount) this.docs.append("torch's documentation: ", makeLink(page.url, page.title));
  }

  /** @param {string[]} ways */
  paintWays(ways) {
    setShown(this.others.node, ways.length > 0);
    this.others.setTitle(formatAmount(ways.length, "other way", "other ways"));
    this.ways.replaceChildren(...ways.map((way) => make("li", "", make("code", "", way))));
  }

  /**
   * @param {PlanStep} step
   * @param {number} number
   * @param {string | null} selected
   */
  paintLinks({ evidence }, number, selected) {
    const table = this.store.table("recompiles");
    const isKnown = evidence.some((id) => table.byId(id) !== null);
    setShown(this.show, isKnown);
    setShown(this.guard, isKnown);
    this.show.setAttribute("aria-label", `show recompiles of step ${number}`);
    this.show.setAttribute("aria-pressed", String(selected === this.picked.label));
    this.guard.setAttribute("aria-label", `explore › guard of step ${number}`);
  }
}

/**
 * @param {PlanStep} step
 * @param {number} number
 */
function nameStep({ place }, number) {
  return place ? `step ${formatCount(number)}, ${oneLine(place, WIDEST)}` : `step ${formatCount(number)}`;
}

/**
 * The values of a step, unless its sentence has them.
 * @param {PlanStep} step
 * @returns {Child[]}
 */
function listValues({ values, value_count, what }) {
  const shown = values.slice(0, VALUES).map((value) => oneLine(value, WIDEST));
  if (shown.every((value) => what.includes(value))) return [];
  const rest = value_count > VALUES ? `, and ${formatCount(value_count - VALUES)} more` : "";
  return [": ", ...shown.flatMap((value, i) => [i ? ", " : "", make("code", "", value)]), rest];
}
