// Formats numbers, times and places: the only formatter of the pages. compilediag/formatting.py formats the same numbers
// in Python, and tests/format_cases.json holds the cases that both have to pass. A missing value is a dash, never 0.

import { WORDS } from "./words.js";

export const MISSING = "–";

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric" });
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
/** @type {[number, string][]} */
const TIME_UNITS = [[1e9, "ns"], [1e6, "µs"], [1e3, "ms"]];
/** @type {[number, string][]} */
const BYTE_UNITS = [[1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]];

/**
 * What a table of words has for a word from a session; undefined for a word that is not in it, such as "constructor".
 * @template T
 * @param {Record<string, T>} words
 * @param {string} word
 * @returns {T | undefined}
 */
export function lookUp(words, word) {
  return Object.hasOwn(words, word) ? words[word] : undefined;
}

/** @type {(value: Numeric) => value is number} whether a number can be shown */
function isKnown(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** @type {(write: Write<number>) => Write<Numeric>} writes a number as its sign and what `write` makes of its size */
const withSign = (write) => (value) => (isKnown(value) ? signOf(value) + write(Math.abs(value)) : MISSING);

/** @type {(size: number) => string | null} one decimal below 10, else a whole number; null if that gives 1,000 or more */
function roundBelow1000(size) {
  if (size >= 1000) return null;
  const text = Number(size.toFixed(1)) < 10 ? size.toFixed(1) : size.toFixed(0);
  return Number(text) < 1000 ? text : null;
}

/** @type {Write<number>} */
function signOf(value) {
  return value < 0 ? "-" : "";
}

/** A duration in s: "350 ns", "4.2 µs", "42 ms", "1.3 s", "2 min 5 s", "1 h 5 min". */
export const formatSeconds = withSign((size) => {
  if (size === 0) return "0 s";
  for (const [factor, unit] of TIME_UNITS) {
    const text = roundBelow1000(size * factor);
    if (text !== null) return `${text} ${unit}`;
  }
  // At least a second: one decimal up to a minute, then the two largest units.
  const text = size.toFixed(1);
  if (Number(text) < 60) return `${text} s`;
  const seconds = Math.round(size);
  const [whole, large, small] = seconds < 3600 ? [seconds, "min", "s"] : [Math.round(size / 60), "h", "min"];
  const rest = whole % 60;
  return `${formatCount(Math.floor(whole / 60))} ${large}${rest ? ` ${rest} ${small}` : ""}`;
});

/** @type {Write<string>} A sentence whose durations are not broken at the end of a line. */
export function keepDurations(text) {
  return text.replace(/\d (?:[nµm]?s|min|h)\b(?: \d+ (?:s|min)\b)?/g, (found) => found.replaceAll(" ", "\u00a0"));
}

/** @type {Write<Numeric>} A duration in µs, as `formatSeconds` formats it. */
export function formatMicroseconds(value) {
  return isKnown(value) ? formatSeconds(value / 1e6) : MISSING;
}

/** The time of a kernel in ms, with the four digits that distinguish close choices: "0.1023 ms". */
export const formatMilliseconds = withSign((size) => {
  if (size >= 1000) return `${formatCount(size)} ms`;
  const rounded = Number(size.toPrecision(4));
  if (rounded === 0) return "0 ms";
  const text = rounded.toFixed(Math.min(100, Math.max(0, 3 - Math.floor(Math.log10(rounded)))));
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ms`;
});

/** A whole number: "1,234". Halves are rounded away from zero. */
export const formatCount = withSign((size) => WHOLE.format(Math.round(size)));

/**
 * A number of things: "1 compile", "3 misses"; `many` is the plural where it is not `one` with an s.
 * @type {(value: Numeric, one: string, many?: string) => string}
 */
export function formatAmount(value, one, many) {
  return `${formatCount(value)} ${value === 1 ? one : many ?? `${one}s`}`;
}

/** @type {Write<number>} How often something happened: "once", "4x". */
export function formatTimes(count) {
  return count === 1 ? "once" : `${formatCount(count)}x`;
}

/** A size in bytes, in powers of 1,000: "999 B", "1.6 kB", "164 kB", "2.5 MB". */
export const formatBytes = withSign((size) => {
  if (Math.round(size) < 1000) return `${Math.round(size)} B`;
  for (const [factor, unit] of BYTE_UNITS) {
    const text = roundBelow1000(size / factor);
    if (text !== null) return `${text} ${unit}`;
  }
  return `${formatCount(size / 1e12)} TB`;
});

/**
 * A share as percent: 0.0031 is "0.3 %", 0.42 is "42 %". `isSigned` puts a + before positive shares.
 * @type {(value: Numeric, isSigned?: boolean) => string}
 */
export function formatShare(value, isSigned = false) {
  if (!isKnown(value)) return MISSING;
  const size = 100 * Math.abs(value);
  if (size === 0) return "0 %";
  const sign = isSigned && value > 0 ? "+" : signOf(value);
  if (size < 0.1) return `${sign}<0.1 %`;
  return `${sign}${Number(size.toFixed(1)) < 10 ? size.toFixed(1) : formatCount(size)} %`;
}

/** A number of a plug-in's table or of a guard, whose unit is not known: up to six significant digits. */
export const formatNumber = withSign((size) => {
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return size.toExponential(2);
  return Number.isInteger(size) ? formatCount(size) : String(Number(size.toPrecision(6)));
});

/** @type {Write<Numeric>} Unix milliseconds as the local clock shows them: "12:04:31". */
export function formatClock(ms) {
  return isKnown(ms) ? CLOCK.format(ms) : MISSING;
}

/** @type {Write<Numeric>} Unix milliseconds as a local date with the time: "22 November 2026, 12:04:31". */
export function formatDate(ms) {
  return isKnown(ms) ? `${DAY.format(ms)}, ${formatClock(ms)}` : MISSING;
}

const DAY_MS = 86_400_000;
/** @type {[string, number][]} */
const AGO_UNITS = [["h", 3_600_000], ["min", 60_000], ["s", 1000]];

/** @type {(ms: number, now: number) => string} "just now", "12 s ago", "2 min ago", "3 h ago", and the day of what is older */
export function formatAgo(ms, now) {
  const passed = now - ms;
  if (passed >= DAY_MS) return new Date(ms).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
  const [unit, size] = AGO_UNITS.find(([, each]) => passed >= each) ?? ["s", 1000];
  return passed < 3000 ? "just now" : `${Math.floor(passed / size)} ${unit} ago`;
}

/** @type {(start: number | null, end: number | null) => string} "8" or "1 to 64": sizes that something is compiled for */
export function formatSizes(start, end) {
  return start === end ? formatCount(start) : `${formatCount(start)} to ${formatCount(end)}`;
}

const RANGE = /^(?:VR)?\[\s*(-?\w+)\s*,\s*(-?\w+)\s*\]$/;

/** @type {(text: string | null) => string | null} torch's range of a symbol in words: "[2, int_oo]" is "2 or more" */
export function formatRange(text) {
  const [, low, high] = RANGE.exec(text ?? "") ?? [];
  if (low === undefined) return text;
  const [hasLow, hasHigh] = [low, high].map((end) => !/oo$/.test(end));
  if (!hasLow && !hasHigh) return "any";
  if (!hasHigh) return `${low} or more`;
  if (!hasLow) return `${high} or less`;
  return low === high ? `only ${low}` : `${low} to ${high}`;
}

/** @type {Write<string | null>} The outcome of a cache look-up or store, in words. */
export function formatOutcome(outcome) {
  return outcome === null ? MISSING : lookUp(WORDS.codes, outcome) ?? formatCode(outcome);
}

/** @type {Write<string>} A code of the tables in words: "tensor_size" is "tensor size". */
export function formatCode(code) {
  return code.replaceAll("_", " ");
}

const RESUMED = /^torch_dynamo_resume_in_(.+)_at_(\d+)$/;

/** @type {(name: string | null | undefined) => string | null} "forward", "forward, after the graph break at line 21" */
export function formatFunction(name) {
  const [own, after] = splitFunction(name);
  return after === null ? own : `${own}, ${after}`;
}

/**
 * The name of a function and, if Dynamo continued it there, "after the graph break at line 21".
 * @type {(name: string | null | undefined) => [name: string | null, after: string | null]}
 */
export function splitFunction(name) {
  const resumed = RESUMED.exec(name ?? "");
  return resumed ? [resumed[1], `after the graph break at line ${resumed[2]}`] : [name ?? null, null];
}

/**
 * A place in a file or a cell: "model.py:30", "model.py", "In[4]:2"; null without a file.
 * @param {string | null | undefined} file
 * @param {number | string | null | undefined} line
 */
export function formatPlace(file, line) {
  if (!file) return null;
  const name = oneLine(file.split(/[\\/]/).pop() || file, 60).replace(/^Cell (?=In\[)/, "");
  return line === null || line === undefined ? name : `${name}:${line}`;
}

/** @type {(text: string, limit: number) => string} at most `limit` characters of a text, on one line */
export function oneLine(text, limit) {
  const short = text.length > limit ? `${text.slice(0, limit)}…` : text;
  return short.replace(/[\r\n\u2028\u2029]+/g, " ");
}

/** @type {Record<string, Write<any>>} */
const BY_TYPE = {
  time: formatClock,
  s: formatSeconds,
  ms: formatMilliseconds,
  us: formatMicroseconds,
  share: (value) => formatShare(value, true),
  bytes: formatBytes,
  int: formatCount,
  number: formatNumber,
  bool: (value) => (value ? "yes" : "no"),
  /** A list, or the pairs of an object: "64x64; 32x32", "BLOCK_M=64; num_warps=4". */
  list: (value) => {
    if (Array.isArray(value)) return value.map(String).join("; ");
    return typeof value === "object" ? Object.entries(value).map(([key, each]) => `${key}=${each}`).join("; ") : String(value);
  },
};

/** @type {(value: any, type?: string) => string} the value of a column of a given type */
export function formatValue(value, type = "text") {
  if (value === null || value === undefined) return MISSING;
  return (BY_TYPE[type] ?? String)(value);
}

const NUMERIC = new Set(["s", "ms", "us", "int", "share", "bytes", "number"]);

/** @type {Is<string | undefined>} True for a type whose columns are aligned to the right. */
export function isNumeric(type) {
  return type !== undefined && NUMERIC.has(type);
}
