"""Small tables for tests: events in, the DataFrames of a session out."""

from types import SimpleNamespace

from compilediag.events import (
    BY_TABLE,
    CacheLookup,
    Compile,
    DynamicDecision,
    GraphBreak,
    GuardFailure,
    Recompile,
    SourceStatus,
)
from compilediag.tables import frame_from_events

SECOND = 1_000_000_000
FORWARD = {"function": "forward", "file": "/home/ada/model.py", "line": 30}


def tables(*events):
    """What a session of just these events would give, each table with its documented dtypes."""
    by_table = {name: [e for e in events if type(e) is cls] for name, cls in BY_TABLE.items()}
    return SimpleNamespace(**{name: frame_from_events(BY_TABLE[name], rows) for name, rows in by_table.items()})


def recompile(source, kind, expected=None, actual=None, number=1, **more):
    """A recompile of `forward`, the `number`-th one: its entry is 0/number, its closest the one before."""
    defaults = {
        "time_ns": number * SECOND,
        "compile_id": f"0/{number}",
        "closest_compile_id": f"0/{number - 1}",
        "lost_s": 1.0,
    }
    told = {"guard_source": source, "guard_kind": kind, "expected": expected, "actual": actual}
    return Recompile(**{**defaults, **FORWARD, **told, **more})


def changes(source, kind, *values, reason="{source} == {old}", **more):
    """The recompiles of a guarded thing that went through `values`; `reason` is torch's text for each."""
    return [
        recompile(source, kind, old, new, number, **{"reason": reason.format(source=source, old=old, new=new), **more})
        for number, (old, new) in enumerate(zip(values, values[1:], strict=False), 1)
    ]


def sizes(*values, tensor="x", dim=0, **more):
    reason = f"tensor '{tensor}' size mismatch at index {dim}. expected {{old}}, actual {{new}}"
    return changes(f"{tensor}.size()[{dim}]", "tensor_size", *values, reason=reason, **more)


def failure(source, kind, number=1, entry=None, **more):
    return GuardFailure(
        time_ns=number * SECOND,
        compile_id=f"0/{number}",
        entry_compile_id=entry or f"0/{number - 1}",
        guard_source=source,
        guard_kind=kind,
        **more,
    )


def compiled(**more):
    return Compile(**{"time_ns": SECOND, "compile_id": "0/0", "outcome": "ok", "duration_s": 2.0, **FORWARD, **more})


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
    return GraphBreak(**{**defaults, **more})


def lookup(outcome, **more):
    return CacheLookup(**{"time_ns": SECOND, "cache": "fx_graph", "outcome": outcome, **more})


def decision(source, dim, number, **more):
    return DynamicDecision(time_ns=number * SECOND, compile_id=f"0/{number}", source=source, dim=dim, **more)


def source(name, status, reason=None, **more):
    return SourceStatus(time_ns=SECOND, name=name, status=status, reason=reason, **more)
