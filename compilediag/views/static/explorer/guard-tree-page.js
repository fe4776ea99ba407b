// The guard tree of an entry: searched, and compared with that of another entry. Each line is made once.
import { joinKnown, whenKnown } from "../core/blocks.js";
import { make, makeButton, makeSearch, setShown, setText } from "../core/dom.js";
import { formatAmount, formatCount, formatMicroseconds, formatSeconds } from "../core/format.js";
import { splitQuery } from "../core/query.js";
import { makeUpLink } from "./explorer-blocks.js";
import { diffNumbers } from "./sequence-diff.js";
/** @import { Place } from "../core/types" */
/** @import { FunctionContext, GuardTree, TreeLine } from "./document-types" */

/** @typedef {{line: TreeLine, sign: " " | "-" | "+", text: string}} ShownLine `text` is what the search looks in */

const MOST_LINES = 4000; // lines of one tree that are shown
const ABSENT = "The guard tree of this entry is not in this page.";

export class GuardTreePage {
  /** @param {Place} place */
  constructor(place) {
    this.place = place;
    this.query = "";
    this.showsAll = false;
    /** @type {ShownLine[]} */
    this.lines = [];
    /** @type {HTMLElement[]} */
    this.nodes = [];
    this.note = make("span", "cdiag-dim");
  }

  /** @param {Place} place */
  isOf(place) {
    return place.tree === this.place.tree && place.other === this.place.other && place.function === this.place.function;
  }

  /** @param {FunctionContext} context */
  make(context) {
    const { trees } = context.documents;
    const [tree, other] = [trees.get(this.place.tree), trees.get(this.place.other)];
    if (!tree) return [this.makeHead(context), make("p", "cdiag-quiet", ABSENT)];
    this.lines = mergeTrees(tree, other);
    this.nodes = this.lines.slice(0, MOST_LINES).map(makeLine);
    const box = make("div", "cdiag-tree", ...this.nodes);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "guard tree");
    const parts = [this.makeHead(context), this.makeBar(context, other !== null), box];
    this.filter();
    return parts;
  }

  /** @param {FunctionContext} context */
  makeHead(context) {
    const entry = context.found.entries.find((candidate) => candidate.tree === this.place.tree);
    const title = make("h2", "cdiag-page-title", `Guards of entry ${entry?.compile_id ?? "?"}`);
    const facts = joinKnown(
      whenKnown(entry?.guard_count, (count) => formatAmount(count, "guard")),
      whenKnown(entry?.guard_latency_us, (us) => `${formatMicroseconds(us)} for one check of all, measured once by torch`),
      whenKnown(entry?.seconds, (seconds) => `compiled in ${formatSeconds(seconds)}`),
    );
    return make("div", "cdiag-page-head", makeUpLink(context), title, make("p", "cdiag-dim", facts));
  }

  /**
   * @param {FunctionContext} context
   * @param {boolean} isComparison
   */
  makeBar(context, isComparison) {
    const search = makeSearch("search these guards", "search these guards", () => {
      this.query = search.value;
      this.filter();
    });
    search.value = this.query;
    search.dataset.key = "tree search";
    const toggle = isComparison ? this.makeToggle() : null;
    return make("div", "cdiag-tree-bar", this.makeChooser(context), toggle, search, this.note);
  }

  /** @param {FunctionContext} context */
  makeChooser({ found, documents, go, id }) {
    const select = make("select", "cdiag-select");
    select.dataset.key = "tree other";
    const known = found.entries.filter(({ tree }) => tree !== null && tree !== this.place.tree && documents.trees.get(tree));
    const options = [["", "nothing"], ...known.map((entry) => [String(entry.tree), `entry ${entry.compile_id}`])];
    select.append(...options.map(([value, text]) => {
      const option = make("option", "", text);
      option.value = value;
      return option;
    }));
    select.value = String(this.place.other ?? "");
    select.addEventListener("change", () => {
      go({ function: id, tree: this.place.tree, other: select.value ? Number(select.value) : undefined });
    });
    return make("label", "cdiag-choose", "compare with ", select);
  }

  makeToggle() {
    const label = () => (this.showsAll ? "only differences" : "all lines");
    const button = makeButton("cdiag-button", label(), () => {
      this.showsAll = !this.showsAll;
      setText(button, label());
      this.filter();
    });
    button.dataset.key = "tree all";
    return button;
  }

  /** Shows the lines that match, each with the managers above it. */
  filter() {
    const terms = splitQuery(this.query);
    const onlyChanges = this.place.other !== undefined && !this.showsAll;
    const shown = new Array(this.nodes.length).fill(false);
    /** @type {number[]} depth -> the last line there */
    const above = [];
    let hits = 0;
    this.nodes.forEach((_, i) => {
      const { line, sign, text } = this.lines[i];
      above.length = Math.min(above.length, line[0]);
      if (terms.every((term) => text.includes(term)) && (!onlyChanges || sign !== " ")) {
        hits += 1;
        shown[i] = true;
        above.forEach((position) => (shown[position] = true));
      }
      above[line[0]] = i;
    });
    this.nodes.forEach((node, i) => setShown(node, shown[i]));
    setText(this.note, this.describe(hits, terms.length > 0));
  }

  /**
   * @param {number} hits
   * @param {boolean} isSearch
   */
  describe(hits, isSearch) {
    const all = this.lines.length;
    const cut = all > this.nodes.length ? `; the first ${formatAmount(this.nodes.length, "line")} are shown` : "";
    if (isSearch) return `${formatAmount(hits, "line matches", "lines match")}${cut}`;
    if (this.place.other === undefined) return `${formatAmount(all, "line")}${cut}`;
    const differences = this.lines.filter(({ sign }) => sign !== " ").length;
    const differ = `${formatAmount(differences, "line differs", "lines differ")} of ${formatCount(all)}${cut}`;
    return `${differ} (− only in this entry, + only in the other)`;
  }
}

/**
 * The lines to show: of one tree, or of two with what differs between them.
 * @param {GuardTree} tree
 * @param {GuardTree | null} other
 * @returns {ShownLine[]}
 */
function mergeTrees(tree, other) {
  // Trees that share no lines are of different functions, and cannot be compared.
  const compared = other && other.lines === tree.lines ? other.numbers : tree.numbers;
  return diffNumbers(tree.numbers, compared).map(([sign, number]) => {
    const line = tree.lines[number];
    return { line, sign, text: line.filter((part) => typeof part === "string").join("\n").toLowerCase() };
  });
}

const SIGNS = { " ": "", "-": "− ", "+": "+ " };

/** @param {ShownLine} shown */
function makeLine({ line: [depth, what, detail, place, code], sign }) {
  const isManager = what.endsWith("Manager");
  const text = make(isManager ? "strong" : "code", "", detail || what);
  const role = /^(Key|Value)Manager: /.exec(what)?.[1].toLowerCase();
  const label = isManager ? role : detail && what;
  const kind = label ? make("span", "cdiag-tree-kind", `${label} `) : null;
  const source = place ? make("span", "cdiag-tree-place", place) : null;
  const node = make("div", "cdiag-tree-line", make("span", "cdiag-sign", SIGNS[sign]), kind, text, source);
  node.style.paddingLeft = `${Math.min(depth, 20) * 16}px`;
  node.dataset.sign = sign;
  node.title = [what, detail, place, code].filter(Boolean).join("\n");
  return node;
}
