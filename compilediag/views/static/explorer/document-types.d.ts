// What the explorer's pages work with. The types of the documents that the kernel makes are in ../core/page-types.d.ts.

/** A list as it is sent: names of the fields, and their values per item. */
type PackedList = [names: string[], rows: any[][]];

/** One line of a guard tree. */
type TreeLine = [depth: number, what: string, detail: string | null, place: string | null, code: string | null];

/** The numbers of a tree's lines in order, and all lines by number. */
interface GuardTree {
  numbers: number[];
  lines: TreeLine[];
}

/** What the pages of a function need. */
interface FunctionContext {
  id: number;
  found: FunctionDocument;
  store: Store;
  documents: import("./documents.js").Documents;
  /** The time that all others are since, Unix ms. */
  start: number;
  go: (place: Place) => void;
}
