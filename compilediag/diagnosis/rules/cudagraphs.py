"""CUDA graphs: functions that run without them, are captured again and again, or whose outputs are overwritten.

What to do about each of torch's reasons comes from PyTorch's page on CUDAGraph Trees, and torch/_inductor's
cudagraph_utils.py, compile_fx.py and output_code.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...events import CudaGraphAction, Rows
from ...formatting import (
    format_count,
    format_first_line,
    format_function,
    format_line,
    format_names,
    format_seconds,
    format_times,
)
from ..change import CodeChange
from ..evidence import Evidence, find_first, get_place, group_by, is_timed, kept_of, sum_seconds
from ..finding import Finding, get_severity
from ..rule import Rule, report

if TYPE_CHECKING:
    import pandas as pd

#: What the reason of a skip begins with -> what to change. The first that fits counts.
SKIPS = (
    (
        "mutated inputs",
        "Return a new tensor, or clone the input before the write. For a tensor that lives from call to call, such as "
        "a cache, make it a buffer of the module or call torch._dynamo.mark_static_address(x) once before the first "
        "call: writes to it are then captured. A graph would otherwise write to its own copy of the input.",
    ),
    (
        "input storage mutation",
        "Copy into the input instead: x.copy_(y). The function swaps the memory of an input (set_), which a graph "
        "cannot replay.",
    ),
    (
        "cpu device",
        "Create the CPU tensor on the GPU, or move it there before the call, and pass plain numbers as Python numbers. "
        "torch._inductor.config.graph_partition = True leaves out only the parts on the CPU.",
    ),
    (
        "multiple devices",
        "Move all inputs to one device, and compile what runs on another device as a function of its own. A graph is "
        "for one device.",
    ),
    (
        "no CUDA device in the graph",
        "If it is meant to run on the CPU, compile it without mode='reduce-overhead'.",
    ),
    (
        "graph with symbolic shapes",
        "Use a few fixed sizes (padding, torch.compile(dynamic=False)): each is then captured once. Its sizes are "
        "dynamic, and cudagraph_skip_dynamic_graphs is on.",
    ),
    (
        "incompatible op",
        "Move this operator out of the compiled function, or replace it by one that neither depends on values "
        "(nonzero, item, multinomial with deterministic algorithms) nor waits for the GPU. "
        "torch._inductor.config.graph_partition = True leaves out only such operators.",
    ),
    (
        "index_put_ fallback with boolean",
        "Use torch.where(mask, value, x): boolean indexing waits for a size from the GPU.",
    ),
    (
        "control flow operator",
        "Compile the branches as functions of their own, or compute both and choose with torch.where. torch captures "
        "no function with torch.cond or torch.while_loop on GPU tensors.",
    ),
    ("sparsity not handled", "Keep sparse tensors out of the compiled function. Sparse tensors are not captured."),
    ("non-Tensor inputs", "Make the input part of the module, or a tensor: it is neither a tensor nor a number."),
    (
        "cudagraph capture requires the caching allocator",
        "Turn PyTorch's caching allocator on (PYTORCH_NO_CUDA_MEMORY_CACHING, caching_allocator_enable): CUDA graphs "
        "need it.",
    ),
    (
        "cpp-wrapper",
        "Turn off torch._inductor.config.cpp_wrapper or torch._inductor.config.graph_partition: they exclude each "
        "other.",
    ),
    ("override_cudagraphs", "Remove the override_cudagraphs annotation in the code, which asks for this."),
)
#: torch's name of the invariant that broke -> why, and what to change.
REASONS = {
    "StaticInputIdxMismatch": (
        "a parameter, buffer or marked tensor was replaced",
        "Change the tensor's values (p.data.copy_(new)) instead of the tensor, and call mark_static_address() only on "
        "tensors that stay in place. The graph reads them where they were at the capture.",
    ),
    "CudagraphManagedIdxMismatch": (
        "the output of an earlier graph came from a different place",
        "Call the functions in the same order at every step, with torch.compiler.cudagraph_mark_step_begin() at its "
        "start, or pass x.clone(), which is copied like any other input. An input that comes from another compiled "
        "function has to come from the same graph each time.",
    ),
    "ExpectedDeadIndicesBeforeGraphMismatch": (
        "outputs of an earlier graph are still alive; at the capture they were freed",
        "Free the outputs before the next call, or keep a clone() instead.",
    ),
}
_SIZES = (
    "Pad to a few sizes, or name the sizes to capture: torch._inductor.config.triton.cudagraph_capture_sizes = (...); "
    "other sizes then run without graphs. torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True captures "
    "nothing with dynamic sizes. Each new size is warmed up and captured separately, and its graph keeps its memory."
)
_OVERWRITTEN_TENSOR = (
    "Keep a copy outside of the compiled function, y = f(x).clone(), or call "
    "torch.compiler.cudagraph_mark_step_begin() before each step if the last one's outputs are not needed. The outputs "
    "of a captured function lie in its graph's memory, which the next run overwrites."
)
_OVERWRITTEN_GRADIENT = (
    "To accumulate gradients, create the .grad tensors beforehand (one step in eager mode, or zeros); otherwise set "
    "them to None before each backward. A .grad tensor was created during a capture, and the next run overwrites it."
)


def _make_rule(rule: str, title: str, action: str, severity: str | None = None, **more: Any) -> Rule:
    title = f"{{function}} {title}"
    return Rule(rule, title=title, action=action, severity=severity, is_at_user_line=True, docs="cudagraphs", **more)


_SKIP = _make_rule("cudagraph_skip", "runs without CUDA graphs: {reason}", "{advice}", "medium")
#: One capture more is usual: a first step differs from the next ones.
_AGAIN = _make_rule(
    "cudagraph_rerecord",
    "was captured again {times}{spent}: {reason}{input}{copied}",
    "{advice}",
    worth_count=2,
)
_NEW_SIZES = _make_rule(
    "cudagraph_sizes",
    "was captured for {count} sizes, {spent} after the first: {sizes}",
    _SIZES,
    ceiling="medium",
    worth_count=4,
)
_PATHS = _make_rule(
    "cudagraph_paths",
    "was captured {times} without a change of its inputs, each time after other graphs",
    "Free the outputs of earlier steps (or keep y.detach().clone() instead), and call "
    "torch.compiler.cudagraph_mark_step_begin() at the start of each step. torch keeps a graph for each order of "
    "graphs whose outputs are still alive; outputs that are kept in a list, or wait for their backward, add orders.",
    ceiling="medium",
    worth_count=5,
)
_LIMIT = _make_rule("cudagraph_limit", "{what}: {reason}", "{advice}")
_STUCK = _make_rule(
    "cudagraph_stuck",
    "ran in its warm-up {times} and was never captured{reason}",
    "Run backward() on the outputs of earlier steps, or detach() and free them, and call "
    "torch.compiler.cudagraph_mark_step_begin() at the start of each step. While they are alive, it cannot be "
    "captured.",
    "medium",
)
_INVALIDATED = _make_rule(
    "cudagraph_invalidated",
    "returned {outputs} still alive when a later run took the memory: using it after that raises RuntimeError",
    "{advice}",
    "low",
)
_OVERWRITTEN = _make_rule(
    "cudagraph_overwritten",
    "returned {what} that a later run overwrote; it was used {times} after that",
    "{advice}",
    "high",
)
_FAILED = _make_rule(
    "cudagraph_failed",
    "could not be captured {times}: {reason}",
    "If memory ran out, capture fewer sizes (padding) or a smaller part: graphs keep a memory pool of their own. "
    "Otherwise something in the function waits for the GPU or runs on another stream.",
    "high",
)
RULES = (_SKIP, _AGAIN, _NEW_SIZES, _PATHS, _LIMIT, _STUCK, _INVALIDATED, _OVERWRITTEN, _FAILED)
_INTRODUCTIONS = ("skipping cudagraphs due to ", "disabling cudagraphs due to ", "disabling cudagraphs for backward ")


def advise_skip(reason: str | None) -> str:
    """What to change after a skip; "" if the reason is not known."""
    text = (reason or "").strip()
    for introduction in _INTRODUCTIONS:
        text = text.removeprefix(introduction)
    return next((advice for head, advice in SKIPS if head in text[:200]), "")


Actions = list[CudaGraphAction]

#: From so many sizes on, the severity is not low.
MANY_SIZES = 8
#: torch's settings of 2.15; their names are in the reasons of rows that they caused.
_SIZE_LIMIT = "cudagraph_dynamic_shape_rerecord_limit"
_MANAGED_LIMIT = "cudagraph_managed_input_rerecord_limit"


@kept_of(CudaGraphAction)
def find_cudagraph_problems(evidence: Evidence) -> list[Finding]:
    """Problems of the graphs that torch.compile captures; the user's own graphs are only in the table."""
    rows = evidence.rows(CudaGraphAction)
    found = []
    for group in _group(rows, "skip", lambda row: (*_get_function(row), row.reason, *_get_user_line(row))):
        reason = group[0].reason
        advice = advise_skip(reason) or "PyTorch's page on CUDAGraph Trees lists what can't be captured."
        details = (format_first_line(reason or "no reason given"),)
        found.append(_report(_SKIP, group, {"advice": advice}, details=details))
    found += _find_captured_again(rows)
    for group in _group((row for row in rows if row.sizes is not None), "record", _get_function):
        if len({row.sizes for row in group}) >= _NEW_SIZES.worth_count:
            found.append(_report_sizes(group))
    for group in _group(rows, "record", lambda row: (row.pid, row.function_id, *_get_function(row), row.sizes)):
        if len({row.parent_id for row in group}) >= _PATHS.worth_count:
            found.append(_report(_PATHS, group, seconds_lost=_sum_seconds(group[1:])))
    found += map(_report_limit, _group(rows, "limit", _get_function))
    for group in _group(rows, "stuck", _get_function):
        count, reason = max(row.count or 1 for row in group), find_first(row.reason for row in group)
        facts = {"times": format_times(count), "reason": f": {format_first_line(reason)}" if reason else ""}
        found.append(_report(_STUCK, group, facts, count=count))
    found += _find_lost_outputs(rows)
    found += (_report(_FAILED, own) for own in _group(rows, "failed", lambda row: (*_get_function(row), row.reason)))
    return found


