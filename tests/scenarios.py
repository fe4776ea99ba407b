"""A pytest plugin for a run that is quoted: where it ran, and scenario by scenario what was compared.

`python -m pytest -p tests.scenarios ...` prints the machine and the versions first, and a table in Markdown last.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

OUTCOMES = ("passed", "failed", "error", "skipped")


def pytest_report_header() -> list[str]:
    import torch

    versions = {name: version_of(name) for name in ("torch", "triton", "pandas", "pytest", "redis")}
    details = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    counted = ", ".join(f"{n} x {name}" for name, n in Counter(devices).items()) or "no GPU"
    today = datetime.datetime.now(datetime.UTC).date()
    return [f"run of {today}: {counted}, CUDA {torch.version.cuda}, Python {platform.python_version()}, {details}"]


def version_of(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    write = terminalreporter.write_line
    compared = dict(scenarios())
    outcomes = defaultdict(str)
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            outcomes[report.nodeid] = outcome
    terminalreporter.section("scenarios")
    write("| test | outcome | counted by torch, and the same in the tables |")
    write("| --- | --- | --- |")
    for test, outcome in outcomes.items():
        counts = ", ".join(f"{name} {count}" for name, count in compared.get(test, {}).items())
        write(f"| {test.replace('|', '/')} | {outcome} | {counts} |")
    in_parity = [test for test in outcomes if test in compared]
    numbers = sum(len(compared[test]) for test in in_parity)
    totals = ", ".join(f"{n} {outcome}" for outcome, n in Counter(outcomes.values()).items())
    write(
        f"{len(outcomes)} tests ({totals}); {len(in_parity)} scenarios in parity, in {numbers} counters that were not 0"
    )


def scenarios() -> Iterator[tuple[str, dict[str, int]]]:
    """What `assert_parity` has compared; its module may have been imported under more than one name."""
    for name, module in list(sys.modules.items()):
        if name.endswith("parity.assertion"):
            yield from module.COMPARED
