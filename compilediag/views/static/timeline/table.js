// The text alternative of the timeline: its compiles as a table. Screen readers always have it; a switch shows it to all.
import { formatAmount, formatSeconds } from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
import { nameCompile, sumPhases, writeTime } from "./words.js";
/** @import { CompileBar } from "./lanes.js" */
/** @import { TimelineModel } from "./model.js" */

const MOST_ROWS = 100; // the costliest are listed
const HEADS = ["function", "start", "duration", "what it was", "time in phases"];

/** @typedef {{model: TimelineModel, onPick: (bar: CompileBar) => void}} TableProps */

/** @param {TableProps} props */
export function TimelineTable({ model, onPick }) {
  const { from, to } = model.view.range;
  const all = model.lanes.list.flatMap(({ bars }) => bars.filter((bar) => bar.row && bar.end >= from && bar.start <= to));
  const listed = all.sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, MOST_ROWS).sort((a, b) => a.start - b.start);
  const what = `${formatAmount(all.length, "compile")} in view, in order of time`;
  const shown = model.state.hasTable ? { name: "", role: "region", stop: 0 } : { name: " is-unseen" }; // it scrolls
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
  const { store, lanes, state } = model;
  if (!bar.row) return null;
  const get = store.table("compiles").reader(bar.row);
  const change = bar.isRecompile && lanes.recompiles.describe(bar.key);
  const title = `${bar.lane.name} ${get("compile_id") ?? ""}`.trim();
  // A button that nobody sees must not get the focus.
  return html`<tr>
    <th scope="row">${state.hasTable ? html`<button type="button" class="cdiag-link" onClick=${() => onPick(bar)}>${title}</button>` : title}</th>
    <td><${At} ms=${bar.start} start=${lanes.extent.from} /></td>
    <td>${formatSeconds(get("duration_s"))}</td>
    <td>${nameCompile(get)}${change && `, ${change}`}</td>
    <td>${sumPhases(store, lanes.groups, bar.key, bar).map(writeTime).join(", ")}</td>
  </tr>`;
}
