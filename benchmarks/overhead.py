"""What compilediag costs, beside what torch's own TORCH_TRACE and TORCH_LOGS cost in the same run.

    python benchmarks/overhead.py [--quick] [--check] [--json PATH]

Every figure is a median with its 95 % interval. All variants run in turn in one process, so that a busy
machine is busy for all of them; "unwatched again" differs from "unwatched" by noise alone. The targets are
held against each tool's own account (seconds that it spent, over the compile seconds beside it), which the
noise of a shared machine hardly reaches; CPU and wall time against unwatched show that nothing is left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

# This checkout is what is measured, whatever is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import Estimate
from recording import Recording, measure_recording

if TYPE_CHECKING:
    from calling import Calls
    from compiling import Row

#: The most that lean may cost, as a share of the compile time; by workload.
LEAN_TARGETS = {"Dynamo-only recompiles": 0.01, "Inductor, cold": 0.005, "Inductor, cold, max-autotune": 0.005}
#: The most that all failing guards and their values (`full`) may cost; recompiles there have up to 8 entries.
GUARDS_TARGET = ("Dynamo-only recompiles", 0.03)
TABLES_TARGET_S = 0.3


@dataclasses.dataclass(frozen=True)
class Amounts:
    """How much of everything is done. `cycles`: rounds a variant in each workload, in the order of `workloads()`."""

    cycles: tuple[int, int, int, int]
    calls: int
    blocks: int
    events: int
    memory: tuple[int, ...]


WHOLE = Amounts(cycles=(20, 15, 5, 5), calls=1_000_000, blocks=50, events=100_000, memory=(100_000, 1_000_000))
QUICK = Amounts(cycles=(2, 2, 1, 1), calls=20_000, blocks=10, events=20_000, memory=(20_000,))


@dataclasses.dataclass(frozen=True)
class Target:
    """One promise and whether this run kept it."""

    what: str
    measured: str
    kept: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a short run, to see that it works; its figures are rough")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--json", metavar="PATH", type=Path, help="write all figures to this file as well")
    options = parser.parse_args()
    begin = time.perf_counter()
    results, targets = run(QUICK if options.quick else WHOLE)
    print(f"\n{time.perf_counter() - begin:.0f} s in all. Targets, by own account:")
    for target in targets:
        print(f"  {'kept  ' if target.kept else 'MISSED'}  {target.what}: {target.measured}")
    if options.json:
        options.json.write_text(json.dumps({**results, "targets": _plain(targets)}, indent=1) + "\n")
    return int(options.check and not all(target.kept for target in targets))


def run(amounts: Amounts) -> tuple[dict[str, Any], list[Target]]:
    """Measure and print section by section; all results as JSON can hold them, and the targets."""
    results: dict[str, Any] = {"machine": machine(), "amounts": _plain(amounts)}
    print("  ".join(f"{name} {value}" for name, value in results["machine"].items()))
    # First of all, while this process has no torch: what it starts then has none either.
    recording = measure_recording(amounts.events, amounts.memory)
    compared, calls = _compiles(amounts), _calls(amounts)
    print_recording(recording)
    results |= {"compiles": _plain(compared), "calls": _plain(calls), "recording": _plain(recording)}
    return results, [
        *compile_targets(compared),
        guards_target(compared),
        call_target(calls),
        *recording_targets(recording),
    ]


def _compiles(amounts: Amounts) -> dict[str, list[Row]]:
    from compiling import compare, workloads

    compared = {}
    with workloads() as all_of_them:
        for workload, cycles in zip(all_of_them, amounts.cycles, strict=True):
            compared[workload.name] = compare(workload, cycles)
            print_compiles(workload.name, cycles, compared[workload.name])
    return compared


def _calls(amounts: Amounts) -> list[Calls]:
    from calling import compare_calls

    calls = compare_calls(amounts.calls, amounts.blocks)
    print(f"\nA compiled call that hits: {amounts.calls:,} calls a variant in {amounts.blocks} blocks, CPU time")
    for row in calls:
        more = row.more_ns
        verdict = "a difference shows" if more.shows_difference() else "no difference can be shown"
        told = "" if row.variant == "unwatched" else f"  {_span(more, 1, 'ns', 1)}  {verdict}"
        print(f"  {row.variant:22}{row.ns:8.0f} ns{told}")
    return calls


def print_compiles(name: str, cycles: int, rows: list[Row]) -> None:
    unwatched = rows[0]
    print(f"\n{name}: {unwatched.compile_s * 1e3:.0f} ms a compile unwatched, {cycles} rounds a variant")
    print(f"  {'':22}{'own account':>29}  {'ms/compile':>10}  {'CPU more':>27}  {'wall more':>27}")
    for row in rows:
        own = "not counted" if row.own is None else _span(row.own, 100, "%", 2)
        ms = "" if row.own_ms is None else f"{row.own_ms:.2f}"
        more = (_span(row.more_cpu, 100, "%", 1), _span(row.more_wall, 100, "%", 1))
        cpu, wall = more if row is not unwatched else ("", "")
        print(f"  {row.variant:22}{own:>29}  {ms:>10}  {cpu:>27}  {wall:>27}")
    for row in rows:
        if row.guards is not None:
            print(f"  of {row.variant}'s, failing guards and values: {_span(row.guards, 100, '%', 2)}")


def print_recording(recording: Recording) -> None:
    slowest = sorted(recording.tables_s.items(), key=lambda item: -item[1])
    print(f"\nA session of {recording.events:,} events, {recording.file_mib:.0f} MiB")
    print(f"  handed over in {recording.put_us:.1f} us each; {recording.written_per_s:,.0f} a second until in the file")
    print("  as DataFrames: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in slowest[:5]))
    print("  memory: " + ", ".join(f"{n:,} events +{mib:.0f} MiB" for n, mib in recording.memory_mib.items()))
    late = f"the last one in the file after {recording.steady_late_s:.2f} s"
    print(f"  5,000 a second for 5 s: {recording.steady_lost} lost, {late}")


def compile_targets(compared: dict[str, list[Row]]) -> list[Target]:
    targets = []
    for workload, rows in compared.items():
        own = {row.variant: row.own for row in rows}
        if (most := LEAN_TARGETS.get(workload)) is not None:
            what = f"lean at most {most:.1%} of {workload}"
            targets.append(Target(what, _span(own["lean"], 100, "%", 2), own["lean"].value <= most))
        full, trace = own["full"], own["TORCH_TRACE"]
        measured = f"{full.value:.2%} and {trace.value:.2%}"
        targets.append(Target(f"full at most TORCH_TRACE's, {workload}", measured, full.value <= trace.value))
    return targets


def guards_target(compared: dict[str, list[Row]]) -> Target:
    workload, most = GUARDS_TARGET
    (full,) = (row.guards for row in compared[workload] if row.variant == "full")
    what = f"all failing guards and values at most {most:.0%} of {workload}"
    return Target(what, _span(full, 100, "%", 2), full.value <= most)


def call_target(calls: list[Calls]) -> Target:
    """Missed if a watched variant shows a difference that unwatched against itself does not reach."""
    noise = max(abs(bound) for row in calls if row.variant == "unwatched again" for bound in _bounds(row.more_ns))
    watched = {row.variant: row.more_ns for row in calls if not row.variant.startswith("unwatched")}
    kept = all(not more.shows_difference() or abs(more.value) <= noise for more in watched.values())
    measured = ", ".join(f"{name} {_span(more, 1, 'ns', 1)}" for name, more in watched.items())
    return Target("no difference to a call that hits", measured, kept)


def recording_targets(recording: Recording) -> list[Target]:
    slowest = max(recording.tables_s, key=recording.tables_s.__getitem__)
    seconds = recording.tables_s[slowest]
    return [
        Target(f"any table at most {TABLES_TARGET_S} s", f"{slowest} {seconds:.2f} s", seconds <= TABLES_TARGET_S),
        Target("5,000 events/s, none lost", f"{recording.steady_lost} lost", recording.steady_lost == 0),
    ]


def machine() -> dict[str, Any]:
    from importlib.metadata import version

    return {"torch": version("torch"), "python": platform.python_version(), "cores": os.cpu_count()}


def _span(estimate: Estimate, scale: float, unit: str, digits: int) -> str:
    value, low, high = (x * scale for x in (estimate.value, estimate.low, estimate.high))
    return f"{value:.{digits}f} {unit} [{low:.{digits}f} .. {high:.{digits}f}]"


def _bounds(estimate: Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


def _plain(value: Any) -> Any:
    """Dataclasses as dicts, down to what JSON has."""
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    sys.exit(main())
