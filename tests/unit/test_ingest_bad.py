"""Logs that were damaged, cut, or made to do harm: nothing crashes or hangs, and what was not read is counted."""

import gzip
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import compilediag as cd
from compilediag.decode.records.trace_log import Record, Unread, read_records
from compilediag.events import Compile
from tests.inside import Store

from .log_builder import compile_, event, golden, record, start, string

MUTATIONS = 4_000


def pieces():
    """The beginning of the golden log, record by record, with one of each kind of record."""
    lines, kinds = golden().splitlines(keepends=True), {}
    records = []
    for line in lines:
        if line.startswith(b"\t"):
            records[-1] += line
        else:
            records.append(line)
    for found in records:
        kind = found.partition(b'{"')[2].partition(b"}")[0][:60]
        if len(found) < 20_000:
            kinds.setdefault(kind, found)
    return list(kinds.values())[:60]


def mutated(random_, log):
    """`log` with a byte flipped, a line cut, two swapped, or one doubled, once or several times."""
    data = bytearray(log)
    for _ in range(random_.choice((1, 1, 2, 8))):
        kind = random_.randrange(4)
        if kind == 0 and data:
            data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
            continue
        lines = data.splitlines(keepends=True) or [b""]
        one, other = random_.randrange(len(lines)), random_.randrange(len(lines))
        if kind == 1:
            lines[one] = lines[one][: random_.randrange(len(lines[one]) + 1)]
        elif kind == 2:
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines.insert(other, lines[one])
        data = bytearray(b"".join(lines))
    return bytes(data)


def ingest_all(folder, logs):
    """The session of many logs, and what it says of them."""
    for number, log in enumerate(logs):
        (folder / f"{number}.log").write_bytes(log)
    session = cd.ingest(folder, processes=1)
    return session, session.sources.set_index("name").loc["logs"]


