// The pages of a session, the dashboard, the explorer and the ranks, and the way between them.
import { App } from "./app.js";
import { make, setShown } from "./dom.js";
import { Explorer } from "./explore.js";
import { RanksPage } from "./ranks.js";

/** Where a page is: {page, function, guard, tree, other, event}. In a report it is the part of the address after #. */
export class Trail {
  constructor(place) {
    this.place = place;
    this.listeners = new Set();
  }

  go(place) {
    this.place = place;
    this.listeners.forEach((listener) => listener(place));
  }
}

const STEPS = ["guard", "tree", "event"];

/** {page: "explorer", function: 18, guard: "x"} -> "explorer/18/guard/x"; the dashboard's is "". */
export function writePlace(place) {
  if (place.page === "ranks") return place.page;
  if (place.page !== "explorer") return "";
  const step = STEPS.find((name) => place[name] !== undefined);
  const parts = [place.page, place.function, step, step && place[step], place.other];
  return parts.filter((part) => part !== undefined).map(encodeURIComponent).join("/");
}

/** The place that a text of `writePlace` names; the dashboard for any other text. */
export function readPlace(text) {
  let parts;
  try {
    parts = text.split("/").map(decodeURIComponent);
  } catch {
    parts = [];
  }
  if (parts[0] === "ranks") return { page: "ranks" };
  if (parts[0] !== "explorer") return { page: "dashboard" };
  const place = { page: "explorer" };
  const rest = parts.slice(1);
  if (/^\d+$/.test(rest[0])) place.function = Number(rest.shift());
  const [step, value, other] = rest;
  if (STEPS.includes(step) && value) place[step] = step === "guard" ? value : Number(value);
  if (step === "tree" && other) place.other = Number(other);
  return place;
}

/** A trail that is the report's own address, so that the browser's back button works and a link leads to a guard. */
export class AddressTrail extends Trail {
  constructor() {
    super(readPlace(location.hash.slice(1)));
    addEventListener("hashchange", () => super.go(readPlace(location.hash.slice(1))));
  }

  go(place) {
    if (writePlace(place) === location.hash.slice(1)) super.go(place);
    else location.hash = writePlace(place);
  }
}

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
