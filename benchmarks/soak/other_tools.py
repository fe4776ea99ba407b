"""A watch beside other tools, which join and leave in every order.

A step joins a tool or leaves it; the workload runs after each step. What goes wrong without a watch as well is not the
watch's. With TORCH_TRACE set in the environment, as TORCH_LOGS, these two are on all the time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.soak.tools import TOOLS, list_installed, watch
from benchmarks.soak.workload import expect_eager, is_quick, is_time_left, report, run_eager
from compilediag import sources
from compilediag.sources.hooks.patches import skip_inert

WATCH = "watch"
CALLS = 2
#: Orders of a watch and two tools are drawn, as are those of all tools: they are 90 per pair and millions.
ORDERS_OF_TWO, ORDERS_OF_ALL = (1, 5) if is_quick() else (6, 60)


def list_orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    """All orders of joining and leaving: a name joins where it comes first and leaves where it comes again."""
    return sorted(set(itertools.permutations([*names, *names])))


def find_places() -> dict[tuple[Any, str], Any]:
    """The functions of torch that a watch patches."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(watch())
        found = [(patch.owner, patch.name) for source in sources._attached for patch in source._patches]
    return {(owner, name): vars(owner)[name] for owner, name in found}


def run_steps(steps: Sequence[str]) -> list[str]:
    """Join and leave as the steps say, and run the workload after each; what is wrong."""
    running: dict[str, Any] = {}
    ran: dict[str, int] = {}
    problems = []
    for step in steps:
        if step in running:
            problems += leave(step, *running.pop(step), ran[step])
        else:
            tool = watch() if step == WATCH else TOOLS[step]()
            running[step], ran[step] = (tool, tool.__enter__()), 0
        if run_eager(CALLS) != expect_eager(CALLS):
            problems.append(f"wrong results after {step}")
        ran.update({name: ran[name] + 1 for name in running})
    return problems


def leave(name: str, tool: Any, seen: Any, runs: int) -> list[str]:
    """Leave a tool; what is wrong with what it saw of the workload, which ran so often."""
    count = seen()
    tool.__exit__(None, None, None)
    if name == WATCH and seen() != runs * CALLS:
        return [f"the watch has {seen()} of {runs * CALLS} compiles"]
    return [f"{name} saw nothing"] if not count and name != "coverage" else []


def find_leftovers(places: dict[tuple[Any, str], Any]) -> list[str]:
    """What is not as it was before."""
    left = [f"hook {name}" for name in sources.list_hooks()]
    for (owner, name), original in places.items():
        # depyf puts class methods back bound.
        if plain(skip_inert(vars(owner)[name])) is not plain(original):
            left.append(f"{name} is patched")
    if threads := [thread.name for thread in threading.enumerate() if thread.name.startswith("compilediag")]:
        left.append(f"threads {threads}")
    return left


def plain(method: Any) -> Any:
    """The function of a static, class or bound method."""
    return getattr(method, "__func__", method)


def find_problems(steps: Sequence[str], places: dict[tuple[Any, str], Any]) -> list[str]:
    try:
        problems = run_steps(steps) + find_leftovers(places)
    except Exception as error:
        traceback.print_exc()
        problems = [f"{type(error).__name__}: {error}"]
    finally:
        sys.settrace(None)
        sys.setprofile(None)
    return problems


def check(what: str, orders: Iterator[tuple[str, ...]] | list[tuple[str, ...]], note: str = "") -> None:
    places = find_places()
    tried, problems, theirs = 0, [], 0
    for steps in orders:
        if not is_time_left():
            note += "; not all"
            break
        tried += 1
        if found := find_problems(steps, places):
            if find_problems([step for step in steps if step != WATCH], places) == found:
                theirs += 1
            else:
                problems.append(f"{' '.join(steps)}: {'; '.join(found)}")
        print(f"  {' '.join(steps)}", found, file=sys.stderr, flush=True)
    note += f"; {theirs} went wrong without a watch too" if theirs else ""
    report(what, tried, problems, note.removeprefix("; "))


def draw_orders(names: Sequence[str], count: int, chance: random.Random) -> list[tuple[str, ...]]:
    return [tuple(chance.sample([*names, *names], 2 * len(names))) for _ in range(count)]


def main() -> None:
    tools, missing = list_installed()
    environment = "TORCH_TRACE" in os.environ
    if environment:
        tools = [name for name in tools if name not in ("TORCH_TRACE", "TORCH_LOGS")]
    where = "with TORCH_TRACE and TORCH_LOGS set, " if environment else ""
    chance = random.Random(0)
    note = f"{', '.join(missing)} is not installed" if missing else ""
    alone = [steps for name in tools for steps in list_orders((WATCH, name))]
    check(f"{where}a watch and each tool in every order: result, hook", alone, note)
    if environment:
        return
    pairs = itertools.combinations(tools, 2)
    two = [steps for pair in pairs for steps in draw_orders((WATCH, *pair), ORDERS_OF_TWO, chance)]
    check("a watch and two tools in drawn orders: result, hook", two)
    check("a watch and all tools in drawn orders: result, hook", draw_orders((WATCH, *tools), ORDERS_OF_ALL, chance))


if __name__ == "__main__":
    main()
