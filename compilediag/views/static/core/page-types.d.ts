// Written by `make docs` (docs/make_page_types.py) from compilediag/views/page_types.py and the columns of the tables;
// a test holds them together. All files know these types, and those that only the browser has (types.d.ts).

/** A JSON column: a list or an object, as docs/tables.md describes it. */
type Json = any;

/** A row as it is sent: its values in the order of the table's columns, the event id first. */
type Cells = [id: number, ...values: any[]];

/** What is new since the patch `seq` - 1; everything if `reset`. A large patch comes in parts, numbered from 0. */
interface Patch {
  columns?: Record<string, Column[]>;
  feeds?: Record<string, string[]>;
  made_of?: Record<string, string>;
  meta?: Meta;
  totals?: TotalsDict;
  observed?: Record<string, boolean>;
  now?: RunningCompile[];
  findings?: Finding[];
  plan?: Plan;
  examples?: Record<string, Example>;
  torch_docs?: Record<string, Link>;
  ranks?: Ranks;
  vllm?: VllmParts;
  panels?: Panel[];
  rows?: Record<string, Cells[]>;
  texts?: Record<string, StoredText>;
  changes?: Record<string, Delta>;
  documents?: [number, Delta][];
  seq: number;
  reset?: boolean;
  part?: number;
}

/** A column. `type` says how a cell is shown: time, s, ms, us, int, share, bytes, number, bool, list, ids, id, path,
 *  code or text. */
interface Column {
  name: string;
  label: string;
  type: string;
  doc: string;
}

/** The session as a whole. `schema` is the version of the patch format; times are in ms since 1970.
 *
 *  What was not recorded is None. */
interface Meta {
  schema: number;
  state: string;
  title: string | null;
  detail: string | null;
  started_ms: number | null;
  stopped_ms: number | null;
  torch: string | null;
  python: string | null;
  pid: number | null;
  compilediag: string | null;
  platform: string | null;
  command: string | null;
  device: string | null;
  redacted: boolean;
  left_out?: LeftOut;
}

/** What a report leaves out: rows (table -> how many) of so many `compiles` `of` all. */
interface LeftOut {
  compiles: number;
  of: number;
  rows: Record<string, number>;
}

/** Counts and seconds of a session. None is a number that was not collected.
 *
 *  `cache_hits` counts compiled graphs that came from a cache, `cache_misses` those that no cache had; `by_cache` has
 *  each cache by itself. `tuning_runs` were measured, not taken from a cache. `graph_records` are first captures.
 *  `compile_s` is the time of all compiles, `lost_s` of those that recompiles caused, `cache_saved_s` what hits saved
 *  as torch reports it, `tuning_s` what compiling and timing choices took. `own_s` is what compilediag's hooks and
 *  writer took, `own_share` is own_s / compile_s. `wall_s` is the time of the recording, `wall_share` the share of it
 *  in which a process compiled. `last_step` is the program's own step of the last compile, `end_step` its last one, if
 *  the recording is over. `after_warmup` counts the incidents after the warm-up; it is None if no warm-up ended. If
 *  ranks were grouped, `ranks` is the number of all ranks and `ranks_read` the number of those whose rows the session
 *  has. All other numbers cover only these. */
interface TotalsDict {
  events: number;
  compiles: number;
  recompiles: number;
  refused_calls: number;
  graph_breaks: number;
  limit_hits: number;
  kernels: number;
  cache_hits: number;
  cache_misses: number;
  cache_saved_s: number;
  by_cache: Record<string, SingleCacheTotals>;
  tuning_runs: number;
  tuning_choices: number;
  tuning_failed: number;
  tuning_s: number;
  graph_records: number;
  graph_rerecords: number;
  graph_skips: number;
  graph_replays: number | null;
  compile_s: number;
  lost_s: number;
  own_s: number;
  own_share: number | null;
  wall_s: number | null;
  wall_share: number | null;
  last_step: number | null;
  end_step: number | null;
  after_warmup: number | null;
  dropped: number;
  compiled_calls: number | null;
  eager_calls: number | null;
  eager_s: number | null;
  used_once: number | null;
  used_once_s: number | null;
  ranks: number | null;
  ranks_read: number | null;
  vllm_compiles: number;
  vllm_s: number;
}

