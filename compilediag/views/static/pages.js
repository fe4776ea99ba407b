// The pages of a session (dashboard, plan, explorer, ranks, vLLM), one of which is shown at a time.
import { make, setShown } from "./core/dom.js";
import { Dashboard } from "./dashboard/dashboard.js";
import { Explorer } from "./explorer/explorer.js";
import { PlanPage } from "./plan/plan-page.js";
import { RanksPage } from "./ranks/ranks-page.js";
import { VllmPage } from "./vllm/vllm-page.js";

export class Pages {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {Trail} trail
   */
  constructor(root, store, trail) {
    this.root = root;
    this.store = store;
    this.trail = trail;
    /** @type {Map<string, Dashboard | Explorer | PlanPage | RanksPage | VllmPage>} name -> page, made when first shown */
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

  /**
   * Shows the page of a place. A page that is not in view does not listen to the store.
   * @param {Place} place
   */
  show(place) {
    const name = place.page ?? "dashboard";
    const hasChanged = this.shown !== name;
    const isArrival = hasChanged && this.shown !== null; // what had the focus on the other page is hidden now
    this.shown = name;
    const page = this.pages.get(name) ?? this.makePage(name);
    for (const other of this.pages.values()) {
      setShown(other.root, other === page);
      if (other !== page) this.store.listeners.delete(other.listener);
    }
    this.store.listeners.add(page.listener);
    if (page instanceof Explorer || page instanceof Dashboard) page.goTo(place);
    else if (hasChanged) page.paint();
    if (isArrival) focusPage(page.root);
  }

  /** @param {string} name */
  makePage(name) {
    const root = make("div", "");
    this.root.append(root);
    const page = this.buildPage(name, root);
    this.pages.set(name, page);
    return page;
  }

  /**
   * @param {string} name
   * @param {HTMLElement} root
   */
  buildPage(name, root) {
    if (name === "explorer") return new Explorer(root, this.store, this.trail);
    if (name === "ranks") return new RanksPage(root, this.store, this.trail);
    if (name === "vllm") return new VllmPage(root, this.store, this.trail);
    /** @param {Place} place */
    const explore = (place) => this.trail.go({ page: "explorer", ...place });
    if (name === "plan") return new PlanPage(root, this.store, explore);
    return new Dashboard(root, this.store, explore, (page) => this.trail.go({ page }));
  }
}

/**
 * Shows a page from its top; it takes the focus.
 * @param {HTMLElement} root
 */
function focusPage(root) {
  root.scrollIntoView();
  /** @type {HTMLElement | null} */
  const target = root.querySelector(".cdiag-page, .cdiag-to-explorer");
  target?.focus({ preventScroll: true });
}
