// The functions, most seconds lost first. One tab stop; arrow keys move, Enter opens.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { counted, formatCount, formatPlace, formatSeconds, oneLine } from "../core/format.js";

const MOST_SHOWN = 200; // functions in the list; the search finds the others
const NAME_LIMIT = 60; // characters of a name

export class RankedList {
  /** `onOpen(id)` runs on a click or Enter. */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.terms = [];
    this.hay = new WeakMap(); // document -> what the search looks in
    this.items = new WeakMap(); // document -> its element
    this.ranked = [];
    this.active = null; // id of the function that holds the tab stop
    this.box = make("div", "cdiag-functions");
    this.box.setAttribute("role", "listbox");
    this.box.setAttribute("aria-label", "functions by seconds lost");
    this.note = make("div", "cdiag-quiet");
    this.node = make("nav", "cdiag-function-list", this.note, this.box);
    this.box.addEventListener("keydown", (event) => this.onKey(event));
  }

  setQuery(text) {
    this.terms = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.repaint();
  }

  paint(ranked, open) {
    const same = ranked === this.ranked && open === this.open;
    if (same) return;
    this.ranked = ranked;
    this.open = open;
    this.repaint();
  }

  repaint() {
    const { terms, ranked } = this;
    const passed = terms.length ? ranked.filter(([, found]) => this.passes(found)) : ranked;
    this.shown = passed.slice(0, MOST_SHOWN);
    const most = Math.max(...ranked.map(([, found]) => found.lost_s ?? 0), 1e-9);
    const focused = this.box.contains(document.activeElement);
    const nodes = this.shown.map(([id, found]) => this.item(id, found, most));
    const { children } = this.box;
    const same = nodes.length === children.length && nodes.every((node, i) => node === children[i]);
    if (!same) this.box.replaceChildren(...nodes);
    if (!this.shown.some(([id]) => id === this.active)) this.active = this.open;
    if (!this.shown.some(([id]) => id === this.active)) this.active = this.shown[0]?.[0] ?? null;
    this.mark();
    if (focused && !same) this.focus();
    const rest = passed.length - this.shown.length;
    const told = rest ? `the first ${formatCount(MOST_SHOWN)} of ${formatCount(passed.length)} functions` : "";
    setText(this.note, passed.length || !ranked.length ? told : "nothing matches");
    setShown(this.note, this.note.textContent !== "");
  }

  passes(found) {
    let text = this.hay.get(found);
    if (text === undefined) {
      const guards = found.guards.flatMap((guard) => [guard.name, ...guard.kinds]);
      const values = found.rows.flatMap((row) => [row.compile_id, row.expected, row.now]);
      text = [found.function, found.file, ...guards, ...values].filter(Boolean).join("\n").toLowerCase();
      this.hay.set(found, text);
    }
    return this.terms.every((term) => text.includes(term));
  }

  item(id, found, most) {
    const known = this.items.get(found);
    if (known?.most === most) return known.node;
    const lost = found.lost_s === null ? "" : formatSeconds(found.lost_s);
    const name = make("span", "cdiag-function-name", oneLine(found.function ?? "?", NAME_LIMIT));
    const top = make("span", "cdiag-function-top", name, make("span", "cdiag-function-lost", lost));
    const bar = make("span", "cdiag-function-bar");
    bar.style.width = `${((found.lost_s ?? 0) / most) * 100}%`;
    const times = counted(found.recompiles, "recompile", "recompiles");
    const causes = new Set(found.rows.map((row) => found.guards[row.guard]?.name).filter(Boolean));
    const rank = found.rank === null ? null : `rank ${found.rank}`;
    const said = [rank, formatPlace(found.file, found.line), times, [...causes].slice(0, 3).join(", ")];
    const sub = make("span", "cdiag-function-sub", oneLine(said.filter(Boolean).join(" · "), 160));
    const node = makeButton("cdiag-function", "", () => this.onOpen(id));
    node.append(top, bar, sub);
    node.setAttribute("role", "option");
    node.dataset.function = String(id);
    this.items.set(found, { node, most });
    return node;
  }

  mark() {
    [...this.box.children].forEach((node, i) => {
      const id = this.shown[i][0];
      node.tabIndex = id === this.active ? 0 : -1;
      node.setAttribute("aria-selected", String(id === this.open));
    });
  }

  focus() {
    this.box.querySelector('[tabindex="0"]')?.focus();
  }

  onKey(event) {
    const here = this.shown.findIndex(([id]) => id === this.active);
    const last = this.shown.length - 1;
    const steps = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: last, PageDown: here + 10, PageUp: here - 10 };
    if (!(event.key in steps) || last < 0) return;
    this.active = this.shown[Math.max(0, Math.min(last, steps[event.key]))][0];
    this.mark();
    this.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}
