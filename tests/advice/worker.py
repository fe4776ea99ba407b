"""Runs scripts of users under a watch, each as if in a fresh process, and writes what happened as JSON.

One process runs many: `python -m tests.advice.worker` reads a job per line from stdin, and answers with a line each.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gc
import io
import json
import math
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
import torch._dynamo.guards
import torch._functorch.config
import torch._inductor.config
import torch.compiler.config
import torch.fx.experimental._config
from torch._dynamo.backends.registry import lookup_backend

import compilediag
from compilediag.diagnosis import diagnose
from compilediag.diagnosis.plan import make_plan
from compilediag.events import Compile, GraphBreak, Recompile, RowList, Rows
from compilediag.sources.guards.guard_tree import failing_guards

CONFIGS = (
    torch._dynamo.config,
    torch.compiler.config,
    torch.fx.experimental._config,
    torch._inductor.config,
    torch._functorch.config,
)
#: A library can replace torch.compile by a function that calls it.
COMPILE = torch.compile
#: Tensors beyond this many elements are compared by their sums.
MANY = 4096


class CountingBackend:
    """A backend that counts how often its graphs run, and with how many operations on tensors.

    A program that silently falls back to eager runs fewer operations in graphs, whatever torch reports.
    """

    def __init__(self, name: str):
        self.name, self.graph_calls, self.operations = name, 0, 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any], **options: Any) -> Callable[..., Any]:
        size = sum(map(_is_operation, graph.graph.nodes))
        run = lookup_backend(self.name)(graph, inputs, **options)

        def count(*args: Any) -> Any:
            self.graph_calls += 1
            self.operations += size
            return run(*args)

        return count


def _is_operation(node: torch.fx.Node) -> bool:
    """True for a call that makes tensors; arithmetic on sizes is none."""
    if not node.op.startswith("call_"):
        return False
    value = node.meta.get("example_value", node.meta.get("val"))
    return not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def run_script(path: str, backend: str, diagnose: bool) -> dict[str, Any]:
    """Run a script under a watch: what it computed, what torch compiled, and if asked what compilediag says of it."""
    module, counting, output = _make_main(path), CountingBackend(backend), io.StringIO()
    with _fresh_torch(counting), contextlib.redirect_stdout(output):
        with compilediag.watch(detail="full" if diagnose else "lean") as session:
            error = _execute(path, module)
        found = _describe_run(session)
        if diagnose:
            found |= _describe_advice(session)
    results = None if error else describe_value(getattr(module, "results", None))
    return {
        **found,
        "error": error,
        "output": output.getvalue(),
        "results": results,
        "graph_calls": counting.graph_calls,
        "operations": counting.operations,
    }


def _make_main(path: str) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__file__ = path
    return module


def _execute(path: str, module: types.ModuleType) -> str | None:
    """Run the script as `__main__`; the text of the exception that ended it, or None."""
    with open(path) as file:
        source = file.read()
    main, sys.modules["__main__"] = sys.modules["__main__"], module
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except Exception:
        return traceback.format_exc()
    finally:
        sys.modules["__main__"] = main
    return None


@contextlib.contextmanager
def _fresh_torch(backend: CountingBackend) -> Iterator[None]:
    """No compiled code, default settings and modes; afterwards what the script set is undone."""
    configs = [(config, config.get_config_copy()) for config in CONFIGS]
    environment, threads = dict(os.environ), torch.get_num_threads()
    defaults, options = COMPILE.__kwdefaults__, {"backend": backend}
    torch._dynamo.reset()
    torch.manual_seed(0)
    COMPILE.__kwdefaults__ = {**defaults, **options}
    try:
        yield
    finally:
        COMPILE.__kwdefaults__ = defaults
        torch.compiler.set_stance("default")
        for config, values in configs:
            _restore(config, values)
        os.environ.clear()
        os.environ.update(environment)
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        torch.use_deterministic_algorithms(False)
        torch._dynamo.reset()
        gc.collect()
        # What is found of a large entry must not depend on how busy the machine is.
    failing_guards.__defaults__ = (math.inf,)
    gc.freeze()  # What is left are modules and caches of torch: the next collection is fast.


def _restore(config: Any, values: dict[str, Any]) -> None:
    for name, value in config.get_config_copy().items():
        if name in values and value != values[name]:
            setattr(config, name, values[name])


def _describe_run(session: Any) -> dict[str, Any]:
    data = session.data
    return {
        "recompiles": [
            {
                "function": row.function,
                "kind": row.guard_kind,
                "source": row.guard_source,
                "reason": row.reason,
                "expected": row.expected,
                "actual": row.actual,
            }
            for row in data.rows(Recompile)
        ],
        "compiles": [
            {name: getattr(row, name) for name in ("function", "outcome", "limit", "fail_reason", "on_failure")}
            for row in data.rows(Compile)
        ],
        "graph_breaks": [f"{row.user_line}: {row.reason}" for row in data.rows(GraphBreak)],
    }


def _describe_advice(session: Any) -> dict[str, Any]:
    """What compilediag prints: findings with the ways to follow them, and the plan."""
    data = SteadyRows(session.data)
    return {"findings": [_describe_finding(finding) for finding in diagnose(data)], "plan": _describe_plan(data)}


class SteadyRows:
    """The rows of a session as if each compile took a second: what compilediag prints is the same on any machine."""

    def __init__(self, data: Any):
        compiles = [dataclasses.replace(row, duration_s=1.0) for row in data.rows(Compile)]
        recompiles = [dataclasses.replace(row, lost_s=None) for row in data.rows(Recompile)]
        self._data, self._steady = data, RowList([*compiles, *recompiles])

    def rows(self, kind: Any) -> Any:
        return (self._steady if kind in (Compile, Recompile) else self._data).rows(kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)


def _describe_finding(finding: Any) -> dict[str, Any]:
    values = {field.name: getattr(finding, field.name) for field in dataclasses.fields(finding)}
    values["changes"] = [_describe_change(change) for change in values.get("changes", ())]
    return json.loads(json.dumps(values, default=str))


def _describe_change(change: Any) -> dict[str, Any]:
    return {**dataclasses.asdict(change), "code": change.code, "can_be_applied": change.can_be_applied}


def _describe_plan(data: Rows) -> dict[str, Any]:
    plan = make_plan(data)
    steps = [
        {"edits": [dataclasses.asdict(e) for e in step.edits], "settings": step.settings, "rule": step.rule}
        | {"text": step.change}
        | {"alternatives": [_describe_change(change) for change in step.alternatives]}
        for step in plan.steps
    ]
    specs = [{"steps": spec.steps, "change": _describe_change(spec.change)} for spec in plan.specs]
    patch = plan.patch() if hasattr(plan, "patch") else None
    values = {"shown": plan.to_dict(), "text": str(plan), "steps": steps, "patch": patch, "specs": specs}
    return json.loads(json.dumps(values, default=str))


def describe_value(value: Any) -> Any:
    """A result as JSON: tensors by dtype, shape and elements."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.device.type == "meta":
            return {"tensor": [str(value.dtype), list(value.shape)], "values": []}
        flat = value.flatten().to(torch.complex128 if value.is_complex() else torch.float64)
        flat = torch.view_as_real(flat).flatten() if value.is_complex() else flat
        values = flat if flat.numel() <= MANY else torch.stack([flat.sum(), flat.abs().sum(), flat.pow(2).sum()])
        return {"tensor": [str(value.dtype), list(value.shape)], "values": values.tolist()}
    if isinstance(value, (list, tuple)):
        return [describe_value(part) for part in value]
    if isinstance(value, dict):
        return {str(key): describe_value(part) for key, part in value.items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(type(value))


def answer(line: str) -> dict[str, Any]:
    """Run one job; a failure of the worker itself is an answer too."""
    try:
        return run_script(**json.loads(line))
    except Exception:
        return {"worker_error": traceback.format_exc()}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    # torch measures each guard tree once, and empties the processor's caches for that: half of such a small compile.
    torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0
    os.dup2(2, 1)  # whatever a script or its threads write to file descriptor 1 is no answer
    collections.deque((print(json.dumps(answer(line)), file=answers, flush=True) for line in sys.stdin), maxlen=0)


if __name__ == "__main__":
    main()
