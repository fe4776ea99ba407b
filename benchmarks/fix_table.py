"""Run `compilediag fix --fast` on whole scripts and print what it reaches, beside the plan and the change by hand.

python benchmarks/fix_table.py                          # every script of tests/scripts/truth.toml
python benchmarks/fix_table.py lm_buckets experts       # some of them
python benchmarks/fix_table.py --save folder            # keeps what fix printed

"plan" is the printed plan, applied as it stands: the first change that fix tries of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.loading import load_script  # noqa: E402

measuring = load_script(ROOT / "tests" / "scripts" / "measure.py")
HEAD = ("script", "before", "plan", "fix", "by hand", "lines plan/fix/hand", "runs", "seconds", "reaches it")


def main() -> None:
    """Run the rows that are named, or all whose packages are here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--save", type=Path, help="write what fix printed to this folder")
    options = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    reached = []
    for truth in measuring.read_truth():
        if options.names and truth.name not in options.names:
            continue
        if missing := [name for name in truth.packages if importlib.util.find_spec(name) is None]:
            print(f"| {truth.name} | not installed: {', '.join(missing)} |", flush=True)
            continue
        found, errors = run_fix(truth)
        if options.save:
            options.save.mkdir(exist_ok=True)
            (options.save / f"{truth.name}.json").write_text(json.dumps(found, indent=1))
            (options.save / f"{truth.name}.log").write_text(errors)
        reached.append(measuring.reaches_hand(truth, found))
        print(f"| {' | '.join([*list_cells(truth, found), 'yes' if reached[-1] else 'no'])} |", flush=True)
    print(f"\n{sum(reached)} of {len(reached)} reach what was done by hand.")


def run_fix(truth: Any) -> tuple[dict[str, Any], str]:
    """What `compilediag fix --fast --json` prints for a copy of a script, and its progress."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = shutil.copytree(truth.folder, Path(temporary) / truth.name)
        done = subprocess.run(
            [sys.executable, "-m", "compilediag", "fix", "--fast", "--json", truth.start, *truth.arguments],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    return json.loads(done.stdout), done.stderr


def list_cells(truth: Any, found: dict[str, Any]) -> list[str]:
    """The cells of a row, but for the last one."""
    # Where a loop is unrolled, its step is compiled first, and the plan is another one.
    plans = (one for one in found["tried"] if one["move"] == "FollowPlan" and not truth.operations)
    tried, without = next(plans, None), "not tried" if truth.operations else "no patch"
    plan = without if tried is None else "rejected" if tried["objection"] else format_count(truth, tried)
    before, after = found["search"]["before"], found["search"]["after"]
    names = {"uncached": "bypasses"}
    hand = {
        name: getattr(truth, f"{names.get(name, name)}_by_hand")
        for name in ("recompiles", "graph_breaks", "operations", "uncached")
    }
    lines = (tried["lines"] if tried else 0, found["lines"], truth.lines_by_hand)
    return [
        truth.name,
        *(format_count(truth, before), plan, format_count(truth, after), format_count(truth, hand)),
        "/".join(map(str, lines)),
        str(found["runs"]),
        str(round(found["seconds"])),
    ]


def format_count(truth: Any, run: dict[str, Any]) -> str:
    """Recompiles and graph breaks of a run; where a loop is unrolled, the calls in its graphs."""
    parts = [str(run["recompiles"])]
    parts += [f"{run['graph_breaks']} breaks"] if run["graph_breaks"] else []
    parts += [f"{run['uncached']} uncached"] if run.get("uncached") else []
    parts += [f"{run['operations']:,} calls"] if truth.operations and "operations" in run else []
    return " + ".join(parts)


if __name__ == "__main__":
    main()
