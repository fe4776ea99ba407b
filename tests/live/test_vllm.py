"""What vLLM compiles is recorded live: a backend writes vLLM's records with torch's own function."""

import json
import logging

import pytest
import torch
from torch._logging import trace_structured

import compilediag as cd


def write_artifact(name, body):
    payload = body if isinstance(body, str) else json.dumps(body)
    trace_structured("artifact", metadata_fn=lambda: {"name": name, "encoding": "json"}, payload_fn=lambda: payload)


def write_graph(name, text):
    trace_structured("graph_dump", metadata_fn=lambda: {"name": name}, payload_fn=lambda: text)


def compile_in_pieces(graph, inputs):
    write_artifact("vllm_compilation_config", {"prefix": "backbone", "mode": "3", "compile_sizes": "1, 8"})
    for start, end in ((1, 1), (1, 64)):
        body = {"submod_name": "submod_0", "compile_range_start": start, "compile_range_end": end}
        write_artifact("vllm_piecewise_compile_start", body)
        if start == end:
            write_graph("vllm_submod_0", graph.print_readable(print_output=False))
    write_artifact("vllm_execution_code", "def execution_fn(): ...")
    return graph.forward


@pytest.mark.parametrize("is_heard", [False, True], ids=["alone", "beside another listener"])
def test_pieces_are_rows_of_the_compile(is_heard):
    logger, other = logging.getLogger("torch.__trace"), logging.NullHandler()
    if is_heard:
        logger.addHandler(other)
    try:
        with cd.watch() as session:
            torch.compile(lambda x: (x + 1) * 2, backend=compile_in_pieces)(torch.ones(3))
    finally:
        logger.removeHandler(other)
    [config], rows = session.vllm_configs.to_dict("records"), session.vllm_compiles
    assert (config["part"], config["mode"], config["compile_sizes"]) == ("backbone", "VLLM_COMPILE", [1, 8])
    assert rows[["range_start", "range_end"]].to_numpy().tolist() == [[1, 1], [1, 64]]
    assert rows["graph_ops"].tolist() == [2, 2] and rows["duration_s"].notna().all()
    [key] = session.compiles["compile_key"]
    assert {config["compile_key"], *rows["compile_key"]} == {key}
    assert {"vllm_submod_0", "vllm_execution_code"} <= set(session.artifacts["name"])
