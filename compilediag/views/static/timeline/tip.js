// The tooltip of the timeline: what is under the pointer, or the compile that the keys have reached.
import { formatSeconds } from "../core/format.js";
import { joinChange } from "../core/recompiles.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
import { PHASE_KINDS, phaseLabel } from "./phases.js";
import { describeLane, describeMark, nameCompile, sumPhases, writeTime } from "./words.js";
/** @import { CompileBar } from "./lanes.js" */
/** @import { Hit, TimelineModel } from "./model.js" */
/** @import { OwnTime } from "./words.js" */

const MOST_MARKS = 4;
const MOST_OTHERS = 2; // values that changed as well
const MOST_PHASES = 3;

/** @param {{model: TimelineModel, hit: Hit}} props */
export function Tip({ model, hit }) {
  if (hit.isName) return describeLane(hit.lane).map((text, i) => html`<p class=${i ? "cdiag-dim" : "cdiag-tip-head"}>${text}</p>`);
  const marks = hit.marks.slice(0, MOST_MARKS).map((mark) => html`<p class="cdiag-dim">${describeMark(mark)}</p>`);
  return html`${hit.bar && html`<${Bar} model=${model} bar=${hit.bar} />`}${marks}`;
}

/** @param {{model: TimelineModel, bar: CompileBar}} props */
function Bar({ model, bar }) {
  const { store, lanes } = model;
  const { recompiles } = lanes;
  const seconds = (Math.min(bar.end, model.now) - bar.start) / 1e3;
  const get = bar.row && store.table("compiles").reader(bar.row);
  const found = bar.isRecompile ? recompiles.find(bar.key) : null;
  const name = `${bar.lane.name} ${get?.("compile_id") ?? bar.flight?.compile_id ?? ""}`.trim();
  const at = html`at <${At} ms=${bar.start} start=${lanes.extent.from} />`;
  if (bar.flight) {
    const phase = bar.flight.phase ? phaseLabel(bar.flight.phase) : "starting";
    return html`${found && html`<p class="cdiag-tip-why">${recompiles.describe(bar.key)}</p>`}
      <p class="cdiag-tip-head">${name}</p>
      <p>${found ? "recompiling" : "compiling"} now, ${at}: <b>${formatSeconds(seconds)}</b></p>
      <p class="cdiag-dim">${phase}</p>`;
  }
  const times = sumPhases(store, lanes.groups, bar.key, found ? null : bar); // of a recompile with its backward
  if (!found) {
    return html`<p class="cdiag-tip-head">${name}</p>
      <p>${get ? nameCompile(get) : ""}, ${at}: <b>${formatSeconds(seconds)}</b></p>
      <${Phases} times=${times} />`;
  }
  const own = recompiles.table.reader(found.row);
  const others = recompiles.listOthers(found.row).map(joinChange);
  const more = others.length - MOST_OTHERS;
  const steps = recompiles.listSteps(found.row[0]);
  return html`<p class="cdiag-tip-why">${recompiles.describe(bar.key)}</p>
    <p>Recompile ${found.number} of ${recompiles.byKey.size}, ${at}: <b>${formatSeconds(own("lost_s") ?? seconds)} lost</b></p>
    ${others.length > 0 && html`<p class="cdiag-dim">also changed: <code>${others.slice(0, MOST_OTHERS).join(", ")}</code>
      ${more > 0 ? ` and ${more} more` : ""}</p>`}
    <${Phases} times=${times} />
    <p class="cdiag-dim">${name} · ${get ? nameCompile(get) : ""}</p>
    <p class="cdiag-tip-step">${steps.map((step) => html`<span class="cdiag-step-number">${step}</span>`)}
      ${writeSteps(steps)}<kbd>Enter</kbd> details</p>`;
}

/** @param {number[]} steps */
function writeSteps(steps) {
  if (!steps.length) return "";
  return steps.length === 1 ? `Step ${steps[0]} of the plan removes it · ` : `Steps ${steps.slice(0, -1).join(", ")} and ${steps.at(-1)} of the plan remove it · `;
}

/**
 * All phases as a bar, the longest of them in words.
 * @param {{times: OwnTime[]}} props
 */
function Phases({ times }) {
  if (!times.length) return null;
  const inOrder = Object.keys(PHASE_KINDS).flatMap((kind) => times.filter((time) => time.kind === kind));
  return html`<div class="cdiag-tip-bar">${inOrder.map(({ kind, seconds }) => html`<i class="is-${kind}" style=${{ flexGrow: 1000 * seconds }}></i>`)}</div>
    <p class="cdiag-tip-phases">${times.slice(0, MOST_PHASES).map((time) => html`<span class="cdiag-key is-${time.kind}">${writeTime(time)}</span>`)}</p>`;
}
