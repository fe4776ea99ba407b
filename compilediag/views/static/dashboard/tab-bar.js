// The tabs above the table, with counts.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { tabName } from "./tab-columns.js";

export class Tabs {
  constructor(panel, onPick) {
    this.onPick = onPick;
    this.panel = panel;
    this.tabs = [];
    this.buttons = new Map(); // name of a tab -> button
    this.node = make("div", "cdiag-tabs");
    this.node.setAttribute("role", "tablist");
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    panel.setAttribute("role", "tabpanel");
  }

  /** Tabs of plug-ins come when their first rows do. */
  setTabs(tabs) {
    this.tabs = tabs;
    for (const tab of tabs) {
      if (this.buttons.has(tabName(tab))) continue;
      this.buttons.set(tabName(tab), this.button(tab, this.panel));
      this.node.append(this.buttons.get(tabName(tab)));
    }
  }

  button(tab, panel) {
    const button = makeButton("cdiag-tab", "", () => this.onPick(tab));
    button.append(make("span", "", tab.label), make("span", "cdiag-count"));
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", panel.id);
    button.dataset.tab = tabName(tab);
    return button;
  }

  /** `counts`: name of a tab -> {shown, all, blind, rare}. A rare one without rows has no tab. */
  paint(tabs, current, counts) {
    this.setTabs(tabs);
    this.buttons.forEach((button, name) => {
      const { shown, all, blind, rare } = counts.get(name);
      setShown(button, !rare || all > 0 || name === current);
      const count = shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
      setText(button.lastChild, blind && !all ? "not observed" : count);
      button.setAttribute("aria-selected", String(name === current));
      button.tabIndex = name === current ? 0 : -1;
    });
  }

  onKey(event) {
    const names = [...this.buttons.keys()].filter((name) => !this.buttons.get(name).hidden);
    const here = names.findIndex((name) => this.buttons.get(name) === event.target.closest("button"));
    const steps = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: names.length - 1 };
    if (!(event.key in steps)) return;
    const name = names[(steps[event.key] + names.length) % names.length];
    this.onPick(this.tabs.find((tab) => tabName(tab) === name));
    this.buttons.get(name).focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
