// The sentences of the page of ranks.
import { make, makeButton } from "../core/dom.js";
import { MISSING, oneLine } from "../core/format.js";

/** A difference in a sentence; where it was a recompile of this session, with a way to its guard. */
export function differenceLine(one, isFirst, isRecompile, explore) {
  const event = one.evidence.find(isRecompile);
  const link = event === undefined ? null : makeButton("cdiag-link", "explore ›", () => explore(event));
  const kind = make("span", "cdiag-tag", one.kind === "way" ? "another way" : one.kind.replaceAll("_", " "));
  return make("li", isFirst ? "is-first" : "", kind, make("span", "", one.sentence), link);
}

/** "x.size()[0] 8 → 9". */
export function changeOfGuard(cell) {
  const values = [cell.expected, cell.actual].map((value) => (value === null ? MISSING : oneLine(value, 40)));
  return `${oneLine(cell.guard, 80)} ${values.join(" → ")}`;
}
