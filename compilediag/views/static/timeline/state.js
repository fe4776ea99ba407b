// How a person has set the timeline: its zoom, what is folded and open. It is remembered until the browser tab closes.
import { SessionMemory } from "../core/memory.js";
/** @import { Range } from "./ranges.js" */

const LONGEST_HISTORY = 50;
const SWITCHES = /** @type {const} */ (["isFolded", "isOpen", "hasTable"]);

export class TimelineState {
  constructor() {
    /** @type {Range | null} Unix ms; null shows everything */
    this.zoom = null;
    /** @type {(Range | null)[]} earlier zooms, the last one at the end */
    this.history = [];
    this.isFolded = false; // idle stretches
    this.isOpen = false; // the lanes beyond the costliest
    this.hasTable = false;
    this.hasKeys = false; // not remembered
    this.memory = new SessionMemory("timeline");
  }

  /**
   * Takes over what was remembered, once the session is known, or is another one.
   * @param {Partial<Meta>} meta
   */
  restore(meta) {
    const isOther = this.memory.name !== null;
    const found = this.memory.restore(meta);
    if (!found) return;
    if (isOther) Object.assign(this, { zoom: null, history: [] });
    if (found.zoom?.from < found.zoom?.to) this.zoom = found.zoom;
    for (const key of SWITCHES) this[key] = found[key] === true;
  }

  save() {
    const { zoom, isFolded, isOpen, hasTable } = this;
    this.memory.save({ zoom, isFolded, isOpen, hasTable });
  }

  /** Notes the current zoom, to which `goBack` returns. */
  noteStep() {
    this.history.push(this.zoom);
    if (this.history.length > LONGEST_HISTORY) this.history.shift();
  }

  /** Returns to an earlier zoom that differs; false if there is none. */
  goBack() {
    while (this.history.length) {
      const before = this.history.pop() ?? null;
      if (before?.from === this.zoom?.from && before?.to === this.zoom?.to) continue;
      this.zoom = before;
      return true;
    }
    return false;
  }
}