/** The lookups of one cache. */
interface SingleCacheTotals {
  hits: number;
  misses: number;
  saved_s: number;
}

/** A compile that runs now. `phase` is the innermost of `phases`; `before_s` is what the last one of the same
 *  function took. */
interface RunningCompile {
  compile_id: string | null;
  compile_key: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  trigger: string | null;
  phases: string[];
  phase: string | null;
  started_ms: number;
  before_s: number | null;
}

/** A finding, see `compilediag.diagnosis.Finding`; `fix` is code, `step` the number of the plan's step for it.
 *
 *  `id` names it in links. `is_cost`: the plan has it among its costs. */
interface Finding {
  id: string;
  rule: string;
  title: string;
  seconds_recoverable: number;
  is_expected: boolean;
  count: number;
  suggestion: string;
  fix: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  evidence: number[];
  values: string[];
  step: number | null;
  is_cost: boolean;
}

/** The plan as `Plan.to_dict()` has it, and the change as `sources` and as `patch`, a unified diff: that of the
 *  steps, or the one that a search has proven; None if there is none. `try_command` tries the plan from the outside. */
interface Plan {
  headline: string;
  leads: string | null;
  steps: PlanStep[];
  recompiles: number;
  recompiles_saved: number;
  seconds: number;
  seconds_saved: number;
  settings: Record<string, any>;
  settings_code: string;
  code: string;
  patch: string | null;
  sources: ChangedSource[];
  try_command: string;
  unresolved: UnresolvedCause[];
  costs: CompileCost[];
  specs: Spec[];
  tried: Outcome & {text: string} | null;
  searched: SearchOutcome | null;
  notes: string[];
}

/** A step of the plan, see `compilediag.diagnosis.plan.PlanStep`; `alternatives` are code. `recompiles_gained` and
 *  `seconds_gained` are what it saves beside the steps before it. */
interface PlanStep {
  file: string | null;
  line: number | null;
  place: string;
  function: string | null;
  code: string | null;
  expression: string | null;
  title: string;
  title_values: string[];
  has_more_values: boolean;
  origin: string;
  what: string;
  values: string[];
  value_count: number;
  change: string;
  can_be_applied: boolean;
  is_certain: boolean;
  alternatives: string[];
  causes: string[];
  fingerprints: string[];
  why: string;
  saving: string;
  recompiles_saved_alone: number;
  recompiles_saved: number;
  seconds_saved: number;
  recompiles_gained: number;
  seconds_gained: number;
  rule: string;
  evidence: number[];
  proof: Evidence | null;
}

/** The compiles of the function that a step recompiled, with the values called `names`; `hidden` are left out. */
interface Evidence {
  function: string;
  names: string[];
  compiles: StepCompile[];
  hidden: number;
}

/** A compile of a function: what changed for it, null for the first one, and the values that came, "" where a guard
 *  held. `is_own`: the step is about this recompile. `event` is the id of the recompile. */
interface StepCompile {
  event: number | null;
  time: number;
  values: string[];
  change: string | null;
  is_own: boolean;
  seconds: number;
}

/** A file or cell that the plan changes, see `compilediag.diagnosis.plan.changed_sources`. `lines` are those of its
 *  diff. Of a cell it has the number and the texts before and after; None for a file. */
interface ChangedSource {
  place: string;
  cell: number | null;
  lines: DiffLine[];
  before: string | null;
  after: string | null;
}

/** A line of a diff: its number before the change, None for a new one; " ", "-" or "+"; its text; and the number of
 *  the plan's step that changes it, None for a line that stays. */
type DiffLine = [number: number | null, mark: string, text: string, step: number | null];

/** What no step of the plan resolves, and why. `evidence` holds the event ids of its recompiles. */
interface UnresolvedCause {
  what: string;
  reason: string;
  place: string;
  evidence: number[];
}

