// The pieces that details are made of: facts, bars, lines of code.
import { make } from "./dom.js";
import { formatCount, formatValue } from "./format.js";

const LONG = 4000; // characters of one value
export const MOST = 200; // rows of one section; the rest is counted

export function longText(value) {
  const text = String(value);
  return text.length > LONG ? `${text.slice(0, LONG)}… (${formatCount(text.length)} characters)` : text;
}

export function formatFact(value) {
  if (value === null) return null;
  if (typeof value !== "number") return formatValue(value, "list");
  return formatValue(value, Number.isInteger(value) ? "int" : "us");
}

export function dim(...children) {
  return make("p", "cdiag-dim", ...children);
}

/** A line of the user's code with its place, or the place alone; null if neither is known. */
export function codeLine(get, place) {
  const parts = [place, get("user_code")].filter((part) => part !== null);
  return parts.length ? make("pre", "cdiag-code", longText(parts.join("   "))) : null;
}

/** What is known of `entries`, [name, value] each. */
export function pairs(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined);
  const cells = shown.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", longText(value))]);
  return make("dl", "cdiag-facts", ...cells);
}

/** A name, a bar as long as `value` is of `total`, and what the value is as text. */
export function bar(label, value, total, kind, text, depth = 0) {
  const fill = make("span", `cdiag-part is-${kind}`);
  fill.style.width = `${total ? Math.min(100, (value / total) * 100).toFixed(1) : 0}%`;
  const name = make("span", "cdiag-bar-name", label);
  name.style.paddingLeft = `${Math.min(depth, 8) * 10}px`;
  name.title = label;
  return make("div", "cdiag-bar-row", name, make("span", "cdiag-track", fill), make("span", "cdiag-bar-value", text));
}

/** At most so many rows, and how many were left out. */
export function cutShort(list, build) {
  const rest = list.length > MOST ? [dim(`and ${formatCount(list.length - MOST)} more`)] : [];
  return [...build(list.slice(0, MOST)), ...rest];
}

export function section(name, heading, ...children) {
  const node = make("section", "cdiag-section", make("h3", "", heading), ...children);
  node.dataset.section = name;
  return node;
}
