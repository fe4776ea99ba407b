"""Session files from strangers: refused in one line, or read without harm; nothing in them is executed."""

import json
import os
import re
import sqlite3
import struct
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from compilediag import load
from compilediag.errors import CompilediagError, NewerSchema, NotASession
from compilediag.events import BY_TABLE, SCHEMA_VERSION, columns
from tests.inside import Store, main
from tests.tiers import quick

from .every_view import list_views, run_command, show_everything
from .hostile_sessions import make_base, set_meta, spoil
from .session_builder import SECOND


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_base(tmp_path_factory.mktemp("base") / "base.cdiag")


def list_refusals(path):
    """What each way to open the file says."""
    ways = (lambda: load(path), lambda: Store.open(path, writable=True), lambda: run_command("live", path, "--plain"))
    lines = []
    for way in ways:
        with pytest.raises(CompilediagError) as error:
            way()
        lines.append(str(error.value))
    return lines


def is_refused(path, reason):
    """True if every way to open the file ends in one line with the reason."""
    return all(re.search(reason, line) and "\n" not in line and len(line) < 600 for line in list_refusals(path))


# The schema

NOT_PLAIN = {
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM events; END"],
    "view": ["DROP TABLE kernels", "CREATE VIEW kernels AS SELECT 1 AS event_id, load_extension('/tmp/x') AS name"],
    "virtual table": ["CREATE VIRTUAL TABLE v USING fts5(body)"],
    "virtual table of a module that Python lacks": [
        "PRAGMA writable_schema=ON",
        "INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING nothing(1)')",
    ],
    "generated column": ["CREATE TABLE g (a TEXT, b TEXT AS (upper(a)))"],
    "index on an expression": ["CREATE INDEX i ON events (abs(time_ns))"],
    "index": ["CREATE INDEX i ON events (time_ns)"],
    "default": ["CREATE TABLE d (a TEXT DEFAULT (hex(randomblob(9))))"],
    "check": ["CREATE TABLE c (a TEXT CHECK (length(a) < 9))"],
    "without ids": ["DROP TABLE kernels", "CREATE TABLE kernels (event_id TEXT, name TEXT)"],
    "without rows": ["DROP TABLE kernels", "CREATE TABLE kernels (event_id INTEGER PRIMARY KEY) WITHOUT ROWID"],
    "many tables": [f"CREATE TABLE t{n} (a TEXT)" for n in range(200)],
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_a_file_with_more_than_plain_tables_is_refused(base, tmp_path, name):
    path = spoil(base, tmp_path / "a.cdiag", *((statement,) for statement in NOT_PLAIN[name]))
    before = path.read_bytes()
    assert is_refused(path, "compilediag does not write|more tables")
    assert path.read_bytes() == before


def test_a_file_that_lacks_a_column_is_refused(base, tmp_path):
    assert is_refused(
        spoil(base, tmp_path / "a.cdiag", ("ALTER TABLE compiles DROP COLUMN outcome",)), "has no column outcome"
    )


@pytest.mark.parametrize("version", ["x", None, 0, -1, 1.5, True, [1], 10**30])
def test_a_version_that_is_none_is_refused(base, tmp_path, version):
    assert is_refused(
        set_meta(base, tmp_path / "a.cdiag", schema_version=version), "not a compilediag session|newer compilediag"
    )


def test_a_version_of_the_future_is_refused(base, tmp_path):
    path = set_meta(base, tmp_path / "a.cdiag", schema_version=SCHEMA_VERSION + 1)
    assert is_refused(path, "newer compilediag .*upgrade")
    with pytest.raises(NewerSchema):
        load(path)


@pytest.mark.parametrize("table", ["events", *BY_TABLE])
@pytest.mark.parametrize("number", [2**63 - 1, 2**53 + 1, 0, -(2**63)])
def test_ids_that_nobody_writes_are_refused(base, tmp_path, table, number):
    name = "id" if table == "events" else "event_id"
    with closing(sqlite3.connect(base)) as db:
        (last,) = db.execute(f"SELECT max({name}) FROM {table}").fetchone()
    change = (f"UPDATE {table} SET {name} = ? WHERE {name} = ?", number, last)
    if last is None:
        change = (f"INSERT INTO {table} ({name}) VALUES (?)", number)
    assert is_refused(spoil(base, tmp_path / "a.cdiag", change), f"event id {number}")


# What is not a file, and what lies beside one


def test_what_is_not_a_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo.cdiag")
    (tmp_path / "folder.cdiag").mkdir()
    (tmp_path / "zero.cdiag").symlink_to("/dev/zero")
    (tmp_path / "nothing.cdiag").symlink_to(tmp_path / "missing")
    for name in ("fifo", "zero", "nothing"):
        assert is_refused(tmp_path / f"{name}.cdiag", "is a (named pipe|device)|not a regular file|does not exist")
    assert is_refused(tmp_path, "contains no logs and no sessions|is a folder")


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_side_files_that_are_no_files_change_nothing_outside(base, tmp_path, ending, kind):
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    path = spoil(base, tmp_path / "a.cdiag", ("PRAGMA journal_mode=WAL",) if ending != "-journal" else ("SELECT 1",))
    for side in ("-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)
    side = Path(f"{path}{ending}")
    {"link": lambda: side.symlink_to(outside), "fifo": lambda: os.mkfifo(side), "folder": side.mkdir}[kind]()
    try:
        assert len(load(path).compiles) > 10
    except NotASession as error:
        assert "\n" not in str(error)
    assert outside.read_bytes() == b"mine"


def test_a_journal_that_names_another_file_does_not_delete_it(base, tmp_path):
    """SQLite deletes the file that a journal names as the one of several databases, once it has applied the journal."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    path = spoil(base, tmp_path / "a.cdiag")
    name, magic = str(victim).encode(), bytes.fromhex("d9d505f920a163d7")
    head = struct.pack(">8sI4xIII", magic, 0, 1, 512, 4096)
    end = struct.pack(f">I{len(name)}sII8s", 0x40000000 // 4096 + 1, name, len(name), sum(name) & 0xFFFF_FFFF, magic)
    Path(f"{path}-journal").write_bytes(head.ljust(512, b"\0") + end)
    assert len(load(path).compiles) > 10
    with pytest.raises(NotASession, match="journal of an interrupted write"):
        Store.open(path, writable=True)
    assert victim.read_bytes() == b"mine"


# Bombs


def test_a_text_that_unpacks_to_very_much_is_refused(base, tmp_path):
    bomb = zlib.compress(bytes(200 << 20), 9)
    path = spoil(base, tmp_path / "a.cdiag", ("UPDATE payloads SET body = ?", bomb))
    session = load(path)
    with pytest.raises(KeyError, match="more than 128 MB"):
        session.artifact(int(session.artifacts["event_id"].iloc[0]))


def test_many_artifacts_with_one_text_that_unpacks_to_very_much(base, tmp_path, monkeypatch):
    """A few kB of a file can be the text of any number of artifacts."""
    sizes, make = [], zlib.decompressobj

    class Counting:
        def __init__(self, *args):
            self._own = make(*args)

        def decompress(self, *args):
            sizes.append(len(unpacked := self._own.decompress(*args)))
            return unpacked

        def __getattr__(self, name):
            return getattr(self._own, name)

    monkeypatch.setattr(zlib, "decompressobj", Counting)
    bomb = zlib.compress(b"x" * (40 << 20), 9)
    many = "WITH RECURSIVE n(i) AS (SELECT 100000 UNION ALL SELECT i + 1 FROM n WHERE i < 100500)"
    event = f"INSERT INTO events (id, time_ns, kind, pid) {many} SELECT i, {SECOND}, 'artifact', 1 FROM n"
    rows = f"INSERT INTO artifacts (event_id, name, digest) {many} SELECT i, 'dynamo_cpp_guards_str', 'bomb' FROM n"
    payload = ("INSERT INTO payloads VALUES ('bomb', 9, ?)", bomb)
    path = spoil(base, tmp_path / "a.cdiag", (event,), (rows,), payload)
    assert load(path).report(tmp_path / "report.html").stat().st_size < 4_000_000
    assert 0 < sum(sizes) < 1 << 30 and load(path).artifact(100_000).startswith("xxx")


def test_pages_that_refer_to_each_other_end(base, tmp_path, monkeypatch):
    """An inner page that has the same page as each of its children, several levels deep, has more rows than atoms."""
    monkeypatch.setattr("compilediag.storage.store.PATIENCE_S", 0.5)
    path = spoil(base, tmp_path / "a.cdiag")
    make_endless(path, "events")
    session = load(path)
    with pytest.raises(NotASession, match=r"took more than .* s of CPU time"):
        session.events  # noqa: B018
    with pytest.raises(CompilediagError):
        run_command("live", path, "--plain")


def make_endless(path, table):
    """Put levels of inner pages over the pages of a table; each has one child many times."""
    db = sqlite3.connect(path)
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    size = db.execute("PRAGMA page_size").fetchone()[0]
    db.close()
    data = bytearray(path.read_bytes())
    pages = len(data) // size
    begin = (root - 1) * size
    data += data[begin : begin + size]  # the former root, now the deepest child
    child, levels = pages + 1, 6
    for level in range(levels):
        page = make_inner_page(child, size)
        if level < levels - 1:
            data += page
            child = len(data) // size
        else:
            data[begin : begin + size] = page
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    path.write_bytes(data)


def make_inner_page(child, size):
    """An inner page of a table with 100 cells that all point to one page."""
    cells = [child.to_bytes(4, "big") + bytes([0x81 + number // 128, number % 128]) for number in range(100)]
    begin = size - 6 * len(cells)
    head = bytes([5, 0, 0]) + struct.pack(">HHxI", len(cells), begin, child)
    pointers = struct.pack(f">{len(cells)}H", *(size - 6 * number for number in range(1, len(cells) + 1)))
    return (head + pointers).ljust(begin, b"\0") + b"".join(cells[::-1])


# Values


def test_numbers_that_nobody_measures_are_missing(base, tmp_path):
    changes = [
        ("UPDATE events SET duration_s = 9e999 WHERE kind = 'compile' AND id % 2",),
        ("UPDATE events SET duration_s = -1.5 WHERE kind = 'compile' AND NOT id % 2",),
        ("UPDATE events SET time_ns = -5 WHERE kind = 'graph_break'",),
        ("UPDATE compiles SET line = 9223372036854775807, dynamo_s = -9e999, aot_s = 1e300",),
        ("UPDATE compiles SET graph_ops = 'many', is_recompile = 'x', function = x'00ff'",),
    ]
    session = load(spoil(base, tmp_path / "a.cdiag", *changes))
    names = ["duration_s", "line", "dynamo_s", "aot_s", "graph_ops", "is_recompile", "function"]
    assert session.compiles[names].isna().all().all() and len(session.compiles) > 10
    assert len(session.graph_breaks) == 0
    rows = session.data.rows(BY_TABLE["compiles"])
    assert {getattr(row, name) for row in rows for name in names} == {None}


#: The ends of what SQLite stores, and of what a column accepts.
EXTREMES = (2**63 - 1, -(2**63), 2**62, -(2**62), 0, 1e308, 1e15, 5e-324)


@pytest.mark.parametrize("value", quick(EXTREMES, [2**63 - 1, 5e-324], why="every view and command, for one number"))
def test_numbers_of_any_size_end_no_view_and_no_command(base, tmp_path, capsys, value):
    changes = [
        (f'UPDATE {cls.table} SET "{name}" = ?', value)
        for cls in BY_TABLE.values()
        for name, spec in columns(cls).items()
        if spec["dtype"] in ("Int64", "float64", "boolean") and name != "duration_s"
    ]
    changes += [("UPDATE events SET duration_s = ?, rank = ?, pid = ?, time_ns = time_ns + 1", value, value, value)]
    changes += [("UPDATE OR IGNORE progress SET pid = ?, thread = ?", value, value)]
    changes += [("UPDATE meta SET value = ? WHERE key IN ('pid', 'created_ns')", json.dumps(value))]
    path = spoil(base, tmp_path / "a.cdiag", *changes)
    assert len(show_everything(path, tmp_path, but=SLOW)) > 30
    for command in (["live", "--plain"], ["ranks"], ["plan"], ["diff", str(path)], ["check", "--max-recompiles", "0"]):
        assert main([command[0], str(path), *command[1:]]) in (0, 1), command
        assert "Traceback" not in capsys.readouterr().err


#: Characters that nothing is shown of, that reverse a text, or that a terminal obeys.
UNSEEN = (
    "\x07\x08\x0b\x0c\x1b\x7f\x85\x9b\xad\u034f\u061c\u115f\u1160\u17b4\u180e\u200b\u200d\u200e\u2028\u2029\u202a\u202e\u2060"
    "\u2066\u2069\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\U000e0001\U000e0041\U000e0100"
)
#: Views that are no texts for people: tables, data, and pages of a browser.
DATA = ("csv", "parquet", "perfetto", "page", "redacted_page", "report", "diff", "save", "texts", "break_even")


def test_no_text_has_a_character_that_is_not_shown(base, tmp_path, capsys):
    texts_of = [(cls.table, n) for cls in BY_TABLE.values() for n, c in columns(cls).items() if c["dtype"] == "string"]
    joins = {"digest", "stack", "caller", "run_id", "closest_compile_key", "entry_compile_key"}
    words = {"guard_kind", "outcome", "trigger", "status", "action", "cache"}
    changes = [(f'UPDATE {t} SET "{n}" = "{n}" || ?', f"a{UNSEEN}b") for t, n in texts_of if n not in joins | words]
    path = spoil(base, tmp_path / "a.cdiag", *changes)
    path = set_meta(path, tmp_path / "b.cdiag", **dict.fromkeys(("title", "torch_version", "device"), UNSEEN))
    shown = show_everything(path, tmp_path, but=(*DATA, "plan", "findings", "events", *BY_TABLE))
    shown = {name: "".join(map(str, found)) for name, found in shown.items() if not name.startswith("figure")}
    commands = [["plan"], ["plan", "--code"], ["plan", "--json"], ["ranks"], ["diff", str(base)], ["live", "--plain"]]
    commands += [["check", "--max-recompiles", "0"], ["export", "--format", "markdown", "--no-redact"]]
    for command in commands:
        main([command[0], str(path), *command[1:]])
        shown[" ".join(command[:2])] = "".join(capsys.readouterr())
    plan = load(path).plan()
    shown["plan in a notebook"] = f"{plan}{plan.code()}{plan._repr_html_()}"
    assert len(shown) > 18
    assert {name for name, text in shown.items() if "\\u115f" in text} >= {"misses", "plan --json", "record", "warmup"}
    assert {name: sorted(set(UNSEEN) & set(text)) for name, text in shown.items() if set(UNSEEN) & set(text)} == {}


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize(
    "text", ["null", "1", '"x"', "{", "[1]", "[null]", '[["a"]]', DEEP, "[" + "9" * 5000 + "]", "[NaN]"]
)
def test_json_of_another_shape_is_missing(base, tmp_path, text):
    names = [
        (cls.table, name) for cls in BY_TABLE.values() for name, c in columns(cls).items() if c["shape"] == "list[str]"
    ]
    session = load(spoil(base, tmp_path / "a.cdiag", *((f"UPDATE {t} SET {name} = ?", text) for t, name in names)))
    for table, name in names:
        assert session.table(table)[name].isna().all()
        assert {getattr(row, name) for row in session.data.rows(BY_TABLE[table])} <= {None}


@pytest.mark.parametrize("text", ["[NaN, 1e999]", '{"a": -Infinity}', f"[{DEEP}]", f'{{"a": {DEEP}}}'])
def test_json_that_no_json_has_is_missing_in_the_table_and_in_the_rows(base, tmp_path, text):
    """One column at a time: a table with a cell of another shape is read another way."""
    names = [(cls.table, name) for cls in BY_TABLE.values() for name, c in columns(cls).items() if c["dtype"] == "json"]
    assert len(names) > 20
    for table, name in names:
        session = load(spoil(base, tmp_path / "a.cdiag", (f'UPDATE {table} SET "{name}" = ?', text)))
        assert session.table(table)[name].isna().all(), (table, name)
        assert {getattr(row, name) for row in session.data.rows(BY_TABLE[table])} <= {None}, (table, name)


FACTS = ("title", "detail", "created_ns", "stopped_ns", "pid", "my_code", "program", "torch_version")
FACTS += ("outcome", "tried")


@pytest.mark.parametrize("value", [None, -1, 2**70, "x\x1b[31m", ["a", 1], {"a": {"b": None}}])
def test_facts_of_another_type_are_missing(base, tmp_path, value):
    path = set_meta(base, tmp_path / "a.cdiag", **dict.fromkeys(FACTS, value))
    session, views = list_views(path, tmp_path)
    for name in ("summary", "status", "page", "record", "markdown", "warmup", "live"):
        assert views[name](), name


#: Views that read the same rows as others and take long.
SLOW = ("what_if", "perfetto", "csv", "parquet", "save")


def test_a_text_that_is_no_json_loses_that_fact_alone(base, tmp_path):
    changes = [
        ("UPDATE meta SET value = ? WHERE key = 'title'", DEEP),
        ("UPDATE meta SET value = x'00' WHERE key = 'detail'",),
    ]
    changes += [
        ("UPDATE progress SET state = ?", text) for text in ("{", DEEP, "[]", '{"phases": 3, "started_ns": "x"}')
    ]
    session = load(spoil(base, tmp_path / "a.cdiag", *changes))
    assert "title" not in session.meta and "detail" not in session.meta and session.meta["torch_version"]
    assert "compile" in session.summary()


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", "[" * 100_000, "x" * 100])
def test_texts_that_are_no_json_are_not_kept(base, tmp_path, text):
    session = load(spoil(base, tmp_path / "a.cdiag", ("UPDATE payloads SET body = ?", zlib.compress(text.encode()))))
    honest = load(base)
    asked = [event_id for event_id in session.compiles["event_id"] if has_metrics(honest, event_id)][:5]
    assert asked and session.ranks().summary()
    for event_id in asked:
        with pytest.raises(KeyError, match="damaged"):
            session.metrics(event_id)


def has_metrics(session, event_id):
    try:
        return bool(session.metrics(event_id))
    except KeyError:
        return False


def test_facts_and_states_are_bounded(base, tmp_path, monkeypatch):
    monkeypatch.setattr("compilediag.storage.store.MAX_FACTS_SIZE", 5_000_000)
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    changes = (
        (f"INSERT INTO meta {many} SELECT 'k' || i, ? FROM n LIMIT 50", json.dumps("x" * 1_000_000)),
        (f"INSERT INTO progress {many} SELECT 4194302, i, ? FROM n", json.dumps({"function": "f"})),
        ("INSERT INTO progress VALUES (4194303, 1, ?)", json.dumps({"function": "f" * 100_000})),
        ("DELETE FROM meta WHERE key = 'stopped_ns'",),
    )
    store = Store.open(spoil(base, tmp_path / "a.cdiag", *changes))
    with closing(store.connection):
        assert len(str(store.meta())) < 6_000_000 and store.meta()["torch_version"]
        states = store.progress_by_process()
        assert sum(map(len, states.values())) == 10_000 and 4_194_303 not in states


def test_words_that_no_column_lists_do_not_stop_any_view(base, tmp_path):
    """Each column that holds one of some words, in each row: of a later version, or of a stranger."""
    words = ("kind", "trigger", "outcome", "limit", "guard_kind", "cache", "action", "stage", "tuner", "choice_kind")
    words += ("mode", "backend", "ran", "status", "reason_code", "language", "where", "problem", "device")
    words += ("from_cache", "mismatch")
    found = [(cls.table, name) for cls in BY_TABLE.values() for name in columns(cls) if name in words]
    assert len(found) > 20
    for step, chosen in enumerate(("1", "id % 3 = 0")):
        changes = [(f'UPDATE {t} SET "{n}" = ? WHERE {chosen.replace("id", "event_id")}', "zzz") for t, n in found]
        path = spoil(
            base, tmp_path / f"{step}.cdiag", *changes, (f"UPDATE events SET kind = 'zzz' WHERE id % 50 = {step}",)
        )
        shown = show_everything(path, tmp_path, but=SLOW)
        assert not [
            name for name, texts in shown.items() if texts and texts[0].startswith("refused") and name not in REFUSING
        ]


#: Views with nothing to show without a compile that succeeded, a known kind of guard, or the stacks of what was traced.
REFUSING = ("warmup", "repro", "speedscope")


def test_references_that_go_in_circles_end(base, tmp_path):
    changes = [
        ("UPDATE stacks SET caller = stack",),
        ("UPDATE recompiles SET closest_compile_key = (SELECT compile_key FROM events e WHERE e.id = event_id)",),
        ("UPDATE guard_failures SET entry_compile_key = (SELECT compile_key FROM events e WHERE e.id = event_id)",),
        ("UPDATE cudagraphs SET parent_id = graph_id",),
    ]
    assert len(show_everything(spoil(base, tmp_path / "a.cdiag", *changes), tmp_path, but=SLOW)) > 30


# Commands


def test_commands_refuse_a_file_in_one_line(base, tmp_path, capsys):
    path = spoil(base, tmp_path / "a\n\x1b[31m.cdiag", *((statement,) for statement in NOT_PLAIN["view"]))
    commands = [["plan"], ["live"], ["ranks"], ["diff", str(base)], ["check", "--max-recompiles", "0"]]
    commands += [["report", "-o", str(tmp_path / "x.html")], ["export", "--format", "csv", "-o", str(tmp_path / "csv")]]
    for command in commands:
        assert main([command[0], str(path), *command[1:]]) == 2, command
        out, err = capsys.readouterr()
        assert out == "" and err.removesuffix("\n").isprintable(), command
    assert not (tmp_path / "x.html").exists()
