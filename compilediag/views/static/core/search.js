// The words of a search, and the field for them.
import { html } from "./view.js";

/**
 * The words of a query, in lower case. A text matches if it has all of them.
 * @param {string} text
 */
export function splitQuery(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/**
 * @param {{
 *   label: string, placeholder?: string, value: string, onInput: (text: string) => void, onKeyDown?: (event: KeyboardEvent) => void
 * }} props
 */
export function SearchField({ label, placeholder = label, value, onInput, onKeyDown }) {
  const read = (/** @type {Event} */ event) => onInput(/** @type {HTMLInputElement} */ (event.target).value);
  return html`<input type="search" class="cdiag-search" placeholder=${placeholder} aria-label=${label} spellcheck=${false}
    value=${value} onInput=${read} onKeyDown=${onKeyDown} />`;
}