def _get_function(row: CudaGraphAction) -> tuple[str | None, str | None, int | None, str | None]:
    return row.function, row.file, row.line, row.mode


def _get_user_line(row: CudaGraphAction) -> tuple[str | None, int | None]:
    return row.user_file, row.user_line


def _group(rows: Iterable[CudaGraphAction], action: str, key: Callable[[CudaGraphAction], Hashable]) -> list[Actions]:
    return list(group_by((row for row in rows if row.action == action), key).values())


def _report(rule: Rule, rows: Actions, facts: Mapping[str, object] | None = None, **more: Any) -> Finding:
    """A finding on a function, which is not in the facts."""
    backward = ", backward," if rows[0].mode == "backward" else ""
    function = f"{format_function(*get_place(rows[0]))}{backward}"
    finding = report(rule, rows, {"function": function, **(facts or {})}, **more)
    return replace(finding, changes=(CodeChange(text=finding.suggestion),))


def _sum_seconds(rows: Actions) -> float:
    return sum_seconds(row.duration_ms for row in rows) / 1e3


def _find_captured_again(rows: Sequence[CudaGraphAction]) -> Iterator[Finding]:
    """Functions that were captured again for the same reason and input, but not those that torch gave up on."""
    abandoned = {_get_function(row) for row in rows if row.action == "limit"}
    demoted = {(*_get_function(row), row.input) for row in rows if row.action == "demoted"}
    for group in _group(rows, "rerecord", lambda row: (*_get_function(row), row.mismatch, row.input)):
        function, which = _get_function(group[0]), group[0].input
        if len(group) < _AGAIN.worth_count or function in abandoned:
            continue
        lost = _sum_seconds(group)
        why, advice = _explain_again(group)
        facts = {
            "spent": f", {format_seconds(lost)}" if lost else "",
            "reason": why,
            "input": f" ({format_line(which, 80)})" if which else "",
            "copied": ". torch now copies it before each replay" if (*function, which) in demoted else "",
            "advice": advice or "torch gave no further reason.",
        }
        yield _report(_AGAIN, group, facts, seconds_lost=lost, details=(which,) if which else ())


