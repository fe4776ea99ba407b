// FIX FIRST: what to change, the dearest first.
import { make, makeButton, prose, setShown } from "../core/dom.js";
import { formatPlace, formatSeconds, oneLine } from "../core/format.js";

const FIRST = 3; // findings that are shown before "show all"
const VALUES = 20; // values seen that the tooltip lists

export class Findings {
  /** `onPick(finding)` runs when one is chosen, `onExplore(place)` leads to the guard behind it. */
  constructor(store, onPick, onExplore) {
    this.store = store;
    this.onPick = onPick;
    this.onExplore = onExplore;
    this.showsAll = false;
    this.shape = null;
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
    this.list.replaceChildren(...shown.map((finding, i) => this.item(finding, i)));
    setShown(this.more, findings.length > FIRST);
    this.more.textContent = this.showsAll ? "show fewer" : `show all ${findings.length}`;
  }

  setPicked(title) {
    this.picked = title;
    this.paint();
  }

  item(finding, i) {
    const lost = finding.seconds_lost ? `${formatSeconds(finding.seconds_lost)} lost` : "";
    const severity = make("span", "cdiag-severity", finding.severity);
    severity.dataset.severity = finding.severity;
    const rank = make("span", "cdiag-rank", `${i + 1}`);
    const title = make("span", "cdiag-finding-title", finding.title);
    const top = make("span", "cdiag-finding-top", rank, severity, title, make("span", "cdiag-finding-lost", lost));
    const advice = make("span", "cdiag-advice", ...prose(finding.suggestion ?? ""));
    const button = makeButton("cdiag-finding", "", () => this.onPick(finding));
    button.dataset.rule = finding.rule;
    button.title = this.whereAndWhat(finding);
    button.setAttribute("aria-pressed", String(this.picked === finding.title));
    button.append(top, advice);
    const event = finding.evidence.find((id) => this.store.table("recompiles").byId(id));
    const explore = makeButton("cdiag-link cdiag-explore-link", "explore ›", () => this.onExplore({ event }));
    explore.setAttribute("aria-label", `explore: ${finding.title}`);
    return make("li", "", button, event === undefined ? null : explore);
  }

  whereAndWhat(finding) {
    const values = (finding.values ?? []).slice(0, VALUES).map((value) => oneLine(String(value), 60)).join(", ");
    return [formatPlace(finding.file, finding.line), values && `seen: ${values}`].filter(Boolean).join("\n");
  }
}
