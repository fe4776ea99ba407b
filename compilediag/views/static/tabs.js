// The tabs above the table, with counts.
import { make, makeButton, setText } from "./dom.js";
import { formatCount } from "./format.js";
import { TABS } from "./views.js";

export class Tabs {
  constructor(panel, onPick) {
    this.onPick = onPick;
    this.buttons = new Map(TABS.map((tab) => [tab.table, this.button(tab, panel)]));
    this.node = make("div", "cdiag-tabs", ...this.buttons.values());
    this.node.setAttribute("role", "tablist");
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    panel.setAttribute("role", "tabpanel");
  }

  button(tab, panel) {
    const button = makeButton("cdiag-tab", "", () => this.onPick(tab));
    button.append(make("span", "", tab.label), make("span", "cdiag-count"));
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", panel.id);
    button.dataset.tab = tab.table;
    return button;
  }

  /** `counts`: table -> {shown, all, blind}. */
  paint(current, counts) {
    this.buttons.forEach((button, name) => {
      const { shown, all, blind } = counts.get(name);
      const count = shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
      setText(button.lastChild, blind && !all ? "not observed" : count);
      button.setAttribute("aria-selected", String(name === current));
      button.tabIndex = name === current ? 0 : -1;
    });
  }

  onKey(event) {
    const names = [...this.buttons.keys()];
    const here = names.findIndex((name) => this.buttons.get(name) === event.target.closest("button"));
    const steps = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: names.length - 1 };
    if (!(event.key in steps)) return;
    const name = names[(steps[event.key] + names.length) % names.length];
    this.onPick(TABS.find((tab) => tab.table === name));
    this.buttons.get(name).focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
