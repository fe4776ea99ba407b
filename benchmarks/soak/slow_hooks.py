"""Every hook takes 0.2 s longer while Inductor compiles: results are the same, and `sources` shows the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import compilediag as cd
from benchmarks.soak.workload import report, run_inductor
from compilediag.sources.hooks.source import Source

SLOW_S = 0.2
#: One compile with its backward: each of its hooks sleeps.
CALLS = [(3, 1)]


def main() -> None:
    genuine, calls, expected = Source.run_shielded, 0, run_inductor(CALLS)

    def run_late(self: Source, observe: Callable[..., None], *args: Any) -> None:
        nonlocal calls
        calls += 1

        def observe_late(*given: Any) -> None:
            time.sleep(SLOW_S)
            observe(*given)

        genuine(self, observe_late, *args)

    Source.run_shielded = run_late  # type: ignore[method-assign]
    try:
        with cd.watch(detail="lean") as session:
            results = run_inductor(CALLS)
    finally:
        Source.run_shielded = genuine  # type: ignore[method-assign]
    shown = sum(row["overhead_s"] for row in session.status())
    problems = ["results changed"] if results != expected else []
    problems += [
        f"{row['name']} is {row['status']}: {row['reason']}"
        for row in session.status()
        if row["reason_code"] == "errors"
    ]
    if shown < SLOW_S * calls * 0.9:
        problems.append(f"`sources` show {shown:.0f} s, the hooks slept {SLOW_S * calls:.0f} s")
    report(
        "every hook slow by 0.2 s: results changed, time not visible", calls, problems, f"{shown:.0f} s in `sources`"
    )


if __name__ == "__main__":
    main()
