"""What vLLM compiles: its records become rows, in a log that its own calls wrote and in single records."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.events import VllmCompile, VllmConfig

from .log_builder import artifact, metrics, record, start, string
from .lookup_count import split_records

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("vllm-*.log.gz"))
GRAPH = 'class GraphModule(torch.nn.Module):\n    def forward(self, l_x_: "f32[s0, 64]"):\n        x = l_x_\n{}\n'


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request):
    return request.param, cd.ingest(request.param)


def read(tmp_path, *records):
    log = tmp_path / "a.log"
    log.write_text(string() + start() + "".join(records))
    session = cd.ingest(log)
    return session.data.rows(VllmConfig), session.data.rows(VllmCompile)


def config(at=1.0, **fields):
    return artifact("vllm_compilation_config", {"model": "m", "prefix": "backbone", **fields}, at=at)


def piece(name="submod_0", start=1, end=64, at=1.0, **fields):
    body = {"submod_name": name, "compile_range_start": start, "compile_range_end": end, **fields}
    return artifact("vllm_piecewise_compile_start", body, at=at)


def graph(name, *calls, at=1.0):
    lines = "\n".join(f"        {call}" for call in calls)
    return record("graph_dump", {"name": f"vllm_{name}"}, GRAPH.format(lines), at=at)


def test_each_record_of_a_log_is_a_row(golden):
    path, session = golden
    logged = Counter()
    for head, payload in split_records(path):
        name = (head.get("artifact") or {}).get("name")
        if name == "vllm_piecewise_compile_start":
            body = json.loads(payload)
            logged[body["submod_name"], body["compile_range_start"], body["compile_range_end"]] += 1
    rows = session.data.rows(VllmCompile)
    assert Counter((row.piece, row.range_start, row.range_end) for row in rows) == logged
    assert len(logged) == 16 and logged.total() == 24
    assert len(session.data.rows(VllmConfig)) == gzip.decompress(path.read_bytes()).count(b'"vllm_compilation_config"')


def test_rows_have_what_vllm_logs(golden):
    _, session = golden
    backbone, head = session.data.rows(VllmConfig)
    assert (backbone.part, head.part) == ("backbone", "eagle_head")
    assert (backbone.mode, backbone.backend, backbone.cudagraph_mode) == ("VLLM_COMPILE", "eager", "FULL")
    assert (backbone.compile_sizes, backbone.range_ends) == ([1, 8], [64, 256])
    assert backbone.splitting_ops == ["example::attention"] and backbone.enabled_passes == ["eliminate_noops"]
    assert (backbone.dynamic_shapes, backbone.inductor_partition) == ("BACKED", False)
    assert backbone.model is None  # The program has no configuration of a model.
    rows = session.vllm_compiles
    assert rows["duration_s"].notna().all() and (rows["duration_s"] >= 0).all()
    assert rows.groupby("part")["pieces"].unique().map(list).to_dict() == {"backbone": [4], "eagle_head": [2]}
    sizes = rows[rows["is_cudagraph_size"]]
    assert (sizes["range_start"] == sizes["range_end"]).all() and set(sizes["range_start"]) == {1, 8}


def test_rows_belong_to_the_compile_and_its_texts_have_names(golden):
    _, session = golden
    keys = session.vllm_compiles.groupby("part")["compile_key"].unique().map(list)
    assert session.compiles["function"].tolist() == ["forward", "forward"]
    assert [key for [key] in keys] == session.compiles["compile_key"].tolist()
    texts = set(session.artifacts["name"])
    assert {"vllm_piecewise_split_graph", "vllm_execution_code", "vllm_submod_0", "vllm_submod_6"} <= texts
    calls = session.vllm_compiles.drop_duplicates(["part", "piece"])["graph_ops"]
    assert calls.tolist() == [3, 4, 4, 1, 3, 2]


def test_a_piece_ends_where_the_next_begins(tmp_path):
    _, rows = read(
        tmp_path, config(), piece(at=1.0), piece(end=128, at=1.5), artifact("vllm_execution_code", {}, at=3.5)
    )
    assert [row.duration_s for row in rows] == [0.5, 2.0]


def test_the_last_piece_ends_with_the_compile_or_not_at_all(tmp_path):
    _, rows = read(tmp_path, config(), piece(at=1.0), metrics(at=3.0))
    assert [row.duration_s for row in rows] == [2.0]
    _, rows = read(tmp_path, config(), piece(at=1.0))
    assert [(row.piece, row.duration_s) for row in rows] == [("submod_0", None)]


def test_a_graph_counts_for_all_ranges_of_its_piece(tmp_path):
    calls = graph(
        "submod_2", 'add: "f32[s0]" = l_x_ + 1', "relu = torch.relu(add);  add = None", "y = l_x_;  l_x_ = None"
    )
    records = (piece("submod_2"), calls, piece("submod_2", 8, 8), piece("submod_4"))
    _, rows = read(tmp_path, config(), *records)
    assert [row.graph_ops for row in rows] == [2, 2, None]


def test_a_range_that_begins_with_a_size_is_not_a_size(tmp_path):
    flags = {"is_cudagraph_capture_size": True}
    _, rows = read(tmp_path, config(), piece(start=1, end=1, **flags), piece(start=1, end=64, **flags))
    assert [row.is_cudagraph_size for row in rows] == [True, False]


def test_fields_of_other_versions(tmp_path):
    fields = {"compile_ranges_split_points": "16, 32", "mode": "CompilationMode.VLLM_COMPILE", "custom_ops": ["+silu"]}
    event = artifact("vllm_compile_event", {"type": "aot_cache_hit"})
    [first, second], [row] = read(
        tmp_path,
        event,
        config(**fields),
        piece(None, piecewise_index=3),
        config(cudagraph_mode="CUDAGraphMode.PIECEWISE"),
    )
    assert (first.range_ends, first.mode, first.custom_ops) == ([16, 32], "VLLM_COMPILE", ["+silu"])
    assert (first.origin, second.origin) == ("aot_cache_hit", None)
    assert (second.cudagraph_mode, second.mode) == ("PIECEWISE", None)
    assert (row.piece, row.position) == ("subgraph_3", 3)


@pytest.mark.parametrize(
    "body", ["no JSON", "[1]", '{"prefix": 7, "compile_sizes": {"a": 1}}', '{"compile_range_start": 1e999}']
)
def test_damaged_records_give_no_wrong_rows(tmp_path, body):
    records = [
        record("artifact", {"name": name}, body) for name in ("vllm_compilation_config", "vllm_piecewise_compile_start")
    ]
    configs, rows = read(tmp_path, *records)
    assert all(row.part is None and row.compile_sizes is None for row in configs)
    assert all(row.range_start is None and row.part is None for row in rows)


def test_the_state_of_compiles_without_an_end_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("compilediag.decode.records.vllm_records.MAX_COMPILES", 3)
    records = [
        record("artifact", {"name": name}, body, compile_id=f"{number}/0")
        for number in range(10)
        for name, body in (("vllm_compilation_config", "{}"), ("vllm_piecewise_compile_start", '{"submod_name": "a"}'))
    ]
    configs, rows = read(tmp_path, *records)
    assert len(configs) == len(rows) == 10
