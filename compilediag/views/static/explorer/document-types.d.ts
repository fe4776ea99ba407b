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

/** The documents of functions by their ids, most seconds lost first. */
type Ranked = [id: number, document: FunctionDocument][];

/** A line of two trees: " " in both, "-" only in the first, "+" only in the second. */
type DifferenceSign = " " | "-" | "+";
type Difference = [sign: DifferenceSign, number: number];

/** Compares the numbers of two trees. */
type DiffTrees = (one: number[], other: number[]) => Difference[];

interface ShownLine {
  line: TreeLine;
  sign: DifferenceSign;
  /** What the search looks in. */
  text: string;
}

/** What a row of the grid of recompiles is drawn with. */
interface GridRowProps {
  context: FunctionContext;
  row: RecompileDocument;
  /** Its number. */
  at: number;
  /** Whether a cell is the one that is reached with Tab. */
  isStop: Is<string>;
}

interface GridCellProps extends GridRowProps {
  entry: number;
  failures: FailedGuard[] | undefined;
}

interface CellButtonProps {
  context: FunctionContext;
  guard: number | null;
  name: string;
  /** Also what is read aloud. */
  title?: string;
  isStop: Is<string>;
  children: ComponentChild;
}

/** A column of the table of entries. */
type EntryColumn = [head: string, isNumeric: boolean, writeCell: Draw<EntryDocument>];

/** The vertical axis of a plot of values. */
interface ValueScale {
  /** px. */
  high: number;
  /** px on the left for the texts. */
  gutter: number;
  rules: { y: number; text: string }[];
  /** Of the value with a number. */
  y: (value: number) => number;
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
