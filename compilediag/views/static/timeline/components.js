// What is around the lanes: the line above them, the tooltip, and the table that is their text alternative.
import { At } from "../core/blocks.js";
import { joinChange } from "../core/compiles.js";
import { formatAmount, formatPlace, formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";
import { nameCompile, PHASE_KINDS, phaseLabel, sumPhases, writeTime } from "./phases.js";

/** @type {Record<string, [word: string, meaning: string]>} */
const SIGNS = {
  recompile: ["recompile", "A function that was compiled before is compiled again, because a guard of each earlier version failed."],
  failed: ["failed", "The compile ended with an error; the function runs without torch.compile, or the error is raised."],
  hit: ["cache hit", "The compiled graph was in a cache of an earlier run or compile, so it was loaded and not built."],
  miss: ["cache miss", "The compiled graph was not in the cache, so it was built."],
  break: ["graph break", "Dynamo could not trace this line; the function continues in Python and is compiled again after it."],
  capture: ["CUDA graph captured", "The launches of all kernels were recorded once, to be replayed as a whole."],
  recapture: ["CUDA graph re-recorded", "A recorded CUDA graph could not be replayed, so it was recorded again."],
  skip: ["CUDA graphs skipped", "The function runs without CUDA graphs; the mark says why."],
};
const MODIFIER = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
/** @type {[keys: string, effect: string][]} */
const KEYS = [
  ["← → ↑ ↓", "from compile to compile"],
  ["Home End", "first and last compile"],
  ["Enter", "details"],
  ["Shift + Enter", "line in the notebook"],
  ["+ − 0", "zoom, show everything"],
  ["Shift + arrows", "move"],
  ["Esc", "back to the view before"],
  [`${MODIFIER} + wheel, pinch`, "zoom"],
  ["drag", "move"],
  ["Shift + drag", "zoom to a stretch"],
  ["double-click", "fit a bar"],
];

/** @param {{model: TimelineModel, flip: (name: Switch) => void, showAll: () => void}} props */
export function Head({ model, flip, showAll }) {
  const { lanes, idleSeconds, hasKeys } = model;
  const words = { ...PHASE_KINDS, ...SIGNS };
  /** @param {Switch} name @param {string} text */
  const toggle = (name, text) => html`<button type="button" class="cdiag-switch" aria-pressed=${model[name]} onClick=${() => flip(name)}>${text}</button>`;
  return html`<div class="cdiag-strip">
      <h2>Timeline</h2>
      <div class="cdiag-legend">${Object.entries(words).map(([name, [word, meaning]]) => lanes.signs.has(name)
        && html`<button type="button" key=${name} class="cdiag-term cdiag-key is-${name}" data-hint=${meaning}>${word}</button>`)}</div>
      <div class="cdiag-controls">
        ${model.zoom !== null && html`<button type="button" class="cdiag-switch cdiag-reset" onClick=${showAll}>Show everything</button>`}
        ${idleSeconds > 0 && toggle("isFolded", `Fold ${formatSeconds(idleSeconds)} without compiles`)}
        ${toggle("hasTable", "As a table")}
        <button type="button" class="cdiag-switch cdiag-ask" aria-expanded=${hasKeys} aria-label="Keys and gestures"
          data-hint="Keys and gestures" onClick=${() => flip("hasKeys")}>?</button>
      </div>
    </div>
    ${hasKeys && html`<dl class="cdiag-keys">${KEYS.map(([keys, effect]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${effect}</dd></div>`)}</dl>`}`;
}

const MOST_MARKS = 4;
const MOST_OTHERS = 2; // values that changed as well
const MOST_PHASES = 3;

/** @param {{model: TimelineModel, hit: Hit}} props */
export function Tip({ model, hit }) {
  if (hit.isName) {
    const { name, file, line, inRank, bars, seconds } = hit.lane;
    const again = bars.filter((bar) => bar.isRecompile).length;
    return html`<p class="cdiag-tip-head">${name}${inRank && ` on ${inRank}`}</p>
      ${file && html`<p class="cdiag-dim">${formatPlace(file, line)}</p>`}
      <p class="cdiag-dim">${formatAmount(bars.length, "compile")}, ${formatSeconds(seconds)}${again > 0 && `, of them ${formatAmount(again, "recompile")}`}</p>`;
  }
  const marks = hit.marks.slice(0, MOST_MARKS).map(({ label, saved }) => html`
    <p class="cdiag-dim">${label}${saved !== null && `, saved ${formatSeconds(saved)}`}</p>`);
  return html`${hit.bar && html`<${Bar} model=${model} bar=${hit.bar} />`}${marks}`;
}

/** @type {(bar: CompileBar, id: string | null | undefined) => string} `step 0/1`, `step 0/1 on rank 2` */
function nameBar({ lane }, id) {
  return [lane.name, id, lane.inRank && `on ${lane.inRank}`].filter(Boolean).join(" ");
}

/** @param {{model: TimelineModel, bar: CompileBar}} props */
function Bar({ model, bar }) {
  const { store, lanes } = model;
  const { compiles } = lanes;
  const seconds = (Math.min(bar.end, model.now) - bar.start) / 1e3;
  const get = bar.row && store.table("compiles").reader(bar.row);
  const found = bar.isRecompile ? compiles.findRecompile(bar.key) : null;
  const name = nameBar(bar, get?.("compile_id") ?? bar.flight?.compile_id);
  const at = html`at <${At} ms=${bar.start} start=${lanes.extent.from} />`;
  if (bar.flight) {
    const phase = bar.flight.phase ? phaseLabel(bar.flight.phase) : "starting";
    return html`${found && html`<p class="cdiag-tip-why">${compiles.describe(bar.key)}</p>`}
      <p class="cdiag-tip-head">${name}</p>
      <p>${found ? "recompiling" : "compiling"} now, ${at}: <b>${formatSeconds(seconds)}</b></p>
      <p class="cdiag-dim">${phase}</p>`;
  }
  const times = sumPhases(lanes.compiles, bar.key, found ? null : bar); // of a recompile with its backward
  if (!found) {
    return html`<p class="cdiag-tip-head">${name}</p>
      <p>${get ? nameCompile(get) : ""}, ${at}: <b>${formatSeconds(seconds)}</b></p>
      <${Phases} times=${times} />`;
  }
  const own = compiles.recompiles.reader(found.row);
  const others = compiles.listOthers(found.row).map(joinChange);
  const more = others.length - MOST_OTHERS;
  const steps = compiles.listSteps(found.row[0]);
  return html`<p class="cdiag-tip-why">${compiles.describe(bar.key)}</p>
    <p>Recompile ${found.number} of ${compiles.recompilesByKey.size}, ${at}: <b>${formatSeconds(own("lost_s") ?? seconds)} lost</b></p>
    ${others.length > 0 && html`<p class="cdiag-dim">also changed: <code>${others.slice(0, MOST_OTHERS).join(", ")}</code>
      ${more > 0 ? ` and ${more} more` : ""}</p>`}
    <${Phases} times=${times} />
    <p class="cdiag-dim">${name} · ${get ? nameCompile(get) : ""}</p>
    <p class="cdiag-tip-step">${steps.map((step) => html`<span class="cdiag-step-number">${step}</span>`)}
      ${steps.length === 1 && `Step ${steps[0]} of the plan removes it · `}${steps.length > 1
        && `Steps ${steps.slice(0, -1).join(", ")} and ${steps.at(-1)} of the plan remove it · `}<kbd>Enter</kbd> details</p>`;
}

/** @param {{times: OwnTime[]}} props */
function Phases({ times }) {
  if (!times.length) return null;
  const inOrder = Object.keys(PHASE_KINDS).flatMap((kind) => times.filter((time) => time.kind === kind));
  return html`<div class="cdiag-tip-bar">${inOrder.map(({ kind, seconds }) => html`<i class="is-${kind}" style=${{ flexGrow: 1000 * seconds }}></i>`)}</div>
    <p class="cdiag-tip-phases">${times.slice(0, MOST_PHASES).map((time) => html`<span class="cdiag-key is-${time.kind}">${writeTime(time)}</span>`)}</p>`;
}

const MOST_ROWS = 100; // the costliest are listed
const HEADS = ["function", "start", "duration", "what it was", "time in phases"];

/** @typedef {{model: TimelineModel, onPick: (bar: CompileBar) => void}} TableProps */

/** @param {TableProps} props */
export function TimelineTable({ model, onPick }) {
  const { from, to } = model.view.range;
  const all = model.lanes.list.flatMap(({ bars }) => bars.filter((bar) => bar.row && bar.end >= from && bar.start <= to));
  const listed = all.sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, MOST_ROWS).sort((a, b) => a.start - b.start);
  const what = `${formatAmount(all.length, "compile")} in view, in order of time`;
  const shown = model.hasTable ? { name: "", role: "region", stop: 0 } : { name: " is-unseen" }; // it scrolls
  return html`<div class=${`cdiag-timeline-table${shown.name}`} aria-label="timeline as a table" role=${shown.role} tabindex=${shown.stop}>
    <table>
      <caption>${all.length > MOST_ROWS ? `${what}: the ${MOST_ROWS} that took longest` : what}</caption>
      <thead><tr>${HEADS.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
      <tbody>${listed.map((bar) => html`<${Row} key=${bar.row?.[0]} model=${model} bar=${bar} onPick=${onPick} />`)}</tbody>
    </table>
  </div>`;
}

/** @param {TableProps & {bar: CompileBar}} props */
function Row({ model, bar, onPick }) {
  const { store, lanes, hasTable } = model;
  if (!bar.row) return null;
  const get = store.table("compiles").reader(bar.row);
  const change = bar.isRecompile && lanes.compiles.describe(bar.key);
  const title = nameBar(bar, get("compile_id"));
  // A button that nobody sees must not get the focus.
  return html`<tr>
    <th scope="row">${hasTable ? html`<button type="button" class="cdiag-link" onClick=${() => onPick(bar)}>${title}</button>` : title}</th>
    <td><${At} ms=${bar.start} start=${lanes.extent.from} /></td>
    <td>${formatSeconds(get("duration_s"))}</td>
    <td>${nameCompile(get)}${change && `, ${change}`}</td>
    <td>${sumPhases(lanes.compiles, bar.key, bar).map(writeTime).join(", ")}</td>
  </tr>`;
}
