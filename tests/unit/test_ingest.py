"""Logs as sessions: what is in real ones, and what is wrong with them."""

import gzip
import json
import os
import re

import pandas as pd
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError

from .log_builder import BEGIN_US, compile_, event, golden, metrics, reasons, record, start, string

NAME = "dedicated_log_torch_trace_a.log"


@pytest.fixture
def ingested(tmp_path):
    """`ingested(text, ...)`: the session of one log, or of several."""

    def ingest(*logs, strict=False, names=None):
        folder = tmp_path / "logs"
        folder.mkdir(exist_ok=True)
        for number, log in enumerate(logs):
            name = names[number] if names else f"dedicated_log_torch_trace_{number}.log"
            (folder / name).write_bytes(log.encode() if isinstance(log, str) else log)
        return cd.ingest(folder, strict=strict)

    return ingest


def read_log_status(session):
    return session.sources.set_index("name").loc["logs"]


def test_a_real_log(ingested):
    session = ingested(golden(), strict=True)
    compiles = session.compiles
    assert (compiles["outcome"] == "ok").sum() > 20 and set(compiles["trigger"]) == {"dynamo", "lazy_backward"}
    assert {"sizes", "generic"}.isdisjoint(compiles["function"]) and compiles["function"].notna().all()
    assert session.recompiles["guard_source"].notna().all() and len(session.recompiles) > 8
    assert {"hit", "miss"} <= set(session.cache_lookups["outcome"])
    assert set(session.graph_breaks["break_id"]) == {"GB0025", "GB0170"}
    assert session.meta["torch_version"].startswith("2.13") and session.meta["detail"] == "full"
    assert set(compiles["pid"]) == {4242}
    assert (
        read_log_status(session)["reason"].startswith("ingested from 1 file: ")
        and read_log_status(session)["dropped"] == 0
    )
    assert "x.size()[0]" in " ".join(f.title for f in session.findings()) + str(set(session.recompiles["guard_source"]))
    assert "compilediag: " in session.summary()


def test_all_fields_of_the_metrics_can_be_reached(ingested):
    session = ingested(golden())
    for event_id in session.compiles["event_id"]:
        fields = session.metrics(event_id)
        assert len(fields) == 99 and "inductor_config" in fields and isinstance(fields["inductor_config"], str)
    with pytest.raises(KeyError):
        session.metrics(event_id + 1)


def test_texts_are_kept_by_name(ingested):
    session = ingested(golden())
    names = session.artifacts.set_index("event_id")["name"]
    assert {"inductor_output_code", "dynamo_output_graph", "dynamo_cpp_guards_str", "fx_graph_runnable"} <= set(names)
    code = session.artifact(names[names == "inductor_output_code"].index[0])
    assert "async_compile" in code
    gathered = session.artifact(names[names == "trace_records"].index[0])
    kinds = {next(iter(json.loads(line))) for line in gathered.splitlines()}
    assert {"dynamo_start", "describe_tensor"} <= kinds
    assert "/home/user/project/tests/live/programs.py" in gathered  # The file's name, not its number.


@pytest.mark.parametrize("change", [lambda log: log.replace(b"\n", b"\r\n"), gzip.compress], ids=["crlf", "gzip"])
def test_the_same_log_written_otherwise_is_the_same(ingested, change):
    log = golden()
    plain, other = ingested(log), None
    for table in ("compiles", "recompiles", "cache_lookups", "graph_breaks", "phases"):
        other = other or cd.ingest(write_beside(plain, change(log)), strict=True)
        pd.testing.assert_frame_equal(getattr(plain, table), getattr(other, table))


def write_beside(session, data):
    """The same name in another folder: compile keys depend on the name of a log."""
    path = session.path.with_suffix(".logs") / "dedicated_log_torch_trace_0.log"
    path.parent.mkdir()
    path.write_bytes(data)
    return path