/** Time without a recompile, see `compilediag.diagnosis.rules.costs.CompileCost`. */
interface CompileCost {
  kind: string;
  seconds: number;
  title: string;
  what: string;
  advice: string;
  code: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  place: string;
  details: string[];
  evidence: number[];
}

/** A specification of a function's arguments that can replace `steps`, which are numbers of steps from 1. */
interface Spec {
  title: string;
  steps: number[];
  code: string;
}

/** What a search for a change found, as sentences: see `compilediag.fix`.
 *
 *  `patch` is a unified diff; "" if nothing held. `left` are the causes that remain, `rejected` what was tried and
 *  why it was not taken. `holds`: the change was found, and nothing spoke against it. `lines` is how many lines it
 *  changes; None, as what was measured, if no change held. */
interface SearchOutcome {
  recompiles_before: number | null;
  recompiles_after: number | null;
  compile_seconds_before: number | null;
  compile_seconds_after: number | null;
  wall_seconds_before: number | null;
  wall_seconds_after: number | null;
  headline: string;
  patch: string;
  holds: boolean;
  left: string[];
  rejected: string[];
  notes: string[];
  lines: number | null;
}

/** A program that shows a rule. `symptom` is what a user notices, `printed` what compilediag prints.
 *
 *  `changes` are the ways that work; none if no change is needed. */
interface Example {
  symptom: string;
  program: string;
  printed: string;
  changes: ExampleChange[];
}

/** A change that works: what becomes of the recompiles, and a unified diff of the program without file names. */
interface ExampleChange {
  outcome: string;
  diff: string;
}

/** An address and what is there. */
interface Link {
  title: string;
  url: string;
}

/** The page "Ranks". `count`, `group_count` and `graph_count` are total numbers; `shown` are the ranks that compiles
 *  have cells of. `loaded` are the ranks whose rows the session has; empty if it has the rows of all ranks. */
interface Ranks {
  count: number;
  loaded: number[];
  shown: number[];
  group_count: number;
  graph_count: number;
  differences: RankDifference[];
  ranks: RankRow[];
  groups: RankGroup[];
  graphs: RankGraph[];
}

/** Where ranks diverge; `order` is its place in the order of compiles. */
interface RankDifference {
  kind: string;
  sentence: string;
  evidence: number[];
  order: number;
}

/** One rank. `behind_s`: seconds that it compiled longer than the median rank. */
interface RankRow {
  rank: number;
  compiles: number;
  recompiles: number;
  graph_breaks: number;
  compile_s: number;
  behind_s: number;
  lookups: string;
  first_difference: string | null;
}

/** Ranks that compiled the same. `rank` is the first of them, whose rows the session has; all numbers of seconds
 *  are computed from all ranks of the group. `difference` is where that rank first differs from the first of the
 *  largest group. */
