"""The choices of an autotuning run as rows: parameters, inputs and reasons, parsed from torch's texts."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from ...events import AutotuneChoice
from ...formatting import SEARCHED, bound_text, cut_text

#: Class of a choice -> its kind. All others are "other".
KINDS = {
    "ExternKernelCaller": "extern",
    "TritonTemplateCallerBase": "triton",
    "CUTLASSTemplateCaller": "cutlass",
    "CppTemplateCaller": "cpp",
    "SubgraphChoiceCaller": "subgraph",
}
PARAMETER = re.compile(r"(?<!\w)(\w+)=('[^']*'|\"[^\"]*\"|\([^)]*\)|\[[^]]*\]|[^,\s]+)")
#: A line that starts with the class of an exception, as the last line of a traceback does.
RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Resources|Failure|Interrupt)\b")
#: What torch 2.15 adds to the key of a run: `:benchmark_policy=cudagraph_auto:cudagraph_unroll=4`.
POLICY = re.compile(r"(?::\w+=\w+)+$")
REASON_CHARS = 500
#: Prefix of the reason of a choice that raised no error, but that torch timed as infinite.
INFINITE = "timed as infinite"

_numbers = itertools.count(1)


@dataclass(slots=True)
class TimedChoice:
    """One choice at one stage of an autotuning run: the columns that it has of its own."""

    choice: str | None
    choice_kind: str | None = None
    parameters: dict[str, Any] | None = None
    time_ms: float | None = None
    fail_reason: str | None = None
    is_winner: bool | None = None
    stage: str = "benchmark"
    time_ns: int | None = None
    benchmark_s: float | None = None
    compile_s: float | None = None
    device: str | None = None
    in_subprocess: bool | None = None
    tuner_pid: int | None = None
    from_cache: str | None = None


def make_run_id(tuner: str) -> str:
    """Return an id for an autotuning run, unique in this process."""
    return f"{tuner}-{next(_numbers)}"


def make_choices(run: AutotuneChoice, timed: Iterable[TimedChoice]) -> list[AutotuneChoice]:
    """Make one row per choice; `run` has what they have in common. A time that is not finite is a failure."""
    run_id = run.run_id or make_run_id(run.tuner or "")
    choices = []
    for choice in timed:
        given = {each.name: getattr(choice, each.name) for each in fields(choice)}
        own = {name: value for name, value in given.items() if value is not None and value != {}}
        if not math.isfinite(time_ms := own.get("time_ms", 0.0)):
            del own["time_ms"]
            own.setdefault("fail_reason", INFINITE if math.isinf(time_ms) else "timed as not a number")
        choices.append(replace(run, run_id=run_id, **own))
    return choices


def classify_choice(classes: Iterable[str]) -> str:
    """Return the kind of a choice from the names of its class and the base classes."""
    return next((KINDS[name] for name in classes if name in KINDS), "other")


def parse_parameters(description: str | None) -> dict[str, Any]:
    """Parse `BLOCK_M=64, ACC_TYPE='tl.float32', num_warps=4` as a dict; any other text as {"description": text}."""
    if not description:
        return {}
    found = {name: _parse_value(text) for name, text in PARAMETER.findall(description[:SEARCHED])}
    return found or {"description": description}


def _parse_value(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, (bool, int, float, str)) else text


def parse_inputs(key: str | None) -> list[str] | None:
    """Format the inputs in torch's key of a run: for each a tuple of device, dtype, sizes, strides and offset."""
    if key is not None and len(key) > SEARCHED:
        return [bound_text(key)]
    try:
        inputs = []
        for device, dtype, *layout in ast.literal_eval(POLICY.sub("", key or "")):
            rank = len(layout) // 2
            inputs.append(format_input(dtype, layout[:rank], layout[rank : 2 * rank], device))
        return inputs
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return [key] if key else None


def format_input(dtype: str, sizes: Iterable[Any], strides: Iterable[Any], device: str) -> str:
    """Format an input as `float32[16, 64] strides [64, 1] cpu`."""
    size, stride = (", ".join(map(str, numbers)) for numbers in (sizes, strides))
    return f"{dtype.removeprefix('torch.')}[{size}] strides [{stride}] {device}"


def extract_reason(text: str) -> str:
    """Return the reason in an error's text: for a traceback from another process, its last exception."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and any("Traceback" in line or "subprocess" in line for line in lines):
        raised = [line for line in lines if RAISED.match(line)]
        lines = raised[-1:] or lines
    return cut_text(" ".join(" ".join(lines).split()), REASON_CHARS)
