"""One log, read in parts: the same records and the same session, wherever the parts begin."""

import gzip
import io
import random
import re
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.decode.records.trace_log import Record, Unread, parse_records, read_records, separate_torn
from compilediag.errors import CompilediagError
from compilediag.logs import log_parts, workers
from compilediag.logs.log_decoder import LogDecoder
from compilediag.logs.log_files import LogFile

from .log_builder import BEGIN_US, compile_, event, golden, metrics, reasons, record, start, string
from .test_ingest_parallel import assert_same

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.log.gz"))
CODE = "def f(x):\n\n    return x\n"


def make_log():
    """A log with everything that a cut could separate, and with what is no record."""
    one = record("inductor_output_code", payload="line\n" * 9)
    head, *lines = one.splitlines(keepends=True)
    other = record("inductor_output_code", payload="other\n" * 7)
    other_head, *other_lines = other.splitlines(keepends=True)
    torn = head + "".join(lines[:4]) + other_head + "".join(other_lines) + "".join(lines[4:])
    window = record("fx_graph", payload=CODE).replace("\n", "\r\n")
    stripped = record("aot_graph", payload=CODE).replace("\n\t\n", "\n\n")
    return (
        "V0305 11:59:59.000000 100 a.py:1] {}\n"
        + string()
        + event("B", "dynamo")
        + event("B", "entire_frame_compile")
        + compile_()
        + event("E", "entire_frame_compile", at=1)
        + event("E", "dynamo", at=1)
        + torn
        + "no record\n\n\n\n\n\n\n\n\n\n\n\n\n\tof nothing\n"
        + reasons(["tensor 'x' size mismatch at index 0. expected 3, actual 4"])
        + window
        + start(2, compile_id="0/1")
        + stripped
        + record("artifact", {"name": "x", "encoding": "json"}, payload=CODE + "\n" * 14)
        + record("artifact", {"name": "y"}, payload="\ttab\n\t\ttabs\n")
        + "V0305 12:00:09.000000 100 a.py:1] {broken\n"
        + event("i", "fx_graph_cache_miss", at=2, args={"key": "k", "components": ["[a] a: 1"]})
        + record("chromium_event", payload="{no json", at=2)
        + record("chromium_event", payload="null", at=2)
        + record("describe_tensor", {"id": 0, "stack": [{"filename": 0, "line": 3, "name": "f", "loc": "x = 1"}]})
        + metrics(3, compile_id="0/1")
        + record("artifact", {"name": "x", "encoding": "json"}, payload=CODE + "\n" * 14, rank=3)
        + "V0305 12:00:10.000000 100 a.py:1] {"
    ).encode()


class Bytes(io.BytesIO):
    """A log in memory, as a LogStream."""

    stopped = None

    @property
    def position(self):
        return self.tell()


def decode_parts(data, begins):
    """What a log gives whose parts begin at these bytes."""
    file = io.BytesIO(data)

    def reading():
        for begin, end in zip(begins, [*begins[1:], len(data)], strict=True):
            listed = parse_records(log_parts.PartStream(file, begin, end, len(data)))
            yield from log_parts.unpack_records(log_parts.pack_records(listed, lambda digest, text: text))

    return decode(data, separate_torn(reading()))


def decode(data, reading):
    decoder = LogDecoder(LogFile(Path("dedicated_log_torch_trace_x.log"), len(data), BEGIN_US * 1000), reading)
    items = [([strip(item) for item in items], pid, rank) for items, pid, rank in decoder.decode()]
    return items, decoder.tally, decoder.find_ranks()


def strip(item):
    """An item without its text, which can be packed."""
    return item[0] if isinstance(item, tuple) else item


def list_records(data):
    """Where records begin, by the rule that a line end ends one unless a line with a tab follows."""
    ends = (found.start() + 1 for found in re.finditer(rb"\n", data))
    return [0, *(at for at in ends if not re.match(rb"[\r\n]{0,8}\t", data[at:]))]


