"""Ranks compared with each other: where they diverge and why, in a sentence; stragglers first."""

import os
from dataclasses import replace

import pytest

import compilediag as cd
from compilediag.diagnosis import diagnose
from compilediag.events import Collective, Recompile

from .log_builder import compile_, record, string
from .session_builder import page_of, stored
from .tables_builder import SECOND, add_keys, compiled, graph_break, lookup, recompile, source, tables

OTHER = {"function": "scale", "line": 50}


def compile_of(rank, number, at=None, seconds=0.5, **more):
    """The `number`-th compile of forward on a rank, at second `at`."""
    at = number + 1 if at is None else at
    return compiled(
        rank=rank, pid=100 + rank, compile_id=f"0/{number}", time_ns=int(at * SECOND), duration_s=seconds, **more
    )


def size(rank, number, expected, actual, at=None, **more):
    """A recompile by the size of x and its compile."""
    at = number + 1 if at is None else at
    common = {"rank": rank, "pid": 100 + rank, "time_ns": int(at * SECOND)}
    cause = recompile("x.size()[0]", "tensor_size", str(expected), str(actual), number, **common)
    return [cause, compile_of(rank, number, at, **more)]


def scale(rank, at, **more):
    common = {"rank": rank, "pid": 100 + rank, "compile_id": "1/0", "time_ns": int(at * SECOND), "duration_s": 0.1}
    return compiled(**common, **OTHER, **more)


@pytest.fixture
def found(session_of):
    """`found(*events)`: where their ranks diverge."""
    return lambda *events: list(session_of(*events).ranks().divergences)


def both(make, *args, **more):
    return [event for rank in (0, 1) for event in _listed(make(rank, *args, **more))]


def _listed(made):
    return made if isinstance(made, list) else [made]


START = [*both(compile_of, 0), *both(size, 1, 4, 8)]


def test_the_rank_whose_guard_failed_diverges(found):
    [one] = found(*START, *size(1, 2, 8, 9), *both(scale, 5))
    assert one.sentence == (
        "rank 1 diverged at 0/2 of forward (model.py:30), 00:00:03 UTC: guard x.shape[0] 8 -> 9; "
        "rank 0 had entries 0/0 for 4, 0/1 for 8 and continued with 1/0 of scale (model.py:50)"
    )
    assert (one.kind, one.ranks, one.others, one.compile_id) == ("way", (1,), (0,), "0/2")
    assert (one.guard_source, one.value, one.other_value) == ("x.size()[0]", "9", "0/0 for 4, 0/1 for 8")
    assert len(one.evidence) == 3 and one.position == 2


def test_the_rank_that_recompiled_is_the_one_whichever_it_is(found):
    [one] = found(*START, *size(0, 2, 8, 9), *both(scale, 5))
    assert one.ranks == (0,) and one.sentence.startswith("rank 0 diverged at 0/2")


def test_both_recompile_for_other_values(found):
    [one] = found(*both(compile_of, 0), *size(0, 1, 4, 8), *size(1, 1, 4, 9))
    assert one.kind == "guard" and (one.other_value, one.value) == (
        "guard x.shape[0] 4 -> 8",
        "guard x.shape[0] 4 -> 9",
    )
    assert "rank 1 recompiled for a different reason at 0/1 of forward (model.py:30)" in one.sentence


def test_the_fewest_are_those_that_differ(found):
    events = [event for rank in range(5) for event in (compile_of(rank, 0), scale(rank, 9))]
    events += [event for rank in (1, 3) for event in size(rank, 1, 4, 8)]
    [one] = found(*events)
    assert one.ranks == (1, 3) and one.others == (0, 2, 4)
    assert one.sentence.startswith("ranks 1, 3 diverged") and "; ranks 0, 2, 4 continued with 1/0" in one.sentence


def test_more_than_two_groups_are_counted(found):
    events = [event for rank in range(3) for event in (compile_of(rank, 0), *size(rank, 1, 4, 8 + rank))]
    [one] = found(*events)
    assert one.sentence.endswith("(1 more group of ranks differs there)") and one.kind == "guard"


