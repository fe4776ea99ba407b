"""What the page and the summary show of models that vLLM compiles."""

import dataclasses
import json

import compilediag as cd
from compilediag.events import Artifact, VllmCompile, VllmConfig

from .session_builder import page_of, saved
from .tables_builder import SECOND
from .test_vllm_records import GOLDEN


def events(key="a.1", **config):
    """A part of two pieces, compiled for the size 8 and the range 1 to 64."""
    common = {"compile_id": "0/0", "compile_key": key}
    settings = {"model": "/home/ada/model", "part": "backbone", "cudagraph_mode": "PIECEWISE", **config}
    yield VllmConfig(time_ns=SECOND, **common, **settings)
    for number, (piece, start, end) in enumerate((("a", 8, 8), ("a", 1, 64), ("b", 8, 8), ("b", 1, 64)), 2):
        times = {"time_ns": number * SECOND, "duration_s": float(number)}
        sizes = {"range_start": start, "range_end": end, "is_cudagraph_size": start == end}
        yield VllmCompile(**times, **common, piece=piece, graph_ops=3, **sizes)
        yield Artifact(time_ns=number * SECOND, **common, name=f"vllm_{piece}", size=10)


def test_a_piece_has_a_cell_for_each_range(session_of):
    page = page_of(session_of(*events()))["vllm"]
    [part] = page["parts"]
    assert (page["count"], page["compiles"], part["compiles"], part["seconds"]) == (1, 4, 4, 14.0)
    ranges = [(each["start"], each["end"], each["is_cudagraph_size"], each["seconds"]) for each in part["ranges"]]
    assert ranges == [(8, 8, True, 6.0), (1, 64, False, 8.0)]
    cells = {piece["name"]: [cell["seconds"] for cell in piece["cells"]] for piece in part["pieces"]}
    assert cells == {"a": [2.0, 3.0], "b": [4.0, 5.0]}
    assert [text["name"] for text in part["texts"]] == ["vllm_a", "vllm_b"]


def test_without_cuda_graphs_no_size_is_marked(session_of):
    [part] = page_of(session_of(*events(cudagraph_mode="NONE")))["vllm"]["parts"]
    assert [each["is_cudagraph_size"] for each in part["ranges"]] == [False, False]


def test_ranks_that_compile_alike_are_one_part_and_the_slowest_is_shown(session_of):
    rows = [
        dataclasses.replace(event, rank=rank, duration_s=(event.duration_s or 0) * (1 + rank))
        for rank in range(3)
        for event in events(f"a.{rank}", **({"part": "head"} if rank == 1 else {}))
    ]
    page = page_of(session_of(*rows))["vllm"]
    shown = [(part["ranks"], part["rank"], part["config"]["part"], part["seconds"]) for part in page["parts"]]
    assert shown == [([0, 2], 2, "backbone", 42.0), ([1], 1, "head", 28.0)]


def test_other_sessions_have_no_such_page(tmp_path):
    assert "vllm" not in page_of(saved(tmp_path))


def test_a_redacted_page_has_no_path(tmp_path):
    session = saved(tmp_path, *events())
    assert "ada" in json.dumps(page_of(session), default=str)
    assert "ada" not in json.dumps(page_of(session, redact=True), default=str)


def test_the_summary_says_what_pieces_took():
    [path] = GOLDEN
    assert "vLLM: 24 compiles of pieces took 209 ms" in cd.ingest(path).summary()
