// Numbers, times and places as text. A missing value is a dash, never 0.

export const MISSING = "–";

const WHOLE = new Intl.NumberFormat("en-US");

/** 1234 -> "1,234". */
export function formatCount(value) {
  return value === null || value === undefined ? MISSING : WHOLE.format(value);
}

/** counted(2, "entry", "entries") -> "2 entries". */
export function counted(value, one, many) {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

/** Seconds with the digits that a reader can use: "0.42 ms", "42 ms", "2.41 s", "21.4 s", "12 m 31 s", "2 h 05 m". */
export function formatSeconds(value) {
  if (value === null || value === undefined) return MISSING;
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 0.01) return `${(value * 1e3).toFixed(2)} ms`;
  if (size < 0.9995) return `${(value * 1e3).toFixed(0)} ms`;
  if (size < 9.995) return `${value.toFixed(2)} s`;
  if (size < 600) return `${value.toFixed(1)} s`;
  const whole = Math.round(value < 3600 ? value : value / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return `${Math.floor(whole / 60)} ${value < 3600 ? "m" : "h"} ${rest} ${value < 3600 ? "s" : "m"}`;
}

/** Microseconds: "1.3", "139", "10,103". */
export function formatMicros(value) {
  if (value === null || value === undefined) return MISSING;
  return value < 10 ? value.toFixed(1) : formatCount(Math.round(value));
}

/** 0.0031 -> "0.3 %". */
export function formatShare(value) {
  if (value === null || value === undefined) return MISSING;
  const percent = value * 100;
  return `${percent > 0 && percent < 0.1 ? "<0.1" : percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

/** Unix milliseconds -> the local clock, "12:04:31". */
export function formatClock(ms) {
  if (ms === null || ms === undefined) return MISSING;
  return new Date(ms).toLocaleTimeString("en-GB");
}

/** 164000 -> "164 kB". */
export function formatBytes(value) {
  if (value === null || value === undefined) return MISSING;
  if (value < 1000) return `${value} B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)} kB`;
  return `${(value / 1e6).toFixed(1)} MB`;
}

const OUTCOMES = { guard_miss: "guard miss", saved: "stored", written: "file written" };

/** What became of a cache look-up or store, in a word. */
export function formatOutcome(outcome) {
  return OUTCOMES[outcome] ?? outcome ?? MISSING;
}

/** The last part of a path. */
export function baseName(path) {
  return path === null || path === undefined ? null : String(path).split(/[\\/]/).pop();
}

/** "model.py:30", "model.py", or null if there is no file. */
export function formatPlace(file, line) {
  const name = baseName(file);
  if (name === null) return null;
  return line === null || line === undefined ? name : `${name}:${line}`;
}

/** At most `limit` characters of a text, on one line. */
export function oneLine(text, limit) {
  const short = text.length > limit ? `${text.slice(0, limit)}…` : text;
  return short.replace(/[\r\n\u2028\u2029]+/g, " ");
}

/** The value of a column of a given type as text. */
export function formatValue(value, type) {
  if (value === null || value === undefined) return MISSING;
  if (type === "time") return formatClock(value);
  if (type === "s") return Number(value).toFixed(3);
  if (type === "ms") return formatMs(value);
  if (type === "us") return Number(value).toFixed(1);
  if (type === "share") return `${value > 0 ? "+" : ""}${formatShare(value)}`;
  if (type === "bytes") return formatBytes(value);
  if (type === "int") return formatCount(value);
  if (type === "number") return String(Number(Number(value).toPrecision(6)));
  if (type === "bool") return value ? "yes" : "no";
  if (type === "list") return formatList(value);
  return String(value);
}

/** A list, or the pairs of an object: "64x64; 32x32", "BLOCK_M=64; num_warps=4". */
function formatList(value) {
  const isPairs = value !== null && typeof value === "object" && !Array.isArray(value);
  const parts = isPairs ? Object.entries(value).map(([key, each]) => `${key}=${each}`) : [].concat(value).map(String);
  return parts.join("; ");
}

/** Milliseconds of one call, with four digits that count. */
export function formatMs(value) {
  if (value === null || value === undefined) return MISSING;
  return Math.abs(value) >= 1000 ? formatCount(Math.round(value)) : String(Number(Number(value).toPrecision(4)));
}

const NUMERIC = new Set(["s", "ms", "us", "int", "share", "bytes", "number"]);

/** Types whose columns are set flush right. */
export function isNumeric(type) {
  return NUMERIC.has(type);
}