def test_zstd(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    log = tmp_path / "a.log.zst"
    log.write_bytes(zstandard.ZstdCompressor().compress(golden()))
    assert len(cd.ingest(log, strict=True).compiles) > 20


def test_zstd_without_a_package_for_it_is_one_line(python_without, tmp_path):
    log = tmp_path / "a.log.zst"
    log.write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 100)
    arguments = ["ingest", str(log), "-o", str(tmp_path / "run.cdiag")]
    code = f"import compilediag.cli as cli; raise SystemExit(cli.main({arguments}))"
    done = python_without({"zstandard", "compression"}, code)
    assert done.returncode == 2 and "pip install zstandard" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_torn_last_line_and_a_torn_payload(ingested):
    whole = string() + compile_()
    session = ingested(whole + record("artifact", {"name": "a", "encoding": "string"}, "one\ntwo\nthree")[:-8])
    assert len(session.compiles) == 1
    assert "1 unread (1x payload differs from its md5)" in read_log_status(session)["reason"]
    session = ingested(whole + compile_("0/1", at=2)[:-40])
    assert len(session.compiles) == 1 and "1x no valid JSON" in read_log_status(session)["reason"]


def test_invalid_json_costs_one_record(ingested):
    broken = start().replace('{"dynamo_start"', '{"dynamo_start')
    session = ingested(compile_() + broken + compile_("0/1", at=3) + "[1, 2]\n" + "V0305 12:00:00.000000 1 a:1] []\n")
    assert len(session.compiles) == 2 and read_log_status(session)["dropped"] == 3
    assert "no valid JSON" in read_log_status(session)["reason"] and "no log line" in read_log_status(session)["reason"]


def test_records_that_make_no_sense_are_counted(ingested):
    odd = record("compilation_metrics", ["no", "fields"]) + record("str", 7) + event("B", "x").replace('"ts"', '"tz"')
    session = ingested(odd + compile_())
    assert len(session.compiles) == 1 and "not understood (" in read_log_status(session)["reason"]
    assert read_log_status(session)["dropped"] == 4  # The renamed time also differs from the md5.


def test_an_md5_that_differs_is_counted_and_the_text_kept(ingested):
    session = ingested(compile_() + record("dynamo_output_graph", {}, "the graph", has_payload="0" * 32))
    kept = session.artifacts.query("name == 'dynamo_output_graph'")["event_id"].item()
    assert (
        session.artifact(kept) == "the graph" and "payload differs from its md5" in read_log_status(session)["reason"]
    )


def test_strict_fails_on_anything_unread_and_keeps_the_rest(tmp_path):
    log = tmp_path / NAME
    log.write_text(compile_() + "not a record\n")
    out = tmp_path / "run.cdiag"
    with pytest.raises(CompilediagError, match=r"1x no log line.*run\.cdiag"):
        cd.ingest(log, out, strict=True)
    assert len(cd.load(out).compiles) == 1


def test_unknown_kinds_are_kept_and_counted(ingested):
    session = ingested(
        compile_() + record("new_in_2_20", {"a": 1}, "its text") + record("newer", {"b": [2]}), strict=True
    )
    assert "2 unknown kinds kept and counted (1x new_in_2_20, 1x newer)" in read_log_status(session)["reason"]
    texts = {name: session.artifact(i) for i, name in session.artifacts[["event_id", "name"]].itertuples(index=False)}
    assert texts["new_in_2_20"] == "its text" and '{"newer": {"b": [2]}' in texts["trace_records"]


def test_records_outside_of_any_compile(ingested):
    """As ahead-of-time logs have them: no compile id, a stack instead."""
    stack = [{"line": 3, "name": "main", "filename": 0}]
    session = ingested(string() + record("exported_program", {}, "program", compile_id=None, stack=stack))
    assert session.artifacts["compile_id"].isna().all() and "exported_program" in set(session.artifacts["name"])
    assert read_log_status(session)["dropped"] == 0 and len(session.compiles) == 0


def test_ids_that_are_used_again_after_a_reset(ingested):
    first = string() + compile_() + reasons("0/0: L['n'] == 1", at=2) + compile_("0/1", at=2)
    again = start(10, "g") + metrics(11, co_name="g") + reasons("0/0: L['k'] == 5", at=12)
    session = ingested(first + again + start(12, "g", compile_id="0/1") + metrics(15, "0/1", co_name="g"))
    assert session.compiles["function"].tolist() == ["f", "f", "g", "g"]
    assert session.recompiles[["function", "guard_source"]].values.tolist() == [["f", "n"], ["g", "k"]]
    assert session.recompiles["lost_s"].tolist() == [1, 1]


