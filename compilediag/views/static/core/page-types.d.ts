// The types of what the kernel sends to a page: patches and their parts. Rows are in rows.d.ts.
import type { RowTypes } from "./rows";

/** The columns of a table of a given name; those of a plug-in's panel are not known. */
export type RowOf<Name extends string> = Name extends keyof RowTypes ? RowTypes[Name] : Record<string, any>;

/** A row as it is sent: its values in the order of the table's columns, the event id first. */
export type Cells = [id: number, ...values: any[]];

/** Reads a column of one row. */
export type Get<Row = Record<string, any>> = <Name extends keyof Row>(name: Name) => Row[Name];

export interface Column {
  name: string;
  label: string;
  /** "time", "s", "ms", "us", "int", "share", "bytes", "number", "bool", "list", "ids", "id", "path", "code" or "text" */
  type: string;
  doc?: string;
}

export interface Meta {
  state?: string;
  title?: string | null;
  detail?: string | null;
  started_ms?: number | null;
  stopped_ms?: number | null;
  torch?: string | null;
  python?: string | null;
  pid?: number | null;
  compilediag?: string | null;
  platform?: string | null;
  /** What ran: "python train.py". */
  command?: string | null;
  device?: string | null;
  redacted?: boolean;
}

/** A compile that has not ended. */
export interface Flight {
  compile_id: string | null;
  compile_key?: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  trigger: string | null;
  phases: string[];
  phase: string | null;
  started_ms: number;
  /** Seconds that the function's last compile took. */
  before_s: number | null;
}

export interface Finding {
  rule: string;
  title: string;
  /** What following the suggestion saves at most. */
  seconds_recoverable: number | null;
  /** Each compiled version is needed. */
  is_expected: boolean;
  count: number;
  suggestion: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  /** Event ids. */
  evidence: number[];
  values: string[];
  /** Number of the plan's step that fixes it; null if none does. */
  step: number | null;
  /** The plan has it among its costs. */
  is_cost: boolean;
}

/** A change of an example that works; without a diff, no change is needed. */
export interface ExampleChange {
  outcome: string;
  diff: string;
}

/** A worked example of a rule. */
export interface Example {
  symptom: string;
  program: string;
  printed: string;
  changes: ExampleChange[];
}

/** An address and what is there. */
export interface Link {
  title: string;
  url: string;
}

/** One change of the plan. */
export interface PlanStep {
  file: string | null;
  line: number | null;
  /** "train.py:28"; "" if it is not known. */
  place: string;
  /** The text of that line. */
  code: string | null;
  /** What varies, in the user's names. */
  expression: string | null;
  what: string;
  /** The first values that were seen, of `value_count`. */
  values: string[];
  value_count: number;
  /** The change, as code if a program can apply it. */
  change: string;
  can_be_applied: boolean;
  /** Other changes with the same effect. */
  alternatives: string[];
  why: string;
  /** What it saves with the steps before it, and alone. */
  saving: string;
  rule: string;
  /** Event ids. */
  evidence: number[];
}

/** What no step of the plan resolves. */
export interface Unresolved {
  what: string;
  reason: string;
  place: string;
  /** Event ids. */
  evidence: number[];
}

/** Compile time that is spent without a recompile. */
export interface CompileCost {
  kind: string;
  what: string;
  advice: string;
  code: string | null;
  function: string | null;
  place: string;
  /** One line per compile or reason. */
  details: string[];
}

/** What trying the plan showed. */
export interface Outcome {
  /** The outcome in one line. */
  text: string;
  /** The recompiles that the plan names are gone, and nothing else changed. */
  holds: boolean;
}

/** The smallest set of changes that saves the most seconds. */
export interface Plan {
  headline: string;
  steps: PlanStep[];
  recompiles: number;
  recompiles_saved: number;
  /** All changes as one block. */
  code: string;
  /** A unified diff of the user's files; null if there is none. */
  patch: string | null;
  unresolved: Unresolved[];
  /** What the next process pays again first, then what can be saved. */
  costs: CompileCost[];
  tried: Outcome | null;
  notes: string[];
}

/** A table of a plug-in, or of a comparison. */
export interface Panel {
  name: string;
  label: string;
  columns: string[];
  rows: any[][];
  note: string | null;
  from?: number[];
  sort?: Sort;
}

/** Label of a column, and 1 for ascending or -1 for descending. */
export type Sort = [label: string, direction: number];

/** The text of an artifact: base64 of deflated UTF-8, or the id of an artifact with the same text. */
export interface StoredText {
  z?: string;
  cut?: boolean;
  same?: number;
  /** In a report: the artifact whose block contains this text. */
  in?: number;
  /** Its first and last position in the block. */
  slice?: [begin: number, end: number];
}

