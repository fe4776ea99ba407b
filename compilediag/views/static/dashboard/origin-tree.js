// Where compiles come from: the call stacks of all compiles as one tree, each compile where it was asked for.
import { make, makeButton, setShown } from "../core/dom.js";
import { counted, formatCount, formatSeconds } from "../core/format.js";
import { frameLine, runLines, runsOf } from "../core/call-stacks.js";

const MOST_CHIPS = 60; // compiles at one place that are shown
const MOST_BRANCHES = 100; // ways on from one place
/** Outcome -> sign and word. */
const OUTCOME_SIGNS = {
  ok: ["✓", "compiled"],
  failed: ["✕", "failed"],
  skipped: ["⤼", "runs eagerly"],
  empty: ["○", "nothing to compile"],
};

/** What became of a compile: {sign, word, kind}; one that began again has a sign of its own. */
export function outcomeOf(get) {
  const outcome = get("outcome") ?? "unknown";
  const [sign, word] = OUTCOME_SIGNS[outcome] ?? ["?", outcome];
  const again = (get("restart_reasons") ?? []).length;
  if (outcome !== "ok" || !again) return { sign, word, kind: outcome };
  return { sign: "↻", word: `compiled, begun again: ${counted(again, "reason", "reasons")}`, kind: "restarted" };
}

/** A node of the tree: the frame, the ways on from it, and the rows that end in it. */
function treeNode(frame) {
  return { frame, ways: new Map(), ends: [], count: 0, seconds: 0 };
}

/** The tree of `ends`, {frames, row, seconds} each. The same stack has the same keys in all processes. */
export function treeOf(ends) {
  const root = treeNode(null);
  for (const end of ends) {
    let at = root;
    at.count += 1;
    at.seconds += end.seconds;
    for (const frame of end.frames) {
      if (!at.ways.has(frame.key)) at.ways.set(frame.key, treeNode(frame));
      at = at.ways.get(frame.key);
      at.count += 1;
      at.seconds += end.seconds;
    }
    at.ends.push(end);
  }
  return root;
}

export class WhereView {
  /** `onOpen(table, row)` runs on a click on a compile. */
  constructor(store, stacks, onOpen) {
    this.store = store;
    this.stacks = stacks;
    this.onOpen = onOpen;
    this.closed = new Set(); // paths of branches that were closed
    this.box = make("div", "cdiag-where-box");
    this.note = make("div", "cdiag-note");
    const legend = [...Object.values(OUTCOME_SIGNS), ["↻", "begun again"]].map(([sign, word]) => `${sign} ${word}`).join("   ");
    this.node = make("div", "cdiag-where", this.note, make("p", "cdiag-dim cdiag-where-legend", legend), this.box);
    this.shape = null;
  }

  /** The compiles at `positions` whose stack is known; where a search runs also those in whose stack it finds all. */
  ends(table, positions, filter) {
    const passed = new Set(positions);
    const found = [];
    for (let i = 0; i < table.rows.length; i += 1) {
      const get = (name) => table.get(table.rows[i], name);
      const frames = get("stack") === null ? [] : this.stacks.of(get("stack"));
      if (!frames.length || !(passed.has(i) || filter.isFoundIn(() => textOf(frames)))) continue;
      found.push({ frames, table, row: table.rows[i], seconds: get("duration_s") ?? 0 });
    }
    return found;
  }

  show(positions, filter, note) {
    const [compiles, artifacts] = [this.store.table("compiles"), this.store.table("artifacts")];
    const shape = [compiles, compiles.version, artifacts.version, this.store.table("stacks").version, positions.length];
    const key = [...shape, filter.terms.join(" "), filter.evidence?.label, this.openId, note];
    if (this.shape && key.every((item, i) => item === this.shape[i])) return;
    this.shape = key;
    const others = filter.active ? [] : artifacts.rows.keys();
    const trees = [this.ends(compiles, positions, filter), this.ends(artifacts, others, filter)].map(treeOf);
    const [tree, outside] = trees;
    this.box.replaceChildren(...this.branch(tree, ""));
    if (outside.count) this.box.append(this.outside(outside));
    this.note.textContent = tree.count ? "" : (note ?? (filter.active ? "nothing matches" : "no call stack was recorded"));
    setShown(this.note, !tree.count);
  }

