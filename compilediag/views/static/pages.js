// The pages of a session, the dashboard, the explorer and the ranks, and the way between them.
import { App } from "./dashboard/dashboard.js";
import { make, setShown } from "./core/dom.js";
import { Explorer } from "./explorer/explorer.js";
import { RanksPage } from "./ranks/ranks-page.js";

export class Shell {
  constructor(root, store, trail) {
    this.root = root;
    this.store = store;
    this.trail = trail;
    this.pages = new Map(); // name -> page, made when first shown
    this.listener = (place) => this.show(place);
    trail.listeners.add(this.listener);
    this.show(trail.place);
  }

  destroy() {
    this.trail.listeners.delete(this.listener);
    this.pages.forEach((page) => page.destroy());
  }

  /** A page that is not in view does not listen to the store. */
  show(place) {
    const changed = this.shown !== place.page;
    const came = changed && this.shown !== undefined; // from the other page: what had the focus there is hidden now
    this.shown = place.page;
    const page = this.pages.get(place.page) ?? this.open(place.page);
    for (const other of this.pages.values()) {
      setShown(other.root, other === page);
      if (other !== page) this.store.listeners.delete(other.listener);
    }
    this.store.listeners.add(page.listener);
    if (place.page === "explorer") page.goTo(place);
    else if (changed) page.paint();
    if (came) page.root.querySelector(".cdiag-page, .cdiag-to-explorer").focus({ preventScroll: true });
  }

  open(name) {
    const root = make("div", "");
    this.root.append(root);
    const explore = (place) => this.trail.go({ page: "explorer", ...place });
    const page = {
      explorer: () => new Explorer(root, this.store, this.trail),
      ranks: () => new RanksPage(root, this.store, this.trail),
      dashboard: () => new App(root, this.store, explore, () => this.trail.go({ page: "ranks" })),
    }[name]();
    this.pages.set(name, page);
    return page;
  }
}
