"""A redacted view holds no source code, no values and no paths, whatever column they came in by."""

import dataclasses
import json

import pytest

from compilediag.events import BY_TABLE, Artifact, SourceStatus, StackFrame, columns
from compilediag.session import load
from compilediag.storage.tables import table_columns
from compilediag.views.model import ViewModel
from compilediag.views.page_json import dumps
from compilediag.views.redaction import (
    RedactedData,
    Redactor,
    keep_names,
    keep_numbers,
    redact_source,
    redact_torch_source,
)
from tests.unit.hostile_sessions import GOLDEN
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
        *("function", "cache", "tier", "action", "outcome", "exception_type", "counted_again"),
    },
    "autotune": {
        *("run_id", "tuner", "stage", "function", "op", "choice", "choice_kind", "parameters", "device", "from_cache"),
    },
    "cudagraphs": {"action", "function", "mode", "backend", "mismatch", "device"},
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
    "sources": {"name", "status", "reason_code"},
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
    items = [
        dataclasses.replace(planted(cls), rank=n) for cls in BY_TABLE.values() if cls is not Artifact for n in (0, 1)
    ]
    items.append((Artifact(time_ns=1, name="dynamo_output_graph"), "SECRET_artifact_text"))
    return saved(tmp_path, *items)


def test_only_names_are_left(session):
    text = dumps(ViewModel(session.data, redact=True).snapshot())
    found = {part for part in text.replace("'", '"').split('"') if "SECRET" in part}
    allowed = {secret(t, c) for t, columns in SHOWN.items() for c in columns}
    assert {f for f in found if not any(a in f for a in allowed)} == set()
    assert secret("compiles", "function") in text, "names of functions stay"


def test_redacted_markdown_has_no_more(session, tmp_path):
    text = session.export(tmp_path / "x.md", "markdown").read_text()
    allowed = {secret(t, c) for t, columns in SHOWN.items() for c in columns}
    assert not [
        word for word in text.replace("\\", "").split() if "SECRET_" in word and not any(a in word for a in allowed)
    ]


@pytest.mark.parametrize("table", BY_TABLE)
def test_every_text_column_is_either_shown_on_purpose_or_changed(table):
    redactor = Redactor()
    for name, spec in table_columns(table).items():
        if spec["dtype"] in ("string", "json") and name not in ("compile_id", "compile_key"):
            change = redactor.get_change(BY_TABLE[table], name)
            assert (change is None or change in (keep_names, keep_numbers)) == (name in SHOWN[table]), name


#: Texts of which no redacted column but those with fixed words shows any.
HIDDEN = (
    "/home/SECRET/x.py",
    "SECRET text",
    "SECRET'",
    "C:\\SECRET",
    "'SECRET'",
    "SECRET=a",
    "x['SECRET']",
    "a@SECRET.org",
)


@pytest.mark.parametrize("text", HIDDEN)
@pytest.mark.parametrize("kind", BY_TABLE.values())
def test_a_column_shows_no_text_that_is_not_what_it_declares(kind, text):
    declared = {name: spec for name, spec in columns(kind).items() if spec["user_data"] is not None}
    cells = {name: [text, {text: text}] if spec["dtype"] == "json" else text for name, spec in declared.items()}
    event = Redactor().redact(kind(time_ns=SECOND, **cells))
    assert "SECRET" not in str([getattr(event, name) for name in declared])


def test_an_open_list_of_events_has_no_titles(session):
    frame = RedactedData(session.data, Redactor()).events
    assert frame["title"].isna().all() and frame["kind"].notna().all()