  /** What torch logs while nothing compiles. */
  outside(tree) {
    const list = make("div", "", ...this.branch(tree, "outside"));
    const summary = make("summary", "", `logged outside of any compile: ${counted(tree.count, "text", "texts")}`);
    return make("details", "cdiag-words", summary, list);
  }

  /** The lines behind a node, up to where the ways part; each way is a list item of its own. */
  branch(start, path) {
    const frames = [];
    let at = start;
    while (at.ways.size === 1 && !at.ends.length) {
      [at] = at.ways.values();
      frames.push(at.frame);
    }
    const lines = runsOf(frames).flatMap(runLines);
    if (at.ends.length) lines.push(this.chips(at.ends));
    if (!at.ways.size) return lines;
    const ways = [...at.ways].slice(0, MOST_BRANCHES);
    const items = ways.map(([key, way]) => this.way(way, `${path}/${key}`));
    const rest = at.ways.size - ways.length;
    if (rest > 0) items.push(make("li", "cdiag-dim", `and ${formatCount(rest)} more ways on`));
    return [...lines, make("ul", "cdiag-ways", ...items)];
  }

  way(way, path) {
    const list = make("div", "cdiag-way-on");
    const toggle = makeButton("cdiag-way", "", () => {
      if (!this.closed.delete(path)) this.closed.add(path);
      paint();
    });
    const summed = `${counted(way.count, "compile", "compiles")} · ${formatSeconds(way.seconds)}`;
    toggle.append(make("span", "cdiag-caret"), frameLine(way.frame), make("span", "cdiag-way-sum", summed));
    const paint = () => {
      const isOpen = !this.closed.has(path);
      toggle.setAttribute("aria-expanded", String(isOpen));
      if (isOpen && !list.childElementCount) list.append(...this.branch(way, path));
      setShown(list, isOpen);
    };
    paint();
    return make("li", "", toggle, list);
  }

  chips(ends) {
    const made = ends.slice(0, MOST_CHIPS).map((end) => this.chip(end));
    const rest = ends.length - made.length;
    return make("div", "cdiag-chips", ...made, rest > 0 ? make("span", "cdiag-dim", `and ${formatCount(rest)} more`) : null);
  }

  chip({ table, row, seconds }) {
    const get = (name) => table.get(row, name);
    if (table.name !== "compiles") return make("span", "cdiag-dim", get("name") ?? "text");
    const { sign, word, kind } = outcomeOf(get);
    const rank = get("rank") === null ? "" : `rank ${get("rank")} `;
    const chip = makeButton("cdiag-compile", "", () => this.onOpen(table, row));
    chip.append(make("span", "cdiag-sign", sign), ` ${rank}${get("compile_id") ?? "?"} `, make("span", "cdiag-dim", formatSeconds(seconds)));
    chip.title = `${get("function") ?? "?"}: ${word}${get("is_recompile") ? ", a recompile" : ""}`;
    chip.dataset.outcome = kind;
    chip.dataset.eventId = String(row[0]);
    chip.setAttribute("aria-label", `${chip.title}, compile ${get("compile_id") ?? "?"}`);
    chip.setAttribute("aria-pressed", String(row[0] === this.openId));
    return chip;
  }

  setOpen(id) {
    this.openId = id;
    const chips = this.box.querySelectorAll(".cdiag-compile");
    chips.forEach((chip) => chip.setAttribute("aria-pressed", String(chip.dataset.eventId === String(id))));
    if (this.shape) this.shape[this.shape.length - 2] = id;
  }
}

function textOf(frames) {
  return frames.map(({ file, line, name, code }) => `${file}:${line} ${name} ${code ?? ""}`).join("\n").toLowerCase();
}
