// The guard tree of an entry: searched, and held against that of another entry. Each line is made once.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { diffNumbers } from "./sequence-diff.js";
import { functionName } from "./explorer-blocks.js";
import { counted, formatCount, formatMicros, formatSeconds } from "../core/format.js";

const MOST_LINES = 4000; // lines of one tree that are shown

export class TreePage {
  constructor(place) {
    this.place = place;
    this.query = "";
    this.showsAll = false;
  }

  isOf(place) {
    return place.tree === this.place.tree && place.other === this.place.other && place.function === this.place.function;
  }

  make(context) {
    const { documents } = context;
    const [tree, other] = [documents.trees.get(this.place.tree), documents.trees.get(this.place.other)];
    if (!tree) return [this.head(context), make("p", "cdiag-quiet", "the guard tree of this entry is not in this page")];
    this.lines = lineUp(tree, other);
    this.differences = this.lines.filter(({ sign }) => sign !== " ").length;
    this.nodes = this.lines.slice(0, MOST_LINES).map((line) => lineNode(line));
    this.box = make("div", "cdiag-tree", ...this.nodes);
    this.box.tabIndex = 0;
    this.box.setAttribute("aria-label", "guard tree");
    this.note = make("span", "cdiag-dim");
    const node = [this.head(context), this.bar(context, other), this.box];
    this.filter();
    return node;
  }

  head(context) {
    const { found, go, id } = context;
    const up = makeButton("cdiag-link cdiag-up", `‹ ${functionName(found)}`, () => go({ function: id }));
    up.dataset.key = "up";
    const entry = found.entries.find((candidate) => candidate.tree === this.place.tree);
    const title = make("h2", "cdiag-page-title", `Guards of entry ${entry?.compile_id ?? "?"}`);
    const cost = entry?.guard_latency_us ?? null;
    const facts = [
      entry && entry.guard_count !== null ? counted(entry.guard_count, "guard", "guards") : null,
      cost === null ? null : `${formatMicros(cost)} µs for one check of all, as torch measured it once`,
      entry && entry.seconds !== null ? `made in ${formatSeconds(entry.seconds)}` : null,
    ];
    return make("div", "cdiag-page-head", up, title, make("p", "cdiag-dim", facts.filter(Boolean).join(" · ")));
  }

  bar(context, other) {
    const search = make("input", "cdiag-search");
    search.type = "search";
    search.placeholder = "search these guards";
    search.setAttribute("aria-label", "search these guards");
    search.value = this.query;
    search.dataset.key = "tree search";
    search.addEventListener("input", () => {
      this.query = search.value;
      this.filter();
    });
    const parts = [this.chooser(context), search, this.note];
    if (other) parts.splice(1, 0, this.toggle());
    return make("div", "cdiag-tree-bar", ...parts);
  }

  chooser({ found, documents, go, id }) {
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
    return make("label", "cdiag-choose", "held against ", select);
  }

  toggle() {
    const button = makeButton("cdiag-pause", "", () => {
      this.showsAll = !this.showsAll;
      setText(button, this.showsAll ? "only differences" : "all lines");
      this.filter();
    });
    button.dataset.key = "tree all";
    setText(button, this.showsAll ? "only differences" : "all lines");
    return button;
  }

  /** Shows the lines that match, each with the managers that it is under. */
  filter() {
    const terms = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    const onlyChanges = this.place.other !== undefined && !this.showsAll;
    const shown = new Array(this.nodes.length).fill(false);
    const above = [];
    let hits = 0;
    this.nodes.forEach((node, i) => {
      const { line, sign, hay } = this.lines[i];
      above.length = Math.min(above.length, line[0]);
      const passes = terms.every((term) => hay.includes(term)) && (!onlyChanges || sign !== " ");
      if (passes) {
        hits += 1;
        shown[i] = true;
        above.forEach((position) => position !== undefined && (shown[position] = true));
      }
      above[line[0]] = i;
    });
    this.nodes.forEach((node, i) => setShown(node, shown[i]));
    setText(this.note, this.tell(hits, terms.length > 0));
  }

  tell(hits, isSearch) {
    const all = this.lines.length;
    const cut = all > this.nodes.length ? `; the first ${formatCount(this.nodes.length)} lines are shown` : "";
    if (isSearch) return `${counted(hits, "line matches", "lines match")}${cut}`;
    if (this.place.other === undefined) return `${counted(all, "line", "lines")}${cut}`;
    const differ = `${counted(this.differences, "line differs", "lines differ")} of ${formatCount(all)}${cut}`;
    return `${differ} (− only here, + only in the other)`;
  }
}

/** The lines to show, [{line, sign, hay}]: of one tree, or of two with what differs between them. */
function lineUp(tree, other) {
  const marked = other && other.lines === tree.lines
    ? diffNumbers(tree.numbers, other.numbers)
    : tree.numbers.map((number) => [" ", number]);
  return marked.map(([sign, number]) => {
    const line = tree.lines[number];
    return { line, sign, hay: line.filter((part) => typeof part === "string").join("\n").toLowerCase() };
  });
}

function lineNode({ line: [depth, what, told, place, code], sign }) {
  const isManager = what.endsWith("Manager");
  const mark = sign === " " ? "" : sign === "-" ? "− " : "+ ";
  const text = make(isManager ? "strong" : "code", "", told || what);
  const role = /^(Key|Value)Manager: /.exec(what)?.[1].toLowerCase();
  const label = isManager ? role : told && what;
  const kind = label ? make("span", "cdiag-tree-kind", `${label} `) : null;
  const node = make("div", "cdiag-tree-line", make("span", "cdiag-sign", mark), kind, text);
  if (place) node.append(make("span", "cdiag-tree-place", place));
  node.style.paddingLeft = `${Math.min(depth, 20) * 16}px`;
  node.dataset.sign = sign;
  node.title = [what, told, place, code].filter(Boolean).join("\n");
  return node;
}