interface RankGroup {
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

/** A compile over all ranks, see `GraphRow` of `diagnosis.rank_comparison`: `ranks` have it, `missed` do not,
 *  the first of which are `missing`. It has a cell for each shown rank, which is None for one that did not compile it. */
interface RankGraph {
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

/** A compile on one rank. */
interface RankCell {
  seconds: number | null;
  caches: string;
  guard: string | null;
  expected: string | null;
  actual: string | null;
  collectives: string[];
}

/** The page "vLLM"; `count` and `compiles` are total numbers. */
interface VllmParts {
  count: number;
  compiles: number;
  parts: VllmPart[];
}

/** A part of a model on the ranks that compile it in the same way; all seconds are those of the slowest of them,
 *  `rank`. `config` has the columns of `vllm_configs`. */
interface VllmPart {
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

/** A range of sizes; `seconds` are those of all pieces, None if none ended. */
interface VllmRange {
  start: number | null;
  end: number | null;
  is_cudagraph_size: boolean;
  seconds: number | null;
}

/** A piece with a cell for each range; the cell is None if the piece was not compiled for that range. */
interface VllmPiece {
  name: string;
  graph_ops: number | null;
  seconds: number | null;
  cells: (VllmCell | null)[];
}

/** A piece for a range. */
interface VllmCell {
  seconds: number | null;
}

/** A text of the session. */
interface VllmText {
  event_id: number;
  name: string;
  size: number | null;
}

/** A table of a plug-in, or of a comparison. */
interface Panel {
  columns: string[];
  rows: ((string | number | boolean | null)[])[];
  note: string | null;
  from?: number[];
  sort?: [string, number];
  name: string;
  label: string;
}

interface StoredText {
  z?: string;
  cut?: boolean;
  same?: number;
  in?: number;
  slice?: [number, number];
}

interface Delta {
  "="?: any;
  t?: [number, string];
  k?: Record<string, Delta>;
  x?: string[];
  l?: ([number, number | Delta] | DeltaItems)[];
}

interface DeltaItems {
  "=": any[];
}

/** What trying a plan showed.
 *
 *  `exit_codes` are those without and with the plan; None for a workload that is no process, and after a timeout.
 *  `same_output` is None if the output was not compared. `backend` is the backend that replaced the program's own, as
 *  "eager" for `--fast`, or None; times are then of no interest. `holds`: the recompiles that the plan names are gone
 *  and nothing else changed. `note` says in one line why it does not hold, or what is not known. `code` is the block
 *  that was tried, and `runs` how often each side ran. */
interface Outcome {
  recompiles_before: number | null;
  recompiles_after: number | null;
  compile_seconds_before: number | null;
  compile_seconds_after: number | null;
  wall_seconds_before: number | null;
  wall_seconds_after: number | null;
  exit_codes: [number | null, number | null];
  same_output: boolean | null;
  backend: string | null;
  note: string | null;
  holds: boolean;
  code: string;
  runs: number;
}

/** A search that a page has started: a line for each run that has ended, what runs now, and how many runs are done.
 *
 *  `error` says in one line why nothing was found that could be stored; "" otherwise. */
interface Search {
  running: boolean;
  now: string;
  done: number;
  total: number;
  lines: string[];
  error: string;
}

/** The patch of a report: the columns of its tables instead of rows. */
interface PackedPatch {
  columns?: Record<string, Column[]>;
  feeds?: Record<string, string[]>;
  made_of?: Record<string, string>;
  meta?: Meta;
  totals?: TotalsDict;
  observed?: Record<string, boolean>;
  now?: RunningCompile[];
  findings?: Finding[];
  plan?: Plan;
  examples?: Record<string, Example>;
  torch_docs?: Record<string, Link>;
  ranks?: Ranks;
  vllm?: VllmParts;
  panels?: Panel[];
  rows?: Record<string, Cells[]>;
  texts?: Record<string, StoredText>;
  changes?: Record<string, Delta>;
  documents?: [number, Delta][];
  seq: number;
  reset?: boolean;
  part?: number;
  tables: Record<string, PackedColumn[]>;
  strings: string[];
}

interface PackedColumn {
  cells?: any[];
  numbers?: number[];
  times?: number[];
  texts?: any[];
}

/** All of one function in one process. */
interface FunctionDocument {
  rank: number | null;
  pid: number | null;
  file: string | null;
  line: number | null;
  function: string | null;
  compiles: number;
  recompiles: number;
  lost_s: number | null;
  eager: EagerCalls | null;
  once: CalledOnce | null;
  entries: EntryDocument[];
  rows: RecompileDocument[];
  guards: GuardDocument[];
}

/** The calls of a function that ran eagerly. */
interface EagerCalls {
  calls: number;
  total_s: number;
  mean_s: number | null;
}

/** The entries that were called once: how many, and the s of those whose compile was recorded. */
interface CalledOnce {
  count: number;
  seconds: number;
}

/** A cache entry. `event` is None for one that was compiled before the watch. */
interface EntryDocument {
  calls: number | null;
  mean_s: number | null;
  won_s: number | null;
  break_even: number | null;
  event: number | null;
  compile_id: string | null;
  made_at: number | null;
  seconds: number | null;
  tree: number | null;
  order: number | null;
  failed: GuardCount[];
  time: number | null;
  guard_count: number | null;
  guard_check_us: number | null;
}

/** How often a guard failed in an entry: at so many recompiles, and torch's own last count. */
type GuardCount = [guard: number, recompiles: number, fail_count: number | null, expected: string | null];

/** A recompile. `made`, `closest` and the first item of each of `cells` are numbers of entries; `others` is how many
 *  of those checked have no cell, because only the closest are analyzed. */
interface RecompileDocument {
  event: number;
  made: number | null;
  closest: number | null;
  guard: number | null;
  cells: [number, FailedGuard[]][];
  time: number;
  compile_id: string | null;
  expected: string | null;
  now: string | null;
  entries_checked: number | null;
  others: number;
  lost_s: number | null;
}

/** A guard that failed in an entry at a recompile; `guard` is its number in the document. */
type FailedGuard = [guard: number, is_first: boolean, fail_count: number | null, expected: string | null];

/** A guard that failed: where it was made, the values that it saw, and what failed together with it. */
interface GuardDocument {
  with: [number, number][];
  alone: number;
  verdict: string | null;
  key: string;
  source: string | null;
  name: string;
  kinds: string[];
  texts: string[];
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  around: [number, string][] | null;
  framework: string | null;
  framework_code: string | null;
  stack: string | null;
  hint: string | null;
  values: ([string, number | null])[];
  points: [number, number, boolean][];
  recompiles: number;
  lost_s: number | null;
}

/** The document of a function as it is sent. */
interface PackedDocument {
  rank: number | null;
  pid: number | null;
  file: string | null;
  line: number | null;
  function: string | null;
  compiles: number;
  recompiles: number;
  lost_s: number | null;
  eager: EagerCalls | null;
  once: CalledOnce | null;
  entries: [string[], any[][]];
  rows: [string[], any[][]];
  guards: [string[], any[][]];
}

// Rows: docs/tables.md says what each column means. Times are Unix milliseconds. A missing value is null.

interface CompilesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  duration_s: number | null;
  function: string | null;
  file: string | null;
  line: number | null;
  trigger: string | null;
  is_recompile: boolean | null;
  attempt: number | null;
  outcome: string | null;
  dynamo_s: number | null;
  aot_s: number | null;
  inductor_s: number | null;
  codegen_s: number | null;
  triton_s: number | null;
  guard_count: number | null;
  guard_latency_us: number | null;
  guard_check_us: number | null;
  graph_ops: number | null;
  graph_nodes: number | null;
  graph_inputs: number | null;
  cache_size: number | null;
  backend: string | null;
  fail_type: string | null;
  fail_reason: string | null;
  on_failure: string | null;
  limit: string | null;
  limit_value: number | null;
  limit_argument: boolean | null;
  region: number | null;
  restart_reasons: Json | null;
  user_file: string | null;
  user_line: number | null;
  stack: string | null;
  blocks: Json | null;
  loop: Json | null;
  step: number | null;
  thread: number | null;
}

interface RecompilesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  region: number | null;
  closest_compile_id: string | null;
  closest_compile_key: string | null;
  guard_source: string | null;
  guard_kind: string | null;
  expected: string | null;
  actual: string | null;
  lookalike: string | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  reason: string | null;
  entries_checked: number | null;
  entries_analyzed: number | null;
  guards_failed: number | null;
  lost_s: number | null;
  step: number | null;
  thread: number | null;
}

interface GuardFailuresRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  entry_compile_id: string | null;
  entry_compile_key: string | null;
  guard_source: string | null;
  guard_kind: string | null;
  expected: string | null;
  actual: string | null;
  lookalike: string | null;
  is_first: boolean | null;
  fail_count: number | null;
  guard: string | null;
  user_file: string | null;
  user_line: number | null;
}

