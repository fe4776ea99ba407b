// Where the reader is: which page, and on it which function, guard, tree or event.

/** The current place, and who wants to know when it changes. */
export class Trail {
  /** @param {Place} place */
  constructor(place) {
    this.place = place;
    /** @type {Set<(place: Place) => void>} */
    this.listeners = new Set();
  }

  /** @param {Place} place */
  go(place) {
    this.place = place;
    this.listeners.forEach((listener) => listener(place));
  }

  /** @param {Place} place on the explorer's page */
  explore(place) {
    this.go({ page: "explorer", ...place });
  }
}

/** @type {("guard" | "tree" | "event")[]} */
const STEPS = ["guard", "tree", "event"];

/**
 * Writes a place as an address: {page: "explorer", function: 18, guard: "x"} is "explorer/18/guard/x". The dashboard's
 * is "", a finding on it "f-3a91c2", a stretch of its timeline "t=12.5-40".
 * @type {Write<Place>}
 */
function writePlace(place) {
  if (place.page === "ranks" || place.page === "vllm") return place.page;
  if (place.finding !== undefined) return `f-${place.finding}`;
  if (place.range) return `t=${place.range.map((seconds) => Math.round(seconds * 1000) / 1000).join("-")}`;
  if (place.page !== "explorer") return "";
  const step = STEPS.find((name) => place[name] !== undefined);
  const parts = [place.page, place.function, step, step && place[step], place.other];
  return parts.filter((part) => part !== undefined).map(encodeURIComponent).join("/");
}

/** @type {Write<Place>} */
export function writeLink(place) {
  return `${location.href.split("#")[0]}#${writePlace(place)}`;
}

/** @type {(text: string) => Place} reads an address of `writePlace`; any other text is the dashboard */
function readPlace(text) {
  /** @type {string[]} */
  let parts = [];
  try {
    parts = text.split("/").map(decodeURIComponent);
  } catch {
    // Not an address of ours.
  }
  const [page, ...rest] = parts;
  if (page === "ranks" || page === "vllm") return { page };
  if (page !== "explorer") {
    const finding = /^f-([0-9a-f]{10})$/.exec(text)?.[1];
    const [from, to] = /^t=(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text)?.slice(1).map(Number) ?? [0, 0];
    return { page: "dashboard", finding, range: from < to ? [from, to] : undefined };
  }
  /** @type {Place} */
  const place = { page };
  if (/^\d+$/.test(rest[0] ?? "")) place.function = Number(rest.shift());
  const [step, value, other] = rest;
  if (step === "guard" && value) place.guard = value;
  if ((step === "tree" || step === "event") && value) place[step] = Number(value);
  if (step === "tree" && other) place.other = Number(other);
  return place;
}

/** A trail that is the report's own address, so that the browser's back button works and a link leads to a guard. */
export class AddressTrail extends Trail {
  constructor() {
    super(readPlace(location.hash.slice(1)));
    addEventListener("hashchange", () => super.go(readPlace(location.hash.slice(1))));
  }

  /** @param {Place} place */
  go(place) {
    if (writePlace(place) === location.hash.slice(1)) super.go(place);
    else location.hash = writePlace(place);
  }
}
