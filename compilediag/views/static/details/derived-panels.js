// What the detail shows of a row that sums up many events: a tuning, the lookups or the CUDA graphs of a function.
import { GRAPH_PANEL } from "./cudagraph-details.js";
import { LOOKUP_PANEL } from "./lookup-details.js";
import { TUNING_PANEL } from "./tuning-details.js";

/**
 * @template Row, Part
 * @typedef {object} DerivedPanel
 * @property {(get: Get<Row>) => string} title
 * @property {(props: {get: Get<Row>, readers: Get<Part>[], start: number, linkCompile: (get: Get<any>) => ComponentChild}) => ComponentChild} Body
 * gets a reader of the row, and one of each event in it in order of time; `start` is in Unix ms, `linkCompile` makes a link to an event's compile
 */

/** @type {Record<string, DerivedPanel<any, any>>} derived table -> its panel */
export const DERIVED_PANELS = {
  cache_groups: LOOKUP_PANEL,
  tunings: TUNING_PANEL,
  graph_functions: GRAPH_PANEL,
};
