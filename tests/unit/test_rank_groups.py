"""Logs of many ranks: each distinct behavior is read once, every rank is counted, and per-rank numbers are its own."""

import random

import pandas as pd
import pytest

import compilediag as cd
from tests.inside import main

from .log_builder import BEGIN_US, artifact, compile_, event, metrics, reasons, record, start, string
from .session_builder import page_of

TABLES = ("frame", "groups", "graphs", "differences")


def write_log(
    folder, rank, *, size=4, late=0.0, graph_break=False, clip=True, cache="miss", part="a", address=None, ran=None
):
    """The log of a rank that compiles `step` twice and `clip`, as other ranks do, at times of its own."""
    chance = random.Random(f"{rank} {part}")
    at = late + chance.random()
    own = {"rank": rank, "pid": 1000 + rank}
    where = address or f"{chance.randrange(1 << 40):#x}"
    text = string(pid=1000 + rank)
    text += start(at, function="step", **own)
    if graph_break:
        broken = f"Graph break in user code at /home/user/model.py:31\nGraph Break Reason: call of <object at {where}>"
        text += artifact("dynamo_graph_break_reason", broken, at=at, **own)
    text += artifact(f"fx_graph_cache_{cache}", {"key": f"f{chance.random()}", "cache_state": cache}, at=at, **own)
    text += metrics(at + 1, co_name="step", duration_us=7, **own)
    why = f"0/0: tensor 'x' size mismatch at index 0. expected 3, actual {size}"
    text += reasons(why, at=at + 2, **own)
    text += start(at + 2, function="step", compile_id="0/1", **own)
    text += record("describe_tensor", {"id": chance.randrange(99), "device": f"cuda:{rank % 8}"}, at=at, **own)
    text += event("i", "unrelated", at=at, args={"address": where}, **own)
    own_end = at + 2.5 + chance.random()
    text += metrics(own_end, "0/1", co_name="step", start_time_us=BEGIN_US + int((at + 2) * 1e6), **own)
    if clip:
        text += compile_("1/0", at=at + 5, function="clip", **own)
    if ran:
        text += artifact("graph_execution", ran, at=at + 9, **{**own, "compile_id": None})
    (folder / f"dedicated_log_torch_trace_rank_{rank}_{part}.log").write_text(text)


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


def read(folder, **options):
    return cd.ingest(folder, strict=True, **options)


def assert_same_ranks(grouped, whole):
    for name in TABLES:
        one, other = (getattr(session.ranks(), name) for session in (grouped, whole))
        pd.testing.assert_frame_equal(
            one.drop(columns="evidence", errors="ignore"), other.drop(columns="evidence", errors="ignore")
        )
    assert grouped.ranks().summary() == whole.ranks().summary()


def test_all_that_is_shown_of_ranks_is_the_same_as_if_every_log_were_read(logs):
    for rank in range(30):
        write_log(
            logs, rank, size=5 if rank % 7 == 3 else 4, graph_break=rank in (4, 5), clip=rank != 20, late=rank / 9
        )
    grouped, whole = read(logs, group_ranks=True), read(logs, group_ranks=False)
    assert sorted(grouped.compiles["rank"].unique()) == [0, 3, 4, 20] and whole.compiles["rank"].nunique() == 30
    assert_same_ranks(grouped, whole)
    groups = grouped.ranks().groups
    assert groups["count"].tolist() == [23, 4, 2, 1] and groups["rank"].tolist() == [0, 3, 4, 20]
    assert grouped.ranks().frame["compile_s"].nunique() == 30  # Seconds are those of each rank.


def test_one_rank_that_differs_in_one_guard_is_found_among_many(logs):
    for rank in range(60):
        write_log(logs, rank, size=9 if rank == 41 else 4)
    session = read(logs, group_ranks=True)
    first = session.ranks().first
    assert first.kind == "guard" and first.ranks == (41,) and len(first.others) == 59
    assert session.ranks().groups["count"].tolist() == [59, 1]
    assert sorted(session.recompiles["rank"]) == [0, 41]


@pytest.mark.parametrize("change", [{"graph_break": True}, {"clip": False}, {"cache": "hit"}], ids=str)
def test_each_other_difference_makes_a_group(logs, change):
    for rank in range(6):
        write_log(logs, rank, **(change if rank == 3 else {}))
    assert read(logs, group_ranks=True).ranks().groups["count"].tolist() == [5, 1]


def test_addresses_devices_pids_and_times_do_not(logs):
    for rank in range(12):
        write_log(logs, rank, graph_break=True, late=rank)
    session = read(logs, group_ranks=True)
    assert len(session.ranks().groups) == 1 and session.ranks().first is None
    assert session.compiles["rank"].unique().tolist() == [0]


