// The evidence of a step: the compiles of a function, what came, and what torch did.
import { Icon } from "../core/blocks.js";
import { formatAmount, formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";

/** @param {{proof: Evidence, start: number | null}} props `start` of the recording, Unix ms */
export function Proof({ proof: { function: name, names, compiles, hidden }, start }) {
  const label = `the compiles of ${name}`;
  const sample = compiles.flatMap(({ values, change }) => (change === null ? [] : values)).find(Boolean);
  return html`<div class="cdiag-proof">
    <h3>Evidence: the ${formatAmount(compiles.length + hidden, "compile")} of <code>${name}</code></h3>
    <div class="cdiag-box" role="region" tabindex="0" aria-label=${label}><table>
      <thead><tr>
        ${start !== null && html`<th>at</th>`}
        ${names.map((each) => html`<th class="cdiag-proof-value" key=${each}><code>${each}</code></th>`)}
        <th>what torch did, and why</th><th class="is-number">took</th>
      </tr></thead>
      <tbody>${compiles.map(({ event, time, values, change, is_own: isOwn, seconds }, i) => html`<tr key=${event ?? i}>
        ${start !== null && html`<td>${time <= start ? "0 s" : formatSeconds((time - start) / 1000)}</td>`}
        ${values.map((value, k) => html`<td class="cdiag-proof-value" key=${k}><code class=${value && change !== null ? "is-failed" : ""}>${value}</code></td>`)}
        <td>${change === null ? "first compile" : html`<span class=${isOwn ? "cdiag-proof-change" : ""}><${Icon} name="again" /> <code>${change}</code></span>`}</td>
        <td class="is-number">${formatSeconds(seconds)}</td>
      </tr>`)}</tbody>
    </table></div>
    ${hidden > 0 && html`<p class="cdiag-dim">and ${formatAmount(hidden, "more compile", "more compiles")}</p>`}
    ${sample && html`<p class="cdiag-dim"><code class="is-failed">${sample}</code> a guard failed on this value</p>`}
  </div>`;
}
