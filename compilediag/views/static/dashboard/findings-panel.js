// The findings, those first that can save most. Those that are steps of the plan are folded, because the plan says what to do.
import { makeFindingMark } from "../core/blocks.js";
import { make, makeButton, makeLink, makeProse, setShown, setText } from "../core/dom.js";
import { setHint } from "../core/hints.js";
import { formatAmount, formatCount, formatPlace, formatSeconds, oneLine } from "../core/format.js";
import { Fold } from "./code-block.js";
import { ExampleFold } from "./example-view.js";
/** @import { Finding } from "../core/page-types" */
/** @import { Place } from "../core/types" */
/** @import { Store } from "../core/store.js" */

const FIRST = 3; // findings that are shown before "show all"
const VALUES = 20; // values that the tooltip lists

export class FindingsPanel {
  /**
   * @param {Store} store
   * @param {(finding: Finding) => void} onPick
   * @param {(place: Place) => void} onExplore leads to the guard behind a finding
   */
  constructor(store, onPick, onExplore) {
    this.store = store;
    this.onPick = onPick;
    this.onExplore = onExplore;
    this.showsAll = false;
    this.shape = "";
    /** @type {string | null} title of the selected finding */
    this.picked = null;
    /** @type {Map<number | string, ExampleFold>} first event of a finding -> its example, which stays open */
    this.examples = new Map();
    this.title = make("h2", "");
    this.list = make("ol", "cdiag-finding-list");
    this.planned = make("ol", "cdiag-finding-list");
    this.fold = new Fold(this.planned);
    this.more = makeButton("cdiag-link", "", () => {
      this.showsAll = !this.showsAll;
      this.paint();
    });
    this.node = make("section", "cdiag-findings", this.title, this.list, this.more, this.fold.node);
  }

  paint() {
    const { findings } = this.store;
    const shape = JSON.stringify([findings, this.store.torchDocs, this.showsAll, this.picked]);
    if (shape === this.shape) return;
    this.shape = shape;
    const planned = findings.filter(isInPlan);
    const others = findings.filter((finding) => !isInPlan(finding));
    setShown(this.node, findings.length > 0);
    setText(this.title, planned.length && others.length ? "Other findings" : "Findings");
    this.paintOthers(others);
    this.planned.replaceChildren(...planned.map((finding) => this.makeItem(finding, "")));
    setShown(this.fold.node, planned.length > 0);
    this.fold.setTitle(`${formatAmount(planned.length, "finding")} in the plan`);
  }

  /** @param {Finding[]} findings */
  paintOthers(findings) {
    this.list.replaceChildren(...findings.map((finding, i) => {
      const item = this.makeItem(finding, formatCount(i + 1));
      item.classList.toggle("is-later", i >= FIRST && !this.showsAll); // still printed
      return item;
    }));
    setShown(this.list, findings.length > 0);
    setShown(this.more, findings.length > FIRST);
    setText(this.more, this.showsAll ? "show fewer" : `show all ${formatCount(findings.length)}`);
  }

  /** @param {string | null} title */
  setPicked(title) {
    this.picked = title;
    this.paint();
  }

  /**
   * @param {Finding} finding
   * @param {string} rank
   */
  makeItem(finding, rank) {
    const title = make("span", "cdiag-finding-title", ...makeProse(finding.title));
    const head = rank ? make("span", "cdiag-rank", rank) : null;
    const top = make("span", "cdiag-finding-top", head, makeFindingMark(finding), title, describeSaving(finding));
    const button = makeButton("cdiag-finding", "", () => this.onPick(finding));
    button.dataset.rule = finding.rule;
    setHint(button, writeTooltip(finding));
    button.setAttribute("aria-pressed", String(this.picked === finding.title));
    button.append(top);
    const event = finding.evidence.find((id) => this.store.table("recompiles").byId(id));
    const explore = event === undefined ? null : this.makeExploreLink(finding, event);
    return make("li", "", button, explore, ...(isInPlan(finding) ? [] : this.makeAdvice(finding)));
  }

  /**
   * What to do about a finding that no step of the plan shows.
   * @param {Finding} finding
   */
  makeAdvice(finding) {
    const docs = this.store.torchDocs[finding.rule];
    const page = docs ? make("p", "cdiag-docs", "torch's documentation: ", makeLink(docs.url, docs.title)) : null;
    return [make("p", "cdiag-advice", ...makeProse(finding.suggestion ?? "")), page, this.getExample(finding).node];
  }

  /**
   * The example of a finding that no step of the plan shows.
   * @param {Finding} finding
   */
  getExample({ rule, evidence }) {
    const key = evidence[0] ?? rule;
    const example = this.examples.get(key) ?? new ExampleFold();
    example.update(this.store.examples[rule]);
    this.examples.set(key, example);
    return example;
  }

  /**
   * @param {Finding} finding
   * @param {number} event
   */
  makeExploreLink(finding, event) {
    const explore = makeButton("cdiag-link cdiag-explore-link", "explore ›", () => this.onExplore({ event }));
    explore.setAttribute("aria-label", `explore: ${finding.title}`);
    return explore;
  }
}

/** @param {Finding} finding */
function isInPlan({ step, is_cost }) {
  return step !== null || is_cost;
}

/** @param {Finding} finding */
function describeSaving({ seconds_recoverable }) {
  return seconds_recoverable ? make("span", "cdiag-finding-lost", `can save ${formatSeconds(seconds_recoverable)}`) : null;
}

/** @param {Finding} finding */
function writeTooltip(finding) {
  const values = (finding.values ?? []).slice(0, VALUES).map((value) => oneLine(String(value), 60)).join(", ");
  return [formatPlace(finding.file, finding.line), values && `values: ${values}`].filter(Boolean).join("\n");
}