def test_a_record_is_found_from_every_byte(monkeypatch):
    data = make_log()
    begins = list_records(data)
    for searched in (1, 7, 100, 1 << 16):
        monkeypatch.setattr(log_parts, "SEARCHED", searched)
        for at in range(1, len(data), 1 if searched > 7 else 13):
            first = next((begin for begin in begins if begin >= at), None)
            assert log_parts.find_record(io.BytesIO(data), at, len(data)) == first
            if first is not None:
                assert log_parts.find_record(io.BytesIO(data), at, first + 1) == first
                assert log_parts.find_record(io.BytesIO(data), at, first) is None


def test_every_cut_gives_the_same():
    data = make_log()
    whole = decode(data, read_records(Bytes(data)))
    assert whole[1].faults.total() > 5 and sum(len(items) for items, _, _ in whole[0]) > 20
    begins = list_records(data)
    assert len(begins) >= 30
    for cut in [*begins[1:], *range(1, len(data), 97)]:
        assert decode_parts(data, [0, cut]) == whole
    assert decode_parts(data, begins) == whole


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_golden_logs_are_the_same_in_parts_of_any_size(path, tmp_path):
    data = gzip.decompress(path.read_bytes())
    log = tmp_path / "a.log"
    log.write_bytes(data)
    whole = decode(data, read_records(Bytes(data)))
    for size in (300, random.Random(0).randrange(1000, 100_000), len(data) // 2):
        count = -(-len(data) // size)
        # Two processes, each of which sends a text once.
        readers = [log_parts.parse_parts(str(log), [*range(own, count, 2)], size, len(data)) for own in range(2)]
        reading = (record for part in range(count) for record in log_parts.unpack_records(next(readers[part % 2])))
        assert decode(data, separate_torn(reading)) == whole


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "dedicated_log_torch_trace_rank_0_x.log"
    path.write_bytes(golden() + make_log())
    return path


def test_several_processes_give_the_session_of_one(log, monkeypatch):
    monkeypatch.setattr(log_parts, "PART", 50_000)
    one, two, four = (cd.ingest(log, processes=number) for number in (1, 2, 4))
    assert_same(one, two)
    assert_same(one, four)
    assert_same(one, cd.ingest([log], processes=3))


def test_few_large_logs_are_read_in_parts_too(log, tmp_path, monkeypatch):
    other = tmp_path / "dedicated_log_torch_trace_rank_1_x.log"
    other.write_bytes(golden().replace(b" 4242 ", b" 4243 ") * 5)  # More than what one process reads meanwhile.
    assert other.stat().st_size > (log_parts.FIRST + 1) * log_parts.PART
    assert_same(cd.ingest([log, other], processes=1), cd.ingest([log, other], processes=4))


def test_a_process_that_dies_is_one_line(log, monkeypatch):
    monkeypatch.setattr(log_parts, "PART", 50_000)
    monkeypatch.setattr(workers, "PROGRAM", "import os; os._exit(7)")
    with pytest.raises(CompilediagError, match=r"rank_0_x.log was not read: .* exit code 7$"):
        cd.ingest(log, processes=2)


def test_fields_that_are_nested_deeply_are_parsed_again():
    nested = []
    for _ in range(3000):
        nested = [nested]
    read = Record("0305 12:00:00.000000", 1, {"a": nested}, "a", None, b"x", "d", size=1, fields='{"a": 1}')
    timed = Record("0305 12:00:00.000000", 1, {}, "chromium_event", None, b'{"a": 2}', "e", size=8, event={"a": nested})
    unpacked = log_parts.unpack_records(log_parts.pack_records([read, timed, Unread("why", 3)], lambda *_: b"p"))
    first, second, third = unpacked
    assert first.metadata == {"a": 1} and first.payload == b"x" and first.packed == b"p"
    assert second.parse_event() == {"a": 2} and third == Unread("why", 3)
