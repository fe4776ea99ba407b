// The pages of a session (dashboard, plan, explorer, ranks, vLLM), one of which is shown at a time.
import { findAll, make } from "./core/dom.js";
import { Page } from "./core/page.js";
import { Dashboard } from "./dashboard/dashboard.js";
import { Explorer } from "./explorer/explorer.js";
import { html } from "./core/view.js";
import { PlanCard } from "./plan/plan-card.js";
import { RanksPage } from "./ranks/ranks-page.js";
import { VllmPage } from "./vllm/vllm-page.js";

/** @type {View} the plan's card alone: what `%compilewatch plan` shows */
function PlanPage({ store, trail }) {
  /** @type {PlanActions} */
  const actions = {
    explore: (place) => trail.explore(place),
    pick: ({ evidence }) => trail.explore({ events: evidence }), // there is no table here
  };
  return html`<${PlanCard} store=${store} actions=${actions} />`;
}

/** @type {Record<string, [className: string, label: string, view?: View]>} page -> its class, name, and component */
const PAGES = {
  dashboard: ["cdiag-dashboard", "torch.compile dashboard"],
  plan: ["cdiag-plan-page", "plan for torch.compile", PlanPage],
  explorer: ["cdiag-explorer", "guard explorer", Explorer],
  ranks: ["cdiag-ranks", "ranks", RanksPage],
  vllm: ["cdiag-vllm", "vLLM", VllmPage],
};

export class Pages {
  /** @param {PageHost} host */
  constructor({ root, store, trail }) {
    this.root = root;
    this.store = store;
    this.trail = trail;
    /** @type {Map<string, Page>} name -> page, made when first shown */
    this.pages = new Map();
    /** @type {string | null} */
    this.shown = null;
    /** @param {Place} place */
    this.listener = (place) => this.show(place);
    trail.listeners.add(this.listener);
    this.show(trail.place);
  }

  destroy() {
    this.trail.listeners.delete(this.listener);
    this.pages.forEach((page) => page.destroy());
  }

  /** @param {Place} place whose page is shown. A page that is not in view does not listen to the store. */
  show(place) {
    const name = place.page ?? "dashboard";
    const isArrival = this.shown !== null && this.shown !== name; // what had the focus on the other page is hidden now
    this.shown = name;
    const page = this.pages.get(name) ?? this.makePage(name);
    for (const other of this.pages.values()) {
      other.root.hidden = other !== page;
      if (other !== page) this.store.listeners.delete(other.listener);
    }
    this.store.listeners.add(page.listener);
    page.goTo(place);
    if (!isArrival) return;
    page.root.scrollIntoView(); // from its top
    findAll(page.root, ".cdiag-page, .cdiag-to-explorer")[0]?.focus({ preventScroll: true });
  }

  /** @param {string} name */
  makePage(name) {
    const [className, label, View] = PAGES[name];
    // A click gives it the focus, and so its keys.
    const root = make("div", { class: `cdiag ${className}`, role: "region", "aria-label": label, tabindex: "-1" });
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's command mode would take our arrow keys
    if (name === "plan") root.dataset.size = "compact"; // its card is that of the compact dashboard
    this.root.append(root);
    const host = { root, store: this.store, trail: this.trail };
    const page = View ? new Page(host, View) : new Dashboard(host);
    this.pages.set(name, page);
    return page;
  }
}
