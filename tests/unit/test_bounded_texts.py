"""No text that a program passes makes a session large: long ones are recorded as their beginning, length and digest."""

import contextlib
import dataclasses
import json
import sqlite3

import pytest

import compilediag as cd
from compilediag.events import KINDS, Artifact, Compile, GraphBreak, GuardFailure, Recompile

from .every_view import show_everything
from .log_builder import compile_, record
from .session_builder import SECOND, saved

#: What a text, and the JSON of a column, have at most.
MAX_TEXT, MAX_JSON = 4_000, 64_000
#: The name of torch's record of a guard tree.
GUARD_TREE = "dynamo_cpp_guards_str"
#: A text that no view may carry whole.
LONG = "".join(f"{number:x}," for number in range(60_000))
JSON = {"list[str]": [LONG] * 300, "dict[str, str]": {f"{at}{LONG}": LONG for at in range(300)}}


def own_fields(kind):
    return [field for field in dataclasses.fields(kind) if field.metadata]


def make_long(kind):
    """An event whose texts are all long."""
    values = {}
    for field in own_fields(kind):
        if field.metadata["dtype"] == "string":
            values[field.name] = f"{field.name} {LONG}"
        elif field.metadata["dtype"] == "json":
            values[field.name] = JSON.get(str(field.type).removesuffix(" | None"))
    return kind(time_ns=SECOND, **values)


def list_texts(path):
    """(table, column, text) of everything that a session file holds, except the texts of artifacts."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'payloads'"):
            rows = db.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in rows.description]
            yield from ((table, n, v) for row in rows for n, v in zip(names, row, strict=True) if isinstance(v, str))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_no_column_of_any_event_is_unbounded(tmp_path, kind):
    path = saved(tmp_path, make_long(kind), make_long(kind)).path
    texts = [(table, column, len(text)) for table, column, text in list_texts(path)]
    is_json = {(kind.table, f.name) for f in own_fields(kind) if f.metadata["dtype"] == "json"}
    limits = {(table, column): 2 * MAX_JSON if (table, column) in is_json else MAX_TEXT for table, column, _ in texts}
    assert [(t, c, size) for t, c, size in texts if size > limits[t, c]] == []
    assert {column for table, column, size in texts if table == kind.table and size > 1_000}, "nothing long was stored"
    [first, second] = cd.load(path).data.rows(kind) if kind.table != "sources" else [None, None]
    assert first is None or dataclasses.replace(first, event_id=second.event_id) == second


def test_every_view_of_long_texts_is_small(tmp_path):
    keys = [f"1.{number}" for number in range(3)]
    compiles = [Compile(time_ns=SECOND, compile_key=key, compile_id=key, function="f", outcome="ok") for key in keys]
    values = {"guard_source": "c", "guard_kind": "value", "expected": f"'{LONG}'", "actual": f"'x{LONG}'"}
    recompiles = [
        Recompile(time_ns=SECOND, compile_key=key, function="f", reason=f"L['c'] == '{key}{LONG}'", **values)
        for key in keys
    ]
    failures = [
        GuardFailure(time_ns=SECOND, compile_key=key, guard=f"L['c'] == '{key}{LONG}'", **values) for key in keys
    ]
    tree = f"TREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- EQUALS_MATCH: L['c'] == '{LONG}'\n"
    trees = [(Artifact(time_ns=SECOND, compile_key=key, name=GUARD_TREE), tree) for key in keys]
    session = saved(tmp_path, *compiles, *recompiles, *failures, *trees)
    assert session.path.stat().st_size < 400_000
    folder = tmp_path / "views"
    folder.mkdir()
    show_everything(session.path, folder)
    probe = LONG[MAX_TEXT:][:60]
    written = [file for file in folder.rglob("*") if file.is_file()]
    assert written and all(probe not in file.read_bytes().decode("utf-8", "replace") for file in written)
    sizes = {file.name: file.stat().st_size for file in written if file.suffix not in (".html", ".cdiag")}
    assert {name: size for name, size in sizes.items() if size > 200_000} == {}


def test_logs_are_bounded_too(tmp_path):
    """One process or several: what is kept is the same."""
    tree = f"TREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- EQUALS_MATCH: L['c'] == '{LONG}'\n"
    log = tmp_path / "dedicated_log_torch_trace_a.log"
    reason = record("artifact", {"name": "recompile_reasons"}, f"0/0: L['c'] == '{LONG}'")
    log.write_text(record(GUARD_TREE, {}, tree) + reason + compile_() + compile_("1/0", at=3))
    for processes in (1, 2):
        session = cd.ingest(log, tmp_path / f"{processes}.cdiag", processes=processes)
        assert max(len(text) for table, _, text in list_texts(session.path) if table != "meta") <= MAX_TEXT
        [tree_id] = session.artifacts.query(f"name == {GUARD_TREE!r}")["event_id"]
        assert max(map(len, session.artifact(tree_id).split("\n"))) <= MAX_TEXT


def test_a_file_that_has_longer_texts_is_read_with_bounded_ones(tmp_path):
    """Somebody else, or an earlier version, wrote it."""
    session = saved(tmp_path, Recompile(time_ns=SECOND, function="f", reason="short"))
    with contextlib.closing(sqlite3.connect(session.path)) as db, db:
        db.execute("UPDATE recompiles SET reason = ?, function = ?", (LONG, LONG))
    [row] = cd.load(session.path).data.rows(Recompile)
    assert row.reason == row.function and is_bounded(row.reason, LONG)


def test_a_value_of_another_type_does_not_cost_the_event(tmp_path):
    session = saved(tmp_path, Compile(time_ns=SECOND, function=3, fail_reason=LONG))
    assert [is_bounded(text, LONG) for text in session.compiles["fail_reason"]] == [True]


def is_bounded(bounded, text):
    """True if a text is the beginning of another one, with its length."""
    head, _, note = bounded.rpartition("... (")
    is_beginning = text.startswith(head) and len(head) > MAX_TEXT - 70
    return len(bounded) <= MAX_TEXT and is_beginning and f"{len(text):,} characters" in note


@pytest.mark.parametrize("text", ["a", "x" * MAX_TEXT, "x" * (MAX_TEXT + 1), "é\u2028" * 9_000, LONG])
def test_a_text_has_its_beginning_length_and_digest(tmp_path, text):
    others = [text, text[:-1] + "\n", text + "y"]
    session = saved(tmp_path, *(Compile(time_ns=SECOND, fail_reason=other) for other in others))
    bounded, *rest = session.compiles["fail_reason"]
    assert bounded == text if len(text) <= MAX_TEXT else is_bounded(bounded, text)
    assert bounded not in rest
    (tmp_path / "again").mkdir()
    again = saved(tmp_path / "again", Compile(time_ns=SECOND, fail_reason=bounded))
    assert again.compiles["fail_reason"].tolist() == [bounded]


def test_lists_keep_their_first_items(tmp_path):
    words = [f"word{number}" for number in range(100_000)]
    kept = saved(tmp_path, GraphBreak(time_ns=SECOND, hints=words)).graph_breaks["hints"].iloc[0]
    assert kept[:2] == words[:2] and len(json.dumps(kept)) < 2 * MAX_JSON
    assert kept[-1] == f"... ({100_001 - len(kept):,} more)"
