"""Incidents of sessions whose rows are written here: which events are one, what they belong to, and whose warm-up."""

import pytest

from compilediag.diagnosis.incidents import IncidentFinder, count_incidents, find_incidents
from compilediag.events import (
    AutotuneChoice,
    CacheLookup,
    Compile,
    CudaGraphAction,
    KernelCompile,
    Recompile,
    RefusedCall,
    WarmupEnd,
)
from tests.unit.session_builder import SECOND, stored

END = WarmupEnd(time_ns=10 * SECOND, on_compile="warn", ended_by="end_warmup", step=20)
BEFORE, AFTER = 5 * SECOND, 15 * SECOND
PLACE = {"function": "serve", "file": "/srv/model.py", "line": 30}


def compiled(time_ns=AFTER, key="k2", **columns):
    given = {"duration_s": 1.5, "outcome": "ok", "trigger": "dynamo", "graph_ops": 3, "step": 25, **PLACE, **columns}
    return Compile(time_ns=time_ns, compile_key=key, **given)


def list_incidents(folder, *events):
    return find_incidents(stored(folder, *events).data)


def test_what_came_before_the_end_and_what_was_found_is_none(tmp_path):
    found = list_incidents(
        tmp_path,
        compiled(BEFORE, "k1"),
        END,
        CacheLookup(time_ns=AFTER, cache="fx_graph", action="look_up", outcome="hit"),
        CacheLookup(time_ns=AFTER, cache="fx_graph", action="store", outcome="saved"),
        CudaGraphAction(time_ns=AFTER, action="replays", count=9),
        AutotuneChoice(time_ns=AFTER, run_id="r", from_cache="local", time_ms=0.1),
        KernelCompile(time_ns=AFTER, name="k", language="triton", outcome="cached"),
        RefusedCall(time_ns=AFTER, refused_by="eager_on_recompile", ran="eager", count=1),
    )
    assert found == []


ALONE = {
    "cache_miss": CacheLookup(
        time_ns=AFTER, cache="fx_graph", tier="local", action="look_up", outcome="miss", key_diff=["a: 1 -> 2"]
    ),
    "autotune": AutotuneChoice(
        time_ns=AFTER, run_id="r", op="mm", inputs=["f32[2, 2]"], time_ms=0.1, benchmark_s=0.5, precompile_s=2.0
    ),
    "capture": CudaGraphAction(time_ns=AFTER, action="record", duration_ms=500.0, compile_key="k1", sizes="4x3"),
    "rerecord": CudaGraphAction(
        time_ns=AFTER, action="rerecord", compile_key="k1", mismatch="CUDAGraphManagedIdxMismatch"
    ),
    "triton_jit": KernelCompile(
        time_ns=AFTER, name="add_kernel", language="triton", outcome="compiled", duration_s=0.25
    ),
}
SECONDS = {"autotune": 2.5, "capture": 0.5, "triton_jit": 0.25}
CHANGES = {"cache_miss": "a: 1 -> 2", "autotune": "mm f32[2, 2]", "capture": "4x3", "rerecord": "IdxMismatch"}


@pytest.mark.parametrize("kind", ALONE)
def test_what_belongs_to_no_later_compile_stands_on_its_own(tmp_path, kind):
    (found,) = list_incidents(tmp_path, compiled(BEFORE, "k1"), END, ALONE[kind])
    assert (found.kind, found.part_of, found.seconds) == (kind, None, SECONDS.get(kind))
    assert CHANGES.get(kind, "") in (found.change or "") and found.fingerprint and found.cause