def _explain_again(rows: Actions) -> tuple[str, str]:
    """Why torch captured it again, and what to change; "" if there is no advice."""
    why, advice = REASONS.get(find_first(row.mismatch for row in rows) or "", (None, ""))
    return why or format_first_line(find_first(row.reason for row in rows) or "the reason is not known"), advice


def _report_sizes(rows: Actions) -> Finding:
    sizes = list(dict.fromkeys(row.sizes for row in rows if row.sizes is not None))
    lost = _sum_seconds(rows[1:])
    return _report(
        _NEW_SIZES,
        rows,
        {"count": len(sizes), "spent": format_seconds(lost), "sizes": format_names(sizes)},
        severity="medium" if len(sizes) >= MANY_SIZES else get_severity(lost, 1, "medium"),
        seconds_lost=lost,
        count=len(sizes),
        details=tuple(format_line(text, 80) for text in sizes[:64]),
    )


def _report_limit(rows: Actions) -> Finding:
    why, advice = _explain_again(rows)
    if _SIZE_LIMIT in (rows[0].reason or ""):
        what, why = "runs without CUDA graphs for new sizes", format_first_line(rows[0].reason or "")
        return _report(_LIMIT, rows, {"what": what, "reason": why, "advice": _SIZES}, severity="medium")
    limit = _MANAGED_LIMIT if _MANAGED_LIMIT in (rows[-1].reason or "") else "cudagraph_unexpected_rerecord_limit"
    raising = f"If you need all these captures, raise torch._inductor.config.triton.{limit}."
    what = "was captured again too often and now runs without CUDA graphs"
    facts = {"what": what, "reason": why, "advice": f"{advice} {raising}".strip()}
    return _report(_LIMIT, rows, facts, severity="high")


