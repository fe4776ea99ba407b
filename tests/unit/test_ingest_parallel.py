"""Logs read by several processes: the same session as one gives, whatever happens meanwhile."""

import contextlib

import pandas as pd
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from compilediag.events import BY_TABLE
from compilediag.logs import ingestion, log_files, workers

from .log_builder import compile_, golden, record, start, string


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    late = string() + compile_(pid=7) + start(at=3, compile_id="1/0", pid=7, rank=3)
    code = record("inductor_output_code", payload="x = 1\n" * 2000, at=2)
    others = [late, "", compile_(pid=8) + code, compile_("1/0", pid=9) + code + "no log line\n", golden()[:90_000]]
    texts = [golden(), *others]
    for number, text in enumerate(texts):
        begin = f"V0305 11:59:59.{number:06} {number} a:1] {{}}\n".encode() if text else b""
        data = begin + (text if isinstance(text, bytes) else text.encode())
        (folder / f"dedicated_log_torch_trace_rank_{number}_x.log").write_bytes(data)
    return folder


def contents(session):
    """Everything in a session but when it was ingested."""
    tables = {name: getattr(session, name) for name in BY_TABLE}
    tables["sources"] = tables["sources"].drop(columns="time")
    return tables, {at: session.artifact(at) for at in tables["artifacts"]["event_id"]}


def assert_same(one, other):
    (tables, texts), (other_tables, other_texts) = contents(one), contents(other)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, other_tables[name], obj=name)
    assert texts == other_texts and len(texts) > 100


def test_the_session_is_the_same_whatever_the_number_of_processes(logs):
    one, three = (cd.ingest(logs, processes=number) for number in (1, 3))
    assert_same(one, three)
    details = three.sources.set_index("name").loc["logs"]
    assert details["dropped"] > 1 and "1x no log line" in details["reason"]
    assert set(three.compiles["rank"]) >= {0, 3, 4}
    assert three.meta["ingest"] is None and three.meta["created_ns"] == one.meta["created_ns"]


@pytest.mark.parametrize(("first", "then"), [(2, 1), (1, 2), (2, 2)])
def test_what_was_interrupted_is_gone_on_with(logs, tmp_path, monkeypatch, first, then):
    out = tmp_path / "run.cdiag"
    monkeypatch.setattr("compilediag.logs.log_session.BATCH_EVENTS", 300)
    steps = iter(range(3))

    def interrupted(step):
        def done(*args, **options):
            if next(steps, None) is None:
                raise KeyboardInterrupt
            return step(*args, **options)

        return done

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(ingestion, "add_part", interrupted(ingestion.add_part))
        patched.setattr("compilediag.storage.store.Store.append", interrupted(ingestion.Store.append))
        cd.ingest(logs, out, processes=first)
        raise AssertionError("it was not interrupted")
    begun = len(cd.load(out).events)
    read = []
    monkeypatch.setattr(ingestion, "read_log", lambda log, *rest: read.append(log.rank) or whole(log, *rest))
    again = cd.ingest(logs, out, processes=then)
    assert begun > 100 and (0 not in read or first == 1)
    assert_same(cd.ingest(logs, processes=1), again)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


whole = ingestion.read_log


def test_a_process_that_dies_is_one_line(logs, monkeypatch):
    monkeypatch.setattr(workers, "PROGRAM", "import os; os._exit(7)")
    with pytest.raises(CompilediagError, match=r"rank_0_x.log was not read: .* exit code 7$"):
        cd.ingest(logs, processes=2)


def test_a_log_that_is_gone_meanwhile_is_one_line(logs, monkeypatch):
    separate = ingestion.separate_copies

    def remove_one(found):
        kept = separate(found)
        (logs / "dedicated_log_torch_trace_rank_3_x.log").unlink()
        return kept

    monkeypatch.setattr(ingestion, "separate_copies", remove_one)
    with pytest.raises(CompilediagError, match="rank_3_x.log can't be read: No such file or directory$"):
        cd.ingest(logs, processes=2)


def test_a_script_needs_no_guard_around_it(python, logs):
    code = f"import compilediag as cd; print(len(cd.ingest({str(logs)!r}, processes=2).compiles) > 20)"
    assert python("-c", code).stdout == "True\n"


def test_how_many_processes_read(monkeypatch):
    monkeypatch.setattr(ingestion, "_count_cores", lambda: 6)
    small, large = (log_files.LogFile(None, size, 0) for size in (1 << 20, 40 << 20))
    assert ingestion.choose_processes([small, small], None) == 1 and ingestion.choose_processes([small], 5) == 5
    assert ingestion.choose_processes([large], None) == 2 and ingestion.choose_processes([large] * 20, 5) == 5
    assert ingestion.choose_processes([large] * 20, None) == 6
    with pytest.raises(CompilediagError, match="0 is not a number of processes"):
        ingestion.choose_processes([small], 0)
