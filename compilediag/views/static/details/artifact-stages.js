// The artifacts of a compile in the order in which the compiler makes them.

/** @type {[string, RegExp][]} stage, and what its artifacts are called, in the order of the pipeline */
const STAGES = [
  ["Dynamo", /^(?:dynamo_|optimize_ddp|compiled_autograd|torch_dynamo|link: |.*BYTECODE$)/],
  ["vLLM", /^vllm_/],
  ["Inductor, on Dynamo's graph", /^(?:before_pre_grad|after_pre_grad|inductor_pre_grad)/],
  ["AOTAutograd", /^(?:aot_|before_joint|after_joint|aotautograd|torch\._functorch|min_cut|exported_program)/],
  ["Inductor, on AOTAutograd's graphs", /^(?:before_post_grad|after_post_grad|inductor_post_grad|fx_graph|inductor_input)/],
  ["Generated code", /^(?:inductor_output_code|inductor_provenance|triton_|cpp_|runtime_wrapper|compiled_f|backward_)/],
  ["Ranks", /^(?:inductor_collective|inductor_runtime|inductor_tlparse|graph_execution|collective)/],
];
const OTHERS = "Other artifacts";

/** @param {string} name */
function stageOf(name) {
  const at = STAGES.findIndex(([, pattern]) => pattern.test(name));
  return at < 0 ? STAGES.length : at;
}

/**
 * Groups rows by stage: [heading, rows] of each stage that has any, within a stage in order of time.
 * @template Row
 * @param {Row[]} rows
 * @param {(row: Row) => string} nameOf
 * @returns {[string, Row[]][]}
 */
export function groupByStage(rows, nameOf) {
  const order = [...Map.groupBy(rows, (row) => stageOf(nameOf(row)))].sort(([a], [b]) => a - b);
  return order.map(([stage, found]) => [STAGES[stage]?.[0] ?? OTHERS, found]);
}