def _find_lost_outputs(rows: Sequence[CudaGraphAction]) -> Iterator[Finding]:
    """Outputs that were alive when a later run took their memory, and uses of them after that, which are reported as
    such. Before torch 2.13 its message does not name a gradient.
    """
    lost = _group(rows, "invalidated", lambda row: (*_get_function(row), *_get_user_line(row)))
    used = _group(rows, "overwritten", lambda row: (*_get_function(row), *_get_user_line(row)))
    lines = {_get_user_line(group[0]) for group in used}
    harmless = f"No change is needed if the output is not used again. {_OVERWRITTEN_TENSOR}"
    modes: dict[object, set[str | None]] = defaultdict(set)
    for group in lost:
        modes[_get_user_line(group[0])].add(group[0].mode)
        if _get_user_line(group[0]) not in lines:
            count = sum(row.count or 1 for row in group)
            facts = {
                "outputs": "an output that was" if count == 1 else f"{format_count(count)} outputs that were",
                "advice": _OVERWRITTEN_GRADIENT if group[0].mode == "backward" else harmless,
            }
            yield _report(_INVALIDATED, group, facts, count=count)
    for group in used:
        is_named = "gradient" in (find_first(row.reason for row in group) or "")
        is_gradient = is_named or modes[_get_user_line(group[0])] == {"backward"}
        advice = _OVERWRITTEN_GRADIENT if is_gradient else _OVERWRITTEN_TENSOR
        yield _report(_OVERWRITTEN, group, {"what": "a gradient" if is_gradient else "a tensor", "advice": advice})


#: What a function does after an action, in words; other actions leave its state unchanged.
STATES = {
    "warmup": "warming up",
    "record": "captured",
    "rerecord": "captured",
    "user_capture": "captured",
    "replays": "replayed",
    "skip": "skipped",
    "limit": "eager: too many re-records",
    "stuck": "stuck in warm-up",
    "failed": "failed",
}
CAPTURES = ("record", "rerecord", "user_capture")

#: rank, pid, function, file, line, mode and backend.
FunctionKey = tuple[int | None, int | None, str | None, str | None, int | None, str | None, str | None]


