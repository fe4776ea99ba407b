"""Run every campaign, two at a time, and print a table: `make soak`. It ends after 20 minutes at the latest.

    python -m benchmarks.soak [--minutes=20] [--quick] [CAMPAIGN...]

The exit status is 1 if anything went wrong. What the campaigns write to stderr is kept in a temporary folder, which the
last line names; sessions, caches and the user's key history are in folders of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.soak.workload import END, ROW

ROOT = Path(__file__).resolve().parents[2]
#: Campaign -> (module, arguments, environment). The longest come first.
CAMPAIGNS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "other tools": ("other_tools", [], {}),
    "many": ("many", [], {}),
    "killed": ("killed", [], {}),
    "notebooks": ("notebooks", [], {}),
    "workers": ("workers", [], {}),
    "slow hooks": ("slow_hooks", [], {}),
    "logs": ("other_tools", [], {"TORCH_TRACE": "trace", "TORCH_LOGS": "+dynamo,recompiles,guards"}),
    "torch names": ("torch_names", [], {}),
    "own failures 1": ("own_failures", ["--part=0/2"], {}),
    "own failures 2": ("own_failures", ["--part=1/2"], {}),
}
MINUTES = 20
#: Before the end, campaigns stop by themselves; what still runs then is killed.
GRACE_S = 30


def run_campaign(name: str, folder: Path, end: float) -> list[dict[str, Any]]:
    """Run one campaign in a process of its own; its rows, and one more if it failed."""
    module, arguments, environment = CAMPAIGNS[name]
    own = folder / name.replace(" ", "-")
    own.mkdir()
    options = [option for option in sys.argv[1:] if option == "--quick"]
    with open(own / "stderr.txt", "wb") as errors, open(own / "stdout.txt", "wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.soak.{module}", *arguments, *options],
            cwd=ROOT,
            env={
                **os.environ,
                **folders_of(own),
                **{key: str(own / value) if value == "trace" else value for key, value in environment.items()},
                END: str(end - GRACE_S),
            },
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(max(1, end - time.time()))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    lines = (own / "stdout.txt").read_text(errors="replace").splitlines()
    rows = [json.loads(line.removeprefix(ROW)) for line in lines if line.startswith(ROW)]
    if status != 0:
        what = "did not end in time" if status is None else f"ended with {status}; see {own / 'stderr.txt'}"
        rows.append({"what": name, "count": 0, "problems": [what], "note": ""})
    return rows


def folders_of(own: Path) -> dict[str, str]:
    """Where a campaign's caches, history and temporary files are."""
    names = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
    (own / "tmp").mkdir()
    return {"PYTHONPATH": str(ROOT), **{key: str(own / name) for key, name in names.items()}}


def join_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for the parts of a campaign."""
    joined: dict[str, dict[str, Any]] = {}
    for row in rows:
        first = joined.setdefault(row["what"], {**row, "count": 0, "problems": []})
        first["count"] += row["count"]
        first["problems"] += row["problems"]
        first["note"] = first["note"] or row["note"]
    return list(joined.values())


def print_table(rows: list[dict[str, Any]]) -> None:
    width = max(len(row["what"]) for row in rows)
    print(f"{'tried':<{width}}  {'times':>7}  {'wrong':>5}  note")
    for row in rows:
        print(f"{row['what']:<{width}}  {row['count']:>7,}  {len(row['problems']):>5}  {row['note']}".rstrip())
    for row in rows:
        for problem in row["problems"]:
            print(f"\n{row['what']}\n  {problem}")


def main() -> int:
    options = [option.removeprefix("--minutes=") for option in sys.argv[1:] if option.startswith("--minutes=")]
    begin = time.time()
    end = begin + 60 * float(options[0] if options else MINUTES)
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or list(CAMPAIGNS)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda name: run_campaign(name, folder, end), names))
    rows = join_rows([row for result in results for row in result])
    print_table(rows)
    wrong = sum(len(row["problems"]) for row in rows)
    print(
        f"\n{len(rows)} rows, {wrong} problems, {(time.time() - begin) / 60:.1f} min; what was printed is in {folder}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
