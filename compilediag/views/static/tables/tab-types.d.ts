// The types of the tabs, which all files know: a table of rows, or a panel of a plug-in, with its columns.

/** What a cell is written with besides its row. */
interface CellContext {
  row: Cells;
  /** The function of the row's compile, if it is known. */
  owner: CompiledFunction | null;
  /** Unix ms of the start, which times are since. */
  start: number;
  compiles: Compiles;
}

/** How a column looks. */
interface ColumnLook {
  /** That of the table's column, as the kernel sends it, if it is not written here. */
  type?: string;
  isCode?: boolean;
  /** "bar": a number with a bar beside it. "steps": numbers of steps of the plan. "line": a link, in a notebook. */
  look?: "bar" | "steps" | "line";
  /** Least width of the table in px for the column to be shown. */
  from?: number;
}

/** A column shows one value (`name`) or a text made of several (`text`). */
interface TabColumn<Row = Record<string, any>> extends ColumnLook {
  label: string;
  name?: keyof Row & string;
  text?(get: Get<Row>, context: CellContext): string | null;
  /** The column that a `text` is sorted by. */
  sortBy?: keyof Row & string;
}

/** Columns of several tabs, by name. */
type SharedColumns = {
  TIME: TabColumn<{ time: number }>;
  CODE: TabColumn<{ user_code: string | null }>;
} & Record<"CHANGE" | "COMPILE" | "FUNCTION" | "GUARD" | "HOW" | "LINE" | "STEP" | "WHAT_CHANGED", TabColumn>;

/** A value whose label is its name in words, unless it has one. */
interface NamedColumn<Row> extends ColumnLook {
  name: keyof Row & string;
  label?: string;
}

/** A column as a tab writes it: the name alone, if that is all. */
type ColumnOf<Row> = (keyof Row & string) | NamedColumn<Row> | TabColumn<Row>;

/** A tab as it is written: most are sorted by time, the latest first. */
type WrittenTab<Name extends string> = Omit<Tab<Name>, "columns" | "name" | "sort"> & {
  columns: ColumnOf<RowOf<Name>>[];
  name?: string;
  sort?: Sort;
};

interface Tab<Name extends string = string> {
  table: Name;
  /** That of its table, or one of its own where a table has several tabs. */
  name: string;
  label: string;
  /** What is shown while there are no rows. */
  empty: string;
  /** A remark about the rows that are shown. */
  note?: string | null;
  sort: Sort;
  columns: TabColumn<RowOf<Name>>[];
  /** Which rows of its table it shows; all without it. */
  only?(get: Get<RowOf<Name>>): boolean;
  /** "call-sites": drawn as a tree instead of a table. */
  view?: "call-sites";
  /** Its table is collected only if that is asked for, so without rows nothing is missing. */
  isOnRequest?: boolean;
  /** Not shown before it is chosen, also with rows. */
  isAside?: boolean;
  /** Rows that most readers do not need: left out until they are asked for, or something is searched. */
  minor?: { is(get: Get<RowOf<Name>>): boolean; describe(count: number): string };
}

/** How many rows of a tab are shown, and how many there are; `isBlind`: the table's sources do not work. */
interface TabCount {
  shown: number;
  all: number;
  isBlind: boolean;
}

interface TabBarProps {
  /** The element that the tabs control. */
  panelId: string;
  tabs: Tab[];
  current: Tab;
  /** By name of the tab. */
  counts: Map<string, TabCount>;
  isFiltered: boolean;
  onPick: (tab: Tab) => void;
}

/** What is said above the rows of a tab. */
interface TabNote {
  note: string | null;
  isWarning: boolean;
}

interface DataTableProps {
  compiles: Compiles;
  tab: Tab;
  /** Positions of the rows that passed the filter. */
  passed: number[];
  said: TabNote;
  openId: number | null;
  /** Runs on a click or Enter. */
  onOpen: OpenRow;
  /** Gets what moves to a row. */
  handle: { current: TableHandle | null };
  isHidden?: boolean;
}

interface RowCellsProps {
  compiles: Compiles;
  table: Table;
  row: Cells;
  columns: TabColumn[];
  /** To a line of a cell in the notebook around the table. */
  canGo: boolean;
}

/** A row, and the stack that it ends. */
interface StackEnd {
  frames: StackFrame[];
  table: Table<any>;
  row: Cells;
  seconds: number;
}

interface FoundEnds {
  ends: StackEnd[];
  /** Outermost frames that are left out, at most, of one stack. */
  hostFrames: number;
}

/** A node of the tree of stacks. */
interface TreeNode {
  frame: StackFrame | null;
  branches: Map<string, TreeNode>;
  ends: StackEnd[];
  count: number;
  seconds: number;
}

interface CallSitesProps {
  stacks: CallStacks;
  /** Of the compiles that passed the filter. */
  positions: number[];
  filter: Filter;
  note: string | null;
  openId: number | null;
  onOpen: OpenRow;
}

/** A tab, and the positions of the rows that it shows. */
interface ShownTab {
  tab: Tab;
  positions: number[];
}

/** What an export needs of the page. */
interface ExportedPage {
  readTable: () => ShownTab;
  /** What the timeline shows, in s since the start. */
  readRange: () => [from: number, to: number];
  print: () => void;
}

/** What moves to a row of a table from outside. */
interface TableHandle {
  /** Makes a row the one that the keys move from, and shows it. */
  moveTo: (index: number, hasFocus: boolean) => void;
  focusRow: () => void;
}

/** A part of the page that a search has hits in; `go` shows one. */
interface HitPlace {
  label: string;
  count: number;
  go: (index: number) => void;
}
