// Where compiles come from: the call stacks of all compiles as one tree, each compile at the end of its stack.
import { Words } from "../core/blocks.js";
import { countHostFrames, FrameLine, Frames } from "../core/call-stacks.js";
import { formatAmount, formatCount, formatFunction, formatSeconds, formatTimes, lookUp } from "../core/format.js";
import { html } from "../core/view.js";
import { useMemo, useState } from "../vendor/hooks.js";

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
const LEGEND = [...Object.values(OUTCOME_SIGNS), [RESTARTED, "restarted"]].map((sign) => sign.join(" ")).join("   ");

/** @type {(ends: StackEnd[]) => TreeNode} the tree of stacks; the same stack has the same keys in all processes */
function buildTree(ends) {
  /** @param {StackFrame | null} frame @returns {TreeNode} */
  const makeNode = (frame) => ({ frame, branches: new Map(), ends: [], count: 0, seconds: 0 });
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

/**
 * The rows of compiles or artifacts at `positions` whose stack is known; while a search runs, also those whose stack
 * matches it.
 * @type {(table: Table<any>, positions: Iterable<number>, props: CallSitesProps, showsHost: boolean) => FoundEnds}
 */
function findEnds(table, positions, { filter, stacks }, showsHost) {
  const passed = new Set(positions);
  const searches = filter.terms.length > 0 && filter.picked === null;
  /** @type {StackEnd[]} */
  const ends = [];
  let hostFrames = 0;
  table.rows.forEach((row, i) => {
    const key = table.get(row, "stack");
    const whole = key === null ? [] : stacks.framesOf(key);
    const hidden = countHostFrames(whole);
    hostFrames = Math.max(hostFrames, hidden);
    const frames = showsHost ? whole : whole.slice(hidden);
    const write = () => frames.map(({ file, line, name, code }) => `${file}:${line} ${name} ${code ?? ""}`).join("\n").toLowerCase();
    if (!frames.length || !(passed.has(i) || (searches && filter.matches(write)))) return;
    ends.push({ frames, table, row, seconds: (table.name === "compiles" && table.get(row, "duration_s")) || 0 });
  });
  return { ends, hostFrames };
}

/** @type {Component<CallSitesProps>} It is made again only if what it shows has changed. */
export function CallSites(props) {
  const { positions, filter, note, openId, onOpen } = props;
  const { store } = filter;
  const [showsHost, setShowsHost] = useState(false);
  const tables = ["compiles", "artifacts", "stacks"].map((name) => store.table(name));
  const search = [positions.length, filter.terms.join(" "), filter.picked?.label];
  const { compiles, others } = useMemo(() => ({
    compiles: findEnds(tables[0], positions, props, showsHost),
    others: findEnds(tables[1], filter.isActive ? [] : tables[1].rows.keys(), props, showsHost),
  }), [showsHost, tables[0], ...tables.map(({ version }) => version), ...search]);
  return useMemo(() => {
    const [tree, outside] = [buildTree(compiles.ends), buildTree(others.ends)];
    const hostFrames = Math.max(compiles.hostFrames, others.hostFrames);
    const hidden = `show ${formatAmount(hostFrames, "frame")} above your code`;
    /** @param {StackEnd} end */
    const drawEnd = (end) => html`<${End} end=${end} store=${store} openId=${openId} onOpen=${onOpen} />`;
    return html`
      <div class="cdiag-where">
        ${!tree.count && html`<div class="cdiag-note">${note ?? (filter.isActive ? "nothing matches" : "no call stack was recorded")}</div>`}
        <p class="cdiag-where-legend">
          <span class="cdiag-dim">${LEGEND}</span>
          ${hostFrames > 0 && html`
            <button type="button" class="cdiag-link" onClick=${() => setShowsHost(!showsHost)}>${showsHost ? "hide the frames above your code" : hidden}</button>`}
        </p>
        <div class="cdiag-where-box">
          <${Branch} start=${tree} drawEnd=${drawEnd} />
          ${outside.count > 0 && html`
            <${Words} heading=${`logged outside any compile: ${formatAmount(outside.count, "artifact")}`}>
              <div><${Branch} start=${outside} drawEnd=${drawEnd} /></div>
            <//>`}
        </div>
      </div>`;
  }, [compiles, note, openId]);
}

/**
 * The frames behind a node, up to where the calls branch; each branch is a list item of its own.
 * @param {{start: TreeNode, drawEnd: (end: StackEnd) => ComponentChild}} props
 */
function Branch({ start, drawEnd }) {
  /** @type {StackFrame[]} */
  const frames = [];
  let at = start;
  while (at.branches.size === 1 && !at.ends.length) {
    [at] = at.branches.values();
    if (at.frame) frames.push(at.frame);
  }
  const [ways, ends] = [[...at.branches], at.ends];
  const [isClosed, close] = useState(/** @type {Record<string, boolean>} key of a branch -> whether it is closed */ ({}));
  /** @param {number} rest how many are not shown */
  const drawRest = (rest) => rest > 0 && html`<span class="cdiag-dim">and ${formatCount(rest)} more</span>`;
  return html`
    <${Frames} frames=${frames} />
    ${ends.length > 0 && html`
      <div class="cdiag-chips">${ends.slice(0, MOST_CHIPS).map(drawEnd)}${drawRest(ends.length - MOST_CHIPS)}</div>`}
    ${ways.length > 0 && html`
      <ul class="cdiag-branches">
        ${ways.slice(0, MOST_BRANCHES).map(([key, branch]) => html`
          <li key=${key}>
            <button type="button" class="cdiag-way" aria-expanded=${String(!isClosed[key])} onClick=${() => close((known) => ({ ...known, [key]: !known[key] }))}>
              <span class="cdiag-caret"></span>${branch.frame && html`<${FrameLine} frame=${branch.frame} />`}<span class="cdiag-way-sum">${
                `${formatAmount(branch.count, "compile")} · ${formatSeconds(branch.seconds)}`}</span>
            </button>
            <div class="cdiag-way-on" hidden=${Boolean(isClosed[key])}><${Branch} start=${branch} drawEnd=${drawEnd} /></div>
          </li>`)}
        ${ways.length > MOST_BRANCHES && html`<li>${drawRest(ways.length - MOST_BRANCHES)}</li>`}
      </ul>`}`;
}

/**
 * A compile at the end of its stack, as a button that opens it; the name of anything else.
 * @param {{end: StackEnd, store: Store, openId: number | null, onOpen: OpenRow}} props
 */
function End({ end: { table, row, seconds }, store, openId, onOpen }) {
  if (table.name !== "compiles") return html`<span class="cdiag-dim">${table.get(row, "name") ?? "text"}</span>`;
  const get = store.table("compiles").reader(row);
  const outcome = get("outcome") ?? "unknown";
  const restarts = outcome === "ok" ? (get("restart_reasons") ?? []).length : 0;
  const [sign, word] = restarts ? [RESTARTED, `compiled, restarted ${formatTimes(restarts)}`] : lookUp(OUTCOME_SIGNS, outcome) ?? ["?", outcome];
  const title = `${formatFunction(get("function")) ?? "?"}: ${word}${get("is_recompile") ? ", a recompile" : ""}`;
  const id = get("compile_id") ?? "?";
  return html`
    <button type="button" class="cdiag-compile" title=${title} data-outcome=${restarts ? "restarted" : outcome} data-event-id=${row[0]}
      aria-label=${`${title}, compile ${id}`} aria-pressed=${String(row[0] === openId)} onClick=${() => onOpen(table, row)}>
      <span class="cdiag-sign">${sign}</span> ${get("rank") === null ? "" : `rank ${get("rank")} `}${id} <span class="cdiag-dim">${formatSeconds(seconds)}</span>
    </button>`;
}
