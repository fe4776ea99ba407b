// What the pages beside the dashboard share: a bar with the way back, a scrolled body, one painting per frame.
import { make, makeButton } from "./dom.js";
import { Hints } from "./hints.js";
import { followTheme } from "./theme.js";
/** @import { Child } from "./dom.js" */
/** @import { Trail } from "./place.js" */
/** @import { Store } from "./store.js" */

export class SidePage {
  /**
   * A subclass paints itself in `paint()`, which calls `beginPaint()`; `name` is its class.
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {Trail} trail
   * @param {string} name
   * @param {string} label for screen readers
   */
  constructor(root, store, trail, name, label) {
    this.root = root;
    this.store = store;
    this.trail = trail;
    /** @type {number | null} */
    this.painting = null;
    root.classList.add("cdiag", name);
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", label);
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's command mode would take our arrow keys
    this.status = make("span", "cdiag-title");
    this.page = make("div", "cdiag-page");
    this.page.tabIndex = -1;
    this.unfollow = followTheme(root, () => {});
    /** @type {Hints | null} made with the first painting, after the page has its parts */
    this.hints = null;
    this.listener = () => this.planPaint();
  }

  /**
   * @param {string} title
   * @param {Child[]} parts
   */
  makeBar(title, ...parts) {
    const back = makeButton("cdiag-button", "dashboard", () => this.trail.go({ page: "dashboard" }));
    return make("div", "cdiag-bar", make("h2", "", title), this.status, ...parts, back);
  }

  destroy() {
    this.store.listeners.delete(this.listener);
    this.cancelPaint();
    this.hints?.destroy();
    this.unfollow();
  }

  cancelPaint() {
    if (this.painting !== null) cancelAnimationFrame(this.painting);
    this.painting = null;
  }

  planPaint() {
    this.painting ??= requestAnimationFrame(() => this.paint());
  }

  /** Notes that the painting has begun, and which patch it shows. */
  beginPaint() {
    this.painting = null;
    this.hints ??= new Hints(this.root);
    this.root.dataset.seq = String(this.store.seq ?? "");
  }

  paint() {}
}