interface RefusedCallsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  refused_by: string | null;
  ran: string | null;
  count: number | null;
  guard_source: string | null;
  guard_kind: string | null;
  expected: string | null;
  actual: string | null;
  reason: string | null;
  entries_checked: number | null;
  closest_compile_id: string | null;
  closest_compile_key: string | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  set_file: string | null;
  set_line: number | null;
  stack: string | null;
  step: number | null;
}

interface CacheLookupsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  duration_s: number | null;
  function: string | null;
  file: string | null;
  line: number | null;
  cache: string | null;
  tier: string | null;
  action: string | null;
  outcome: string | null;
  key: string | null;
  reason: string | null;
  exception_type: string | null;
  guard: string | null;
  taken_s: number | null;
  saved_s: number | null;
  forward_saved_s: number | null;
  backward_saved_s: number | null;
  bytes: number | null;
  kernels: number | null;
  counted_again: Json | null;
  files: number | null;
  forward_key: string | null;
  backward_key: string | null;
  nearest_key: string | null;
  nearest_session: string | null;
  key_diff: Json | null;
  step: number | null;
  explained: string[] | null;
  part_of: number;
}

interface AutotuneRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  run_id: string | null;
  tuner: string | null;
  stage: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  op: string | null;
  inputs: Json | null;
  choice: string | null;
  choice_kind: string | null;
  parameters: Json | null;
  time_ms: number | null;
  is_winner: boolean | null;
  fail_reason: string | null;
  device: string | null;
  benchmark_s: number | null;
  precompile_s: number | null;
  compile_s: number | null;
  threads: number | null;
  in_subprocess: boolean | null;
  tuner_pid: number | null;
  from_cache: string | null;
  step: number | null;
  part_of: number;
}

