"""A session with rows in every table, and the ways in which somebody can spoil a copy of it."""

import contextlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import compilediag as cd
from compilediag.events import BY_TABLE, Collective, ExportProblem, SourceStatus
from tests.inside import Store

from .tables_builder import (
    SECOND,
    called,
    changes,
    compiled,
    decision,
    failure,
    graph,
    graph_break,
    kernel,
    lookup,
    sizes,
    tuning,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
LOGS = [GOLDEN / f"torch-2.13-{name}.log.gz" for name in ("failures", "provenance", "rank0", "rank1", "export")]
BLOCKS = {"class": "Block", "module": "m", "path": "layers.0", "count": 3, "ops": 5, "graph_ops": 20}
DIFF = ["cache_key_tag: '' -> 'x'", "inductor_config[max_autotune]: False -> True"]


def make_base(file):
    """Write the session: small logs, the golden session, and rows of the tables that both lack."""
    cd.ingest(LOGS, file)
    store = Store.open(file, writable=True)
    golden = cd.load(GOLDEN / "schema-11.cdiag").data
    store.append([replace(row, event_id=None) for kind in BY_TABLE.values() for row in golden.rows(kind)])
    store.append(_make_events())
    store.set_progress({4_194_305: {1: _make_state()}})
    store.set_meta(my_code=["/home/user"], library_folders=["/usr/lib"], program={"script": "/x.py", "arguments": []})
    store.close()
    return file


def _make_state():
    place = {"compile_id": "0/0", "function": "f", "file": "model.py", "line": 3, "trigger": "dynamo"}
    return {**place, "phases": ["backend_compile"], "started_ns": SECOND}


def _make_events():
    return [
        *(compiled(compile_id=f"0/{n}", blocks=BLOCKS, stack="a") for n in range(4)),
        *sizes("4", "6", "8"),
        *changes("self.n", "value", "1", "2", "3"),
        *(failure("x.size()[0]", "tensor_size", n, expected="4", actual="6", is_first=True) for n in (1, 2)),
        *tuning(),
        *tuning(run_id="2", tuner="triton_heuristics", stage="coordinate_descent"),
        *tuning(run_id="3", times={"mm": "out of resources"}),
        *(graph(action, n, sizes=f"{n}", graph_id=n, parent_id=n - 1, duration_ms=2.0, reason="mutated inputs",
                user_file="/m.py", user_line=3, user_code="f(x)", count=2, nodes=9, pool_bytes=1 << 20)
          for n, action in enumerate(("warmup", "record", "rerecord", "skip", "replays", "limit", "overwritten"), 1)),
        *(called(ran, 20, n) for n, ran in enumerate(("compiled", "eager", "compiled"))),
        kernel("triton_mm"),
        graph_break(),
        lookup("miss", key="a", key_diff=DIFF, action="look_up", **_function()),
        lookup("hit", key="b", action="look_up", **_function()),
        lookup("bypass", cache="aot_autograd", reason="unsupported", **_function()),
        decision("L['x']", "0", 2, reason="size changed", cached="4", new="6"),
        ExportProblem(time_ns=SECOND, problem="data_dependent", op="aten.item", reason="r", compile_id="0/0"),
        Collective(time_ns=SECOND, compile_id="0/0", compile_key="0.0/0", outputs=["f32[2]"]),
        SourceStatus(time_ns=SECOND, name="compiles", status="failed", reason_code="errors", reason="boom", events=3),
    ]  # fmt: skip


def _function():
    return {
        "function": "forward",
        "file": "/home/ada/model.py",
        "line": 30,
        "compile_id": "0/1",
        "compile_key": "0.0/1",
    }


def spoil(base, copy, *statements):
    """Copy a session file and run (sql, parameters) on the copy, as its author could have."""
    copy.write_bytes(base.read_bytes())
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as db:
        for sql, *parameters in statements:
            db.execute(sql, parameters)
    return copy


def set_meta(base, copy, **values):
    """A copy with these facts about the session."""
    sql = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
    return spoil(base, copy, *((sql, name, json.dumps(value)) for name, value in values.items()))
