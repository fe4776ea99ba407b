// Where the compile time went: what is needed, and what each change saves.
import { formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";

/** @typedef {{kind: string, label: string, seconds: number, step?: number}} Part */

/** @param {{plan: Plan}} props */
export function TimeSplit({ plan }) {
  const parts = listParts(plan).filter(({ seconds }) => seconds > 0);
  if (parts.length < 2) return null;
  const label = parts.map((part) => `${part.label} ${formatSeconds(part.seconds)}`).join(", ");
  return html`<div class="cdiag-split">
    <div class="cdiag-split-bar" role="img" aria-label=${label}>
      ${parts.map(({ kind, seconds, step, label: name }) => html`<i key=${name} class=${kind} data-step=${step} style=${`flex-grow: ${seconds}`}></i>`)}
    </div>
    <p class="cdiag-split-keys" aria-hidden="true">
      ${parts.map(({ kind, seconds, label: name }) => html`<span key=${name}><i class=${kind}></i>${name} <b>${formatSeconds(seconds)}</b></span>`)}
    </p>
  </div>`;
}

/**
 * @param {Plan} plan
 * @returns {Part[]}
 */
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