@pytest.mark.long("reads thousands of spoilt logs")
@pytest.mark.slow
def test_mutated_logs_are_read_as_far_as_they_can_be(tmp_path):
    random_ = random.Random(20)
    parts = pieces()
    assert len(parts) > 30
    for number in range(MUTATIONS // 500):
        folder = tmp_path / str(number)
        folder.mkdir()
        logs = [mutated(random_, b"".join(random_.sample(parts, 4))) for _ in range(500)]
        session, found = ingest_all(folder, logs)
        read = int(re.search(r"([\d,]+) records", found["reason"])[1].replace(",", ""))
        # Of the four records of a log, at most the few that were changed are not read.
        assert read > 1_500 and found["dropped"] > 500 and read + found["dropped"] > 2_000
        assert len(session.events) > 2_000


def test_every_changed_payload_is_counted(tmp_path):
    random_ = random.Random(5)
    parts = [part for part in pieces() if b"\n\t" in part]
    logs = []
    for number in range(300):
        part = bytearray(random_.choice(parts))
        at = random_.randrange(part.index(b"\n\t") + 2, len(part) - 1)
        part[at] = ord("x") if part[at] != ord("x") else ord("y")
        logs.append(bytes(part) + compile_(pid=1000 + number).encode())
    _, found = ingest_all(tmp_path, logs)
    assert found["dropped"] >= 300 and "300x payload differs from its md5" in found["reason"]


def test_values_of_any_type_are_missing_rather_than_wrong(session_of_log):
    odd = {"co_name": 7, "co_filename": ["x"], "co_firstlineno": 10**30, "guard_count": True, "graph_op_count": "2"}
    log = start() + record("compilation_metrics", {**odd, "start_time_us": 5, "end_time_us": 9})
    (compiled,) = session_of_log(log, strict=True).data.rows(Compile)
    assert (compiled.function, compiled.file, compiled.line, compiled.guard_count) == (None,) * 4


class Endless:
    """A gigabyte without a line end, then a record."""

    stopped, position = None, 0

    def __init__(self, then):
        self.blocks = iter([*[b"a" * (1 << 20)] * 1024, b"\n" + then])

    def read(self, size):
        return next(self.blocks, b"")


def test_a_gigabyte_in_one_line_does_not_take_the_memory():
    import tracemalloc

    tracemalloc.start()
    found = list(read_records(Endless(compile_().encode())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [type(f) for f in found] == [Unread, Record, Record]
    assert found[0].size == 1 << 30 and peak < 200 << 20


def test_memory_does_not_grow_with_the_log():
    import tracemalloc

    def peak(times):
        class Repeated(Endless):
            def __init__(self):
                self.blocks = iter([log] * times)

        log = golden()
        tracemalloc.start()
        assert sum(1 for _ in read_records(Repeated())) > 1000
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(12) < 1.5 * peak(3)


@pytest.mark.slow
def test_a_zip_bomb_is_not_read_to_its_end(tmp_path):
    bomb = tmp_path / "bomb.log.gz"
    with gzip.open(bomb, "wb", 9) as packed:
        packed.write(compile_().encode())
        for _ in range(400):
            packed.write(b"\0" * (1 << 20))
    session = cd.ingest(bomb)
    reason = session.sources.set_index("name").loc["logs", "reason"]
    assert "unpacks to more than 250 times its size" in reason and len(session.compiles) == 1


def test_a_packed_log_that_is_cut_off(tmp_path):
    log = tmp_path / "a.log.gz"
    log.write_bytes(gzip.compress(golden())[:-50_000])
    session = cd.ingest(log)
    reason = session.sources.set_index("name").loc["logs", "reason"]
    assert "damaged compressed data" in reason and len(session.compiles) > 10


def test_nesting_and_numbers_that_are_too_much_for_a_parser(session_of_log):
    deep = '{"artifact": ' + "[" * 100_000 + "]" * 100_000 + "}"
    line = start()
    head = line[: line.index("{")]
    log = head + deep + "\n" + head + '{"dynamo_start": {"stack": [' + "9" * 10_000 + "]}}\n"
    log += event("B", "x", args={"a": 1}).replace('"ts": 17', '"ts": 1e999, "td": 17')
    session = session_of_log(log + compile_())
    assert len(session.compiles) == 1 and session.sources.set_index("name").loc["logs", "dropped"] >= 3


def test_no_path_in_a_log_is_opened(python, tmp_path):
    named = tmp_path / "named.py"
    named.write_text("secret")
    log = tmp_path / "a.log"
    code = {"filename": str(named)}
    places = [{"line": 1, "name": "f", "filename": 0, "loc": None}]
    log.write_text(
        string(str(named)) + record("dynamo_start", {"stack": places}) + record("inductor_output_code", code, "code")
        + record("dump_file", {"name": str(named)}, "text") + record("link", {"name": "x", "url": f"file://{named}"})
        + compile_().replace("/home/user/model.py", str(named))
    )  # fmt: skip
    done = python(
        "-c",
        f"""
import sys
import compilediag as cd
opened = []
sys.addaudithook(lambda name, args: opened.append(str(args[0])) if name == "open" else None)
session = cd.ingest({str(log)!r}, {str(tmp_path / "a.cdiag")!r}, strict=True)
session.summary(), session.report({str(tmp_path / "a.html")!r})
assert any("a.log" in name for name in opened) and not any("named" in name for name in opened), opened
""",
    )
    assert done.returncode == 0, done.stderr


def test_links_and_what_is_no_file_in_a_folder_of_logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text(compile_())
    os.mkfifo(folder / "pipe.log")
    links = {"null": "/dev/null", "zero": "/dev/zero", "up": "..", "self": "self.log", "a-again": "a.log"}
    for name, target in links.items():
        (folder / f"{name}.log").symlink_to(target)
    (folder / "kernel.log").symlink_to("/proc/self/status")
    session = cd.ingest(folder)
    assert len(session.compiles) == 1


# Interrupts


@pytest.mark.parametrize("batches", [1, 3])
def test_what_was_interrupted_is_gone_on_with(tmp_path, monkeypatch, batches):
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    logs[0].write_bytes(golden())
    logs[1].write_bytes(golden().replace(b" 4242 ", b" 4343 "))
    whole = cd.ingest(logs)
    monkeypatch.setattr("compilediag.logs.log_session.BATCH_EVENTS", 300)
    out, appended = tmp_path / "out.cdiag", []
    append = Store.append

    def interrupted(self, *args, **options):
        if len(appended) == batches:
            raise KeyboardInterrupt
        appended.append(None)
        append(self, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cd.ingest(logs, out)
    partial = len(cd.load(out).events)
    assert 0 < partial < len(whole.events)
    session = cd.ingest(logs, out)
    details = ["kind", "pid", "compile_id", "title"]
    assert session.events[details].astype(str).values.tolist() == whole.events[details].astype(str).values.tolist()
    assert session.meta["ingest"] is None and session.meta["stopped_ns"] == whole.meta["stopped_ns"]


def test_other_logs_or_a_changed_one_begin_anew(tmp_path):
    log, out = tmp_path / "a.log", tmp_path / "out.cdiag"
    log.write_text(compile_())
    assert len(cd.ingest(log, out).compiles) == 1
    log.write_text(compile_() + compile_("1/0", at=5))
    assert len(cd.ingest(log, out).compiles) == 2
    assert len(cd.ingest(log, out).compiles) == 2


@pytest.mark.slow
def test_ctrl_c_and_the_same_command_again(tmp_path):
    log, out = tmp_path / "a.log", tmp_path / "out.cdiag"
    log.write_bytes(b"".join(golden().replace(b" 4242 ", b" %d " % pid) for pid in range(1000, 1040)))
    command = [sys.executable, "-m", "compilediag", "ingest", str(log), "-o", str(out)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    # What is stored first is beside the file, which is written when the command ends.
    stored = out.with_name("out.cdiag-wal")
    while not stored.exists() or stored.stat().st_size < 200_000:
        assert running.poll() is None, "it was over before it could be interrupted"
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    assert running.wait(300) == 130 and "run the same command again to continue" in running.stderr.read()
    running.stderr.close()
    assert subprocess.run(command, capture_output=True, timeout=300).returncode == 0
    session = cd.load(out)
    assert session.compiles["pid"].nunique() == 40 and session.compiles.groupby("pid").size().nunique() == 1
