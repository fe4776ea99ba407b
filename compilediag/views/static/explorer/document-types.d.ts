// The document that the kernel makes of each function (compilediag/views/explorer/document_types.py), and of guard trees.
import type { Place } from "../core/page-types";
import type { Store } from "../core/store.js";
import type { Documents } from "./documents.js";

/** A list as it is sent: names of the fields, and their values per item. */
export type PackedList = [names: string[], rows: any[][]];

/** A guard that failed in an entry: its number, whether it was the first, torch's own count, what the entry expects. */
export type Failure = [guard: number, isFirst: boolean, count: number | null, expected: string | null];

/** A recompile: one line of the grid. Entries and guards are given by their numbers. */
export interface RecompileLine {
  event: number;
  made: number | null;
  closest: number | null;
  guard: number | null;
  cells: [entry: number, failures: Failure[]][];
  time: number;
  compile_id: string | null;
  expected: string | null;
  now: string | null;
  entries_checked: number | null;
  /** How many of those checked have no cell: only the closest are analyzed. */
  others: number;
  lost_s: number | null;
}

/** An entry: one column of the grid. */
export interface Entry {
  event: number | null;
  compile_id: string | null;
  /** Number of the recompile that made it. */
  made_at: number | null;
  seconds: number | null;
  /** Event id of its guard tree. */
  tree: number | null;
  /** Its position in a lookup, from 1. */
  order: number | null;
  failed: [guard: number, recompiles: number, count: number | null, expected: string | null][];
  calls: number | null;
  mean_s: number | null;
  won_s: number | null;
  break_even: number | null;
  time: number | null;
  guard_count: number | null;
  guard_latency_us: number | null;
}

export interface Guard {
  key: string;
  name: string;
  kinds: string[];
  texts: string[];
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  /** Lines around the user's line, with their numbers. */
  around: [number: number, text: string][] | null;
  framework: string | null;
  framework_code: string | null;
  stack: string | null;
  hint: string | null;
  recompiles: number;
  alone: number;
  lost_s: number | null;
  verdict: string | null;
  /** Guards that failed with it, and at how many recompiles. */
  with: [guard: number, recompiles: number][];
  /** Each value that was seen, and as a number where it is one. */
  values: [text: string, number: number | null][];
  /** Step (0 is before the first recompile), number of the value, whether it came or an entry expects it. */
  points: [step: number, value: number, came: boolean][];
}

export interface FunctionDocument {
  function: string | null;
  file: string | null;
  line: number | null;
  rank: number | null;
  pid: number | null;
  compiles: number;
  recompiles: number;
  lost_s: number | null;
  eager: { calls: number; total_s: number; mean_s: number | null } | null;
  once: { count: number; seconds: number } | null;
  entries: Entry[];
  rows: RecompileLine[];
  guards: Guard[];
}

export type PackedDocument = Omit<FunctionDocument, "entries" | "rows" | "guards"> & {
  entries: PackedList;
  rows: PackedList;
  guards: PackedList;
};

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
  go: (place: Place) => void;
}
