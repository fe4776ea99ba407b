// Texts as components: sentences with code in them, words with an explanation, moments.
import { formatAgo, formatClock, formatDate, formatSeconds } from "./format.js";
import { html } from "./view.js";

/** The only addresses in our own sentences: torch's pages about graph breaks. Texts of a program can hold any other. */
const ADDRESS = /(https:\/\/meta-pytorch\.github\.io\/compile-graph-break-site\/gb\/gb\d{1,6}\.html)(?=\.?(?:\s|$))/;

/**
 * A sentence in which `code` between backticks becomes a code element, and an address of torch's pages a link.
 * @param {{text: string}} props
 */
export function Prose({ text }) {
  const parts = text.split("`");
  return parts.map((part, i) => (i % 2 && i < parts.length - 1 ? html`<code>${part}</code>` : linkAddresses(part)));
}

/** @param {string} text */
function linkAddresses(text) {
  return text.split(ADDRESS).map((part, i) => (i % 2 ? html`<${Link} url=${part} title=${part} />` : part));
}

/**
 * A link that opens in a tab of its own.
 * @param {{url: string, title: string}} props
 */
export function Link({ url, title }) {
  return html`<a class="cdiag-link" href=${url} target="_blank" rel="noopener noreferrer">${title}</a>`;
}

/**
 * A word with an explanation. It is a button, so that it can be reached by key and tapped.
 * @param {{text: string, hint: string | null}} props
 */
export function Term({ text, hint }) {
  if (!hint) return html`<span>${text}</span>`;
  return html`<button type="button" class="cdiag-term" data-hint=${hint}>${text}</button>`;
}

/**
 * A moment as the time since the start, with the time of the clock as its title.
 * @param {{ms: number, start: number}} props Unix ms
 */
export function At({ ms, start }) {
  return html`<span title=${formatClock(ms)}>${formatSeconds(Math.max(0, ms - start) / 1e3)}</span>`;
}

/**
 * "12 s ago", with the date and the time of the clock as its title.
 * @param {{ms: number, now: number}} props Unix ms
 */
export function Ago({ ms, now }) {
  return html`<span class="cdiag-ago" title=${formatDate(ms)}>${formatAgo(ms, now)}</span>`;
}
