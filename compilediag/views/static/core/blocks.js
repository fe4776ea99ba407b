// The blocks that all regions are made of: texts with code and links, words with an explanation, moments, small drawings,
// sections, facts, bars, fields, buttons that copy.
import { formatAgo, formatClock, formatCount, formatDate, formatSeconds, formatValue } from "./format.js";
import { html } from "./view.js";
import { WORDS } from "./words.js";
import { useState } from "../vendor/hooks.js";

/** @typedef {"again" | "down" | "good" | "larger" | "open" | "search" | "smaller" | "stop" | "warning"} IconName */

/** @type {Record<IconName, string>} path in a square of 16 */
const PATHS = {
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3", // a recompile
  down: "M4 6l4 4 4-4",
  good: "M3 8.5l3.2 3L13 4.5",
  larger: "M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5l-5 5M2.5 13.5l5-5",
  open: "M6 3l5 5-5 5", // turned while what it opens is open
  search: "M2.5 7a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0M10.5 10.5L14 14",
  smaller: "M13.5 6.5h-4v-4M2.5 9.5h4v4M9.5 6.5l4.5-4.5M6.5 9.5L2 14",
  stop: "M2.2 8a5.8 5.8 0 1 0 11.6 0a5.8 5.8 0 1 0-11.6 0M8 5v4M8 11.2v.1",
  warning: "M8 2.2l6.2 11H1.8zM8 6.5v3M8 11.6v.1",
};

/** @param {{name: IconName}} props */
export function Icon({ name }) {
  return html`<svg class="cdiag-icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
}

/**
 * What a word means, in a sentence or two, shown on hover and on focus; null for one that needs no explanation.
 * @type {(word: string) => string | null} a total, a tab, a label of a column, a mark or a kind of guard
 */
export function explain(word) {
  return Object.hasOwn(WORDS.meanings, word) ? WORDS.meanings[word] : null;
}

/** The only addresses in our own sentences: torch's pages about graph breaks. Texts of a program can hold any other. */
const ADDRESS = /(https:\/\/meta-pytorch\.github\.io\/compile-graph-break-site\/gb\/gb\d{1,6}\.html)(?=\.?(?:\s|$))/;

/** @type {Component<{text: string}>} A sentence in which `code` becomes an element, and an address of torch's pages a link. */
export function Prose({ text }) {
  const parts = text.split("`");
  return parts.map((part, i) => (i % 2 && i < parts.length - 1 ? html`<code>${part}</code>`
    : part.split(ADDRESS).map((words, at) => (at % 2 ? html`<${Link} url=${words} title=${words} />` : words))));
}

/** @param {{url: string, title: string}} props */
export function Link({ url, title }) {
  return html`<a class="cdiag-link" href=${url} target="_blank" rel="noopener noreferrer">${title}</a>`;
}

/** @type {Component<{text: string, hint: string | null}>} A word with an explanation: a button, for keys and taps. */
export function Term({ text, hint }) {
  if (!hint) return html`<span>${text}</span>`;
  return html`<button type="button" class="cdiag-term" data-hint=${hint}>${text}</button>`;
}

/** @type {Component<{ms: number, start: number}>} A moment (Unix ms) as the time since the start; its title is the clock. */
export function At({ ms, start }) {
  return html`<span title=${formatClock(ms)}>${formatSeconds(Math.max(0, ms - start) / 1e3)}</span>`;
}

/** @type {Component<{ms: number, now: number}>} "12 s ago" (Unix ms), with the date and the time of the clock as its title. */
export function Ago({ ms, now }) {
  return html`<span class="cdiag-ago" title=${formatDate(ms)}>${formatAgo(ms, now)}</span>`;
}

