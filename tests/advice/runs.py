"""Runs programs in a worker process, and compares a run with a change with the one without."""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from .known_programs import Program
from .source_changes import CannotApply

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4
#: The variable that names a folder which all workers of a test run share; see tests/conftest.py.
RUN_FOLDER = "COMPILEDIAG_TEST_RUN"

Run = dict[str, Any]


class Worker:
    """A process that runs scripts one after the other; it is started when it is needed, and again after a crash."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="compilediag-advice-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        self._log = (self.folder / "stderr").open("w")
        atexit.register(self.stop)

    def run(self, path: Path, backend: str, diagnose: bool = False) -> Run:
        """Run a script; its answer, see worker.py."""
        process = self._start()
        assert process.stdin and process.stdout
        job = {"path": str(path), "backend": backend, "diagnose": diagnose}
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            self._process = None
            return {"worker_error": f"the worker ended with code {process.wait()}"}
        return json.loads(line)

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            caches = {"TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"), "COMPILEDIAG_HISTORY": "off"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "0", **caches},
            )
        return self._process

    def stop(self) -> None:
        """End the process and remove its folder."""
        if self._process is not None and self._process.stdin:
            self._process.stdin.close()
            self._process.wait(300)
            self._process = None
        self._folder.cleanup()


@functools.cache
def get_worker(module: str) -> Worker:
    """The worker of this process that runs a module."""
    return Worker(module)


@functools.cache
def run_original(program: Program) -> Run:
    """The program as it is, with what compilediag says of it. Several files of tests ask: a test run runs it once."""
    if not (folder := os.environ.get(RUN_FOLDER)):
        return _run_original(program)
    path = Path(folder) / f"{program.worker}-{program.name}.json"
    if not path.exists():
        written = path.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps(_run_original(program)))
        written.replace(path)
    return json.loads(path.read_text())


def _run_original(program: Program) -> Run:
    return get_worker(program.worker).run(program.path, program.backend, diagnose=True)


@functools.cache
def run_source(program: Program, source: str) -> Run:
    """A changed copy of the program, under the same file name."""
    folder = Path(tempfile.mkdtemp(dir=get_worker(program.worker).folder))
    path = folder / program.path.name
    path.write_text(source)
    return get_worker(program.worker).run(path, program.backend)


def find_problems(program: Program, before: Run, after: Run, expected: int, keeps: float) -> list[str]:
    """What is wrong with a changed program; empty if the change works. `keeps`: the share of operations in graphs."""
    error = after.get("worker_error") or after["error"]
    if error:
        return [f"it raises {_get_message(error)}"]
    return [*_compare_compiles(before, after, expected), *_compare_work(program, before, after, keeps)]


def _get_message(error: str) -> str:
    """The line of a traceback that names the exception."""
    lines = error.strip().splitlines()
    return next(
        (line for line in reversed(lines) if re.match(r"[\w.]+(?:Error|Exception|Unsupported)\b", line)), lines[-1]
    )[:240]


def _compare_compiles(before: Run, after: Run, expected: int) -> list[str]:
    problems = []
    if len(after["recompiles"]) > expected:
        problems.append(
            f"{len(before['recompiles'])} recompiles -> {len(after['recompiles'])}, not {expected}: "
            f"{str(after['recompiles'][-1]['reason'])[:160]}"
        )
    # An exception that a setting raised instead of a graph break is one, once it is allowed.
    forbidden = sum(compile["on_failure"] in ("fullgraph", "error_on_graph_break") for compile in before["compiles"])
    if len(after["graph_breaks"]) > len(before["graph_breaks"]) + forbidden:
        problems.append(f"a new graph break: {after['graph_breaks'][-1][:160]}")
    new = Counter(map(_describe_failure, after["compiles"])) - Counter(map(_describe_failure, before["compiles"]))
    problems += [f"{count}x {name}" for name, count in new.items() if name]
    return problems


def _describe_failure(compile: dict[str, Any]) -> str:
    """How a compile ended, if not with compiled code."""
    if compile["limit"]:
        return f"{compile['limit']} in {compile['function']}"
    return "" if compile["outcome"] == "ok" else f"{compile['function']} was not compiled: {compile['outcome']}"


def _compare_work(program: Program, before: Run, after: Run, keeps: float) -> list[str]:
    problems = []
    if not program.fails and not is_equal(before["results"], after["results"]):
        problems.append(f"other results: {str(before['results'])[:200]} -> {str(after['results'])[:200]}")
    if before["output"] != after["output"]:
        problems.append(f"other output: {before['output'][:80]!r} -> {after['output'][:80]!r}")
    if after["operations"] < keeps * before["operations"]:
        problems.append(f"{before['operations']} operations ran in graphs, now {after['operations']}")
    return problems


def is_equal(before: Any, after: Any) -> bool:
    """True if two results, as JSON, are the same up to rounding."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(is_equal(before[key], after[key]) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(is_equal, before, after))
    if isinstance(before, float) and isinstance(after, (int, float)):
        both_nan = math.isnan(before) and math.isnan(after)
        return both_nan or math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(before == after)


__all__ = ["CannotApply", "Run", "find_problems", "is_equal", "run_original", "run_source"]
