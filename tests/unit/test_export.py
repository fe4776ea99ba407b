"""Sessions for other tools."""

import csv
import json

import pandas as pd
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from compilediag.events import BY_TABLE, GraphBreak

from .log_builder import event, golden, metrics
from .session_builder import saved


@pytest.fixture
def session(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(golden())
    return cd.ingest(log)


def trace(session, tmp_path):
    return json.loads(session.export(tmp_path / "trace.json").read_text())["traceEvents"]


def test_perfetto_has_every_compile_phase_and_moment(session, tmp_path):
    events = trace(session, tmp_path)
    by_table = {name: [e for e in events if e.get("cat") == name] for name in BY_TABLE}
    for name in ("compiles", "phases", "recompiles", "cache_lookups", "graph_breaks", "dynamic_decisions"):
        assert len(by_table[name]) == len(getattr(session, name)) > 0
    one = by_table["compiles"][0]
    row = session.compiles.iloc[0]
    assert (one["ts"], one["dur"]) == (row["time"].value / 1000, row["duration_s"] * 1e6)
    assert one["args"]["compile_id"] == "0/0" and "guard_latency_us" in one["args"]
    assert {"ph": "M", "name": "process_name", "pid": 4242, "args": {"name": "process 4242"}} in events


def test_spans_of_a_lane_nest(session, tmp_path):
    """Perfetto draws a lane right only if of two spans one holds the other, or they are apart."""
    lanes = {}
    for e in trace(session, tmp_path):
        if e["ph"] == "X":
            lanes.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for spans in lanes.values():
        open_ = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ and open_[-1] <= begin:
                open_.pop()
            assert not open_ or end <= open_[-1]
            open_.append(end)
    assert len(lanes) <= 3


def test_threads_that_overlap_get_lanes_of_their_own(tmp_path):
    log = tmp_path / "a.log"
    spans = [event("B", "one", 0), event("B", "two", 1, "1/0"), event("E", "one", 2), event("E", "two", 3, "1/0")]
    log.write_text("".join(spans) + metrics(9, rank=5))
    events = trace(cd.ingest(log), tmp_path)
    assert {e["name"]: e["tid"] for e in events if e.get("cat") == "phases"} == {"one": 1, "two": 2}
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == ["rank 5, process 100"]


def test_csv_has_every_table(session, tmp_path):
    folder = session.export(tmp_path / "tables", "csv")
    assert {p.stem for p in folder.iterdir()} == set(BY_TABLE)
    read = pd.read_csv(folder / "cache_lookups.csv")
    assert read["key"].tolist() == session.cache_lookups["key"].tolist()
    diffs = [value for value in session.cache_lookups["key_diff"] if value]
    assert [json.loads(v) for v in read["key_diff"].dropna() if v != "[]"] == diffs and diffs


def test_parquet_keeps_the_dtypes(session, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    folder = session.export(tmp_path / "tables", "parquet")
    read, own = pd.read_parquet(folder / "compiles.parquet"), session.compiles
    assert read["time"].tolist() == own["time"].tolist() and read["line"].tolist() == own["line"].tolist()
    assert read["duration_s"].tolist() == own["duration_s"].tolist()


def test_parquet_without_a_package_for_it_is_one_line(session, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CompilediagError, match="pip install pyarrow"):
        session.export(tmp_path / "tables", "parquet")


def test_what_can_not_be_written_is_one_line(session, tmp_path):
    for path, format, why in [
        (tmp_path / "no" / "a.json", "perfetto", "no folder"),
        (tmp_path / "no" / "a", "csv", "can't write"),
        (tmp_path / "a", "xml", "unknown format 'xml'"),
    ]:
        with pytest.raises(CompilediagError, match=why):
            session.export(path, format)


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']
FORMULAS += [" =1", "\n-x", "\xa0 @x", "\ufeff=1", "\uff1d1+1", "-1\n", "+1 "]
PLAIN = ["-1", "+5", "-0.25", "-1e-05", "x=1", "a-b", "", "'=1", "4x16"]


def test_csv_cells_are_not_formulas_and_numbers_stay_numbers(tmp_path):
    texts = [*FORMULAS, *PLAIN]
    session = saved(tmp_path, *(GraphBreak(time_ns=n, reason=text, user_code=text) for n, text in enumerate(texts)))
    folder = session.export(tmp_path / "out", "csv")
    with (folder / "graph_breaks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for column in ("reason", "user_code"):
        assert [row[column] for row in rows] == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    for file in folder.glob("*.csv"):
        with file.open(newline="") as stream:
            cells = [cell for row in csv.reader(stream) for cell in row]
        assert not [cell for cell in cells if cell.strip()[:1] in tuple("=+-@") and not is_number(cell)]


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("format", ["csv", "parquet", "perfetto", "markdown", "sarif"])
def test_links_in_place_of_the_files_are_replaced_not_followed(session, tmp_path, format):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    target = tmp_path / "out"
    if format in ("csv", "parquet"):
        target.mkdir()
        links = [target / f"{table}.{format}" for table in BY_TABLE]
    else:
        links = [target]
    for link in links:
        link.symlink_to(outside)
    session.export(target, format)
    assert outside.read_text() == "mine" and not any(link.is_symlink() for link in links)
