"""Every private name of torch that compilediag uses is missing, None, or has another signature while a watch begins."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import compilediag as cd
from benchmarks.soak.workload import expect_eager, is_time_left, report, run_eager, run_inductor
from compilediag import sources
from compilediag.sources.hooks.torch_names import HookPoint, TorchName, Unavailable, _parameters
from tests.live.private_names import MISSING, list_names, put_instead


def no_parameters() -> None:
    """A function with another signature."""


def list_needed() -> dict[TorchName, set[str]]:
    """Name -> the sources that need it."""
    needed: dict[TorchName, set[str]] = {}
    for cls in sources._source_classes():
        for name in cls.list_needs():
            needed.setdefault(name, set()).add(cls.name)
    return needed


def watch_without(name: TorchName, value: Any) -> list[dict[str, Any]] | None:
    """The states of the sources of a watch that began while a name was changed; None if it can't be changed."""
    with put_instead(name, value) as is_changed:
        session = cd.start()
    results = run_eager()
    cd.stop()
    if results != expect_eager():
        raise AssertionError(f"results changed: {results}")
    return session.status() if is_changed else None


def find_problems(name: TorchName, status: list[dict[str, Any]], needed: set[str]) -> list[str]:
    """What the states lack, and what they should not have."""
    problems = [f"{name}: left {hook}" for hook in sources.list_hooks()]
    off = {row["name"] for row in status if row["status"] == "off"}
    affected = [row for row in status if row["status"] in ("unavailable", "failed") or row["reason_code"] == "errors"]
    unnamed = [row for row in affected if row["status"] != "unavailable" or name.path not in row["reason"]]
    problems += [f"{name}: {row['name']} is {row['status']}: {row['reason']}" for row in unnamed]
    missed = needed - off - {row["name"] for row in affected}
    return problems + [f"{name}: {source} does not say that it is missing" for source in sorted(missed)]


def check(names: Iterable[TorchName], what: str, value: Any) -> None:
    needed, tried, problems, unchanged, unavailable = list_needed(), 0, [], 0, 0
    for name in names:
        if not is_time_left():
            problems.append(f"ended before {name}")
            break
        try:
            status = watch_without(name, value)
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {error}")
            cd.stop()
            continue
        if status is None:
            unchanged += 1
            continue
        tried += 1
        unavailable += any(row["status"] == "unavailable" for row in status)
        problems += find_problems(name, status, needed.get(name, set()))
    note = f"{unavailable} make a source unavailable" + (f"; {unchanged} are fixed in C" if unchanged else "")
    report(f"private names of torch {what}: source without its name", tried, problems, note)


def main() -> None:
    run_inductor()
    with cd.watch():
        run_eager()
    names = []
    for name in list_names():
        try:
            name.owner()
            names.append(name)
        except Unavailable:
            print(f"  not in this installation: {name}", file=sys.stderr)
    check(names, "missing", MISSING)
    check([name for name in names if name.find() is not None], "None", None)
    points = [name for name in names if isinstance(name, HookPoint) and _parameters.get(name)]
    check(points, "with another signature", no_parameters)


if __name__ == "__main__":
    main()