def test_what_belongs_to_a_compile_names_it_and_counts_with_it(tmp_path):
    found = list_incidents(
        tmp_path,
        END,
        CacheLookup(time_ns=AFTER, compile_key="k2", cache="fx_graph", action="look_up", outcome="miss"),
        *(AutotuneChoice(time_ns=AFTER, run_id="r", compile_key="k2", time_ms=ms) for ms in (0.1, 0.2)),
        Recompile(
            time_ns=AFTER, compile_key="k2", guard_source="x.size()[0]", guard_kind="tensor_size",
            expected="4", actual="6", **PLACE,
        ),
        compiled(is_recompile=True),
        CudaGraphAction(time_ns=AFTER + SECOND, action="record", compile_key="k2"),
    )  # fmt: skip
    assert [one.kind for one in found] == ["cache_miss", "autotune", "recompile", "capture"]
    whole = found[2]
    assert [one.part_of for one in found] == [whole.event_id, whole.event_id, None, whole.event_id]
    assert count_incidents(found) == 1
    assert (whole.change, whole.inputs, whole.step) == ("x.shape[0] was 4, then 6", "x.shape[0] = 6", 25)


def test_a_recompile_whose_process_was_killed_is_one(tmp_path):
    row = Recompile(time_ns=AFTER, compile_key="k2", guard_source="n", guard_kind="value", expected="1", actual="2")
    (found,) = list_incidents(tmp_path, END, row)
    assert (found.kind, found.seconds, found.change) == ("recompile", None, "n was 1, then 2")


def test_refused_calls_count_each_call(tmp_path):
    row = {"refused_by": "end_warmup", "ran": "raised", "compile_key": "r1", **PLACE}
    rows = [RefusedCall(time_ns=AFTER + n, count=count, **row) for n, count in enumerate((1, 4))]
    (found,) = list_incidents(tmp_path, END, *rows)
    assert (found.kind, found.count, count_incidents([found])) == ("refused", 5, 5)


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({"rank": 0, "pid": 7}, 0),  # Its own warm-up ended later.
        ({"rank": 1, "pid": 8}, 1),
        ({"rank": 1, "pid": 9}, 1),  # A child of rank 1.
        ({"rank": 2, "pid": 9}, 1),  # A rank that did not say so has the first end of the job.
    ],
)
def test_each_process_has_its_own_end(tmp_path, owner, expected):
    ends = [
        WarmupEnd(time_ns=20 * SECOND, on_compile="count", rank=0, pid=7),
        WarmupEnd(time_ns=10 * SECOND, on_compile="count", rank=1, pid=8),
    ]
    assert len(list_incidents(tmp_path, *ends, compiled(**owner))) == expected


def test_the_same_cause_has_the_same_fingerprint_elsewhere(tmp_path):
    def find(number, **columns):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = {"guard_source": "x.size()[0]", "guard_kind": "tensor_size", "expected": "4", **PLACE, **columns}
        row = Recompile(time_ns=AFTER, compile_key="k2", **{"actual": "6", **rows})
        return list_incidents(folder, END, row, compiled(is_recompile=True))[0].fingerprint

    first = find(1)
    assert first == find(2, line=99, actual="7", rank=3) == find(3, file="/home/other/srv/model.py")
    assert len({first, find(4, guard_source="y.size()[0]"), find(5, function="train"), find(6, file="/srv/b.py")}) == 4


def test_a_finder_of_events_that_come_gives_each_incident_once():
    finder = IncidentFinder()
    row = Recompile(time_ns=AFTER, compile_key="k2", guard_source="n", guard_kind="value", expected="1", actual="2")
    miss = CacheLookup(time_ns=AFTER, compile_key="k2", cache="fx_graph", action="look_up", outcome="miss")
    assert finder.add([compiled(BEFORE, "k1")], None) == []
    assert finder.add([row, miss], END) == []
    (found,) = finder.add([compiled(is_recompile=True)], END)
    assert (found.kind, found.change) == ("recompile", "n was 1, then 2")
    captures = [CudaGraphAction(time_ns=AFTER, action="record", compile_key=key) for key in ("k2", "k1")]
    assert [one.compile_key for one in finder.add(captures, END)] == ["k1"]
    choices = [AutotuneChoice(time_ns=AFTER, run_id="r", time_ms=ms) for ms in (0.1, 0.2)]
    assert [one.kind for one in finder.add(choices, END)] == ["autotune"]
