// A button that opens a list of commands: arrow keys move, Enter runs, Escape closes and gives the focus back.
import { make, makeButton, setShown, setText, targetOf } from "./dom.js";
import { Icon } from "./icon.js";
import { draw, html } from "./view.js";

/** @typedef {{key: string, label: string, note?: string, run: () => void}} Command `key` names it, `note` is shown after it */

export class Menu {
  /**
   * @param {string} label
   * @param {string} className
   */
  constructor(label, className) {
    this.label = make("span", "", label);
    this.button = makeButton(className, "", () => this.toggle());
    const caret = make("span", "");
    draw(caret, html`<${Icon} name="down" />`);
    this.button.append(this.label, caret);
    this.button.setAttribute("aria-haspopup", "menu");
    this.list = make("div", "cdiag-menu-list");
    this.list.setAttribute("role", "menu");
    this.list.setAttribute("aria-label", label);
    this.node = make("div", "cdiag-menu", this.button, this.list);
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    this.node.addEventListener("focusout", (event) => this.onBlur(event));
    /** @type {Map<string, {node: HTMLButtonElement, label: HTMLElement, note: HTMLElement, run: () => void}>} */
    this.items = new Map();
    this.setOpen(false);
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** @param {Command[]} commands */
  setCommands(commands) {
    const keys = new Set(commands.map(({ key }) => key));
    for (const [key, { node }] of this.items) {
      if (keys.has(key)) continue;
      node.remove();
      this.items.delete(key);
    }
    for (const { key, label, note, run } of commands) {
      const item = this.items.get(key) ?? this.makeItem(key);
      item.run = run;
      setText(item.label, label);
      setText(item.note, note ?? "");
    }
    setShown(this.node, commands.length > 0);
  }

  /** @param {string} key */
  makeItem(key) {
    const [label, note] = [make("span", ""), make("span", "cdiag-count")];
    const node = makeButton("cdiag-menu-item", "", () => this.choose(key));
    node.append(label, " ", note);
    node.setAttribute("role", "menuitem");
    node.tabIndex = -1;
    node.dataset.command = key;
    this.list.append(node);
    const item = { node, label, note, run: () => {} };
    this.items.set(key, item);
    return item;
  }

  /** @param {string} key */
  choose(key) {
    this.setOpen(false);
    this.button.focus({ preventScroll: true });
    this.items.get(key)?.run();
  }

  toggle() {
    this.setOpen(!this.isOpen);
    if (this.isOpen) this.focusItem(0);
  }

  /** @param {boolean} isOpen */
  setOpen(isOpen) {
    setShown(this.list, isOpen);
    this.button.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) return;
    const [own, around] = [this.node, this.node.closest(".cdiag")].map((node) => node?.getBoundingClientRect());
    const isOnTheRight = own && around && own.left + own.right > around.left + around.right;
    this.list.classList.toggle("is-right", Boolean(isOnTheRight)); // so that it stays inside of the page
  }

  /** @param {number} index */
  focusItem(index) {
    const nodes = [...this.items.values()].map(({ node }) => node);
    nodes[(index + nodes.length) % nodes.length]?.focus();
  }

  /** @param {FocusEvent} event */
  onBlur(event) {
    const next = event.relatedTarget;
    if (!(next instanceof Node) || !this.node.contains(next)) this.setOpen(false);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!this.isOpen) return;
    const here = [...this.items.values()].findIndex(({ node }) => node === targetOf(event).closest("button"));
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: -1 };
    if (event.key in steps) this.focusItem(steps[event.key]);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  close() {
    this.setOpen(false);
    this.button.focus({ preventScroll: true });
  }
}