def test_a_lost_session_is_lost_without_its_path(tmp_path):
    reason = "/home/SECRET/run.cdiag can't be written: disk full"
    lost = SourceStatus(time_ns=SECOND, name="file", status="failed", reason_code="lost", reason=reason)
    session = saved(tmp_path, lost)
    snapshot = ViewModel(session.data, redact=True).snapshot()
    assert "SECRET" not in dumps(snapshot) and '"lost"' in dumps(snapshot["rows"]["sources"])
    assert "SECRET" not in session.export(tmp_path / "x.md", "markdown").read_text()


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
    assert plan["steps"][0]["what"] == "self.table['...'].shape[0] changed"
    assert plan["tried"]["text"].startswith("Tried, the plan holds: 2 recompiles -> 0")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("ids.shape[0]", "ids.shape[0]"),
        ("x.size()[0], y.size()[1]", "x.size()[0], y.size()[1]"),
        ("len(self.layers[12])", "len(self.layers[12])"),
        ("self.step", "self.step"),
        ("list(d.keys())[-1]", "list(d.keys())[-1]"),
        ("self.table['key'].n", "self.table['...'].n"),
        ("""d['a\\'"b'].n""", "d['...'].n"),
        ("d[b'key']", "d[...]"),
        ("d[('key', 0)]", "d[...]"),
        ("d[(1, 2)]", "d[...]"),
        ("d[frozenset({'key'})]", "d[...]"),
        ("c[1][41111111]", "c[1][...]"),
        ("c[-41111111]", "c[...]"),
        ("c[1.5]", "c[...]"),
        ("c[key]", "c[...]"),
        ("L['a local named L']", "L['...']"),
        ("L['key']", "L['...']"),
        ("self._modules['key']", "self._modules['...']"),
        ("self.a name", None),
        ("self.name\nSECRET", None),
        ("load('/home/me').size(0)", None),
        ("load(file='/home/me')", None),
        ("load(*key)", None),
        ("x) + ('key'", None),
        ("x # comment", "x"),
        ("x + 12345", None),
        ("lambda: 'key'", None),
        ("f'{key}'", None),
        ("[key for key in d]", None),
        ("'key'", None),
        ("x" + "[0]" * 2_000, None),
        ("x" + ".a" * 1_500, "x" + ".a" * 1_500),
        ("\0", None),
        ("", None),
        ("global state", "global state"),
        (None, None),
    ],
)
def test_a_source_keeps_its_names_only(expression, name):
    assert redact_source(expression) == name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("L['x'].size()[0]", "L['x'].size()[0]"),
        ("s27 = L['x'].size()[1], s86 = G['n']", "s27 = L['x'].size()[1], s86 = G['n']"),
        ("L['self']._modules['lin'].weight", "L['self']._modules['lin'].weight"),
        ("G['__builtins_dict___3']['len']", "G['__builtins_dict___3']['len']"),
        ("L['x'],L['self'].table['key']", "L['x'], L['self'].table['...']"),
        ("L['self'].table['L']['key']", "L['self'].table['...']['...']"),
        ("L['not a name']", "L['...']"),
        ("L['self']._modules['not a name']", "L['self']._modules['...']"),
    ],
)
def test_a_source_of_torch_keeps_the_names_of_locals(source, name):
    assert redact_torch_source(source) == name


@pytest.mark.parametrize("name", ["forward", "<lambda>", "f.<locals>.g", "aten::mm", "triton_mm_12", "aten.mm.default"])
def test_names_of_code_stay(name):
    assert keep_names(name) == name and keep_names([name]) == [name]


def test_parameters_keep_their_marks_and_kernels_their_numbers():
    frame = StackFrame(time_ns=1, parameters=["x", "*args", "k=", "**kwargs", "no name"])
    assert Redactor().redact(frame).parameters == ["x", "*args", "k=", "**kwargs", "..."]
    assert keep_numbers("XBLOCK=128 num_warps=4") and not keep_numbers("MODE=secret") and not keep_numbers("MODE='a'")
    kernel = BY_TABLE["autotune"](time_ns=1, parameters={"XBLOCK": 128, "MODE": "secret", "a key": 1})
    assert Redactor().redact(kernel).parameters == {"XBLOCK": 128, "MODE": "..."}


def test_a_key_becomes_the_same_stand_in_each_time():
    keys = {"key": "/home/SECRET/package", "nearest_key": "job:SECRET:", "forward_key": "/home/SECRET/package"}
    lookup = Redactor().redact(BY_TABLE["cache_lookups"](time_ns=1, **keys))
    assert (lookup.key, lookup.nearest_key, lookup.forward_key) == ("key1", "key2", "key1")


def test_what_recordings_have_is_shown_as_before():
    """The names in golden sessions are names; only keys of containers are left out."""
    for path in sorted(GOLDEN.glob("*.cdiag")):
        data, redactor = load(path).data, Redactor()
        for kind in BY_TABLE.values():
            named = [
                n for n, c in columns(kind).items() if c["user_data"] in ("name", "source", "torch_source", "numbers")
            ]
            for event in data.rows(kind):
                redacted = redactor.redact(event)
                assert [getattr(redacted, n) for n in named] == [getattr(event, n) for n in named]


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
