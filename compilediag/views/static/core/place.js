// Where the reader is: which page, and on it which function, guard, tree or event.

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
