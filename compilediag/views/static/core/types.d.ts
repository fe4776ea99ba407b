// The types of the browser's own code that all files know, as they know those of what the kernel sends (page-types.d.ts).

/** The classes and types that nearly every file names. */
type Compiles = import("./compiles.js").Compiles;
type ComponentChild = import("../vendor/preact.js").ComponentChild;
type Recompiles = Compiles;
type Store = import("./store.js").Store;
type Table<Name extends string = string> = import("./store.js").Table<Name>;
type Trail = import("./place.js").Trail;

/** The columns of a table of a given name; those of a plug-in's panel are not known. */
type RowOf<Name extends string> = Name extends keyof RowTypes ? RowTypes[Name] : Record<string, any>;

/** Reads a column of one row. */
type Get<Row = Record<string, any>> = <Name extends keyof Row>(name: Name) => Row[Name];

/** Label of a column, and 1 for ascending or -1 for descending. */
type Sort = [label: string, direction: number];

/** Where the reader is. On the dashboard: at a finding, by its id, or a stretch of the timeline, in s since the start. */
interface Place {
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
