// The plan's card alone: what `%compilewatch plan` shows.
import { Held, html } from "../core/view.js";
import { useMemo } from "../vendor/hooks.js";
import { PlanCard } from "./plan-card.js";

/** @param {{store: Store, trail: Trail}} props */
export function PlanPage({ store, trail }) {
  const card = useMemo(() => {
    const explore = (/** @type {Place} */ place) => trail.explore(place);
    return new PlanCard(store, { pick: ({ evidence }) => explore({ events: evidence }), explore }); // there is no table here
  }, [store]);
  card.paint();
  return html`<${Held} node=${card.node} />`;
}