interface CudagraphsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  action: string | null;
  function_id: number | null;
  graph_id: number | null;
  parent_id: number | null;
  function: string | null;
  file: string | null;
  line: number | null;
  mode: string | null;
  backend: string | null;
  duration_ms: number | null;
  mismatch: string | null;
  input: string | null;
  reason: string | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  count: number | null;
  counted: boolean | null;
  sizes: string | null;
  copied_inputs: number | null;
  partitions: number | null;
  captured_parts: number | null;
  nodes: number | null;
  pool_bytes: number | null;
  device: string | null;
  step: number | null;
  part_of: number;
}

interface KernelsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  duration_s: number | null;
  name: string | null;
  language: string | null;
  where: string | null;
  worker_pid: number | null;
  outcome: string | null;
  fail_reason: string | null;
  step: number | null;
}

interface GraphBreaksRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  reason: string | null;
  break_id: string | null;
  explanation: string | null;
  hints: Json | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
}

interface PhasesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  duration_s: number | null;
  name: string | null;
  parent: string | null;
  depth: number | null;
}

interface TraceFunctionsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  call_line: number | null;
  count: number | null;
  own_s: number | null;
  total_s: number | null;
  stack: string | null;
  caller: string | null;
}

interface ArtifactsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  name: string | null;
  size: number | null;
  digest: string | null;
  stack: string | null;
}

interface DynamicDecisionsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  source: string | null;
  dim: string | null;
  reason: string | null;
  cached: string | null;
  new: string | null;
}

interface StacksRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  stack: string | null;
  caller: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  code: string | null;
  call: string | null;
  parameters: Json | null;
  assigned: Json | null;
}

interface SymbolicShapesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  action: string | null;
  symbol: string | null;
  source: string | null;
  expression: string | null;
  symbols: Json | null;
  value: string | null;
  range: string | null;
  reason: string | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  user_stack: string | null;
  torch_stack: string | null;
}

interface ExportProblemsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  problem: string | null;
  op: string | null;
  expression: string | null;
  result: string | null;
  reason: string | null;
  symbols: Json | null;
  values: Json | null;
  derivation: Json | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  user_stack: string | null;
  torch_stack: string | null;
}

interface CollectivesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  position: number | null;
  op: string | null;
  outputs: Json | null;
  estimate_us: number | null;
}

interface CallsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  function: string | null;
  file: string | null;
  line: number | null;
  ran: string | null;
  count: number | null;
  timed: number | null;
  total_s: number | null;
  min_s: number | null;
  first_s: number | null;
}

