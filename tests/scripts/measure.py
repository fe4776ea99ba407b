"""Run a whole script in a fresh process and count its recompiles and graph breaks with torch alone.

python tests/scripts/measure.py                     # every script of truth.toml, unchanged and with its change
python tests/scripts/measure.py lm_buckets          # one of them
python tests/scripts/measure.py --change my.patch lm_buckets
"""

import argparse
import atexit
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
#: What torch writes with TORCH_LOGS=recompiles: one line per recompile, the one that meets the limit included.
RECOMPILE = re.compile(r"\[__recompiles\] Recompiling function ")
REASON = re.compile(r"\[__recompiles\]\s+- (\d+/\d+: .*)")
LIMIT = re.compile(r"torch\._dynamo hit config\.(?:accumulated_)?recompile_limit")


@dataclass(frozen=True)
class Measurement:
    """What one run of a script did. `graphs` counts compiled graphs, `operations` the calls in them, and `bypasses` the
    graphs that AOTAutogradCache passes over; `seconds` includes the start of Python.
    """

    exit_code: int
    recompiles: int
    graph_breaks: int
    graphs: int
    operations: int
    bypasses: int
    limits: int
    reasons: tuple[str, ...]
    output: str
    errors: str
    seconds: float


@dataclass(frozen=True)
class Truth:
    """One row of truth.toml."""

    name: str
    start: str
    arguments: tuple[str, ...]
    packages: tuple[str, ...]
    threads: tuple[str, ...]
    kind: str
    cause: str
    recompiles: int
    recompiles_by_hand: int
    graph_breaks: int
    graph_breaks_by_hand: int
    lines_by_hand: int
    left: str
    expected: str
    wrong: str
    not_reached: str = ""
    operations: int = 0
    operations_by_hand: int = 0
    bypasses: int = 0
    bypasses_by_hand: int = 0

    @property
    def folder(self) -> Path:
        """The folder that is copied to try a change: the one of the script, or of the package."""
        return FOLDER / self.name

    @property
    def change(self) -> Path | None:
        """The best change by hand, a unified diff relative to `folder`; None where nothing is to be changed."""
        patch = FOLDER / "changes" / f"{self.name}.patch"
        return patch if patch.exists() else None


def read_truth() -> list[Truth]:
    """Every row of truth.toml, in its order."""
    rows = tomllib.loads((FOLDER / "truth.toml").read_text())
    tuples = ("arguments", "packages", "threads")
    return [
        Truth(**{key: tuple(value) if key in tuples else value for key, value in {"name": name, **row}.items()})
        for name, row in rows.items()
    ]


def changed_lines(patch: str) -> int:
    """Count a changed line once: the larger of removed and added lines, per run of lines that change together."""
    total = removed = added = 0
    for line in [*patch.splitlines(), " "]:
        if line.startswith("-") and not line.startswith("---"):
            removed += 1
        elif line.startswith("+") and not line.startswith("+++"):
            added += 1
        else:
            total += max(removed, added)
            removed = added = 0
    return total


def reaches_hand(truth: Truth, found: dict[str, Any]) -> bool:
    """True if what `compilediag fix --json` found does more than the change by hand, or the same with as many lines."""
    after = found["search"]["after"]
    counts, by_hand = (
        (after["graph_breaks"], after["uncached"], after["recompiles"]),
        (truth.graph_breaks_by_hand, truth.bypasses_by_hand, truth.recompiles_by_hand),
    )
    if truth.operations_by_hand and after["operations"] > truth.operations_by_hand:
        return False
    return counts < by_hand or (counts == by_hand and found["lines"] <= truth.lines_by_hand)


def measure(script: Path, arguments: tuple[str, ...] = (), python: str = sys.executable) -> Measurement:
    """Run `script` as `python script arguments` would, in its own folder, and count."""
    with tempfile.TemporaryDirectory() as temporary:
        result = Path(temporary) / "counters.json"
        environment = {**os.environ, "TORCH_LOGS": "recompiles", "MEASURE_RESULT": str(result)}
        start = time.monotonic()
        done = subprocess.run(
            [python, str(FOLDER / "measure.py"), "--inside", str(script), *arguments],
            cwd=script.parent,
            env=environment,
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - start
        counters = json.loads(result.read_text()) if result.exists() else {}
    return Measurement(
        exit_code=done.returncode,
        recompiles=len(RECOMPILE.findall(done.stderr)),
        graph_breaks=sum(counters.get("graph_break", {}).values()),
        graphs=counters.get("stats", {}).get("unique_graphs", 0),
        operations=counters.get("stats", {}).get("calls_captured", 0),
        bypasses=counters.get("aot_autograd", {}).get("autograd_cache_bypass", 0),
        limits=len(LIMIT.findall(done.stderr)),
        reasons=tuple(REASON.findall(done.stderr)),
        output=done.stdout,
        errors=done.stderr,
        seconds=seconds,
    )


def measure_changed(truth: Truth, change: Path, python: str = sys.executable) -> Measurement:
    """Apply a unified diff to a copy of the script's folder, and measure the copy."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / truth.name
        shutil.copytree(truth.folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["git", "apply", "-p1", str(change)], cwd=copy, check=True)
        return measure(copy / truth.start, truth.arguments, python)


def run_inside(script: str, arguments: list[str]) -> None:
    """Run a script in this process, and write torch's counters when the process ends."""

    def write_counters() -> None:
        utils = sys.modules.get("torch._dynamo.utils")
        if utils is not None:
            Path(os.environ["MEASURE_RESULT"]).write_text(
                json.dumps({group: {str(k): v for k, v in rows.items()} for group, rows in utils.counters.items()})
            )

    atexit.register(write_counters)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


def show(label: str, row: Measurement, reasons: bool) -> None:
    """Print a measurement as one line, and what failed where it is asked for."""
    print(
        f"  {label:<9} {row.recompiles} recompiles, {row.graph_breaks} breaks, {row.graphs} graphs, "
        f"{row.operations} operations, {row.bypasses} bypasses, {row.limits} limits, {row.seconds:.1f} s, "
        f"exit {row.exit_code}"
    )
    if row.exit_code:
        print(row.errors[-3000:])
    for reason in row.reasons if reasons else ():
        print("     ", reason)


def main() -> None:
    """Measure the rows that are named, or all, unchanged and changed by hand."""
    if sys.argv[1:2] == ["--inside"]:
        return run_inside(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--change", type=Path, help="a unified diff to try in place of the change by hand")
    parser.add_argument("--reasons", action="store_true", help="print what failed at each recompile")
    parser.add_argument("--output", action="store_true", help="print what the script printed")
    options = parser.parse_args()
    for truth in read_truth():
        if options.names and truth.name not in options.names:
            continue
        print(truth.name)
        before = measure(truth.folder / truth.start, truth.arguments)
        show("unchanged", before, options.reasons)
        if options.output:
            print(before.output)
        change = options.change or truth.change
        if change is not None:
            after = measure_changed(truth, change.resolve())
            show("changed", after, options.reasons)
            same = "same output" if after.output == before.output else f"ANOTHER OUTPUT\n{before.output}{after.output}"
            print(f"  {changed_lines(change.read_text())} lines, {same}", flush=True)
    return None


if __name__ == "__main__":
    main()
