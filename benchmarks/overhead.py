"""Measure the overhead of compilediag, and of torch's own TORCH_TRACE and TORCH_LOGS in the same run.

    python benchmarks/overhead.py [--only PART ...] [--quick] [--check] [--json PATH]

Parts: compiles, storms (of functions with many entries, and what a compile leaves in the file, in memory and to the
dashboard's thread), calls (of compiled functions), recording (without torch). No Jupyter packages and no network are
needed.

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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Measure this checkout, not an installed version.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import Estimate
from recording import Recording, measure_recording

if TYPE_CHECKING:
    from calling import Calls
    from compiling import Row
    from storms import Footprint, StormRow

PARTS = ("compiles", "storms", "calls", "recording")
#: Workload -> maximum cost of detail "lean", as a share of the compile time.
LEAN_TARGETS = {
    "Dynamo-only recompiles": 0.01,
    "Inductor, warm cache": 0.02,
    "Inductor, cold": 0.005,
    "Inductor, cold, max-autotune": 0.005,
}
#: Maximum cost of "full", as a share of TORCH_TRACE's in the same run.
FULL_TARGET = 0.5
#: Level of detail -> maximum cost of a recompile of a function with the most entries.
STORM_TARGETS = {"lean": 0.03, "full": 0.05}
#: What a compile may leave in detail "lean", in bytes, and the dashboard's thread as a share of the compile time.
FILE_TARGET, MEMORY_TARGET, THREAD_TARGET = 3 * 1024, 2 * 1024, 0.01
#: Maximum cost of recording all failing guards and values (`full`); recompiles there check up to 8 entries.
GUARDS_TARGET = ("Dynamo-only recompiles", 0.03)
TABLES_TARGET_S = 0.3


@dataclasses.dataclass(frozen=True)
class Amounts:
    """The size of each measurement. `cycles`: rounds per variant, one number per workload of `make_workloads()`.
    `marks` are numbers of entries, `footprint` is a number of functions.
    """

    cycles: tuple[int, int, int, int]
    marks: tuple[int, ...]
    storms: int
    footprint: int
    calls: int
    blocks: int
    events: int
    memory: tuple[int, ...]


WHOLE = Amounts(
    cycles=(10, 12, 3, 3),
    marks=(8, 64, 256),
    storms=2,
    footprint=4,
    calls=1_000_000,
    blocks=50,
    events=100_000,
    memory=(100_000, 1_000_000),
)
QUICK = Amounts(
    cycles=(2, 2, 1, 1), marks=(8, 16), storms=1, footprint=2, calls=20_000, blocks=10, events=20_000, memory=(20_000,)
)


@dataclasses.dataclass(frozen=True)
class Target:
    """A target and whether this run met it."""

    what: str
    measured: str
    is_met: bool


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PART", nargs="+", choices=PARTS, default=PARTS, help="measure these parts")
    parser.add_argument(
        "--quick", action="store_true", help="do a short run to check that it works; its figures are imprecise"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--json", metavar="PATH", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    begin = time.perf_counter()
    results, targets = run(QUICK if options.quick else WHOLE, options.only)
    print(f"\n{time.perf_counter() - begin:.0f} s in total. Targets, by each tool's own count:")
    for target in targets:
        print(f"  {'met   ' if target.is_met else 'MISSED'}  {target.what}: {target.measured}")
    if options.json:
        options.json.write_text(json.dumps({**results, "targets": _to_json(targets)}, indent=1) + "\n")
    return int(options.check and not all(target.is_met for target in targets))


def run(amounts: Amounts, parts: Sequence[str]) -> tuple[dict[str, Any], list[Target]]:
    """Measure and print each part. Return all results as JSON-compatible values, and the targets."""
    results: dict[str, Any] = {"machine": describe_machine(), "amounts": _to_json(amounts)}
    targets: list[Target] = []
    print("  ".join(f"{name} {value}" for name, value in results["machine"].items()))
    # Measure this before this process imports torch, so that its child processes do not have torch either.
    if "recording" in parts:
        recording = measure_recording(amounts.events, amounts.memory)
        print_recording(recording)
        results["recording"] = _to_json(recording)
        targets += check_recording_targets(recording)
    if "compiles" in parts:
        compared = _measure_compiles(amounts)
        results["compiles"] = _to_json(compared)
        targets += [*check_compile_targets(compared), check_guards_target(compared)]
    if "storms" in parts:
        storms, footprints = _measure_storms(amounts)
        results |= {"storms": _to_json(storms), "footprints": _to_json(footprints)}
        targets += [*check_storm_targets(storms), *check_footprint_targets(footprints)]
    if "calls" in parts:
        calls = _measure_calls(amounts)
        results["calls"] = _to_json(calls)
        targets.append(check_call_target(calls))
    return results, targets


def _measure_compiles(amounts: Amounts) -> dict[str, list[Row]]:
    from compiling import compare_variants, make_workloads

    compared = {}
    with make_workloads() as workloads:
        for workload, cycles in zip(workloads, amounts.cycles, strict=True):
            compared[workload.name] = compare_variants(workload, cycles)
            print_compiles(workload.name, cycles, compared[workload.name])
    return compared


def _measure_storms(amounts: Amounts) -> tuple[list[StormRow], list[Footprint]]:
    from storms import compare_storms, measure_footprints

    storms = compare_storms(amounts.marks, amounts.storms)
    print(f"\nRecompiles of a function with many entries: own count, {amounts.storms} functions per variant")
    for row in storms:
        print(f"  {row.variant:14}{row.entries:6} entries  {_format_interval(row.own, 100, '%', 2)}")
    footprints = measure_footprints(amounts.footprint)
    print("\nWhat a Dynamo-only compile leaves, and the dashboard's thread as a share of the compile time")
    for found in footprints:
        left = f"{found.file_bytes:6.0f} bytes of file  {found.memory_bytes:6.0f} of memory  {found.events:4.1f} events"
        print(f"  {found.detail:14}{left}  {_format_interval(found.thread, 100, '%', 2)}")
    return storms, footprints


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
        full, trace = own["full"].value, own["TORCH_TRACE"].value
        what = f"full at most {FULL_TARGET} of TORCH_TRACE's, {workload}"
        targets.append(Target(what, f"{full / trace:.2f}, {full:.2%} and {trace:.2%}", full <= FULL_TARGET * trace))
    return targets


def check_storm_targets(storms: list[StormRow]) -> list[Target]:
    most = max(row.entries for row in storms)
    found = {row.variant: row.own for row in storms if row.entries == most}
    return [
        Target(
            f"{detail} at most {share:.0%} with {most} entries",
            _format_interval(found[detail], 100, "%", 2),
            found[detail].value <= share,
        )
        for detail, share in STORM_TARGETS.items()
    ]


def check_footprint_targets(footprints: list[Footprint]) -> list[Target]:
    (lean,) = (found for found in footprints if found.detail == "lean")
    amounts = (("file", lean.file_bytes, FILE_TARGET), ("memory", lean.memory_bytes, MEMORY_TARGET))
    thread = max(found.thread.value for found in footprints)
    return [
        *(Target(f"lean at most {most} bytes of {name}", f"{n:.0f}", n <= most) for name, n, most in amounts),
        Target(f"the dashboard's thread at most {THREAD_TARGET:.0%}", f"{thread:.2%}", thread <= THREAD_TARGET),
    ]


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
