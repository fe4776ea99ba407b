// The line above the timeline: what its colors and signs mean, and what can be done with it.
import { formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";
import { PHASE_KINDS } from "./phases.js";
/** @import { TimelineModel } from "./model.js" */

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

/** @typedef {"isFolded" | "isOpen" | "hasTable" | "hasKeys"} Switch */

/** @param {{model: TimelineModel, flip: (name: Switch) => void, showAll: () => void}} props */
export function Head({ model, flip, showAll }) {
  const { state, lanes, idleSeconds } = model;
  const words = { ...PHASE_KINDS, ...SIGNS };
  /** @param {Switch} name @param {string} text */
  const toggle = (name, text) => html`<button type="button" class="cdiag-switch" aria-pressed=${state[name]} onClick=${() => flip(name)}>${text}</button>`;
  return html`<div class="cdiag-strip">
      <h2>Timeline</h2>
      <div class="cdiag-legend">${Object.entries(words).map(([name, [word, meaning]]) => lanes.signs.has(name)
        && html`<button type="button" key=${name} class="cdiag-term cdiag-key is-${name}" data-hint=${meaning}>${word}</button>`)}</div>
      <div class="cdiag-controls">
        ${state.zoom !== null && html`<button type="button" class="cdiag-switch cdiag-reset" onClick=${showAll}>Show everything</button>`}
        ${idleSeconds > 0 && toggle("isFolded", `Fold ${formatSeconds(idleSeconds)} without compiles`)}
        ${toggle("hasTable", "As a table")}
        <button type="button" class="cdiag-switch cdiag-ask" aria-expanded=${state.hasKeys} aria-label="Keys and gestures"
          data-hint="Keys and gestures" onClick=${() => flip("hasKeys")}>?</button>
      </div>
    </div>
    ${state.hasKeys && html`<dl class="cdiag-keys">${KEYS.map(([keys, effect]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${effect}</dd></div>`)}</dl>`}`;
}
