// What a page remembers while its browser tab is open, so that it looks the same after it is drawn again or reloaded.

const PREFIX = "compilediag:";
/** @type {Map<string, string>} for hosts that refuse storage, such as frames without an origin of their own */
const kept = new Map();

/** @type {(name: string) => any} the value that was remembered under a name; null if there is none */
export function recall(name) {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? kept.get(name) ?? "null");
  } catch {
    return JSON.parse(kept.get(name) ?? "null");
  }
}

/** @param {string} name @param {unknown} value anything that JSON can hold */
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

/** What a reader has set in one part of a session's page. */
export class SessionMemory {
  /** @param {string} part */
  constructor(part) {
    this.part = part;
    /** @type {string | null} null while the session is not known */
    this.name = null;
  }

  /**
   * What was remembered, once a session is known, {} if nothing was; null as long as the session stays the same.
   * @type {(meta: Partial<Meta>) => any}
   */
  restore({ started_ms, pid }) {
    const name = started_ms ? `${this.part}:${started_ms}:${pid ?? ""}` : null;
    if (name === null || name === this.name) return null;
    this.name = name;
    return recall(name) ?? {};
  }

  /** @param {unknown} value */
  save(value) {
    if (this.name !== null) remember(this.name, value);
  }
}
