// What all pages share: the theme, the explanations on hover, and one drawing per frame; and the bar above a page beside
// the dashboard, with the way back.
import { make } from "./dom.js";
import { Hints } from "./hints.js";
import { followTheme } from "./theme.js";
import { draw, html } from "./view.js";

/** A page that is one component. */
export class Page {
  /** @param {PageHost} host @param {View} [View] missing for a page that draws itself */
  constructor({ root, store, trail }, View) {
    this.root = root;
    this.store = store;
    this.trail = trail;
    this.View = View;
    /** @type {Place} */
    this.place = {};
    /** @type {number | null} the frame that will paint */
    this.painting = null;
    this.view = make("div", { class: "cdiag-view" });
    root.replaceChildren(this.view);
    this.hints = new Hints(root);
    this.end = new AbortController(); // of what listens to something outside of the page
    followTheme(root, this.end.signal, () => this.onTheme());
    /** @param {boolean} isUrgent */
    this.listener = (isUrgent) => this.planPaint(isUrgent);
  }

  destroy() {
    this.end.abort();
    this.store.listeners.delete(this.listener);
    if (this.painting !== null) cancelAnimationFrame(this.painting);
    this.hints.destroy();
    draw(this.view, null);
  }

  /** The colors have changed; only what is drawn on a canvas has to be drawn again. */
  onTheme() {}

  /** @param {boolean} _isUrgent whether a person waits for it */
  planPaint(_isUrgent) {
    this.painting ??= requestAnimationFrame(() => this.paint());
  }

  /** Draws the page, and notes which patch it shows. */
  paint() {
    this.painting = null;
    draw(this.view, html`<${this.View} store=${this.store} trail=${this.trail} place=${this.place} />`);
    this.root.dataset.seq = String(this.store.seq ?? "");
  }

  /** @param {Place} place */
  goTo(place) {
    this.place = place;
    this.paint();
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
