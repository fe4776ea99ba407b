"""Measure the overhead of compilediag, and of torch's own TORCH_TRACE and TORCH_LOGS in the same run.

    python benchmarks/overhead.py [--quick] [--check] [--json PATH]

Every figure is a median with its 95 % interval. All variants alternate in one process, so that other load
affects all of them; "unwatched again" differs from "unwatched" only by noise. Targets are checked against the
overhead that each tool counts itself, as a share of the compile time of the same round, because other load
hardly affects this share. CPU and wall time relative to "unwatched" show that the count is complete.
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

# Measure this checkout, not an installed version.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import Estimate
from recording import Recording, measure_recording

if TYPE_CHECKING:
    from calling import Calls
    from compiling import Row

#: Workload -> maximum cost of detail "lean", as a share of the compile time.
LEAN_TARGETS = {"Dynamo-only recompiles": 0.01, "Inductor, cold": 0.005, "Inductor, cold, max-autotune": 0.005}
#: Maximum cost of recording all failing guards and values (`full`); recompiles there check up to 8 entries.
GUARDS_TARGET = ("Dynamo-only recompiles", 0.03)
TABLES_TARGET_S = 0.3


@dataclasses.dataclass(frozen=True)
class Amounts:
    """The size of each measurement. `cycles`: rounds per variant, one number per workload of `make_workloads()`."""

    cycles: tuple[int, int, int, int]
    calls: int
    blocks: int
    events: int
    memory: tuple[int, ...]


WHOLE = Amounts(cycles=(20, 15, 5, 5), calls=1_000_000, blocks=50, events=100_000, memory=(100_000, 1_000_000))
QUICK = Amounts(cycles=(2, 2, 1, 1), calls=20_000, blocks=10, events=20_000, memory=(20_000,))


@dataclasses.dataclass(frozen=True)
class Target:
    """A target and whether this run met it."""

    what: str
    measured: str
    is_met: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="do a short run to check that it works; its figures are imprecise"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--json", metavar="PATH", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    begin = time.perf_counter()
    results, targets = run(QUICK if options.quick else WHOLE)
    print(f"\n{time.perf_counter() - begin:.0f} s in total. Targets, by each tool's own count:")
    for target in targets:
        print(f"  {'met   ' if target.is_met else 'MISSED'}  {target.what}: {target.measured}")
    if options.json:
        options.json.write_text(json.dumps({**results, "targets": _to_json(targets)}, indent=1) + "\n")
    return int(options.check and not all(target.is_met for target in targets))


def run(amounts: Amounts) -> tuple[dict[str, Any], list[Target]]:
    """Measure and print each section. Return all results as JSON-compatible values, and the targets."""
    results: dict[str, Any] = {"machine": describe_machine(), "amounts": _to_json(amounts)}
    print("  ".join(f"{name} {value}" for name, value in results["machine"].items()))
    # Measure this before this process imports torch, so that its child processes do not have torch either.
    recording = measure_recording(amounts.events, amounts.memory)
    compared, calls = _measure_compiles(amounts), _measure_calls(amounts)
    print_recording(recording)
    results |= {"compiles": _to_json(compared), "calls": _to_json(calls), "recording": _to_json(recording)}
    return results, [
        *check_compile_targets(compared),
        check_guards_target(compared),
        check_call_target(calls),
        *check_recording_targets(recording),
    ]


def _measure_compiles(amounts: Amounts) -> dict[str, list[Row]]:
    from compiling import compare_variants, make_workloads

    compared = {}
    with make_workloads() as workloads:
        for workload, cycles in zip(workloads, amounts.cycles, strict=True):
            compared[workload.name] = compare_variants(workload, cycles)
            print_compiles(workload.name, cycles, compared[workload.name])
    return compared


def _measure_calls(amounts: Amounts) -> list[Calls]:
    from calling import compare_calls

    calls = compare_calls(amounts.calls, amounts.blocks)
    print(
        f"\nA compiled call with a cache hit: {amounts.calls:,} calls per variant in {amounts.blocks} blocks, CPU time"
    )
    for row in calls:
        more = row.more_ns
        verdict = "significant difference" if more.shows_difference() else "no significant difference"
        difference = "" if row.variant == "unwatched" else f"  {_format_interval(more, 1, 'ns', 1)}  {verdict}"
        print(f"  {row.variant:22}{row.ns:8.0f} ns{difference}")
    return calls


def print_compiles(name: str, cycles: int, rows: list[Row]) -> None:
    unwatched = rows[0]
    print(f"\n{name}: {unwatched.compile_s * 1e3:.0f} ms per compile unwatched, {cycles} rounds per variant")
    print(f"  {'':22}{'own count':>29}  {'ms/compile':>10}  {'extra CPU':>27}  {'extra wall':>27}")
    for row in rows:
        own = "not counted" if row.own is None else _format_interval(row.own, 100, "%", 2)
        ms = "" if row.own_ms is None else f"{row.own_ms:.2f}"
        more = (_format_interval(row.more_cpu, 100, "%", 1), _format_interval(row.more_wall, 100, "%", 1))
        cpu, wall = more if row is not unwatched else ("", "")
        print(f"  {row.variant:22}{own:>29}  {ms:>10}  {cpu:>27}  {wall:>27}")
    for row in rows:
        if row.guards is not None:
            print(f"  failing guards and values in {row.variant}: {_format_interval(row.guards, 100, '%', 2)}")


def print_recording(recording: Recording) -> None:
    slowest = sorted(recording.tables_s.items(), key=lambda item: -item[1])
    print(f"\nA session of {recording.events:,} events, {recording.file_mib:.0f} MiB")
    written = f"{recording.written_per_s:,.0f} events per second written to the file"
    print(f"  {recording.put_us:.1f} us per event to hand over; {written}")
    print("  as DataFrames: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in slowest[:5]))
    print("  memory: " + ", ".join(f"{n:,} events +{mib:.0f} MiB" for n, mib in recording.memory_mib.items()))
    delay = f"last event in the file after {recording.steady_late_s:.2f} s"
    print(f"  5,000 events per second for 5 s: {recording.steady_lost} lost, {delay}")


def check_compile_targets(compared: dict[str, list[Row]]) -> list[Target]:
    targets = []
    for workload, rows in compared.items():
        own = {row.variant: row.own for row in rows}
        if (most := LEAN_TARGETS.get(workload)) is not None:
            what = f"lean at most {most:.1%} of {workload}"
            targets.append(Target(what, _format_interval(own["lean"], 100, "%", 2), own["lean"].value <= most))
        full, trace = own["full"], own["TORCH_TRACE"]
        measured = f"{full.value:.2%} and {trace.value:.2%}"
        targets.append(Target(f"full at most TORCH_TRACE's, {workload}", measured, full.value <= trace.value))
    return targets


def check_guards_target(compared: dict[str, list[Row]]) -> Target:
    workload, most = GUARDS_TARGET
    (full,) = (row.guards for row in compared[workload] if row.variant == "full")
    what = f"recording all failing guards and values at most {most:.0%} of {workload}"
    return Target(what, _format_interval(full, 100, "%", 2), full.value <= most)


def check_call_target(calls: list[Calls]) -> Target:
    """Miss the target if a watched variant shows a difference larger than between two unwatched variants."""
    noise = max(abs(bound) for row in calls if row.variant == "unwatched again" for bound in _get_bounds(row.more_ns))
    watched = {row.variant: row.more_ns for row in calls if not row.variant.startswith("unwatched")}
    is_met = all(not more.shows_difference() or abs(more.value) <= noise for more in watched.values())
    measured = ", ".join(f"{name} {_format_interval(more, 1, 'ns', 1)}" for name, more in watched.items())
    return Target("no difference for a call with a cache hit", measured, is_met)


def check_recording_targets(recording: Recording) -> list[Target]:
    slowest = max(recording.tables_s, key=recording.tables_s.__getitem__)
    seconds = recording.tables_s[slowest]
    return [
        Target(f"any table at most {TABLES_TARGET_S} s", f"{slowest} {seconds:.2f} s", seconds <= TABLES_TARGET_S),
        Target("5,000 events/s, none lost", f"{recording.steady_lost} lost", recording.steady_lost == 0),
    ]


def describe_machine() -> dict[str, Any]:
    from importlib.metadata import version

    return {"torch": version("torch"), "python": platform.python_version(), "cores": os.cpu_count()}


def _format_interval(estimate: Estimate, scale: float, unit: str, digits: int) -> str:
    value, low, high = (x * scale for x in (estimate.value, estimate.low, estimate.high))
    return f"{value:.{digits}f} {unit} [{low:.{digits}f} .. {high:.{digits}f}]"


def _get_bounds(estimate: Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


def _to_json(value: Any) -> Any:
    """Convert dataclasses to dicts, recursively."""
    if dataclasses.is_dataclass(value):
        return {f.name: _to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): _to_json(v) for k, v in value.items()}
    return [_to_json(v) for v in value] if isinstance(value, (list, tuple)) else value


if __name__ == "__main__":
    sys.exit(main())
