// The plan's card alone: what `%compilewatch plan` shows.
import { html } from "../core/view.js";
import { PlanCard } from "./plan-card.js";

/** @param {{store: Store, trail: Trail}} props */
export function PlanPage({ store, trail }) {
  /** @type {PlanActions} */
  const actions = {
    explore: (place) => trail.explore(place),
    pick: ({ evidence }) => trail.explore({ events: evidence }), // there is no table here
  };
  return html`<${PlanCard} store=${store} actions=${actions} />`;
}