def test_every_rank_has_a_row_and_the_session_says_what_was_read(logs):
    for rank in range(5):
        write_log(logs, rank)
    session = read(logs, group_ranks=True)
    members = session.rank_members
    assert members["rank"].tolist() == [0, 1, 2, 3, 4] and set(members["like"]) == {0}
    assert members["digest"].nunique() == 1 and members["compiles"].tolist() == [3] * 5
    assert members["compile_s"].tolist() == pytest.approx([sum(step_s) for step_s in members["step_s"]])
    assert "5 ranks in 1 group that compiled the same" in session.sources.set_index("name").loc["logs", "reason"]
    assert "rows of 1 of 5 ranks; the others compiled the same" in session.summary()
    assert "5 ranks like rank 0: 3 compiles" in session.ranks().summary()


def test_parallel_scans_find_the_same(logs):
    for rank in range(70):
        write_log(logs, rank, size=5 if rank % 10 == 3 else 4)
    one, two = (read(logs, group_ranks=True, processes=number) for number in (1, 2))
    pd.testing.assert_frame_equal(one.rank_members, two.rank_members)
    assert_same_ranks(one, two)


def test_logs_are_grouped_by_themselves_if_there_are_many(logs, monkeypatch):
    monkeypatch.setattr("compilediag.logs.ingestion.GROUPED_FROM", 3)
    for rank in range(3):
        write_log(logs, rank)
    assert read(logs).rank_members.empty
    write_log(logs, 3)
    assert len(read(logs).rank_members) == 4 and read(logs, group_ranks=False).rank_members.empty


def test_a_rank_that_was_started_again_is_one_rank(logs):
    for rank in range(4):
        write_log(logs, rank)
        write_log(logs, rank, part="b", late=60, size=7 if rank == 2 else 4)
    grouped, whole = read(logs, group_ranks=True), read(logs, group_ranks=False)
    assert_same_ranks(grouped, whole)
    assert grouped.ranks().groups["count"].tolist() == [3, 1] and set(grouped.compiles["rank"]) == {0, 2}


def test_logs_that_cannot_be_grouped_are_read(logs):
    for rank in range(4):
        write_log(logs, rank)
    both = "".join((logs / f"dedicated_log_torch_trace_rank_{rank}_a.log").read_text() for rank in (1, 2))
    (logs / "dedicated_log_torch_trace_rank_1_a.log").unlink()
    (logs / "dedicated_log_torch_trace_rank_2_a.log").unlink()
    (logs / "both.log").write_text(both)
    write_log(logs, 5)
    write_log(logs, 5, part="b")  # At the same time as the other log of the rank.
    (logs / "none.log").write_text(string() + compile_())
    grouped, whole = read(logs, group_ranks=True), read(logs, group_ranks=False)
    assert_same_ranks(grouped, whole)
    assert sorted(grouped.compiles["rank"].dropna().unique()) == [0, 1, 2, 5]
    assert grouped.compiles["rank"].isna().sum() == 1


def test_ranks_without_a_compile_are_a_group(logs):
    for rank in range(3):
        write_log(logs, rank)
    for rank in (3, 4):
        name = f"dedicated_log_torch_trace_rank_{rank}_a.log"
        (logs / name).write_text(record("artifact", {"name": "a"}, "x", compile_id=None, rank=rank, pid=rank))
    session = read(logs, group_ranks=True)
    assert session.ranks().groups["count"].tolist() == [3, 2]
    assert session.ranks().first.ranks == (3, 4)


def test_the_page_has_groups_and_is_small(logs):
    for rank in range(100):
        write_log(logs, rank, size=5 if rank % 10 == 3 else 4)
    page = page_of(read(logs, group_ranks=True))["ranks"]
    assert page["count"] == 100 and page["loaded"] == [0, 3] and page["group_count"] == 2
    assert [(group["rank"], group["count"]) for group in page["groups"]] == [(0, 90), (3, 10)]
    assert len(page["shown"]) == 64 and {0, 3} <= {*page["shown"]}
    cells = next(graph for graph in page["graphs"] if graph["compile_id"] == "0/1")["cells"]
    assert len({cell["seconds"] for cell in cells}) == 64
    assert {cell["actual"] for cell in cells} == {"4", "5"}


def test_the_command_groups_and_compares(logs, tmp_path, capsys):
    for rank in range(4):
        write_log(logs, rank, size=6 if rank == 3 else 4)
    assert main(["ingest", str(logs), "-o", str(tmp_path / "run.cdiag"), "--group-ranks"]) == 0
    assert "4 ranks in 2 groups that compiled the same" in capsys.readouterr().err
    assert main(["ranks", str(tmp_path / "run.cdiag")]) == 0
    assert "  3 ranks like rank 0: 3 compiles, 1 recompile" in capsys.readouterr().out


@pytest.mark.parametrize(("size", "count"), [(0, 2), (16 << 20, 1)])
def test_a_text_that_is_longer_than_torch_writes_names_no_graphs(logs, size, count):
    for rank, order in enumerate((("0/0", "0/1"), ("0/1", "0/0"))):
        listed = ", ".join(f'{{"compile_id": "{name}"}}' for name in order)
        write_log(logs, rank, ran=f'{{"graph_execution_order": [{listed}]{" " * size}}}')
    assert len(read(logs, group_ranks=True).ranks().groups) == count