def test_a_rank_in_the_records_counts_more_than_the_files_name(ingested):
    name = "dedicated_log_torch_trace_rank_3_x.log"
    session = ingested(compile_() + metrics(5, rank=7), names=[name])
    assert session.compiles["rank"].tolist() == [3, 7]
    assert "the records of 1 have another rank than the name of the file" in read_log_status(session)["reason"]
    assert ingested(compile_(), names=[name]).compiles["rank"].tolist() == [3]


def test_a_process_has_its_rank_from_the_beginning(ingested):
    """torch.distributed may begin after the first compile."""
    session = ingested(compile_() + compile_("1/0", at=3, rank=2) + compile_(pid=101))
    assert session.compiles[["pid", "rank"]].fillna(-1).values.tolist() == [[100, 2], [100, 2], [101, -1]]


def test_interleaved_processes_are_distinguished(ingested):
    """The same compile ids, numbers of strings and phases at once, in one file."""
    both = [string(), string("/other.py", pid=101), start(), start(0.1, "g", pid=101)]
    both += [event("B", "inner", 0.2), event("B", "inner", 0.3, pid=101), event("E", "inner", 0.5)]
    both += [reasons("0/0: L['n'] == 1", "0/0"), reasons("0/0: L['k'] == 1", "0/0", pid=101)]
    both += [event("E", "inner", 0.9, pid=101), metrics(), metrics(1.5, pid=101, co_name="g")]
    session = ingested("".join(both), strict=True)
    where = session.recompiles[["pid", "function", "file", "guard_source"]].values.tolist()
    assert where == [[100, "f", "/home/user/model.py", "n"], [101, "g", "/other.py", "k"]]
    assert session.phases["duration_s"].round(3).tolist() == [0.3, 0.6]


@pytest.mark.parametrize("read_log_status", ["user/model.py", "rv/user/model.py"], ids=["some shared", "none shared"])
def test_a_path_that_torch_cut_is_whole_again(ingested, read_log_status):
    """torch cuts off what a path shares with its own, and a character more."""
    log = string("/srv/user/model.py") + start() + metrics() + start(2, compile_id="0/1")
    log += reasons(f"0/0: L['n'] == 1  # return x * n  # {read_log_status}:31 in f", at=3) + metrics(4, "0/1")
    assert ingested(log).recompiles["user_file"].tolist() == ["/srv/user/model.py"]


def test_ranks_mixed_in_one_file_under_one_pid(ingested):
    """Logs of several machines put together: the same pid is not the same process."""
    mixed = [string(rank=0), string("/other.py", rank=1), start(rank=0), start(0, "g", rank=1)]
    session = ingested("".join([*mixed, metrics(rank=0), metrics(rank=1, co_name="g", co_filename=None)]))
    assert session.compiles[["rank", "function", "file"]].values.tolist() == [
        [0, "f", "/home/user/model.py"],
        [1, "g", "/other.py"],
    ]


def test_mixed_payloads_of_two_processes_are_repaired(ingested):
    one = record("dynamo_output_graph", {}, "first\nsecond\nthird").splitlines(keepends=True)
    other = record("dynamo_output_graph", {}, "other\ngraph", pid=101)
    session = ingested("".join([*one[:2], other, *one[2:]]), strict=True)
    texts = [session.artifact(i) for i in session.artifacts.query("name == 'dynamo_output_graph'")["event_id"]]
    assert sorted(texts) == ["first\nsecond\nthird", "other\ngraph"]


def test_a_payload_whose_empty_lines_lost_their_tab(ingested):
    graph = record("dynamo_output_graph", {}, "one\n\ntwo").replace("\t\n", "\n")
    assert read_log_status(ingested(graph + compile_(), strict=True))["dropped"] == 0


@pytest.mark.parametrize("text", ["a\tb", "\tif x:\n\t\treturn\t1\n", "\t", "one\n\n\ttwo"])
def test_a_payload_keeps_its_own_tabs(ingested, text):
    session = ingested(record("dynamo_output_graph", {}, text) + compile_(), strict=True)
    [event_id] = session.artifacts.query("name == 'dynamo_output_graph'")["event_id"]
    assert session.artifact(event_id) == text