def test_a_rank_that_compiles_nothing_more(found):
    [one] = found(*START, scale(0, 5))
    assert one.sentence == (
        "rank 1 compiled nothing more after 0/1 of forward (model.py:30), 00:00:02 UTC; "
        "rank 0 continued with 1/0 of scale (model.py:50)"
    )


def test_a_rank_that_compiles_nothing_yet(tmp_path):
    rows = map(add_keys, [*START, scale(0, 5)])
    session = stored(tmp_path, *rows, pid=os.getppid())
    assert session.state == "watching" and session.ranks().divergences == [], "rank 1 may come to it"


def test_a_rank_that_compiled_nothing_at_all(found):
    [one] = found(compile_of(0, 0), source("compiles", "active", rank=0), source("compiles", "active", rank=1))
    assert (
        one.sentence.startswith("rank 1 compiled nothing; rank 0 continued with 0/0 of forward") and one.position == 0
    )


def test_the_few_that_left_out_what_all_others_compiled(found):
    events = [event for rank in range(4) for event in (compile_of(rank, 0), *size(rank, 1, 4, 8), scale(rank, 9))]
    events += [event for rank in (0, 2, 3) for event in size(rank, 2, 8, 9)]
    [one] = found(*events)
    assert one.sentence == (
        "rank 1 did not compile 0/2 of forward (model.py:30), 00:00:03 UTC: guard x.shape[0] 8 -> 9 on ranks 0, 2, 3; "
        "rank 1 had entries 0/0 for 4, 0/1 for 8 and continued with 1/0 of scale (model.py:50)"
    )
    assert (one.ranks, one.value, one.other_value) == ((1,), "0/0 for 4, 0/1 for 8", "9") and one.compile_id == "0/2"


def test_functions_in_another_order(found):
    other = {**OTHER, "compile_id": "0/0"}
    [one] = found(compile_of(0, 0), scale(0, 2), compiled(rank=1, pid=101, **other), compile_of(1, 0, at=2))
    assert one.position == 0 and "continued with 0/0 of forward" in one.sentence


def test_clocks_need_not_agree(found):
    assert found(*START, *both(scale, 5)) == []
    late = [e for e in both(size, 1, 4, 8) if e.rank == 0] + size(1, 1, 4, 8, at=500) + [compile_of(1, 0, at=400)]
    assert found(compile_of(0, 0), *late) == []


def test_addresses_and_devices_of_a_rank_are_no_difference(found):
    def object_of(rank, what):
        cause = recompile("self.f", "identity", what.format(1 + rank), what.format(7 + rank), rank=rank, pid=100 + rank)
        return [cause, compile_of(rank, 1, 1)]

    for what in ("<function f at 0x{}0>", "cuda:{}"):
        assert found(*both(compile_of, 0, at=0), *object_of(0, what), *object_of(1, what)) == []


@pytest.mark.parametrize(
    ("kind", "more", "text"),
    [
        ("outcome", {"outcome": "failed", "fail_type": "Unsupported"}, "failed, Unsupported; rank 0: ok"),
        ("graph", {"graph_ops": 3}, "compiled a different graph"),
    ],
)
def test_what_else_can_differ(kind, more, text, found):
    [one] = found(compile_of(0, 0), compile_of(1, 0, **more))
    assert one.kind == kind and text in one.sentence


def test_caches_that_differ_come_before_where_ranks_diverge(found):
    hits = [lookup(o, rank=r, pid=100 + r, compile_id="0/0", time_ns=SECOND + 1) for r, o in enumerate(("miss", "hit"))]
    caches, way = found(*START, *hits, *size(1, 2, 8, 9))
    assert caches.kind == "caches" and (caches.other_value, caches.value) == ("fx_graph miss", "fx_graph hit")
    assert "had different cache results at 0/0" in caches.sentence and way.kind == "way"
    stored = lookup("saved", rank=0, pid=100, compile_id="0/0", action="store", time_ns=SECOND + 2)
    assert [one.kind for one in found(*both(compile_of, 0), stored)] == []


