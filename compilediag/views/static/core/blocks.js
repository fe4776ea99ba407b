// The blocks that details are made of, as components: sections, facts, bars, lines of code.
import { explain } from "./glossary.js";
import { formatCount, formatValue } from "./format.js";
import { Term } from "./text.js";
import { html } from "./view.js";

const LONG = 4000; // characters of one value
export const MOST = 200; // rows of one section; the others are counted

/** @param {unknown} value */
export function longText(value) {
  const text = String(value);
  return text.length > LONG ? `${text.slice(0, LONG)}… (${formatCount(text.length)} characters)` : text;
}

/**
 * @param {string | number | object | null} value
 * @returns {string | null}
 */
export function formatFact(value) {
  if (value === null) return null;
  return formatValue(value, typeof value === "number" ? "number" : "list");
}

/** @param {{children: ComponentChild}} props */
export function Dim({ children }) {
  return html`<p class="cdiag-dim">${children}</p>`;
}

/**
 * A line of the user's code with its place, or the place alone; nothing if neither is known.
 * @param {{code: string | null, place: string | null}} props
 */
export function CodeLine({ code, place }) {
  const parts = [place, code].filter((part) => part !== null);
  return parts.length ? html`<pre class="cdiag-code">${longText(parts.join("   "))}</pre>` : null;
}

/**
 * The known ones of `entries`, [name, value] each.
 * @param {{entries: [string, unknown][]}} props
 */
export function Facts({ entries }) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined);
  return html`<dl class="cdiag-facts">${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${longText(value)}</dd>`)}</dl>`;
}

/**
 * A name, a bar as long as `value` is of `total`, and the value as text; `more` comes below. `kind` names the color.
 * @param {{
 *   label: string, value: number | null, total: number | null, kind: string, text: string, depth?: number,
 *   hint?: string | null, tag?: ComponentChild, more?: string, rank?: number
 * }} props
 */
export function Bar({ label, value, total, kind, text, depth = 0, hint = null, tag = null, more = "", rank }) {
  const share = total ? Math.min(1, (value ?? 0) / total) : 0;
  return html`
    <div class="cdiag-bar-row" data-rank=${rank}>
      <span class="cdiag-bar-name" style=${{ paddingLeft: `${Math.min(depth, 8) * 10}px` }}>
        <${Term} text=${label} hint=${hint} />${tag}
      </span>
      <span class="cdiag-track"><span class=${`cdiag-part is-${kind}`} style=${{ width: `${100 * share}%` }}></span></span>
      <span class="cdiag-bar-value">${text}</span>
      ${more && html`<span class="cdiag-bar-more">${more}</span>`}
    </div>`;
}

/**
 * What `draw` makes of at most `MOST` items, and how many were left out.
 * @template Item
 * @param {Item[]} list
 * @param {(item: Item, at: number) => ComponentChild} draw
 */
export function drawSome(list, draw) {
  return html`${list.slice(0, MOST).map(draw)}${list.length > MOST && html`<${Dim}>and ${formatCount(list.length - MOST)} more<//>`}`;
}

/** @param {{name?: string, heading: string, children: ComponentChild}} props */
export function Section({ name, heading, children }) {
  return html`<section class="cdiag-section" data-section=${name}><h3>${heading}</h3>${children}</section>`;
}

/** @param {{heading: string, children: ComponentChild}} props what is shown on request */
export function Words({ heading, children }) {
  return html`<details class="cdiag-words"><summary>${heading}</summary>${children}</details>`;
}

/**
 * A table in a frame that scrolls, also with the keyboard. `label` says what it shows, to be read aloud; columns in
 * `numeric` are aligned to the right.
 * @param {{label: string, name: string, heads: string[], numeric?: Set<number>, children: ComponentChild}} props
 */
export function PlainTable({ label, name, heads, numeric, children }) {
  return html`
    <div class="cdiag-plain-frame" tabindex="0" role="region" aria-label=${label}>
      <table class=${`cdiag-plain ${name}`}>
        <thead><tr>${heads.map((head, i) => html`<th class=${numeric?.has(i) ? "is-number" : ""}>${head}</th>`)}</tr></thead>
        <tbody>${children}</tbody>
      </table>
    </div>`;
}

/**
 * Where the plan has a finding, or that there is nothing to fix; nothing for any other finding.
 * @param {{finding: Finding}} props
 */
export function FindingMark({ finding: { step, is_cost, is_expected } }) {
  const word = step !== null ? "step" : is_cost ? "compile time" : is_expected ? "expected" : null;
  if (word === null) return null;
  const text = step === null ? word : `step ${formatCount(step)}`;
  return html`<span class=${step === null ? "cdiag-mark" : "cdiag-mark is-step"} data-hint=${explain(word)}>${text}</span>`;
}

/**
 * Joins the parts of a line that are known.
 * @param {(string | null | undefined | false)[]} parts
 */
export function joinKnown(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/**
 * What `format` makes of a value; null of a missing one.
 * @template Value, Result
 * @param {Value | null | undefined} value
 * @param {(value: Value) => Result} format
 * @returns {Result | null}
 */
export function whenKnown(value, format) {
  return value === null || value === undefined ? null : format(value);
}
