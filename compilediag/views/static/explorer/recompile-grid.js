// Recompiles x entries: a line a recompile, a column an entry, in a cell the guards that failed. Arrow keys move in it.
import { make, makeButton } from "../core/dom.js";
import { guardTag } from "./documents.js";
import { changeOf } from "./explorer-blocks.js";
import { formatClock, formatCount, formatSeconds, MISSING } from "../core/format.js";

const MOST_ROWS = 40; // recompiles shown at first, the latest
const MOST_TAGS = 4; // guards named in one cell

/** The grid of a function, the latest recompiles only at first. */
export function makeGrid(context) {
  const { found } = context;
  const frame = make("div", "cdiag-grid-frame");
  const show = (rows) => frame.replaceChildren(table(context, rows));
  const all = found.rows.map((row, at) => ({ row, at }));
  const foot = make("p", "cdiag-dim", make("span", "cdiag-closest-key", "◆"), " the closest entry, with the fewest failing guards");
  const node = make("div", "", frame, foot);
  frame.addEventListener("keydown", (event) => onGridKey(event, frame));
  show(all.slice(-MOST_ROWS));
  if (all.length > MOST_ROWS) {
    const more = makeButton("cdiag-link", `show all ${formatCount(all.length)} recompiles`, () => {
      show(all);
      more.remove();
    });
    more.dataset.key = "all recompiles";
    node.append(more);
  }
  if (found.recompiles > all.length) foot.append(` · the last ${all.length} of ${formatCount(found.recompiles)} recompiles`);
  return node;
}

function table(context, rows) {
  const { found } = context;
  const named = new Set(rows.flatMap(({ row }) => [...row.cells.map(([entry]) => entry), row.closest]));
  const columns = found.entries.map((entry, at) => at).filter((at) => named.has(at));
  const heads = columns.map((at) => {
    const head = make("th", "cdiag-entry-head", found.entries[at].compile_id);
    head.scope = "col";
    return head;
  });
  const lead = ["recompile", "when", "what changed", "lost"].map((text) => make("th", "", text));
  const body = rows.map(({ row, at }) => line(context, row, at, columns));
  const made = make("table", "cdiag-grid", make("thead", "", make("tr", "", ...lead, ...heads)), make("tbody", "", ...body));
  made.setAttribute("role", "grid");
  made.setAttribute("aria-label", "recompiles against entries");
  const first = made.querySelector("[data-cell]");
  if (first) first.tabIndex = 0;
  return made;
}

function line(context, row, at, columns) {
  const { found, go, id } = context;
  const guard = found.guards[row.guard];
  const change = makeButton("cdiag-cell-button", "", () => guard && go({ function: id, guard: guard.key }));
  change.append(row.guard === null ? "" : make("span", "cdiag-tagged", guardTag(row.guard)), changeOf(found, row));
  focusable(change, `${at} change`);
  const name = make("th", "", make("code", "", row.compile_id ?? MISSING));
  name.scope = "row";
  const lost = row.lost_s === null ? MISSING : formatSeconds(row.lost_s);
  const cells = new Map(row.cells);
  return make(
    "tr",
    "",
    name,
    make("td", "cdiag-dim", formatClock(row.time)),
    make("td", "cdiag-change-cell", change),
    make("td", "is-number", lost),
    ...columns.map((entry) => cell(context, row, at, entry, cells.get(entry))),
  );
}

function cell(context, row, at, entry, failed) {
  const { found, go, id } = context;
  const isClosest = row.closest === entry;
  if (!failed && !isClosest) return make("td", "cdiag-cell", "");
  const guards = failed ?? [];
  const tags = guards.slice(0, MOST_TAGS).map(([guard]) => make("span", "cdiag-tagged", guardTag(guard)));
  const rest = guards.length > MOST_TAGS ? [make("span", "cdiag-dim", `+${guards.length - MOST_TAGS}`)] : [];
  const first = guards[0]?.[0] ?? row.guard;
  const open = () => first !== null && go({ function: id, guard: found.guards[first].key });
  const button = makeButton("cdiag-cell-button", "", open);
  button.append(isClosest ? make("span", "cdiag-closest-mark", "◆") : "", ...tags, ...rest);
  const names = guards.map(([guard, isFirst, , need]) => {
    return `${found.guards[guard].name}${need === null ? "" : ` (needs ${need})`}${isFirst ? ", met first" : ""}`;
  });
  const told = `${row.compile_id} against ${found.entries[entry].compile_id}: ${names.join("; ") || "failed"}`;
  button.title = isClosest ? `${told} (the closest entry)` : told;
  button.setAttribute("aria-label", button.title);
  focusable(button, `${at} ${entry}`);
  return make("td", isClosest ? "cdiag-cell is-closest" : "cdiag-cell", button);
}

function focusable(button, key) {
  button.tabIndex = -1;
  button.dataset.cell = key;
  button.dataset.key = `cell ${key}`;
}

function onGridKey(event, frame) {
  const here = event.target.closest("[data-cell]");
  const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
  if (!here || !step) return;
  event.preventDefault();
  event.stopPropagation();
  const next = neighbour(here, step);
  if (!next) return;
  frame.querySelectorAll('[data-cell][tabindex="0"]').forEach((node) => (node.tabIndex = -1));
  next.tabIndex = 0;
  next.focus();
}

/** The next button of the line, or the one in the same column (or nearest to it) of the line above or below. */
function neighbour(here, [down, right]) {
  const [row, place] = [here.closest("tr"), here.closest("td").cellIndex];
  if (right) {
    const all = [...row.querySelectorAll("[data-cell]")];
    return all[all.indexOf(here) + right];
  }
  const other = down > 0 ? row.nextElementSibling : row.previousElementSibling;
  const all = [...(other?.querySelectorAll("[data-cell]") ?? [])];
  return all.sort((a, b) => Math.abs(a.closest("td").cellIndex - place) - Math.abs(b.closest("td").cellIndex - place))[0];
}
