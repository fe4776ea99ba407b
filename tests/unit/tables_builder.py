"""Small sessions for tests: the typed rows of a session."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from compilediag.diagnosis import FEEDS
from compilediag.events import (
    AutotuneChoice,
    CacheLookup,
    Calls,
    Compile,
    CudaGraphAction,
    DynamicDecision,
    GraphBreak,
    GuardFailure,
    KernelCompile,
    Recompile,
    RefusedCall,
    RowList,
    SourceStatus,
)

SECOND = 1_000_000_000
#: Columns that name a compile -> the column with its id.
KEYS = {
    "compile_key": "compile_id",
    "closest_compile_key": "closest_compile_id",
    "entry_compile_key": "entry_compile_id",
}
FORWARD = {"function": "forward", "file": "/home/ada/model.py", "line": 30}


def add_keys(event):
    """The event with a compile key for each compile id that it has, as if torch never used an id twice in a rank."""
    names = [name for name in KEYS if getattr(event, name, None) is None and getattr(event, KEYS[name], None)]
    return replace(event, **{name: f"{event.rank or 0}.{getattr(event, KEYS[name])}" for name in names})


def tables(*events):
    """What a session of just these events would give as typed rows; the events of each kind are numbered from 1."""
    numbers = defaultdict(int)
    return RowList(number_event(event, numbers) for event in events)


def number_event(event, numbers):
    numbers[type(event)] += 1
    return add_keys(replace(event, event_id=numbers[type(event)]))


def recompile(source, kind, expected=None, actual=None, number=1, **more):
    """A recompile of `forward`, the `number`-th one: its entry is 0/number, its closest the one before."""
    defaults = {
        "time_ns": number * SECOND,
        "compile_id": f"0/{number}",
        "closest_compile_id": f"0/{number - 1}",
        "lost_s": 1.0,
    }
    details = {"guard_source": source, "guard_kind": kind, "expected": expected, "actual": actual}
    return add_keys(Recompile(**{**defaults, **FORWARD, **details, **more}))


def changes(source, kind, *values, reason="{source} == {old}", **more):
    """The recompiles of a guarded thing that went through `values`; `reason` is torch's text for each."""
    return [
        recompile(source, kind, old, new, number, **{"reason": reason.format(source=source, old=old, new=new), **more})
        for number, (old, new) in enumerate(pairwise(values), 1)
    ]


def sizes(*values, tensor="x", dim=0, **more):
    reason = f"tensor '{tensor}' size mismatch at index {dim}. expected {{old}}, actual {{new}}"
    return changes(f"{tensor}.size()[{dim}]", "tensor_size", *values, reason=reason, **more)


def failure(source, kind, number=1, entry=None, **more):
    """A guard that failed at the `number`-th recompile, in the entry of the one before it or in the `entry`-th."""
    entry = number - 1 if entry is None else entry
    defaults = {
        "time_ns": number * SECOND,
        "compile_id": f"0/{number}",
        "entry_compile_id": f"0/{entry}",
    }
    return add_keys(GuardFailure(**{**defaults, "guard_source": source, "guard_kind": kind, **more}))


def compiled(**more):
    defaults = {"time_ns": SECOND, "compile_id": "0/0", "outcome": "ok", "duration_s": 2.0}
    return add_keys(Compile(**{**defaults, **FORWARD, **more}))


def graph_break(**more):
    defaults = {
        "time_ns": SECOND,
        "compile_id": "0/0",
        "reason": "Failed to trace builtin operator",
        "break_id": "GB0059",
        "hints": ["Avoid calling builtin `print`."],
        "user_file": "/home/ada/model.py",
        "user_line": 33,
        "user_code": "print(x)",
    }
    return add_keys(GraphBreak(**{**defaults, **more}))


def refused(expected="4", actual="6", **more):
    """Calls of `FORWARD` that a stance did not compile; `count` of them, as with one compile key."""
    defaults = {
        "time_ns": SECOND,
        "compile_key": f"0.refused {actual}",
        "refused_by": "eager_on_recompile",
        "ran": "eager",
        "count": 1,
        "guard_source": "x.size()[0]",
        "guard_kind": "tensor_size",
        "set_file": "/home/ada/train.py",
        "set_line": 12,
    }
    return RefusedCall(**{**defaults, **FORWARD, "expected": expected, "actual": actual, **more})


def lookup(outcome, **more):
    return add_keys(CacheLookup(**{"time_ns": SECOND, "cache": "fx_graph", "outcome": outcome, **more}))


def tuning(run_id="1", times=None, winner=None, **more):
    """A run of mm: `times` is choice -> ms, or a text that says why it failed; names with `triton` are Triton's."""
    shared = {
        "time_ns": SECOND,
        "compile_id": "0/0",
        "tuner": "select_algorithm",
        "stage": "benchmark",
        "op": "mm",
        "inputs": ["bf16[64, 64]", "bf16[64, 64]"],
        "device": "cuda:0",
        "benchmark_s": 0.5,
        "precompile_s": 0.3,
        **FORWARD,
        **more,
    }
    times = times or {"mm": 0.102, "triton_mm_1": 0.1, "triton_mm_2": 0.125}
    failed = {name: time for name, time in times.items() if isinstance(time, str)}
    winner = winner or min(times.keys() - failed.keys(), key=times.get, default=None)
    return [
        AutotuneChoice(
            **shared,
            run_id=run_id,
            choice=name,
            choice_kind="triton" if "triton" in name else "extern",
            time_ms=None if name in failed else time,
            fail_reason=failed.get(name),
            is_winner=None if winner is None else name == winner,
        )
        for name, time in times.items()
    ]


def graph(action, number=1, **more):
    defaults = {"time_ns": number * SECOND, "function_id": 0, "mode": "forward", "backend": "trees", **FORWARD}
    return add_keys(CudaGraphAction(**{**defaults, "action": action, **more}))


def called(ran, count, number=1, each=0.01, **more):
    """Calls of the entry of 0/number, or eager ones, that took `each` s; the first one ten times as long."""
    first = {"first_s": 10 * each, "total_s": each * (count + 9), "min_s": each, "timed": count} if count else {}
    defaults = {"time_ns": number * SECOND + 1, "compile_id": f"0/{number}", "ran": ran, "count": count, **first}
    return add_keys(Calls(**{**defaults, **FORWARD, **more}))


def kernel(name, seconds=0.2, **more):
    defaults = {"time_ns": SECOND, "compile_id": "0/0", "language": "triton", "where": "subprocess"}
    return add_keys(KernelCompile(**{**defaults, "name": name, "duration_s": seconds, "outcome": "compiled", **more}))


def decision(source, dim, number, **more):
    return add_keys(DynamicDecision(time_ns=number * SECOND, compile_id=f"0/{number}", source=source, dim=dim, **more))


def source(name, status, reason=None, reason_code=None, **more):
    return SourceStatus(time_ns=SECOND, name=name, status=status, reason=reason, reason_code=reason_code, **more)


#: The states of all sources that feed a table, where each of them worked.
ALL_ACTIVE = [source(name, "active") for name in sorted({name for names in FEEDS.values() for name in names})]