def test_graph_breaks_that_differ(found):
    [one] = found(*both(compile_of, 0), graph_break(rank=1, pid=101, time_ns=SECOND + 5))
    assert one.kind == "graph_breaks" and "rank 0: no graph break" in one.sentence and "line 33" in one.value


def test_collectives_in_another_order(found):
    ops = [("wait", f"torch.ops._c10d_functional.{name}.default") for name in ("all_gather", "all_reduce_")]
    rows = [
        Collective(time_ns=SECOND + 1, rank=rank, pid=100 + rank, compile_id="0/0", position=at, op=op)
        for rank, names in enumerate(ops)
        for at, op in enumerate(names)
    ]
    [one] = found(*both(compile_of, 0), *rows)
    assert one.kind == "collectives" and "number 2 is all_reduce_; rank 0: all_gather" in one.sentence
    [finding] = diagnose(tables(*both(compile_of, 0), *rows))
    assert (finding.rule, finding.severity) == ("ranks_diverge", "high")


def test_ids_that_are_used_again_after_a_reset_keep_their_own(session_of):
    again = [*both(compile_of, 0, at=10), *both(size, 1, 4, 8, at=11)]
    again = [replace(event, compile_key=f"again.{event.rank}.{event.compile_id}") for event in again]
    session = session_of(*START, *again)
    cells = [row["cells"][0] for row in page_of(session)["ranks"]["graphs"]]
    assert [cell["guard"] is not None for cell in cells] == [False, True, False, True]
    assert session.ranks().divergences == [] and session.ranks().graphs["order"].tolist() == [0, 1, 2, 3]


def test_a_recompile_that_is_not_over_counts(found):
    cause = Recompile(time_ns=9 * SECOND, rank=1, pid=101, compile_id="0/2", guard_source="x", expected="1", actual="2")
    [one] = found(*START, cause)
    assert "rank 1 diverged at 0/2" in one.sentence and "guard x 1 -> 2" in one.sentence


def test_one_rank_or_none_has_nothing_to_compare_with(found, session_of):
    assert found(compile_of(0, 0)) == [] and found(compiled()) == [] and found() == []
    assert "ranks" not in page_of(session_of(compile_of(0, 0)))


def test_stragglers_come_first(session_of):
    events = [compile_of(rank, 0, seconds=seconds) for rank, seconds in enumerate((1.0, 1.2, 9.0))]
    events += [scale(rank, 20) for rank in range(3)] + size(0, 1, 4, 8, at=15, seconds=3.0)
    ranks = session_of(*events).ranks()
    times, graphs = ranks.frame, ranks.graphs
    assert times["rank"].tolist() == [2, 0, 1] and times["compile_s"].round(1).tolist() == [9.1, 4.1, 1.3]
    assert times["first_difference"][1] == "diverged at 0/1" and times["behind_s"][0] == pytest.approx(5.0)
    assert graphs["compile_id"].tolist() == ["0/0", "0/1", "1/0"]
    assert graphs[["slowest_rank", "slowest_s", "median_s"]].values.tolist()[0] == [2, 9.0, 1.2]
    assert graphs["spread_s"].tolist() == pytest.approx([7.8, 3.0, 0.0])
    assert graphs[["ranks", "missing"]].values.tolist()[1] == [[0], [1, 2]]


def test_a_finding_says_what_to_change():
    finding, *_ = [f for f in diagnose(tables(*START, *size(1, 2, 8, 9), *both(scale, 5))) if f.rule == "ranks_diverge"]
    assert finding.severity == "high" and "guard x.shape[0] 8 -> 9" in finding.title and finding.seconds_at_stake == 0.5
    assert "same sizes" in finding.suggestion and finding.source == "x.size()[0]" and finding.evidence
    hits = [lookup(o, rank=r, pid=100 + r, compile_id="0/0", time_ns=SECOND + 1) for r, o in enumerate(("miss", "hit"))]
    assert "ranks_differ_in_caches" in {f.rule for f in diagnose(tables(*START, *hits))}
    assert not {f.rule for f in diagnose(tables(*START))} & {"ranks_diverge", "ranks_differ_in_caches"}


