"""A redacted view holds no source code, no values and no paths, whatever column they came in by."""

import dataclasses
import json

import pytest

from compilediag import load
from compilediag.events import (
    BY_TABLE,
    Artifact,
    AutotuneChoice,
    CacheLookup,
    Compile,
    GraphBreak,
    Recompile,
    SourceStatus,
    StackFrame,
    SymbolicShape,
    columns,
)
from tests.inside import ViewModel, to_page_json
from tests.unit.hostile_sessions import GOLDEN
from tests.unit.session_builder import META, SECOND, page_of, page_text, recording, saved
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
    "trace_functions": {"function", "stack", "caller"},
    "warmup_ends": {"on_compile", "ended_by"},
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
    text = page_text(session, redact=True)
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
def test_a_column_shows_no_text_that_is_not_what_it_declares(tmp_path, text):
    events = []
    for kind in BY_TABLE.values():
        declared = {name: spec for name, spec in columns(kind).items() if spec["user_data"] is not None}
        cells = {name: [text, {text: text}] if spec["dtype"] == "json" else text for name, spec in declared.items()}
        events.append(kind(time_ns=SECOND, **cells))
    assert "SECRET" not in page_text(saved(tmp_path, *events), redact=True)


def test_a_lost_session_is_lost_without_its_path(tmp_path):
    reason = "/home/SECRET/run.cdiag can't be written: disk full"
    lost = SourceStatus(time_ns=SECOND, name="file", status="failed", reason_code="lost", reason=reason)
    session = saved(tmp_path, lost)
    snapshot = page_of(session, redact=True)
    assert "SECRET" not in json.dumps(snapshot) and '"lost"' in json.dumps(snapshot["rows"]["sources"])
    assert "SECRET" not in session.export(tmp_path / "x.md", "markdown").read_text()


def test_unredacted_it_is_all_there(session):
    text = page_text(session)
    for column in ("user_code", "expected", "actual", "reason", "file"):
        assert secret("recompiles", column) in text


def redact_all(folder, *events):
    """The rows of events of one kind on a redacted page, as dicts."""
    page, table = page_of(saved(folder, *events), redact=True), events[0].table
    names = [column["name"] for column in page["columns"][table]]
    return [dict(zip(names, row, strict=True)) for row in page["rows"][table]]


def test_a_path_becomes_the_same_stand_in_each_time(tmp_path):
    files = ("/a.py", "/b.py", "/a.py", None)
    rows = redact_all(tmp_path, *(GraphBreak(time_ns=n, user_file=file) for n, file in enumerate(files, 1)))
    first, second, third, missing = (row["user_file"] for row in rows)
    assert first == third != second and missing is None and {first, second} == {"file1.py", "file2.py"}


def test_a_redacted_plan_has_the_same_steps_without_values_code_and_paths(tmp_path):
    place = {"user_file": "/home/SECRET/train.py", "user_line": 3, "user_code": "SECRET(x)"}
    rows = sizes("16", "24", "32", tensor="self.table['SECRET']", **place)
    tried = {"recompiles_before": 2, "recompiles_after": 0, "holds": True, "note": "SECRET", "code": "SECRET"}
    session, recorder, _ = recording(tmp_path, *rows)
    recorder._writer.store.set_meta(**{**META, "tried": tried})
    plan, whole = (page_of(session, redact=redact)["plan"] for redact in (True, False))
    recorder.close()
    assert "SECRET" in json.dumps(whole) and whole["steps"][0]["values"] == ["16", "24", "32"]
    assert whole["steps"][0]["value_count"] == 3
    assert "SECRET" not in json.dumps(plan) and '"16"' not in json.dumps(plan)
    assert plan["headline"] == whole["headline"]
    assert [step["place"] for step in plan["steps"]] == ["file2.py:3"], "the function is in file1.py"
    assert plan["steps"][0]["what"] == "self.table['...'].shape[0] changed"
    assert plan["tried"]["text"].startswith("Tried, the plan holds: 2 recompiles -> 0")


#: What was recorded of a guarded value -> what of it is shown.
SOURCES = [
    ("ids.shape[0]", "ids.shape[0]"),
    ("x.size()[0], y.size()[1]", "x.shape[0], y.shape[1]"),
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
]
#: The same for a name as torch writes it.
TORCH_SOURCES = [
    ("L['x'].size()[0]", "L['x'].shape[0]"),
    ("s27 = L['x'].size()[1], s86 = G['n']", "s27 = L['x'].shape[1], s86 = G['n']"),
    ("L['self']._modules['lin'].weight", "L['self']._modules['lin'].weight"),
    ("G['__builtins_dict___3']['len']", "G['__builtins_dict___3']['len']"),
    ("L['x'],L['self'].table['key']", "L['x'], L['self'].table['...']"),
    ("L['self'].table['L']['key']", "L['self'].table['...']['...']"),
    ("L['not a name']", "L['...']"),
    ("L['self']._modules['not a name']", "L['self']._modules['...']"),
]


