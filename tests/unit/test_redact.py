"""A redacted view holds no source code, no values and no paths, whatever column they came in by."""

import dataclasses
import json

import pytest

from compilediag.events import BY_TABLE, Artifact, SourceStatus
from compilediag.storage.tables import table_columns
from compilediag.views.model import ViewModel
from compilediag.views.page_json import dumps
from compilediag.views.redacted_plan import redact_name
from compilediag.views.redaction import Redactor
from tests.unit.session_builder import META, SECOND, recording, saved
from tests.unit.tables_builder import sizes

#: Text columns that name things of torch's or of compilediag's, or functions and arguments of the user's.
SHOWN = {
    "compiles": {"function", "trigger", "outcome", "backend", "fail_type", "limit", "on_failure", "stack"},
    "recompiles": {"function", "closest_compile_id", "closest_compile_key", "guard_kind"},
    "guard_failures": {"entry_compile_id", "entry_compile_key", "guard_kind"},
    "refused_calls": {
        *("function", "refused_by", "ran", "guard_kind", "closest_compile_id", "closest_compile_key", "stack"),
    },
    "cache_lookups": {
        *("function", "cache", "tier", "action", "outcome", "exception_type"),
        *("key", "forward_key", "backward_key", "nearest_key", "counted_again"),
    },
    "autotune": {
        *("run_id", "tuner", "stage", "function", "op", "choice", "choice_kind", "parameters", "device", "from_cache"),
    },
    "cudagraphs": {"action", "function", "mode", "backend", "mismatch", "input", "device"},
    "kernels": {"name", "language", "where", "outcome"},
    "graph_breaks": {"break_id"},
    "phases": {"name", "parent"},
    "artifacts": {"name", "digest", "stack"},
    "dynamic_decisions": {"dim"},
    "stacks": {"stack", "caller", "function", "parameters", "assigned"},
    "symbolic_shapes": {"action", "symbol", "user_stack", "torch_stack"},
    "export_problems": {"problem", "op", "user_stack", "torch_stack"},
    "collectives": {"op"},
    "calls": {"function", "ran"},
    "vllm_configs": {
        *("part", "mode", "backend", "cudagraph_mode", "compile_sizes", "range_ends", "splitting_ops", "custom_ops"),
        *("enabled_passes", "inductor_passes", "dynamic_shapes", "origin"),
    },
    "vllm_compiles": {"part", "piece"},
    "rank_members": {"digest", "step_s"},
    "sources": {"name", "status", "reason_code", "reason"},
}


def secret(table, column):
    return f"SECRET_{table}_{column}"


def planted(cls):
    """An event with a secret of its own in every column that can hold text."""
    own = {}
    for f in dataclasses.fields(cls):
        if f.metadata and f.metadata["dtype"] in ("string", "json"):
            text = secret(cls.table, f.name)
            own[f.name] = [text] if f.metadata["dtype"] == "json" else text
    if "guard_source" in own:
        own["guard_source"] = f"self.table['{secret(cls.table, 'key')}'].n"
    if "source" in own:
        own["source"] = f"L['self'].table[\"{secret(cls.table, 'key')}\"]"
    return cls(time_ns=SECOND, **own)


@pytest.fixture
def session(tmp_path):
    items = [planted(cls) for cls in BY_TABLE.values() if cls not in (Artifact, SourceStatus)]
    items.append((Artifact(time_ns=1, name="dynamo_output_graph"), "SECRET_artifact_text"))
    return saved(tmp_path, *items)


def test_only_names_are_left(session):
    text = dumps(ViewModel(session.data, redact=True).snapshot())
    found = {part for part in text.replace("'", '"').split('"') if "SECRET" in part}
    allowed = {secret(t, c) for t, columns in SHOWN.items() for c in columns}
    assert {f for f in found if not any(a in f for a in allowed)} == set()
    assert secret("compiles", "function") in text, "names of functions stay"


