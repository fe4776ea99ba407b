// The tabs above the table, with counts. Those with nothing to say are in a menu behind them.
import { make, makeButton, setShown, setText, targetOf } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { explain } from "../core/glossary.js";
import { setHint } from "../core/hints.js";
import { Menu } from "../core/menu.js";
import { tabName } from "./columns.js";
/** @import { Command } from "../core/menu.js" */
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
    this.list = make("div", "cdiag-tabs");
    this.list.setAttribute("role", "tablist");
    this.list.setAttribute("aria-label", "tables");
    this.list.addEventListener("keydown", (event) => this.onKey(event));
    this.more = new Menu("more", "cdiag-tab-more");
    this.node = make("div", "cdiag-tab-strip", this.list, this.more.node);
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
      this.list.append(made.button);
    }
  }

  /** @param {Tab} tab */
  makeTab(tab) {
    const button = makeButton("cdiag-tab", "", () => this.onPick(tab));
    const count = make("span", "cdiag-count");
    button.append(make("span", "", tab.label), count);
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", this.panel.id);
    setHint(button, explain(tabName(tab)));
    button.id = `${this.panel.id}-${tabName(tab)}`;
    button.dataset.tab = tabName(tab);
    return { button, count };
  }

  /**
   * Updates counts and selection. A tab is shown while it has rows, and the main ones always.
   * @param {Tab[]} tabs
   * @param {string} current
   * @param {Map<string, TabCount>} counts by the name of the tab
   */
  paint(tabs, current, counts) {
    this.setTabs(tabs);
    /** @type {Command[]} */
    const others = [];
    for (const tab of tabs) {
      const name = tabName(tab);
      const [made, known] = [this.buttons.get(name), counts.get(name)];
      if (!made || !known) continue;
      const { shown, all, isBlind } = known;
      const isShown = tab.isMain || name === current || (all > 0 && !tab.isAside);
      setShown(made.button, isShown);
      const number = shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
      const count = isBlind && !all ? "not collected" : number;
      setText(made.count, count);
      if (!isShown) others.push({ key: name, label: tab.label, note: count, run: () => this.pickOther(tab) });
      made.button.setAttribute("aria-selected", String(name === current));
      made.button.tabIndex = name === current ? 0 : -1;
      if (name === current) this.panel.setAttribute("aria-labelledby", made.button.id);
    }
    this.more.setCommands(others);
  }

  /**
   * Shows a tab of the menu, which gets the focus.
   * @param {Tab} tab
   */
  pickOther(tab) {
    this.onPick(tab);
    this.buttons.get(tabName(tab))?.button.focus();
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
