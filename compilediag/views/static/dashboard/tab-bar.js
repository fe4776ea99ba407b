// The tabs above the table, with counts.
import { make, makeButton, setShown, setText, targetOf } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { tabName } from "./columns.js";
/** @import { Tab } from "./tab-types" */

/** @typedef {{shown: number, all: number, isBlind: boolean}} TabCount `isBlind`: the table's sources do not work */

export class TabBar {
  /**
   * @param {HTMLElement} panel what the tabs control
   * @param {(tab: Tab) => void} onPick
   */
  constructor(panel, onPick) {
    this.onPick = onPick;
    this.panel = panel;
    /** @type {Tab[]} */
    this.tabs = [];
    /** @type {Map<string, {button: HTMLButtonElement, count: HTMLElement}>} name of a tab -> its button */
    this.buttons = new Map();
    this.node = make("div", "cdiag-tabs");
    this.node.setAttribute("role", "tablist");
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    panel.setAttribute("role", "tabpanel");
  }

  /**
   * Adds buttons for new tabs; those of plug-ins come with their first rows.
   * @param {Tab[]} tabs
   */
  setTabs(tabs) {
    this.tabs = tabs;
    for (const tab of tabs) {
      if (this.buttons.has(tabName(tab))) continue;
      const made = this.makeTab(tab);
      this.buttons.set(tabName(tab), made);
      this.node.append(made.button);
    }
  }

  /** @param {Tab} tab */
  makeTab(tab) {
    const button = makeButton("cdiag-tab", "", () => this.onPick(tab));
    const count = make("span", "cdiag-count");
    button.append(make("span", "", tab.label), count);
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", this.panel.id);
    button.dataset.tab = tabName(tab);
    return { button, count };
  }

  /**
   * Updates counts and selection. A rare tab is hidden while it has no rows.
   * @param {Tab[]} tabs
   * @param {string} current
   * @param {Map<string, TabCount>} counts by the name of the tab
   */
  paint(tabs, current, counts) {
    this.setTabs(tabs);
    for (const tab of tabs) {
      const name = tabName(tab);
      const [made, known] = [this.buttons.get(name), counts.get(name)];
      if (!made || !known) continue;
      const { shown, all, isBlind } = known;
      setShown(made.button, !tab.isRare || all > 0 || name === current);
      const count = shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
      setText(made.count, isBlind && !all ? "not collected" : count);
      made.button.setAttribute("aria-selected", String(name === current));
      made.button.tabIndex = name === current ? 0 : -1;
    }
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const shown = this.tabs.filter((tab) => !this.buttons.get(tabName(tab))?.button.hidden);
    const here = shown.findIndex((tab) => this.buttons.get(tabName(tab))?.button === targetOf(event).closest("button"));
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: shown.length - 1 };
    if (!(event.key in steps)) return;
    const tab = shown[(steps[event.key] + shown.length) % shown.length];
    this.onPick(tab);
    this.buttons.get(tabName(tab))?.button.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
