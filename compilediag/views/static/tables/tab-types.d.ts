// The types of the tabs: a table of rows, or a panel of a plug-in, with its columns.
import type { CompiledFunction } from "../core/compile-groups.js";

/** What a cell is written with besides its row. */
export interface CellContext {
  row: Cells;
  /** The function of the row's compile, if it is known. */
  owner: CompiledFunction | null;
  /** Unix ms of the start, which times are since. */
  start: number;
  recompiles: Recompiles;
}

/** A column shows one value (`name`) or a text made of several (`text`). */
export interface TabColumn<Row = Record<string, any>> {
  label: string;
  name?: keyof Row & string;
  type?: string;
  text?(get: Get<Row>, context: CellContext): string | null;
  /** The column that a `text` is sorted by. */
  sortBy?: keyof Row & string;
  isCode?: boolean;
  /** "bar": a number with a bar beside it. "steps": numbers of steps of the plan. */
  look?: "bar" | "steps";
  /** Least width of the table in px for the column to be shown. */
  from?: number;
}

export interface Tab<Name extends string = string> {
  table: Name;
  /** A name of its own where a table has several tabs. */
  name?: string;
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
  /** Not shown before it is chosen, also with rows. */
  isAside?: boolean;
  /** Rows that most readers do not need: left out until they are asked for, or something is searched. */
  minor?: { is(get: Get<RowOf<Name>>): boolean; describe(count: number): string };
}