def test_text_and_tables(session_of):
    ranks = session_of(*START, *size(1, 2, 8, 9), *both(scale, 5)).ranks()
    text = ranks.summary()
    assert "2 ranks. First difference:\n  rank 1 diverged" in text
    assert "rank 1: 1.6 s, 4 compiles, 2 recompiles" in text and "not on 1 of 2 ranks" in text
    assert ranks.frame["rank"].tolist() == [1, 0] and ranks.graphs["missing"].tolist()[0] == [0]
    assert ranks.differences["kind"].tolist() == ["way"] and str(ranks.frame["compile_s"].dtype) == "float64"
    assert ranks.first.ranks == (1,) and "1 divergences" in repr(ranks)
    none = session_of(compiled()).ranks()
    assert none.first is None and "fewer than two ranks" in none.summary() and len(none.frame) == 0
    alike = session_of(*START).ranks()
    assert "All ranks compiled the same" in alike.summary() and len(alike.differences) == 0


def test_the_page_has_what_each_rank_has(session_of):
    part = page_of(session_of(*START, *size(1, 2, 8, 9), *both(scale, 5)))["ranks"]
    assert part["count"] == 2 and part["shown"] == [0, 1] and part["graph_count"] == 4
    cells = {row["compile_id"]: row["cells"] for row in part["graphs"]}
    assert cells["0/2"][0] is None and (cells["0/2"][1]["expected"], cells["0/2"][1]["actual"]) == ("8", "9")
    assert cells["0/0"][0]["guard"] is None and part["differences"][0]["kind"] == "way"


def test_of_very_many_ranks_those_that_differ_are_shown(session_of):
    events = [compile_of(rank, 0, seconds=1 + rank / 1000) for rank in range(200)] + size(3, 1, 4, 8)
    part = page_of(session_of(*events))["ranks"]
    assert part["count"] == 200 and len(part["shown"]) == 64 == len(part["ranks"]) and 3 in part["shown"]
    assert len(part["graphs"][0]["cells"]) == 64


def logged(folder, *orders):
    """A session of a log a rank, each with the order in which the rank ran its graphs."""
    for rank, order in enumerate(orders):
        ran = {"graph_execution_order": [{"compile_id": name} for name in order]}
        ops = {"ops": [{"name": "mm", "estimated_runtime_ns": 1e6 * (rank + 1)}, {"name": "x"}, 3]}
        texts = {"graph_execution": (ran, None), "inductor_runtime_and_tensor_meta": (ops, "0/0")}
        records = [
            record("artifact", {"name": name, "encoding": "json"}, content, compile_id=of, at=4, pid=rank + 1)
            for name, (content, of) in texts.items()
        ]
        log = string(pid=rank + 1) + compile_(pid=rank + 1) + "".join(records)
        (folder / f"dedicated_log_torch_trace_rank_{rank}_x.log").write_text(log)
    return cd.ingest(folder)


def test_graphs_that_ran_in_another_order(tmp_path):
    ranks = logged(tmp_path, ["0/0", "1/0", "0/0"], ["0/0", "0/0", "1/0"], ["0/0", "1/0", "0/0"]).ranks()
    [one] = ranks.divergences
    assert one.sentence == "rank 1 ran graph 0/0 as number 2; ranks 0, 2 ran graph 1/0"
    assert (one.kind, one.position, one.value, one.other_value) == ("order", 1, "0/0", "1/0") and one.evidence
    assert ranks.graphs["runtime_ms"].tolist() == [3.0] and ranks.frame["first_difference"].notna().sum() == 1


def test_a_rank_that_ran_fewer_graphs(tmp_path):
    [one] = logged(tmp_path, ["0/0", "1/0"], ["0/0"]).ranks().divergences
    assert one.sentence == "rank 1 ran no more graph as number 2; rank 0 ran graph 1/0"