/** @type {(text: string) => string[]} the words of a query, in lower case; a text matches if it has all of them */
export function splitQuery(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** @type {Component<SearchFieldProps>} */
export function SearchField({ label, placeholder = label, value, onInput, onKeyDown }) {
  const read = (/** @type {Event} */ event) => onInput(/** @type {HTMLInputElement} */ (event.target).value);
  return html`<input type="search" class="cdiag-search" placeholder=${placeholder} aria-label=${label} spellcheck=${false}
    value=${value} onInput=${read} onKeyDown=${onKeyDown} />`;
}

const SHOWN_MS = 2000; // how long the button says what happened

/** @param {{text: string, hint: string, label?: string, kind?: string}} props `hint` says what is copied */
export function Copy({ text, hint, label = "Copy", kind = "" }) {
  const [said, say] = useState("");
  /** @param {MouseEvent} event */
  const copy = async (event) => {
    const button = /** @type {HTMLElement} */ (event.currentTarget);
    say((await copyText(text, button)) ? "Copied" : "Not copied");
    setTimeout(() => say(""), SHOWN_MS);
  };
  return html`<button type="button" class="cdiag-button cdiag-copy ${kind}" data-hint=${hint} onClick=${copy}>${said || label}</button>`;
}

/**
 * Copies a text; false if the browser does not allow it.
 * @param {string} text
 * @param {HTMLElement} beside where a page without a clipboard may put its text field
 */
export async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page without https has no clipboard, and a frame may forbid it.
    const field = document.createElement("textarea");
    field.className = "cdiag-copied-text";
    field.value = text;
    beside.after(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    beside.focus({ preventScroll: true });
    return isCopied;
  }
}

const LONG = 4000; // characters of one value
export const MOST = 200; // rows of one section; the others are counted

/** @param {unknown} value */
export function longText(value) {
  const text = String(value);
  return text.length > LONG ? `${text.slice(0, LONG)}… (${formatCount(text.length)} characters)` : text;
}

/** @param {string | number | object | null} value */
export function formatFact(value) {
  if (value === null) return null;
  return formatValue(value, typeof value === "number" ? "number" : "list");
}

/** @param {{children: ComponentChild}} props */
export function Dim({ children }) {
  return html`<p class="cdiag-dim">${children}</p>`;
}

/** @type {Component<{code: string | null, place: string | null}>} A line of the user's code, its place, or both if known. */
export function CodeLine({ code, place }) {
  const parts = [place, code].filter((part) => part !== null);
  return parts.length ? html`<pre class="cdiag-code">${longText(parts.join("   "))}</pre>` : null;
}

/** @type {Component<{entries: [string, unknown][]}>} The known ones of `entries`, [name, value] each. */
export function Facts({ entries }) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined);
  return html`<dl class="cdiag-facts">${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${longText(value)}</dd>`)}</dl>`;
}

/** @type {Component<BarProps>} A name, a bar, and the value as text; `more` comes below. */
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

/** @type {Component<PlainTableProps>} A table in a frame that scrolls, also with the keyboard. */
export function PlainTable({ label, name, heads, numeric, foot, children }) {
  return html`
    <div class="cdiag-plain-frame" tabindex="0" role="region" aria-label=${label}>
      <table class=${`cdiag-plain ${name}`}>
        <thead><tr>${heads.map((head, i) => html`<th class=${numeric?.has(i) ? "is-number" : ""}>${head}</th>`)}</tr></thead>
        <tbody>${children}</tbody>
        ${foot && html`<tfoot>${foot}</tfoot>`}
      </table>
    </div>`;
}

/** @type {Component<{finding: Finding}>} Where the plan has it, or that there is nothing to fix; else nothing. */
export function FindingMark({ finding: { step, is_cost, is_expected } }) {
  const word = step !== null ? "step" : is_cost ? "compile time" : is_expected ? "expected" : null;
  if (word === null) return null;
  const text = step === null ? word : `step ${formatCount(step)}`;
  return html`<span class=${step === null ? "cdiag-mark" : "cdiag-mark is-step"} data-hint=${explain(word)}>${text}</span>`;
}

/** @type {(...parts: (string | null | undefined | false)[]) => string} joins the parts of a line that are known */
export function joinKnown(...parts) {
  return parts.filter(Boolean).join(" · ");
}

/**
 * What `format` makes of a value; null of a missing one.
 * @template Value, Result
 * @param {Value | null | undefined} value
 * @param {(value: Value) => Result} format
 */
export function whenKnown(value, format) {
  return value === null || value === undefined ? null : format(value);
}
