// What a page remembers while its browser tab is open, so that it looks the same after it is drawn again or reloaded.

const PREFIX = "compilediag:";
/** @type {Map<string, string>} for hosts that refuse storage, such as frames without an origin of their own */
const kept = new Map();

/**
 * The value that was remembered under a name; null if there is none.
 * @param {string} name
 * @returns {any}
 */
export function recall(name) {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? kept.get(name) ?? "null");
  } catch {
    return JSON.parse(kept.get(name) ?? "null");
  }
}

/**
 * @param {string} name
 * @param {unknown} value anything that JSON can hold
 */
export function remember(name, value) {
  const text = JSON.stringify(value);
  if (kept.get(name) === text) return;
  kept.set(name, text);
  try {
    sessionStorage.setItem(PREFIX + name, text);
  } catch {
    // Storage is full or refused: the value still survives until the page is reloaded.
  }
}

/**
 * The name under which a session's page is remembered; null while the session is not known.
 * @param {{started_ms?: number | null, pid?: number | null}} meta
 * @param {string} part of the page
 */
export function nameOfSession(meta, part) {
  return meta.started_ms ? `${part}:${meta.started_ms}:${meta.pid ?? ""}` : null;
}
