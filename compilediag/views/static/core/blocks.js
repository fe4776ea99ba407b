// The blocks that details are made of: sections, facts, bars, lines of code.
import { make } from "./dom.js";
import { explain } from "./glossary.js";
import { makeTerm, setHint } from "./hints.js";
import { formatCount, formatValue } from "./format.js";
/** @import { Child } from "./dom.js" */
/** @import { Finding } from "./page-types" */

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

/** @param {Child[]} children */
export function makeDim(...children) {
  return make("p", "cdiag-dim", ...children);
}

/**
 * A line of the user's code with its place, or the place alone; null if neither is known.
 * @param {(name: "user_code") => string | null} get
 * @param {string | null} place
 */
export function makeCodeLine(get, place) {
  const parts = [place, get("user_code")].filter((part) => part !== null);
  return parts.length ? make("pre", "cdiag-code", longText(parts.join("   "))) : null;
}

/**
 * The known ones of `entries`, [name, value] each.
 * @param {[string, unknown][]} entries
 */
export function makeFacts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined);
  const cells = shown.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", longText(value))]);
  return make("dl", "cdiag-facts", ...cells);
}

/**
 * A name, a bar as long as `value` is of `total`, and the value as text.
 * @param {string} label
 * @param {number | null} value
 * @param {number | null} total
 * @param {string} kind names the color
 * @param {string} text
 * @param {number} [depth]
 * @param {string | null} [hint]
 */
export function makeBar(label, value, total, kind, text, depth = 0, hint = null) {
  const fill = make("span", `cdiag-part is-${kind}`);
  fill.style.width = `${total ? Math.min(100, ((value ?? 0) / total) * 100).toFixed(1) : 0}%`;
  const name = makeTerm(label, hint);
  name.classList.add("cdiag-bar-name");
  name.style.paddingLeft = `${Math.min(depth, 8) * 10}px`;
  const track = make("span", "cdiag-track", fill);
  const node = make("div", "cdiag-bar-row", name, track, make("span", "cdiag-bar-value", text));
  return { node, name };
}

/**
 * What `build` makes of at most `MOST` items, and how many were left out.
 * @template Item
 * @param {Item[]} list
 * @param {(some: Item[]) => Child[]} build
 * @returns {Child[]}
 */
export function buildSome(list, build) {
  const rest = list.length > MOST ? [makeDim(`and ${formatCount(list.length - MOST)} more`)] : [];
  return [...build(list.slice(0, MOST)), ...rest];
}

/**
 * @param {string} name
 * @param {string} heading
 * @param {Child[]} children
 */
export function makeSection(name, heading, ...children) {
  const node = make("section", "cdiag-section", make("h3", "", heading), ...children);
  node.dataset.section = name;
  return node;
}

/**
 * A table in a frame that scrolls, also with the keyboard.
 * @param {HTMLElement} table
 * @param {string} label what it shows, to be read aloud
 */
export function makeTableFrame(table, label) {
  const frame = make("div", "cdiag-plain-frame", table);
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", label);
  return frame;
}

/**
 * Where the plan has a finding, or that there is nothing to fix; null for any other finding.
 * @param {Finding} finding
 */
export function makeFindingMark({ step, is_cost, is_expected }) {
  if (step !== null) return makeMark("cdiag-mark is-step", `step ${formatCount(step)}`, "step");
  if (is_cost) return makeMark("cdiag-mark", "compile time", "compile time");
  return is_expected ? makeMark("cdiag-mark", "expected", "expected") : null;
}

/**
 * @param {string} className
 * @param {string} text
 * @param {string} word that the glossary explains
 */
function makeMark(className, text, word) {
  const mark = make("span", className, text);
  setHint(mark, explain(word));
  return mark;
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
