// "Fix first": what to change, the most expensive first.
import { make, makeButton, makeProse, setShown } from "../core/dom.js";
import { formatCount, formatPlace, formatSeconds, oneLine } from "../core/format.js";
/** @import { Finding, Place } from "../core/page-types" */
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
    this.list = make("ol", "cdiag-finding-list");
    this.more = makeButton("cdiag-link", "", () => {
      this.showsAll = !this.showsAll;
      this.paint();
    });
    this.node = make("section", "cdiag-findings", make("h2", "", "Fix first"), this.list, this.more);
  }

  paint() {
    const { findings } = this.store;
    const shape = JSON.stringify([findings, this.showsAll, this.picked]);
    if (shape === this.shape) return;
    this.shape = shape;
    setShown(this.node, findings.length > 0);
    const shown = this.showsAll ? findings : findings.slice(0, FIRST);
    this.list.replaceChildren(...shown.map((finding, i) => this.makeItem(finding, i)));
    setShown(this.more, findings.length > FIRST);
    this.more.textContent = this.showsAll ? "show fewer" : `show all ${formatCount(findings.length)}`;
  }

  /** @param {string | null} title */
  setPicked(title) {
    this.picked = title;
    this.paint();
  }

  /**
   * @param {Finding} finding
   * @param {number} i
   */
  makeItem(finding, i) {
    const lost = finding.seconds_lost ? `${formatSeconds(finding.seconds_lost)} lost` : "";
    const severity = make("span", "cdiag-severity", finding.severity);
    severity.dataset.severity = finding.severity;
    const rank = make("span", "cdiag-rank", `${i + 1}`);
    const title = make("span", "cdiag-finding-title", finding.title);
    const top = make("span", "cdiag-finding-top", rank, severity, title, make("span", "cdiag-finding-lost", lost));
    const advice = make("span", "cdiag-advice", ...makeProse(finding.suggestion ?? ""));
    const button = makeButton("cdiag-finding", "", () => this.onPick(finding));
    button.dataset.rule = finding.rule;
    button.title = writeTooltip(finding);
    button.setAttribute("aria-pressed", String(this.picked === finding.title));
    button.append(top, advice);
    const event = finding.evidence.find((id) => this.store.table("recompiles").byId(id));
    return make("li", "", button, event === undefined ? null : this.makeExploreLink(finding, event));
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
function writeTooltip(finding) {
  const values = (finding.values ?? []).slice(0, VALUES).map((value) => oneLine(String(value), 60)).join(", ");
  return [formatPlace(finding.file, finding.line), values && `values: ${values}`].filter(Boolean).join("\n");
}
