// Where compiles come from: the call stacks of all compiles as one tree, each compile at the end of its stack.
import { countHostFrames, makeFrame, makeRun, splitRuns } from "../core/call-stacks.js";
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount, formatFunction, formatSeconds, formatTimes, lookUp } from "../core/format.js";
/** @import { CallStacks, Frame } from "../core/call-stacks.js" */
/** @import { Cells, CompilesRow } from "../core/page-types" */
/** @import { Get } from "../core/types" */
/** @import { Store, Table } from "../core/store.js" */
/** @import { Filter } from "../dashboard/filter.js" */

/** @typedef {{frames: Frame[], table: Table<any>, row: Cells, seconds: number}} StackEnd a row, and the stack that it ends */
/** @typedef {{frame: Frame | null, branches: Map<string, TreeNode>, ends: StackEnd[], count: number, seconds: number}} TreeNode */

const MOST_CHIPS = 60; // compiles at one place that are shown
const MOST_BRANCHES = 100; // calls from one place that are shown
/** @type {Record<string, [sign: string, word: string]>} outcome -> its sign and word */
const OUTCOME_SIGNS = {
  ok: ["✓", "compiled"],
  failed: ["✕", "failed"],
  skipped: ["⤼", "runs eagerly"],
  empty: ["○", "nothing to compile"],
};
const RESTARTED = "↻";

/**
 * The outcome of a compile; one that was restarted has a sign of its own.
 * @param {Get<CompilesRow>} get
 */
function describeOutcome(get) {
  const outcome = get("outcome") ?? "unknown";
  const [sign, word] = lookUp(OUTCOME_SIGNS, outcome) ?? ["?", outcome];
  const restarts = (get("restart_reasons") ?? []).length;
  if (outcome !== "ok" || !restarts) return { sign, word, kind: outcome };
  return { sign: RESTARTED, word: `compiled, restarted ${formatTimes(restarts)}`, kind: "restarted" };
}

/**
 * @param {Frame | null} frame
 * @returns {TreeNode}
 */
function makeNode(frame) {
  return { frame, branches: new Map(), ends: [], count: 0, seconds: 0 };
}

/**
 * The tree of stacks. The same stack has the same keys in all processes.
 * @param {StackEnd[]} ends
 */
function buildTree(ends) {
  const root = makeNode(null);
  for (const end of ends) {
    const path = [root];
    for (const frame of end.frames) {
      const { branches } = path[path.length - 1];
      const next = branches.get(frame.key) ?? makeNode(frame);
      branches.set(frame.key, next);
      path.push(next);
    }
    for (const node of path) {
      node.count += 1;
      node.seconds += end.seconds;
    }
    path[path.length - 1].ends.push(end);
  }
  return root;
}

export class CallSiteTree {
  /**
   * @param {Store} store
   * @param {CallStacks} stacks
   * @param {(table: Table<any>, row: Cells) => void} onOpen runs on a click on a compile
   */
  constructor(store, stacks, onOpen) {
    this.store = store;
    this.stacks = stacks;
    this.onOpen = onOpen;
    /** @type {Set<string>} paths of branches that were closed */
    this.closed = new Set();
    /** @type {number | null} */
    this.openId = null;
    this.box = make("div", "cdiag-where-box");
    this.note = make("div", "cdiag-note");
    const signs = [...Object.values(OUTCOME_SIGNS), [RESTARTED, "restarted"]];
    const legend = signs.map(([sign, word]) => `${sign} ${word}`).join("   ");
    this.showsHost = false;
    this.hostFrames = 0; // outermost frames that are left out, at most, of one stack
    this.host = makeButton("cdiag-link", "", () => {
      this.showsHost = !this.showsHost;
      this.repaint();
    });
    const top = make("p", "cdiag-where-legend", make("span", "cdiag-dim", legend), this.host);
    this.node = make("div", "cdiag-where", this.note, top, this.box);
    this.repaint = () => {};
    /** @type {unknown[] | null} what was painted last */
    this.shape = null;
  }

  /**
   * The rows at `positions` whose stack is known; while a search runs, also those whose stack matches it.
   * @param {Table<any>} table of compiles or artifacts
   * @param {Iterable<number>} positions
   * @param {Filter} filter
   */
  findEnds(table, positions, filter) {
    const passed = new Set(positions);
    const searches = filter.terms.length > 0 && filter.evidence === null;
    /** @type {StackEnd[]} */
    const found = [];
    table.rows.forEach((row, i) => {
      const key = table.get(row, "stack");
      const whole = key === null ? [] : this.stacks.framesOf(key);
      const hidden = countHostFrames(whole);
      this.hostFrames = Math.max(this.hostFrames, hidden);
      const frames = this.showsHost ? whole : whole.slice(hidden);
      if (!frames.length || !(passed.has(i) || (searches && filter.matches(() => writeFrames(frames))))) return;
      const seconds = table.name === "compiles" ? this.store.table("compiles").get(row, "duration_s") : 0;
      found.push({ frames, table, row, seconds: seconds ?? 0 });
    });
    return found;
  }