@pytest.mark.parametrize("table", BY_TABLE)
def test_every_text_column_is_either_shown_on_purpose_or_changed(table):
    redactor = Redactor()
    for name, spec in table_columns(table).items():
        if spec["dtype"] in ("string", "json") and name not in ("compile_id", "compile_key"):
            assert (redactor.get_change(BY_TABLE[table], name) is None) == (name in SHOWN[table]), name


def test_unredacted_it_is_all_there(session):
    text = dumps(ViewModel(session.data).snapshot())
    for column in ("user_code", "expected", "actual", "reason", "file"):
        assert secret("recompiles", column) in text


def test_a_path_becomes_the_same_stand_in_each_time():
    redactor = Redactor()
    assert [redactor.replace_file(p) for p in ("/a.py", "/b.py", "/a.py", None)] == [
        "file1.py",
        "file2.py",
        "file1.py",
        None,
    ]


def test_a_redacted_plan_has_the_same_steps_without_values_code_and_paths(tmp_path):
    place = {"user_file": "/home/SECRET/train.py", "user_line": 3, "user_code": "SECRET(x)"}
    rows = sizes("16", "24", "32", tensor="self.table['SECRET']", **place)
    tried = {"recompiles_before": 2, "recompiles_after": 0, "holds": True, "note": "SECRET", "code": "SECRET"}
    session, recorder, _ = recording(tmp_path, *rows)
    recorder._store.set_meta(**{**META, "tried": tried})
    plan, whole = (ViewModel(session.data, redact=redact).snapshot()["plan"] for redact in (True, False))
    recorder.close()
    assert "SECRET" in json.dumps(whole) and whole["steps"][0]["values"] == ["16", "24", "32"]
    assert whole["steps"][0]["value_count"] == 3
    assert "SECRET" not in json.dumps(plan) and '"16"' not in json.dumps(plan)
    assert plan["headline"] == whole["headline"]
    assert [step["place"] for step in plan["steps"]] == ["file2.py:3"], "the function is in file1.py"
    assert plan["steps"][0]["what"] == "self.table['...'].size(0) changed"
    assert plan["tried"]["text"].startswith("Tried, the plan holds: 2 recompiles -> 0")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("ids.size(0)", "ids.size(0)"),
        ("self.step", "self.step"),
        ("self.table['key'].n", "self.table['...'].n"),
        ("load('/home/me').size(0)", None),
        ("x + 12345", None),
        (None, None),
    ],
)
def test_a_redacted_plan_has_names_only(expression, name):
    assert redact_name(expression) == name


def test_neither_title_nor_texts_nor_running_files_are_given(tmp_path):
    class Running:
        def state(self):
            return {"function": "forward", "file": "/SECRET/model.py", "line": 3, "phases": [], "started_ns": 1}

    session, recorder, _ = recording(tmp_path)
    recorder._store.set_meta(**{**META, "title": "SECRET.py"})
    recorder.progress[1] = Running()
    snapshot = ViewModel(session.data, redact=True).snapshot()
    recorder.close()
    assert "SECRET" not in json.dumps(snapshot)
    assert snapshot["now"][0]["function"] == "forward" and snapshot["meta"]["redacted"] is True


def test_patches_are_redacted_as_the_snapshot_is(session):
    text = dumps(ViewModel(session.data, redact=True).patch())
    for column in ("user_code", "expected", "actual", "reason", "file", "key"):
        assert secret("recompiles", column) not in text


def test_files_of_torch_and_of_packages_are_still_known_as_such():
    redactor = Redactor()
    packages = "/home/ada/.venv/lib/python3.11/site-packages"
    assert (
        redactor.replace_file(f"{packages}/torch/_dynamo/eval_frame.py") == "site-packages/torch/_dynamo/eval_frame.py"
    )
    assert redactor.replace_file(f"{packages}/secret/model.py") == "site-packages/file1.py"
    assert redactor.replace_file("/home/ada/train.py") == "file2.py"