def test_a_source_keeps_its_names_only(tmp_path):
    events = (Recompile(time_ns=n, guard_source=text) for n, (text, _) in enumerate(SOURCES, 1))
    shown = [row["guard_source"] for row in redact_all(tmp_path, *events)]
    assert dict(zip((text for text, _ in SOURCES), shown, strict=True)) == dict(SOURCES)


def test_a_source_of_torch_keeps_the_names_of_locals(tmp_path):
    events = (SymbolicShape(time_ns=n, source=text) for n, (text, _) in enumerate(TORCH_SOURCES, 1))
    shown = [row["source"] for row in redact_all(tmp_path, *events)]
    assert dict(zip((text for text, _ in TORCH_SOURCES), shown, strict=True)) == dict(TORCH_SOURCES)


def test_names_of_code_stay(tmp_path):
    names = ["forward", "<lambda>", "f.<locals>.g", "aten::mm", "triton_mm_12", "aten.mm.default"]
    events = [Compile(time_ns=n, function=name) for n, name in enumerate(names, 1)]
    assert [row["function"] for row in redact_all(tmp_path, *events)] == names


def test_parameters_keep_their_marks_and_kernels_their_numbers(tmp_path):
    (tmp_path / "kernels").mkdir()
    frame = StackFrame(time_ns=1, parameters=["x", "*args", "k=", "**kwargs", "no name"])
    (row,) = redact_all(tmp_path, frame)
    assert row["parameters"] == ["x", "*args", "k=", "**kwargs", "..."]
    choices = ["XBLOCK=128 num_warps=4", "MODE=secret", "MODE='a'"]
    parameters = {"XBLOCK": 128, "MODE": "secret", "a key": 1}
    events = [AutotuneChoice(time_ns=n, choice=text, parameters=parameters) for n, text in enumerate(choices, 1)]
    rows = redact_all(tmp_path / "kernels", *events)
    assert [row["choice"] for row in rows] == [choices[0], None, None]
    assert rows[0]["parameters"] == {"XBLOCK": 128, "MODE": "..."}


def test_a_key_becomes_the_same_stand_in_each_time(tmp_path):
    keys = {"key": "/home/SECRET/package", "nearest_key": "job:SECRET:", "forward_key": "/home/SECRET/package"}
    (row,) = redact_all(tmp_path, CacheLookup(time_ns=1, **keys))
    assert (row["key"], row["nearest_key"], row["forward_key"]) == ("key1", "key2", "key1")


def test_what_recordings_have_is_shown_as_before():
    """The names in golden sessions are names; only keys of containers are left out."""
    for path in sorted(GOLDEN.glob("*.cdiag")):
        session = load(path)
        whole, redacted = (page_of(session, redact=redact) for redact in (False, True))
        for table, kind in BY_TABLE.items():
            names = [column["name"] for column in whole["columns"][table]]
            named = {
                n for n, c in columns(kind).items() if c["user_data"] in ("name", "source", "torch_source", "numbers")
            }
            for before, after in zip(whole["rows"].get(table, []), redacted["rows"].get(table, []), strict=True):
                assert [b for n, b in zip(names, before, strict=True) if n in named] == [
                    a for n, a in zip(names, after, strict=True) if n in named
                ]


def test_neither_title_nor_texts_nor_running_files_are_given(tmp_path):
    class Running:
        def state(self):
            return {"function": "forward", "file": "/SECRET/model.py", "line": 3, "phases": [], "started_ns": 1}

    session, recorder, _ = recording(tmp_path)
    recorder._writer.store.set_meta(**{**META, "title": "SECRET.py"})
    recorder.progress[1] = Running()
    snapshot = page_of(session, redact=True)
    recorder.close()
    assert "SECRET" not in json.dumps(snapshot)
    assert snapshot["now"][0]["function"] == "forward" and snapshot["meta"]["redacted"] is True


def test_patches_are_redacted_as_the_snapshot_is(session):
    text = to_page_json(ViewModel(session.data, redact=True).patch())
    for column in ("user_code", "expected", "actual", "reason", "file", "key"):
        assert secret("recompiles", column) not in text


def test_files_of_torch_and_of_packages_are_still_known_as_such(tmp_path):
    packages = "/home/ada/.venv/lib/python3.11/site-packages"
    files = (f"{packages}/torch/_dynamo/eval_frame.py", f"{packages}/secret/model.py", "/home/ada/train.py")
    rows = redact_all(tmp_path, *(StackFrame(time_ns=n, file=file) for n, file in enumerate(files, 1)))
    torchs, package, own = (row["file"] for row in rows)
    assert torchs == "site-packages/torch/_dynamo/eval_frame.py"
    assert package.startswith("site-packages/file") and own.startswith("file")
