// The guard tree of an entry: searched, and compared with that of another entry.
import { joinKnown, SearchField, splitQuery, whenKnown } from "../core/blocks.js";
import { targetOf } from "../core/dom.js";
import { formatAmount, formatCount, formatMicroseconds, formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";
import { PageHead } from "./explorer-blocks.js";
import { useMemo, useState } from "../vendor/hooks.js";

const MOST_LINES = 4000; // lines of one tree that are shown
const ABSENT = "The guard tree of this entry is not in this page.";

/** @param {{context: FunctionContext, tree: number, other: number | undefined}} props event ids of the trees */
export function GuardTreePage({ context, tree: id, other: otherId }) {
  const { found, documents } = context;
  const [query, setQuery] = useState("");
  const [showsAll, setShowsAll] = useState(false);
  const [tree, other] = [documents.trees.get(id), documents.trees.get(otherId)];
  const isKnown = tree !== null;
  /** @returns {ShownLine[]} of one tree, or of two with what differs between them */
  const mergeTrees = () => {
    if (!tree) return [];
    // Trees that share no lines are of different functions, and cannot be compared.
    const compared = other && other.lines === tree.lines ? other.numbers : tree.numbers;
    return diffNumbers(tree.numbers, compared).map(([sign, number]) => {
      const line = tree.lines[number];
      return { line, sign, text: line.filter((part) => typeof part === "string").join("\n").toLowerCase() };
    });
  };
  const lines = useMemo(mergeTrees, [id, otherId, isKnown, other !== null]);
  const entry = found.entries.find((candidate) => candidate.tree === id);
  const facts = joinKnown(
    whenKnown(entry?.guard_count, (count) => formatAmount(count, "guard")),
    whenKnown(entry?.guard_check_us, (us) => `${formatMicroseconds(us)} for one check of all`),
    whenKnown(entry?.seconds, (seconds) => `compiled in ${formatSeconds(seconds)}`),
  );
  const head = html`<${PageHead} context=${context} title=${`Guards of entry ${entry?.compile_id ?? "?"}`}>${facts}<//>`;
  if (!isKnown) return html`${head}<p class="cdiag-quiet">${ABSENT}</p>`;
  const terms = splitQuery(query);
  const known = found.entries.filter((each) => each.tree !== null && each.tree !== id && documents.trees.get(each.tree));
  /** @param {Event} event */
  const choose = (event) => {
    const { value } = /** @type {HTMLSelectElement} */ (targetOf(event));
    context.go({ function: context.id, tree: id, other: value ? Number(value) : undefined });
  };
  const { shown, hits } = findShown(lines, terms, otherId !== undefined && !showsAll);
  return html`
    ${head}
    <div class="cdiag-tree-bar">
      <label class="cdiag-choose">compare with${" "}
        <select class="cdiag-select" value=${String(otherId ?? "")} onChange=${choose}>
          <option value="">nothing</option>
          ${known.map((each) => html`<option value=${String(each.tree)}>entry ${each.compile_id}</option>`)}
        </select>
      </label>
      ${other !== null && html`
        <button type="button" class="cdiag-button" onClick=${() => setShowsAll(!showsAll)}>${showsAll ? "only differences" : "all lines"}</button>`}
      <${SearchField} label="search these guards" value=${query} onInput=${setQuery} />
      <span class="cdiag-dim">${describe(lines, terms.length ? hits : null, otherId !== undefined)}</span>
    </div>
    <div class="cdiag-tree" tabindex="0" role="region" aria-label="guard tree">
      ${lines.slice(0, MOST_LINES).map((line, i) => shown[i] && html`<${Line} key=${i} shown=${line} />`)}
    </div>`;
}

/**
 * Which lines match, each with the managers above it.
 * @type {(lines: ShownLine[], terms: string[], onlyChanges: boolean) => {shown: boolean[], hits: number}}
 */
function findShown(lines, terms, onlyChanges) {
  const shown = new Array(lines.length).fill(false);
  /** @type {number[]} depth -> the last line there */
  const above = [];
  let hits = 0;
  lines.slice(0, MOST_LINES).forEach(({ line, sign, text }, i) => {
    above.length = Math.min(above.length, line[0]);
    if (terms.every((term) => text.includes(term)) && (!onlyChanges || sign !== " ")) {
      hits += 1;
      shown[i] = true;
      above.forEach((position) => (shown[position] = true));
    }
    above[line[0]] = i;
  });
  return { shown, hits };
}

/** @param {ShownLine[]} lines @param {number | null} hits null without a search @param {boolean} isComparison */
function describe(lines, hits, isComparison) {
  const all = lines.length;
  const cut = all > MOST_LINES ? `; the first ${formatAmount(MOST_LINES, "line")} are shown` : "";
  if (hits !== null) return `${formatAmount(hits, "line matches", "lines match")}${cut}`;
  if (!isComparison) return `${formatAmount(all, "line")}${cut}`;
  const differences = lines.filter(({ sign }) => sign !== " ").length;
  const differ = `${formatAmount(differences, "line differs", "lines differ")} of ${formatCount(all)}${cut}`;
  return `${differ} (− only in this entry, + only in the other)`;
}

const SIGNS = { " ": "", "-": "− ", "+": "+ " };

/** @param {{shown: ShownLine}} props */
function Line({ shown: { line: [depth, what, detail, place, code], sign } }) {
  const isManager = what.endsWith("Manager");
  const role = /^(Key|Value)Manager: /.exec(what)?.[1].toLowerCase();
  const label = isManager ? role : detail && what;
  const title = [what, detail, place, code].filter(Boolean).join("\n");
  return html`
    <div class="cdiag-tree-line" style=${{ paddingLeft: `${Math.min(depth, 20) * 16}px` }} data-sign=${sign} title=${title}>
      <span class="cdiag-sign">${SIGNS[sign]}</span>
      ${label && html`<span class="cdiag-tree-kind">${label} </span>`}
      ${isManager ? html`<strong>${detail || what}</strong>` : html`<code>${detail || what}</code>`}
      ${place && html`<span class="cdiag-tree-place">${place}</span>`}
    </div>`;
}

const MOST_STEPS = 16_000_000; // of the table that finds it; above that, the middles are shown one after the other

/** @type {(sign: DifferenceSign, numbers: number[]) => Difference[]} */
const mark = (sign, numbers) => numbers.map((number) => [sign, number]);

/** @type {DiffTrees} */
function diffNumbers(one, other) {
  let begin = 0;
  while (begin < one.length && begin < other.length && one[begin] === other[begin]) begin += 1;
  let end = 0;
  const most = Math.min(one.length, other.length) - begin;
  while (end < most && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const middle = diffMiddle(one.slice(begin, one.length - end), other.slice(begin, other.length - end));
  return [...mark(" ", one.slice(0, begin)), ...middle, ...mark(" ", one.slice(one.length - end))];
}

/** @type {DiffTrees} whose first lines differ, and whose last lines */
function diffMiddle(one, other) {
  if (one.length * other.length > MOST_STEPS) return [...mark("-", one), ...mark("+", other)];
  const wide = other.length + 1;
  const longest = new Uint16Array((one.length + 1) * wide); // [i, j]: of what is left from i and j on
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      const [down, right] = [longest[(i + 1) * wide + j], longest[i * wide + j + 1]];
      longest[i * wide + j] = one[i] === other[j] ? longest[(i + 1) * wide + j + 1] + 1 : Math.max(down, right);
    }
  }
  /** @type {Difference[]} */
  const found = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (one[i] === other[j]) {
      found.push([" ", one[i++]]);
      j += 1;
    } else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) found.push(["-", one[i++]]);
    else found.push(["+", other[j++]]);
  }
  return [...found, ...mark("-", one.slice(i)), ...mark("+", other.slice(j))];
}
