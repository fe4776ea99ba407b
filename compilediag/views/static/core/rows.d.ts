// Written by `make docs` (docs/make_row_types.py) from the event columns; a test holds the two together.
// docs/tables.md says what each column means. Times are Unix milliseconds. A missing value is null.

/** A JSON column: a list or an object, as docs/tables.md describes it. */
export type Json = any;

export interface CompilesRow {
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
}

export interface RecompilesRow {
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
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  reason: string | null;
  entries_checked: number | null;
  entries_analyzed: number | null;
  guards_failed: number | null;
  lost_s: number | null;
}

export interface GuardFailuresRow {
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
  is_first: boolean | null;
  fail_count: number | null;
  guard: string | null;
  user_file: string | null;
  user_line: number | null;
}

export interface RefusedCallsRow {
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
}

export interface CacheLookupsRow {
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
  explained: string[] | null;
  part_of: number;
}

export interface AutotuneRow {
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
  part_of: number;
}

export interface CudagraphsRow {
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
  part_of: number;
}

export interface KernelsRow {
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
}

export interface GraphBreaksRow {
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

export interface PhasesRow {
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

export interface ArtifactsRow {
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

export interface DynamicDecisionsRow {
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

export interface StacksRow {
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

export interface SymbolicShapesRow {
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
  value: string | null;
  range: string | null;
  reason: string | null;
  user_file: string | null;
  user_line: number | null;
  user_code: string | null;
  user_stack: string | null;
  torch_stack: string | null;
}

export interface ExportProblemsRow {
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

export interface CollectivesRow {
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

export interface CallsRow {
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

export interface VllmConfigsRow {
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

export interface VllmCompilesRow {
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

export interface RankMembersRow {
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

export interface SourcesRow {
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

export interface CacheGroupsRow {
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

export interface TuningsRow {
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
  winner: string | null;
  winner_kind: string | null;
  winner_ms: number | null;
  next_choice: string | null;
  next_ms: number | null;
  extern_ms: number | null;
  margin_next: number | null;
  margin_extern: number | null;
  choices: number | null;
  timed: number | null;
  failed: number | null;
  fail_reasons: string[];
  benchmark_s: number | null;
  precompile_s: number | null;
  spent_s: number | null;
  saved_ms: number | null;
  break_even: number | null;
  from_cache: string | null;
  order: number[];
}

export interface GraphFunctionsRow {
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
export interface RowTypes {
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
  artifacts: ArtifactsRow;
  dynamic_decisions: DynamicDecisionsRow;
  stacks: StacksRow;
  symbolic_shapes: SymbolicShapesRow;
  export_problems: ExportProblemsRow;
  collectives: CollectivesRow;
  calls: CallsRow;
  vllm_configs: VllmConfigsRow;
  vllm_compiles: VllmCompilesRow;
  rank_members: RankMembersRow;
  sources: SourcesRow;
  cache_groups: CacheGroupsRow;
  tunings: TuningsRow;
  graph_functions: GraphFunctionsRow;
}
