// Which table, which search and which step of the plan a reader chose, remembered while the browser's tab is open; and
// whether the whole page is shown, for all sessions of a notebook.
import { nameOfSession, recall, remember } from "../core/memory.js";
/** @import { Picked } from "../plan/plan-card.js" */

/** @typedef {{tab: string | null, query: string, picked: Picked | null}} Choices */

/** Under which the size is remembered: the address is all that a page knows of its notebook. */
const nameOfSize = () => `size:${location.pathname}`;

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

  /** True if the reader wants the whole page. */
  get isFull() {
    return recall(nameOfSize()) === "full";
  }

  set isFull(isFull) {
    remember(nameOfSize(), isFull ? "full" : "compact");
  }
}