def group_by_function(data: Rows) -> list[GraphFunction]:
    """The functions of a session that CUDA graphs were recorded of, or skipped for, in the order of their events."""
    groups: dict[FunctionKey, GraphFunction] = {}
    for row in data.rows(CudaGraphAction):
        groups.setdefault(GraphFunction.key(row), GraphFunction.of(row)).add(row)
    return list(groups.values())


def make_functions_frame(data: Rows) -> pd.DataFrame:
    """One row per function: its counts, its last reason, and `coverage`, the share of calls that a replay answered."""
    import pandas as pd

    rows = [function.as_dict() | {"coverage": function.coverage} for function in group_by_function(data)]
    names = list(rows[0]) if rows else ["event_id", "function", "mode", "coverage"]
    counts = ("replays", "eager", "line", "pool_bytes")
    return pd.DataFrame(rows, columns=names).astype({name: "Int64" for name in counts if name in names})


@dataclass
class GraphFunction:
    """The CUDA graph actions of one function in one process, in the order in which they are added.

    `replays` and `eager` (calls without a graph) are None if they were not counted.
    """

    first: CudaGraphAction
    last: CudaGraphAction
    counts: Counter[str] = field(default_factory=Counter)
    replays: int | None = None
    eager: int | None = None
    state: str | None = None
    reason: str | None = None
    mismatch: str | None = None
    input: str | None = None
    capture_ms: float | None = None
    pool_bytes: int | None = None

    @staticmethod
    def key(row: CudaGraphAction) -> FunctionKey:
        """What the actions on one function have in common."""
        return row.rank, row.pid, row.function, row.file, row.line, row.mode, row.backend

    @classmethod
    def of(cls, row: CudaGraphAction) -> GraphFunction:
        """The function of `row`, without any action yet."""
        return cls(row, row)

    def add(self, row: CudaGraphAction) -> None:
        """Count an action of the function."""
        self.last = row
        self.state = STATES.get(row.action or "", self.state)
        if row.action == "replays":
            self.replays = (self.replays or 0) + (row.count or 0)
        elif row.action == "eager":
            self.eager = (self.eager or 0) + (row.count or 0)
        else:
            self.counts[row.action or "other"] += 1
        if row.action in CAPTURES and is_timed(row.duration_ms):
            self.capture_ms = (self.capture_ms or 0.0) + row.duration_ms
        if row.pool_bytes is not None:
            self.pool_bytes = row.pool_bytes
        if row.action != "invalidated":
            self.reason = self.reason if row.reason is None else row.reason
            self.mismatch = self.mismatch if row.mismatch is None else row.mismatch
            self.input = self.input if row.input is None else row.input

    @property
    def own_runs(self) -> int:
        """Calls in which it was warmed up or captured."""
        return sum(self.counts[action] for action in ("warmup", "record", "rerecord"))

    @property
    def calls(self) -> int:
        """Known calls: replays, calls without a graph, and those in which it was warmed up or captured."""
        return (self.replays or 0) + (self.eager or 0) + self.own_runs

    @property
    def coverage(self) -> float | None:
        """The share of its calls that a replay answered; None if that is not known. A function that was skipped and
        never captured has no replays, whether they were counted or not.
        """
        if self.counts["skip"] and not self.replays and self.own_runs == self.counts["warmup"]:
            return 0.0
        if (self.replays is None and self.eager is None) or not self.calls:
            return None
        return (self.replays or 0) / self.calls

    def as_dict(self) -> dict[str, object]:
        """Its cells as a row of a table; `time_ns` is when its latest action began."""
        own = ("rank", "pid", "function", "file", "line", "mode", "backend")
        latest = ("state", "replays", "eager", "reason", "mismatch", "input", "capture_ms", "pool_bytes")
        return {
            "event_id": self.first.event_id,
            "time_ns": self.last.time_ns,
            **{name: getattr(self.first, name) for name in own},
            **{name: getattr(self, name) for name in latest},
            "warmups": self.counts["warmup"],
            "captured": sum(self.counts[action] for action in CAPTURES),
            "rerecorded": self.counts["rerecord"],
            "skipped": self.counts["skip"] + self.counts["limit"],
        }
