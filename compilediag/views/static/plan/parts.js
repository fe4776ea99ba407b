// What the card of the plan and its steps show: where the compile time went, costs, the evidence of a step.
import { Icon, Prose } from "../core/blocks.js";
import { Code, Fold } from "../core/code.js";
import { formatAmount, formatSeconds } from "../core/format.js";
import { html, useTicks } from "../core/view.js";

const TICK_MS = 1000;

/**
 * While a session is live, it has its place from the start, so that the steps below do not move.
 * @param {{store: Store, plan: Plan}} props
 */
export function TimeSplit({ store, plan }) {
  const isLive = store.isLive();
  const found = listParts(plan).filter(({ seconds }) => seconds > 0);
  const isCounting = found.length < 2 && isLive && !plan.recompiles;
  useTicks(isCounting && !store.paused ? TICK_MS : 0);
  const parts = isCounting ? [measureNeeded(store)] : found;
  if (parts.length < 2 && !isLive) return null;
  const label = parts.map((part) => `${part.label} ${formatSeconds(part.seconds)}`).join(", ");
  return html`<div class=${parts.length && parts[0].seconds ? "cdiag-split" : "cdiag-split is-empty"}>
    <div class="cdiag-split-bar" role="img" aria-label=${label}>
      ${parts.map(({ kind, seconds, step, label: name }) => html`<i key=${name} class=${kind} data-step=${step} style=${`flex-grow: ${seconds}`}></i>`)}
    </div>
    <p class="cdiag-split-keys" aria-hidden="true">
      ${parts.map(({ kind, seconds, label: name }) => html`<span key=${name}><i class=${kind}></i>${name} <b>${formatSeconds(seconds)}</b>${parts.length < 2 && " so far"}</span>`)}
    </p>
  </div>`;
}

/** @type {(store: Store) => TimePart} Nothing has recompiled: all that has compiled, and what compiles now, is needed. */
function measureNeeded(store) {
  const began = Math.min(...store.now.map((flight) => flight.started_ms), store.kernelNow());
  const seconds = (store.totals.compile_s ?? 0) + Math.floor((store.kernelNow() - began) / 100) / 10;
  return { kind: "is-needed", label: "needed", seconds };
}

/** @type {(plan: Plan) => TimePart[]} */
function listParts({ seconds, seconds_saved: saved, steps, costs, leads, searched, tried }) {
  const measured = searched?.holds ? searched : tried?.holds ? tried : null;
  const [before, after] = [measured?.compile_seconds_before ?? null, measured?.compile_seconds_after ?? null];
  if (before !== null && after !== null) {
    return [{ kind: "is-needed", label: "needed", seconds: after }, { kind: "is-saved", label: "saved", seconds: before - after }];
  }
  const cost = costs.find(({ kind }) => kind === leads);
  if (cost) {
    const label = cost.kind === "tuning" ? "tuning" : "this";
    return [{ kind: "is-needed", label: "other compile time", seconds: seconds - cost.seconds }, { kind: `is-${cost.kind}`, label, seconds: cost.seconds }];
  }
  if (!saved) return [];
  const own = steps.map((step, i) => ({
    kind: i % 2 === steps.length % 2 ? "is-saved is-hatched" : "is-saved",
    label: `step ${i + 1} saves`,
    seconds: step.seconds_gained,
    step: i + 1,
  }));
  return [{ kind: "is-needed", label: "needed", seconds: seconds - saved }, ...own];
}

/** @param {{cost: CompileCost}} props */
export function Cost({ cost: { what, code, advice, details } }) {
  return html`
    <p class="cdiag-cost-what"><${Prose} text=${`${what}.`} /></p>
    ${code && html`<${Code} code=${code} hint="copy the change that saves this" />`}
    ${advice && html`<p><${Prose} text=${advice} /></p>`}
    ${details.length > 0 && html`<${Fold} title=${formatAmount(details.length, "detail")}><${Sentences} texts=${details} /><//>`}`;
}

/** @param {{texts: string[]}} props */
export function Sentences({ texts }) {
  return html`<ul class="cdiag-sentences">${texts.map((text, i) => html`<li key=${`${i} ${text}`}><${Prose} text=${text} /></li>`)}</ul>`;
}

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
        <td>${change === null ? html`<span class="cdiag-dim">first compile</span>` : html`<span class=${isOwn ? "cdiag-proof-change" : ""}><${Icon} name="again" /> <code>${change}</code></span>`}</td>
        <td class="is-number">${formatSeconds(seconds)}</td>
      </tr>`)}</tbody>
    </table></div>
    ${hidden > 0 && html`<p class="cdiag-dim">and ${formatAmount(hidden, "more compile", "more compiles")}</p>`}
    ${sample && html`<p class="cdiag-dim cdiag-proof-value"><code class="is-failed">${sample}</code> a guard failed on this value</p>`}
  </div>`;
}