  /**
   * @param {number[]} positions of the compiles that passed the filter
   * @param {Filter} filter
   * @param {string | null} note
   */
  show(positions, filter, note) {
    const [compiles, artifacts] = [this.store.table("compiles"), this.store.table("artifacts")];
    const versions = [compiles.version, artifacts.version, this.store.table("stacks").version];
    this.repaint = () => this.show(positions, filter, note);
    const shape = [this.showsHost, compiles, ...versions, positions.length, filter.terms.join(" "), filter.evidence?.label, note];
    if (this.shape && shape.every((item, i) => item === this.shape?.[i])) return;
    this.shape = shape;
    this.hostFrames = 0;
    const others = filter.isActive ? [] : artifacts.rows.keys();
    const tree = buildTree(this.findEnds(compiles, positions, filter));
    const outside = buildTree(this.findEnds(artifacts, others, filter));
    this.box.replaceChildren(...this.makeBranch(tree, ""));
    if (outside.count) this.box.append(this.makeOutside(outside));
    setShown(this.host, this.hostFrames > 0);
    const amount = formatAmount(this.hostFrames, "frame");
    setText(this.host, this.showsHost ? "hide the frames above your code" : `show ${amount} above your code`);
    const absent = note ?? (filter.isActive ? "nothing matches" : "no call stack was recorded");
    this.note.textContent = tree.count ? "" : absent;
    setShown(this.note, !tree.count);
  }

  /**
   * What torch logs while nothing compiles.
   * @param {TreeNode} tree
   */
  makeOutside(tree) {
    const list = make("div", "", ...this.makeBranch(tree, "outside"));
    const summary = make("summary", "", `logged outside any compile: ${formatAmount(tree.count, "artifact")}`);
    return make("details", "cdiag-words", summary, list);
  }

  /**
   * The frames behind a node, up to where the calls branch; each branch is a list item of its own.
   * @param {TreeNode} start
   * @param {string} path
   */
  makeBranch(start, path) {
    /** @type {Frame[]} */
    const frames = [];
    let at = start;
    while (at.branches.size === 1 && !at.ends.length) {
      [at] = at.branches.values();
      if (at.frame) frames.push(at.frame);
    }
    /** @type {HTMLElement[]} */
    const lines = splitRuns(frames).flatMap(makeRun);
    if (at.ends.length) lines.push(this.makeChips(at.ends));
    if (!at.branches.size) return lines;
    const shown = [...at.branches].slice(0, MOST_BRANCHES);
    const items = shown.map(([key, branch]) => this.makeFold(branch, `${path}/${key}`));
    const rest = at.branches.size - shown.length;
    if (rest > 0) items.push(make("li", "cdiag-dim", `and ${formatCount(rest)} more`));
    return [...lines, make("ul", "cdiag-ways", ...items)];
  }

  /**
   * A branch that can be closed.
   * @param {TreeNode} branch
   * @param {string} path
   */
  makeFold(branch, path) {
    const list = make("div", "cdiag-way-on");
    const toggle = makeButton("cdiag-way", "", () => {
      if (!this.closed.delete(path)) this.closed.add(path);
      paint();
    });
    const sum = `${formatAmount(branch.count, "compile")} · ${formatSeconds(branch.seconds)}`;
    const line = branch.frame ? makeFrame(branch.frame) : null;
    toggle.append(make("span", "cdiag-caret"), ...(line ? [line] : []), make("span", "cdiag-way-sum", sum));
    const paint = () => {
      const isOpen = !this.closed.has(path);
      toggle.setAttribute("aria-expanded", String(isOpen));
      if (isOpen && !list.childElementCount) list.append(...this.makeBranch(branch, path));
      setShown(list, isOpen);
    };
    paint();
    return make("li", "", toggle, list);
  }

  /** @param {StackEnd[]} ends */
  makeChips(ends) {
    const made = ends.slice(0, MOST_CHIPS).map((end) => this.makeChip(end));
    const rest = ends.length - made.length;
    return make("div", "cdiag-chips", ...made, rest > 0 ? make("span", "cdiag-dim", `and ${formatCount(rest)} more`) : null);
  }

  /** @param {StackEnd} end */
  makeChip({ table, row, seconds }) {
    if (table.name !== "compiles") return make("span", "cdiag-dim", table.get(row, "name") ?? "text");
    /** @type {Get<CompilesRow>} */
    const get = (name) => this.store.table("compiles").get(row, name);
    const { sign, word, kind } = describeOutcome(get);
    const rank = get("rank") === null ? "" : `rank ${get("rank")} `;
    const chip = makeButton("cdiag-compile", "", () => this.onOpen(table, row));
    const time = make("span", "cdiag-dim", formatSeconds(seconds));
    chip.append(make("span", "cdiag-sign", sign), ` ${rank}${get("compile_id") ?? "?"} `, time);
    chip.title = `${formatFunction(get("function")) ?? "?"}: ${word}${get("is_recompile") ? ", a recompile" : ""}`;
    chip.dataset.outcome = kind;
    chip.dataset.eventId = String(row[0]);
    chip.setAttribute("aria-label", `${chip.title}, compile ${get("compile_id") ?? "?"}`);
    chip.setAttribute("aria-pressed", String(row[0] === this.openId));
    return chip;
  }

  /** @param {number | null} id */
  setOpen(id) {
    this.openId = id;
    /** @type {NodeListOf<HTMLElement>} */
    const chips = this.box.querySelectorAll(".cdiag-compile");
    chips.forEach((chip) => chip.setAttribute("aria-pressed", String(chip.dataset.eventId === String(id))));
  }
}

/**
 * What a search finds in a stack.
 * @param {Frame[]} frames
 */
function writeFrames(frames) {
  return frames.map(({ file, line, name, code }) => `${file}:${line} ${name} ${code ?? ""}`).join("\n").toLowerCase();
}
