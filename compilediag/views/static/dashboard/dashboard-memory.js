// Which table, which search and which step of the plan a reader chose, remembered while the browser's tab is open.
import { nameOfSession, recall, remember } from "../core/memory.js";
/** @import { Store } from "../core/store.js" */
/** @import { Picked } from "./plan-step.js" */

/** @typedef {{tab: string, query: string, picked: Picked | null}} Choices */

export class DashboardMemory {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.isRestored = false;
  }

  /**
   * What was chosen before, once, as soon as the session is known.
   * @returns {Choices | null}
   */
  restore() {
    const name = nameOfSession(this.store.meta, "dashboard");
    if (this.isRestored || name === null) return null;
    this.isRestored = true;
    return recall(name);
  }

  /** @param {Choices} choices */
  save(choices) {
    const name = nameOfSession(this.store.meta, "dashboard");
    if (name !== null && this.isRestored) remember(name, choices);
  }
}
