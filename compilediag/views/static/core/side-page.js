// What the pages beside the dashboard share: a bar with the way back, a place that is scrolled, one painting a frame.
import { make, makeButton } from "./dom.js";
import { followTheme } from "./theme.js";

export class SidePage {
  /** A page paints itself in `paint()`, which clears `painting`; `name` is its class. */
  constructor(root, store, trail, name) {
    this.root = root;
    this.store = store;
    this.trail = trail;
    this.painting = null;
    this.shape = null; // what was painted last
    root.classList.add("cdiag", name);
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's command mode would take our arrow keys
    this.status = make("span", "cdiag-title");
    this.page = make("div", "cdiag-page");
    this.page.tabIndex = -1;
    this.unfollow = followTheme(root, () => {});
    this.listener = () => this.plan();
  }

  makeBar(title, ...parts) {
    const back = makeButton("cdiag-pause", "dashboard", () => this.trail.go({ page: "dashboard" }));
    return make("header", "cdiag-bar", make("h2", "", title), this.status, ...parts, back);
  }

  destroy() {
    this.store.listeners.delete(this.listener);
    cancelAnimationFrame(this.painting);
    this.unfollow();
  }

  plan() {
    this.painting ??= requestAnimationFrame(() => this.paint());
  }
}
