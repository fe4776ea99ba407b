"""Records of the structured trace: what they are and which compile they belong to."""

import pytest

from compilediag.decode.records.record_kinds import KEPT, find_compile_id, find_name, make_artifact

PLACE = {"frame_id": 2, "frame_compile_id": 1, "attempt": 0, "rank": 3, "has_payload": "abc", "stack": []}


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"dynamo_output_graph": {"sizes": {}}, **PLACE}, "dynamo_output_graph"),
        ({**PLACE, "inductor_output_code": {"filename": "x.py"}}, "inductor_output_code"),
        ({"artifact": {"name": "inductor_pre_grad_graph", "encoding": "string"}, **PLACE}, "inductor_pre_grad_graph"),
        ({"artifact": {"encoding": "string"}, **PLACE}, "artifact"),
        ({"artifact": {"name": 5}}, "artifact"),
        (PLACE, None),
        ({}, None),
    ],
)
def test_the_name_of_a_record(metadata, name):
    assert find_name(metadata) == name


@pytest.mark.parametrize(
    ("fields", "compile_id"),
    [
        ({"frame_id": 2, "frame_compile_id": 1}, "2/1"),
        ({"frame_id": 0, "frame_compile_id": 0}, "0/0"),
        ({"compiled_autograd_id": 4, "frame_id": 2, "frame_compile_id": 1}, "!4/2/1"),
        ({"compiled_autograd_id": 0}, "!0"),
        ({"frame_id": 2}, None),
        ({}, None),
    ],
)
def test_compile_ids_are_put_together_as_torch_prints_them(fields, compile_id):
    assert find_compile_id(fields) == compile_id


def test_an_artifact_is_its_event_and_its_text():
    event, text = make_artifact({"dynamo_output_graph": {}, **PLACE}, "dynamo_output_graph", "graph()", 9)
    assert (event.name, event.compile_id, event.time_ns, text) == ("dynamo_output_graph", "2/1", 9, "graph()")
    assert "dynamo_output_graph" in KEPT
