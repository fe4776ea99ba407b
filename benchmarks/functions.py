"""Measure functions that must stay fast: parsing, tables, findings, and writing an event to its file.

python benchmarks/functions.py
"""

from __future__ import annotations

import contextlib
import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import Figure, print_figures
from ingest import ROOT

EVENTS = 100_000


def main() -> None:
    figures = [
        Figure("parse a guard of 20,000 repeated pieces", measure_parsing_s(), 10, "s"),
        Figure("describe a large value", measure_describing_s() * 1e3, 20, "ms"),
        Figure("decode a damaged log", measure_damaged_log_s(), 2, "s"),
        Figure("find the causes of 2,000 recompiles of 200 functions", measure_findings_s(), 2, "s"),
        *(
            Figure(f"build a table of 100,000 {name}", measure_table_s(name), 1.5, "s")
            for name in ("compiles", "guard_failures")
        ),
        Figure("build a table of 100,000 recompiles", measure_table_s("recompiles"), 1.5, "s"),
        Figure("events recorded per second, none dropped", measure_recording_rate(), 5_000, "1/s", is_rate=True),
        Figure("delay until an event is in the file", measure_visibility_s(), 1, "s"),
    ]
    print_figures(figures + measure_tuning())


def _time_cpu_s(work: Callable[[], Any]) -> float:
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def measure_parsing_s() -> float:
    from compilediag.decode.guards.guard_text import parse_guard

    pieces = ["(", "[", "'", "L['", "((", ".a", " == ", "a.b(", "# ", "  # f.py:1 in g", "tensor '"]
    return max(_time_cpu_s(lambda piece=piece: parse_guard(piece * 20_000)) for piece in pieces)


def measure_describing_s() -> float:
    from compilediag.sources.guards.read_values import describe

    values = [list(range(10**6)), {i: i for i in range(10**5)}, "x" * 10**7, 10**100_000, set(range(10**5))]
    return max(_time_cpu_s(lambda value=value: describe(value)) for value in values)


def measure_damaged_log_s() -> float:
    from compilediag.errors import WrongInput
    from tests.unit.log_builder import read_log
    from tests.unit.test_ingest_bad import mutated, pieces

    def read(log: bytes) -> None:
        """A log whose every record is damaged is refused."""
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(WrongInput):
            read_log(folder, log)

    random_, parts = random.Random(20), pieces()
    logs = [mutated(random_, b"".join(random_.sample(parts, 4))) for _ in range(300)]
    return max(_time_cpu_s(lambda log=log: read(log)) for log in logs)


def measure_findings_s() -> float:
    from compilediag.diagnosis import diagnose
    from tests.unit.tables_builder import tables
    from tests.unit.test_diagnosis import many_recompiles

    many = tables(*many_recompiles())
    return _time_cpu_s(lambda: diagnose(many))


def measure_table_s(table: str) -> float:
    from compilediag.events import BY_TABLE, GUARD_KINDS
    from compilediag.session import load
    from tests.unit.session_builder import saved

    kinds = {"guard_kind": GUARD_KINDS[0]} if table != "compiles" else {"restart_reasons": ["a"]}
    with tempfile.TemporaryDirectory() as folder:
        events = (BY_TABLE[table](time_ns=n, compile_id=f"{n}/0", **kinds) for n in range(EVENTS))
        session = load(saved(Path(folder), *events).path)
        return _time_cpu_s(lambda: getattr(session, table))


def _open_recording(folder: str) -> tuple[Any, Any, Any]:
    from compilediag.recording.recorder import Recorder
    from compilediag.session import load
    from tests.unit.session_builder import META, Feed

    recorder = Recorder(Path(folder) / "run.cdiag", META).begin()
    return recorder, load(Path(folder) / "run.cdiag"), Feed()


def measure_recording_rate() -> float:
    """Return events per second from the first `put` until the file is complete; 0 if any was dropped."""
    from compilediag.events import Phase

    with tempfile.TemporaryDirectory() as folder:
        recorder, _, feed = _open_recording(folder)
        began = time.perf_counter()
        for n in range(25_000):
            recorder.put(feed, lambda number: [Phase(time_ns=number, depth=number)], n)
        recorder.close()
        return 0.0 if feed.dropped else 25_000 / (time.perf_counter() - began)


def measure_visibility_s() -> float:
    """Return the longest of ten delays until a reader of the file sees an event. A kill loses newer events."""
    from compilediag.events import Phase

    waits = []
    with tempfile.TemporaryDirectory() as folder:
        recorder, reader, feed = _open_recording(folder)
        for n in range(10):
            began = time.perf_counter()
            recorder.put(feed, lambda number: [Phase(time_ns=number, depth=number)], n)
            while len(reader.phases) <= n:
                time.sleep(0.005)
            waits.append(time.perf_counter() - began)
        recorder.close()
    return max(waits)


def measure_tuning() -> list[Figure]:
    """Measure, on a GPU, the share of a max-autotune compile that is spent watching its tuning."""
    import torch
    import torch._inductor.utils

    if not torch.cuda.is_available():
        print("tuning is not measured: this machine has no GPU")
        return []
    import compilediag as cd

    x, y = torch.randn(2, 1024, 1024, device="cuda")
    with cd.watch(detail="lean") as session, torch._inductor.utils.fresh_cache():
        began = time.perf_counter()
        torch.compile(lambda x, y: (x @ y).relu().sum(1), mode="max-autotune-no-cudagraphs")(x, y)
        seconds = time.perf_counter() - began
    tuners = {"select_algorithm", "triton_heuristics", "triton_autotune"}
    own = sum(row["overhead_s"] for row in session.status() if row["name"] in tuners)
    return [Figure("watch the tuning of a max-autotune compile", 100 * own / seconds, 0.5, "%")]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
