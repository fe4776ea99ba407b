// Small drawings beside words, in the color of the text around them.
import { html } from "./view.js";

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