export interface RankSummary {
  rank: number;
  compiles: number;
  recompiles: number;
  graph_breaks: number;
  compile_s: number;
  lookups: string;
  first_difference: string | null;
}

/** Ranks that compiled the same; `rank` is the first of them, `ranks` are at most 64 of them. */
export interface RankGroup {
  rank: number;
  count: number;
  ranks: number[];
  compiles: number;
  recompiles: number;
  graph_breaks: number;
  lookups: string;
  median_s: number;
  slowest_rank: number;
  slowest_s: number;
  difference: string | null;
}

/** One compile on one rank. */
export interface RankCell {
  seconds: number | null;
  caches: string;
  guard: string | null;
  expected: string | null;
  actual: string | null;
  collectives: string[];
}

/** One compile over all ranks; `cells` are those of the shown ranks, null for a rank without it. */
export interface RankGraph {
  order: number;
  compile_id: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  trigger: string | null;
  ranks: number;
  missing: number[];
  missed: number;
  differs: string[];
  slowest_rank: number | null;
  slowest_s: number | null;
  median_s: number | null;
  spread_s: number | null;
  runtime_ms: number | null;
  cells: (RankCell | null)[];
}

export interface RankDifference {
  kind: string;
  sentence: string;
  evidence: number[];
  order: number;
}

/** `loaded`: the ranks whose rows the session has; empty if it has the rows of all ranks. */
export interface Ranks {
  count: number;
  loaded: number[];
  shown: number[];
  group_count: number;
  graph_count: number;
  differences: RankDifference[];
  ranks: RankSummary[];
  groups: RankGroup[];
  graphs: RankGraph[];
}

/** A range of sizes that vLLM compiles for; `seconds` are those of all pieces. */
export interface VllmRange {
  start: number | null;
  end: number | null;
  is_cudagraph_size: boolean;
  seconds: number | null;
}

/** A piece of a graph with a cell for each range; the cell is null if the piece was not compiled for that range. */
export interface VllmPiece {
  name: string;
  graph_ops: number | null;
  seconds: number | null;
  cells: ({ seconds: number | null } | null)[];
}

export interface VllmText {
  event_id: number;
  name: string;
  size: number | null;
}

/** A part of a model on the ranks that compile it alike; all seconds are those of the slowest, `rank`. */
export interface VllmPart {
  ranks: number[];
  rank: number | null;
  compile_id: string | null;
  config: Record<string, any>;
  compiles: number;
  seconds: number | null;
  piece_count: number;
  ranges: VllmRange[];
  pieces: VllmPiece[];
  texts: VllmText[];
}

/** What vLLM compiled; `count` is the number of all parts. */
export interface VllmParts {
  count: number;
  compiles: number;
  parts: VllmPart[];
}

/** What is new since the last patch; with `reset`, everything. A large patch comes in parts with one `seq`. */
export interface Patch {
  seq: number;
  reset?: boolean;
  part?: number;
  meta?: Meta;
  totals?: Record<string, any>;
  observed?: Record<string, boolean>;
  feeds?: Record<string, string[]>;
  made_of?: Record<string, string>;
  now?: Flight[];
  findings?: Finding[];
  plan?: Plan | null;
  /** Rule -> its example. */
  examples?: Record<string, Example>;
  /** Rule -> the page of torch's documentation about it. */
  torch_docs?: Record<string, Link>;
  ranks?: Ranks;
  vllm?: VllmParts;
  panels?: Panel[];
  columns?: Record<string, Column[]>;
  rows?: Record<string, Cells[]>;
  texts?: Record<string, StoredText>;
  /** Part -> what changes in it. */
  changes?: Record<string, Delta>;
  /** What changes in documents of functions, by their ids. */
  documents?: [id: number, change: Delta][];
}

/** How a value changes: see `patch_deltas.py`. */
export interface Delta {
  "="?: any;
  t?: [kept: number, rest: string];
  k?: Record<string, Delta>;
  x?: string[];
  l?: ([start: number, countOrChange: number | Delta] | { "=": any[] })[];
}

/** The patch of a report: a number in one of the `packed` columns of a table is a position in `strings`. */
export interface PackedPatch extends Patch {
  strings?: string[];
  packed?: Record<string, number[]>;
}

/** Where the reader is. */
export interface Place {
  page?: "dashboard" | "explorer" | "ranks" | "vllm";
  function?: number;
  guard?: string;
  tree?: number;
  other?: number;
  event?: number;
  events?: number[];
}
