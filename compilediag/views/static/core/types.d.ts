// The types of the browser's own code. Those of what the kernel sends are in page-types.d.ts.
import type { RowTypes } from "./page-types";

/** The columns of a table of a given name; those of a plug-in's panel are not known. */
export type RowOf<Name extends string> = Name extends keyof RowTypes ? RowTypes[Name] : Record<string, any>;

/** Reads a column of one row. */
export type Get<Row = Record<string, any>> = <Name extends keyof Row>(name: Name) => Row[Name];

/** Label of a column, and 1 for ascending or -1 for descending. */
export type Sort = [label: string, direction: number];

/** Where the reader is. On the dashboard: at a finding, by its id, or a stretch of the timeline, in s since the start. */
export interface Place {
  page?: "dashboard" | "plan" | "explorer" | "ranks" | "vllm";
  finding?: string;
  range?: [from: number, to: number];
  function?: number;
  guard?: string;
  tree?: number;
  other?: number;
  event?: number;
  events?: number[];
}
