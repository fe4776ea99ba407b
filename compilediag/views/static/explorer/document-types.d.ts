// What the explorer's pages work with. The types of the documents that the kernel makes are in ../core/page-types.d.ts.
import type { Documents } from "./documents.js";

/** A list as it is sent: names of the fields, and their values per item. */
export type PackedList = [names: string[], rows: any[][]];

/** One line of a guard tree. */
export type TreeLine = [depth: number, what: string, detail: string | null, place: string | null, code: string | null];

/** The numbers of a tree's lines in order, and all lines by number. */
export interface GuardTree {
  numbers: number[];
  lines: TreeLine[];
}

/** What the pages of a function need. */
export interface FunctionContext {
  id: number;
  found: FunctionDocument;
  store: Store;
  documents: Documents;
  /** The time that all others are since, Unix ms. */
  start: number;
  go: (place: Place) => void;
}
