// The functions, most seconds lost first. One tab stop; arrow keys move, Enter opens.
import { joinKnown, whenKnown } from "../core/blocks.js";
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount, formatFunction, formatPlace, formatSeconds, oneLine } from "../core/format.js";
import { splitQuery } from "../core/query.js";
/** @import { FunctionDocument } from "./document-types" */

/** @typedef {[id: number, document: FunctionDocument][]} Ranked */

const MOST_SHOWN = 200; // functions in the list; the search finds the others
const NAME_LIMIT = 60; // characters of a name

export class FunctionList {
  /** @param {(id: number) => void} onOpen runs on a click or Enter */
  constructor(onOpen) {
    this.onOpen = onOpen;
    /** @type {string[]} */
    this.terms = [];
    /** @type {WeakMap<FunctionDocument, string>} what the search looks in */
    this.searchTexts = new WeakMap();
    /** @type {WeakMap<FunctionDocument, {node: HTMLElement, most: number}>} its element, made for bars of at most `most` s */
    this.items = new WeakMap();
    /** @type {Ranked} */
    this.ranked = [];
    /** @type {Ranked} */
    this.shown = [];
    /** @type {number | undefined} id of the function whose page is open */
    this.open = undefined;
    /** @type {number | undefined} id of the function that holds the tab stop */
    this.active = undefined;
    this.box = make("div", "cdiag-functions");
    this.box.setAttribute("role", "listbox");
    this.box.setAttribute("aria-label", "functions by seconds lost");
    this.note = make("div", "cdiag-quiet");
    this.node = make("nav", "cdiag-function-list", this.note, this.box);
    this.box.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @param {string} text */
  setQuery(text) {
    this.terms = splitQuery(text);
    this.repaint();
  }

  /**
   * @param {Ranked} ranked
   * @param {number | undefined} open
   */
  paint(ranked, open) {
    if (ranked === this.ranked && open === this.open) return;
    this.ranked = ranked;
    this.open = open;
    this.repaint();
  }

  repaint() {
    const { terms, ranked } = this;
    const passed = terms.length ? ranked.filter(([, found]) => this.matches(found)) : ranked;
    this.shown = passed.slice(0, MOST_SHOWN);
    const most = Math.max(...ranked.map(([, found]) => found.lost_s ?? 0), 1e-9);
    const nodes = this.shown.map(([id, found]) => this.itemOf(id, found, most));
    const hadFocus = this.box.contains(document.activeElement);
    const { children } = this.box;
    const isSame = nodes.length === children.length && nodes.every((node, i) => node === children[i]);
    if (!isSame) this.box.replaceChildren(...nodes);
    if (!this.isShown(this.active)) this.active = this.isShown(this.open) ? this.open : this.shown[0]?.[0];
    this.mark();
    if (hadFocus && !isSame) this.focus();
    const cut = passed.length > this.shown.length
      ? `the first ${formatCount(MOST_SHOWN)} of ${formatAmount(passed.length, "function")}`
      : "";
    setText(this.note, passed.length || !ranked.length ? cut : "nothing matches");
    setShown(this.note, this.note.textContent !== "");
  }

  /** @param {number | undefined} id */
  isShown(id) {
    return this.shown.some(([known]) => known === id);
  }

  /** @param {FunctionDocument} found */
  matches(found) {
    let text = this.searchTexts.get(found);
    if (text === undefined) {
      const guards = found.guards.flatMap((guard) => [guard.name, ...guard.kinds]);
      const values = found.rows.flatMap((row) => [row.compile_id, row.expected, row.now]);
      text = [found.function, found.file, ...guards, ...values].filter(Boolean).join("\n").toLowerCase();
      this.searchTexts.set(found, text);
    }
    const searched = text;
    return this.terms.every((term) => searched.includes(term));
  }

  /**
   * @param {number} id
   * @param {FunctionDocument} found
   * @param {number} most
   */
  itemOf(id, found, most) {
    const known = this.items.get(found);
    if (known?.most === most) return known.node;
    const node = this.makeItem(id, found, most);
    this.items.set(found, { node, most });
    return node;
  }

  /**
   * @param {number} id
   * @param {FunctionDocument} found
   * @param {number} most
   */
  makeItem(id, found, most) {
    const lost = found.lost_s === null ? "" : formatSeconds(found.lost_s);
    const name = make("span", "cdiag-function-name", oneLine(formatFunction(found.function) ?? "?", NAME_LIMIT));
    const top = make("span", "cdiag-function-top", name, make("span", "cdiag-function-lost", lost));
    const bar = make("span", "cdiag-function-bar");
    bar.style.width = `${((found.lost_s ?? 0) / most) * 100}%`;
    const causes = new Set(found.rows.map((row) => found.guards[row.guard ?? -1]?.name).filter(Boolean));
    const facts = joinKnown(
      whenKnown(found.rank, (rank) => `rank ${rank}`),
      formatPlace(found.file, found.line),
      formatAmount(found.recompiles, "recompile"),
      [...causes].slice(0, 3).join(", "),
    );
    const node = makeButton("cdiag-function", "", () => this.onOpen(id));
    node.append(top, bar, make("span", "cdiag-function-sub", oneLine(facts, 160)));
    node.setAttribute("role", "option");
    node.dataset.function = String(id);
    return node;
  }

  mark() {
    this.shown.forEach(([id, found]) => {
      const node = this.items.get(found)?.node;
      if (!node) return;
      node.tabIndex = id === this.active ? 0 : -1;
      node.setAttribute("aria-selected", String(id === this.open));
    });
  }

  focus() {
    /** @type {HTMLElement | null} */
    const stop = this.box.querySelector('[tabindex="0"]');
    stop?.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const here = this.shown.findIndex(([id]) => id === this.active);
    const last = this.shown.length - 1;
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: last, PageDown: here + 10, PageUp: here - 10 };
    if (!(event.key in steps) || last < 0) return;
    this.active = this.shown[Math.max(0, Math.min(last, steps[event.key]))][0];
    this.mark();
    this.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