def test_the_same_log_twice_is_read_once(ingested, tmp_path):
    log = golden()
    session = ingested(log, gzip.compress(log), log[: len(log) // 2], names=["a.log", "b.log.gz", "c.log"])
    assert len(session.compiles) == len(cd.ingest(tmp_path / "logs" / "a.log").compiles)
    assert "2 copies ignored" in read_log_status(session)["reason"]
    paths = [tmp_path / "logs" / "a.log", tmp_path / "logs" / "a.log", tmp_path / "logs"]
    assert len(cd.ingest(paths).compiles) == len(session.compiles)


def test_empty_files(ingested):
    session = ingested("", "\n\n", b"", compile_())
    assert len(session.compiles) == 1 and "from 4 files: 2 records" in read_log_status(session)["reason"]
    assert "Nothing was compiled" in ingested("").summary() or len(session.compiles) == 1


def test_what_is_no_log_is_one_line(tmp_path):
    for paths, why in [(tmp_path / "none", "does not exist"), (tmp_path, "contains no logs"), ([], "no logs given")]:
        with pytest.raises(CompilediagError, match=why):
            cd.ingest(paths)
    kept = tmp_path / "notes.txt"
    kept.write_text("mine")
    (tmp_path / NAME).write_text(compile_())
    with pytest.raises(CompilediagError, match="already exists and is not a compilediag session; choose another path"):
        cd.ingest(tmp_path, kept)
    assert kept.read_text() == "mine"


def test_times_are_absolute_whatever_zone_and_year(ingested):
    session = ingested(event("B", "p") + record("dynamo_output_graph", {}, "g", at=2) + event("E", "p", 3))
    assert session.phases["time"].item().value == BEGIN_US * 1000
    assert session.artifacts["time"].item().value == (BEGIN_US + 2_000_000) * 1000  # Two hours east of UTC.


def test_without_a_time_of_the_world_the_year_is_that_of_the_file(tmp_path):
    log = tmp_path / NAME
    log.write_text(record("dynamo_output_graph", {}, "g"))
    for changed, year in ((1_709_800_000, 2024), (1_704_100_000, 2023)):  # In March; on New Year's Day before it.
        os.utime(log, (changed, changed))
        assert cd.ingest(log).artifacts["time"].item() == pd.Timestamp(f"{year}-03-05 12:00:00", tz="UTC")


#: Moments of a log around New Year in UTC, in the order of its lines; 2028 has a leap day.
NEW_YEARS = {
    "after_in_the_east": ["2025-12-31 15:30", "2025-12-31 23:00", "2026-01-01 01:00", "2026-03-01 00:00"],
    "before_in_the_west": ["2028-01-01 05:00", "2028-01-01 09:00", "2028-02-29 12:00", "2028-03-01 12:00"],
    "over_midnight": ["2025-12-31 07:00", "2025-12-31 15:30", "2026-01-01 05:00", "2026-01-01 09:00"],
    "one_line_is_late": ["2025-12-31 14:59:58", "2025-12-31 15:00:01", "2025-12-31 14:59:59", "2025-12-31 15:00:02"],
    "late_in_the_west": ["2026-01-01 07:59:58", "2026-01-01 08:00:01", "2026-01-01 07:59:59", "2026-01-01 08:00:02"],
    "half_a_year_of_silence": ["2025-12-31 16:00", "2026-01-01 09:00", "2026-09-01 00:00"],
    "a_leap_day_after_a_pause": ["2027-12-20 12:00", "2028-02-29 12:00", "2028-03-01 12:00"],
}


def stamped(line, moment):
    """A record with another stamp."""
    return re.sub(r"^V\S+ \S+", f"V{moment:%m%d %H:%M:%S.%f}", line)


@pytest.mark.parametrize("hours", [9, -8, 5.75, 0])
@pytest.mark.parametrize("name", NEW_YEARS)
def test_every_line_around_new_year_has_its_year(name, hours, ingested):
    moments = [pd.Timestamp(text, tz="UTC") for text in NEW_YEARS[name]]
    for first in moments:  # Each moment in turn is the first one that is known.
        lines = [record("dynamo_output_graph", {}, f"{moment}") for moment in moments]
        absolute = event("i", "p", (first.value // 1000 - BEGIN_US) / 1e6)
        lines[moments.index(first)] += absolute
        zoned = [moment + pd.Timedelta(hours=hours) for moment in moments]
        text = "".join(
            stamped(line, local) for both, local in zip(lines, zoned, strict=True) for line in both.splitlines(True)
        )
        assert ingested(text).artifacts["time"].tolist() == moments, first


@pytest.mark.parametrize("name", NEW_YEARS)
def test_without_a_time_of_the_world_every_line_has_its_year(name, tmp_path):
    log = tmp_path / NAME
    moments = [pd.Timestamp(text, tz="UTC") for text in NEW_YEARS[name]]
    log.write_text("".join(stamped(record("dynamo_output_graph", {}, f"{moment}"), moment) for moment in moments))
    for hours in (9, -8, 0):  # The file was changed at its last line, whose stamp is local time.
        changed = moments[-1].timestamp() - hours * 3600
        os.utime(log, (changed, changed))
        assert cd.ingest(log).artifacts["time"].tolist() == moments, hours


def test_a_log_of_a_leap_day_that_was_copied_in_another_year(tmp_path):
    log = tmp_path / NAME
    log.write_text(stamped(record("dynamo_output_graph", {}, "g"), pd.Timestamp("2024-02-29 12:00")))
    os.utime(log, (1_767_000_000, 1_767_000_000))  # In December 2025.
    assert cd.ingest(log).artifacts["time"].item() == pd.Timestamp("2024-02-29 12:00", tz="UTC")


def test_guards_of_older_logs_give_the_new_value(ingested):
    guards = [{"code": "L['n'] == 2", "stack": None, "user_stack": None}]
    log = compile_() + reasons("0/0: L['n'] == 1", at=2) + start(2, compile_id="0/1")
    session = ingested(log + record("dynamo_guards", {}, guards, compile_id="0/1", at=2) + metrics(4, "0/1"))
    assert session.recompiles[["expected", "actual"]].values.tolist() == [["1", "2"]]


def test_metrics_as_older_logs_have_them(ingested):
    fields = {"co_name": "f", "co_filename": "/f.py", "co_firstlineno": 3, "graph_op_count": 1, "guard_count": 2}
    fields |= {"start_time": BEGIN_US / 1e6, "entire_frame_compile_time_s": 2.5, "backend_compile_time_s": 1.5}
    backward = {"inductor_compile_time_s": 0.5, "code_gen_time_s": 0.25, "fail_type": None, "fail_reason": None}
    session = ingested(
        record("compilation_metrics", {**fields, "restart_reasons": ["'skip function g'"]}, at=3, compile_id="0/1")
        + record("bwd_compilation_metrics", backward, at=5)
    )
    row, bwd = session.compiles.to_dict("records")
    assert (row["compile_id"], row["duration_s"], row["aot_s"], row["is_recompile"]) == ("0/1", 2.5, 1.5, True)
    assert row["time"].value == BEGIN_US * 1000
    assert (bwd["trigger"], bwd["inductor_s"], bwd["duration_s"]) == ("lazy_backward", 0.5, 0.5)
    assert session.graph_breaks["reason"].tolist() == ["'skip function g'"]


def test_data_that_a_log_does_not_have_is_not_collected(ingested):
    session = ingested(golden())
    states = session.sources.set_index("name")
    assert {"compiles", "recompiles", "graph_breaks"} <= set(states.index[states["status"] == "active"])
    untold = states[states["status"] != "active"]
    assert all(reason == "not available in TORCH_TRACE logs" for reason in untold["reason"])


def test_a_compile_that_is_given_up_at_once_is_of_the_frame_that_has_its_id_now(ingested):
    """At the recompile limit there is no start, and before a reset the same id was another function's."""
    before = string() + compile_(function="old") + compile_("0/1", function="old") + compile_("0/2", function="old")
    limit = metrics(9, "0/2", co_name=None, fail_type="Unsupported", fail_reason="...")
    after = compile_(function="f", at=5) + reasons("0/1: L['n'] == 1", "0/2", at=8) + limit
    session = ingested(before + after)
    assert session.compiles["function"].tolist()[-1] == "f" and session.recompiles["function"].tolist() == ["f"]
