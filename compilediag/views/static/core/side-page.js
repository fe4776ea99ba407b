// What the pages beside the dashboard share: a bar with the way back, a scrolled body, one drawing per frame.
import { make } from "./dom.js";
import { Hints } from "./hints.js";
import { followTheme } from "./theme.js";
import { draw, html } from "./view.js";

export class SidePage {
  /**
   * A subclass describes itself in `describe()`; `name` is its class.
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
    this.view = make("div", "cdiag-view");
    root.replaceChildren(this.view);
    this.hints = new Hints(root);
    this.unfollow = followTheme(root, () => {});
    this.listener = () => this.planPaint();
  }

  destroy() {
    this.store.listeners.delete(this.listener);
    if (this.painting !== null) cancelAnimationFrame(this.painting);
    this.hints.destroy();
    this.unfollow();
    draw(this.view, null);
  }

  planPaint() {
    this.painting ??= requestAnimationFrame(() => this.paint());
  }

  /** Draws the page, and notes which patch it shows. */
  paint() {
    this.painting = null;
    draw(this.view, this.describe());
    this.root.dataset.seq = String(this.store.seq ?? "");
  }

  /** @returns {ComponentChild} */
  describe() {
    return null;
  }
}

/** @param {{title: string, status: string, trail: Trail, children?: ComponentChild}} props */
export function PageBar({ title, status, trail, children }) {
  return html`
    <div class="cdiag-bar">
      <h2>${title}</h2><span class="cdiag-title">${status}</span>${children}
      <button type="button" class="cdiag-button" onClick=${() => trail.go({ page: "dashboard" })}>dashboard</button>
    </div>`;
}