interface VllmConfigsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  model: string | null;
  part: string | null;
  mode: string | null;
  backend: string | null;
  cudagraph_mode: string | null;
  compile_sizes: Json | null;
  range_ends: Json | null;
  splitting_ops: Json | null;
  custom_ops: Json | null;
  enabled_passes: Json | null;
  inductor_passes: Json | null;
  inductor_partition: boolean | null;
  dynamic_shapes: string | null;
  evaluates_guards: boolean | null;
  origin: string | null;
}

interface VllmCompilesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  duration_s: number | null;
  part: string | null;
  piece: string | null;
  position: number | null;
  pieces: number | null;
  range_start: number | null;
  range_end: number | null;
  is_cudagraph_size: boolean | null;
  graph_ops: number | null;
}

interface WarmupEndsRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  on_compile: string | null;
  ended_by: string | null;
  user_file: string | null;
  user_line: number | null;
  step: number | null;
}

interface RankMembersRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  like: number | null;
  digest: string | null;
  compiles: number | null;
  compile_s: number | null;
  step_s: Json | null;
  logs: Json | null;
}

interface SourcesRow {
  event_id: number;
  time: number;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  name: string | null;
  status: string | null;
  reason_code: string | null;
  reason: string | null;
  events: number | null;
  dropped: number | null;
  overhead_s: number | null;
}

interface CacheGroupsRow {
  event_id: number;
  time: number;
  function: string | null;
  file: string | null;
  line: number | null;
  cache: string | null;
  tier: string | null;
  last: string | null;
  why: string | null;
  reasons: string[];
  hits: number | null;
  misses: number | null;
  bypassed: number | null;
  stored: number | null;
  failed: number | null;
  other: number | null;
  saved_s: number | null;
  taken_s: number | null;
  is_own: boolean | null;
}

interface TuningsRow {
  event_id: number;
  time: number;
  function: string | null;
  file: string | null;
  line: number | null;
  rank: number | null;
  pid: number | null;
  compile_id: string | null;
  compile_key: string | null;
  tuner: string | null;
  op: string | null;
  inputs: string[];
  device: string | null;
  choices: number | null;
  timed: number | null;
  failed: number | null;
  winner: string | null;
  winner_kind: string | null;
  winner_ms: number | null;
  next_choice: string | null;
  next_ms: number | null;
  extern_ms: number | null;
  margin_next: number | null;
  margin_extern: number | null;
  saved_ms: number | null;
  benchmark_s: number | null;
  precompile_s: number | null;
  spent_s: number | null;
  break_even: number | null;
  from_cache: string | null;
  fail_reasons: string[];
  order: number[];
}

interface GraphFunctionsRow {
  event_id: number;
  time: number;
  function: string | null;
  file: string | null;
  line: number | null;
  rank: number | null;
  pid: number | null;
  mode: string | null;
  backend: string | null;
  state: string | null;
  warmups: number | null;
  captured: number | null;
  rerecorded: number | null;
  skipped: number | null;
  replays: number | null;
  eager: number | null;
  reason: string | null;
  mismatch: string | null;
  input: string | null;
  capture_ms: number | null;
  pool_bytes: number | null;
}

/** Table -> its row. */
interface RowTypes {
  compiles: CompilesRow;
  recompiles: RecompilesRow;
  guard_failures: GuardFailuresRow;
  refused_calls: RefusedCallsRow;
  cache_lookups: CacheLookupsRow;
  autotune: AutotuneRow;
  cudagraphs: CudagraphsRow;
  kernels: KernelsRow;
  graph_breaks: GraphBreaksRow;
  phases: PhasesRow;
  trace_functions: TraceFunctionsRow;
  artifacts: ArtifactsRow;
  dynamic_decisions: DynamicDecisionsRow;
  stacks: StacksRow;
  symbolic_shapes: SymbolicShapesRow;
  export_problems: ExportProblemsRow;
  collectives: CollectivesRow;
  calls: CallsRow;
  vllm_configs: VllmConfigsRow;
  vllm_compiles: VllmCompilesRow;
  warmup_ends: WarmupEndsRow;
  rank_members: RankMembersRow;
  sources: SourcesRow;
  cache_groups: CacheGroupsRow;
  tunings: TuningsRow;
  graph_functions: GraphFunctionsRow;
}
