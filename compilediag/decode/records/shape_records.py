"""Records of symbolic shapes, exports and collectives as events, for live sources and logs."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from ...events import Collective, Event, ExportProblem, SymbolicShape
from ..call_stacks import CallStacks, Frame, find_user_frame, parse_logged_frames

#: Records whose fields are decoded here; none of them has a text.
KINDS = frozenset(
    {
        *("create_symbol", "create_unbacked_symbol", "symbolic_shape_specialization"),
        *("guard_added", "guard_added_fast", "expression_created", "guard_on_data_dependent_error"),
        *("propagate_real_tensors", "propagate_real_tensors_provenance"),
        *("missing_fake_kernel", "mismatched_fake_kernel"),
    }
)
#: Artifacts with the collectives of a graph, in the order in which they run.
SCHEDULE, TENSOR_META = "inductor_collective_schedule", "inductor_runtime_and_tensor_meta"
#: With verbose logging torch writes two records for a guard, and for what it assumed, one after the other.
_TWICE = {"guard_added_fast": "guard_added", "propagate_real_tensors_provenance": "propagate_real_tensors"}
#: torch's prefix of a guard that it evaluated while tracing; other guards are checked when the program runs.
_EVALUATED = "eval"
#: torch's files that evaluate a condition, and functions that ask for that within `suppress_guards()` (2.11 to 2.15)
_EVALUATING = re.compile(r"[/\\]torch[/\\](?:fx[/\\]experimental[/\\]\w+|__init__)\.py$")
#: torch's file that exports a program, and its file that begins each compile
_EXPORTING = re.compile(r"[/\\]torch[/\\]export[/\\]_trace\.py$")
_COMPILING = re.compile(r"[/\\]torch[/\\]_dynamo[/\\]convert_frame\.py$")
_SUPPRESSING = frozenset({"_aot_stage2b_bw_compile", "compute_overlapping_tensors", "ir_node_to_tensor"})
MAX_EXPRESSIONS = MAX_COMPILES = 10_000
MAX_DERIVATION = 50
_SYMBOL = re.compile(r"\b(?:s|u|z|zuf)\d+\b")
_CREATED = {"symbol": "symbol", "value": "val", "range": "vr", "source": "source"}
#: Kind of a record of a symbolic shape -> its action, and its columns with the fields that they come from.
_SHAPES: dict[str, tuple[str, dict[str, str]]] = {
    "create_symbol": ("created", _CREATED),
    "create_unbacked_symbol": ("unbacked", _CREATED),
    "symbolic_shape_specialization": ("specialized", {name: name for name in ("symbol", "value", "reason")}),
    **dict.fromkeys(("guard_added", "guard_added_fast"), ("guarded", {"expression": "expr"})),
    "propagate_real_tensors": ("assumed", {"expression": "expr", "value": "result"}),
    "propagate_real_tensors_provenance": ("assumed", {"expression": "expr", "value": "result"}),
    "guard_on_data_dependent_error": ("undecided", {"expression": "expr"}),
}

#: The fields of a record; each version of torch has others.
Body = Mapping[str, Any]


class ShapeRecords:
    """Makes the events of one process's records; remembers the stacks and expressions that later records name."""

    def __init__(self, stacks: CallStacks | None = None) -> None:
        self.stacks = CallStacks() if stacks is None else stacks
        self._expressions: dict[int, Body] = {}
        self._names: Mapping[int, str] = {}
        #: Compile -> symbol -> what it stands for.
        self._sources: dict[str | None, dict[str, str]] = defaultdict(dict)
        self._latest: tuple[str | None, str | None] = (None, None)
        #: Compile -> is it an export?
        self._exports: dict[str | None, bool] = {None: True}
        self._outputs: dict[str | None, list[Body]] = {}

    def decode(
        self,
        kind: str,
        body: Body,
        names: Mapping[int, str],
        compile_id: str | None,
        time_ns: int,
        stacks: tuple[list[Frame], list[Frame]] | None = None,
        compile_key: str | None = None,
        is_compile: bool | None = None,
    ) -> list[Event]:
        """Return the events of one record of `KINDS`.

        `names` maps torch's numbers to files. `stacks` are the user's and torch's, if the caller has them already.
        `is_compile` is False for what was written outside of any compile; None if the stacks have to show that.
        """
        self._names = names
        if kind == "expression_created":
            if len(self._expressions) >= MAX_EXPRESSIONS:
                self._expressions.clear()
            if isinstance(body.get("result_id"), int):
                self._expressions[body["result_id"]] = body
            return []
        user, torchs = stacks or (
            parse_logged_frames(body.get("user_stack"), names),
            parse_logged_frames(body.get("stack"), names),
        )
        user_key, fresh = self.stacks.add(user, time_ns)
        is_export = self._is_export(compile_key or compile_id, torchs) if is_compile is None else not is_compile
        # The last frames write the record.
        torchs = list(takewhile(lambda frame: frame.function != "trace_structured", torchs))
        torch_key, torch_fresh = self.stacks.add(torchs, time_ns)
        # Within a compile, torch's own stack shows the call of the compiled function, not the line inside it.
        line = find_user_frame(user, torchs if is_export else []) or Frame(None, None, None, None)
        common = {
            "time_ns": time_ns,
            "compile_id": compile_id,
            "compile_key": compile_key,
            "user_file": line.file,
            "user_line": line.line,
            "user_code": line.code,
            "user_stack": user_key,
            "torch_stack": torch_key,
        }
        shape = self._make_shape(kind, body, common, torchs)
        problem = self._make_problem(kind, body, common, is_export)
        return [*fresh, *torch_fresh, *(event for event in (shape, problem) if event is not None)]

    # Symbolic shapes

    def _make_shape(self, kind: str, body: Body, common: dict[str, Any], torchs: list[Frame]) -> SymbolicShape | None:
        """Make the row of a symbolic shape; None if the record before it said the same, or if it is of another kind."""
        if kind not in _SHAPES:
            return None
        action, fields = _SHAPES[kind]
        columns: dict[str, Any] = {column: _read_text(body, name) for column, name in fields.items()}
        if action == "specialized":
            columns["source"] = ", ".join(map(str, _as_list(body.get("sources")))) or None
        elif action == "guarded" and _is_suppressed(body, torchs):
            action = "suppressed"
        expression, symbol = columns.get("expression"), columns.get("symbol")
        if len(self._sources) > MAX_COMPILES:
            self._sources.clear()
        known = self._sources[common["compile_key"] or common["compile_id"]]
        known.update(_read_texts(body.get("symbol_to_sources")) or {})
        if symbol is not None and columns.get("source") is not None:
            known[symbol] = columns["source"]
        if columns.get("source") is None and expression is not None:
            symbols = dict.fromkeys(_SYMBOL.findall(expression))
            columns["symbols"] = {name: known[name] for name in symbols if name in known} or None
            columns["source"] = ", ".join(f"{name} = {at}" for name, at in (columns["symbols"] or {}).items()) or None
        is_repeated = kind in _TWICE and self._latest == (_TWICE[kind], expression)
        self._latest = (kind, expression)
        return None if is_repeated else SymbolicShape(action=action, **columns, **common)

    # Exports

    def _is_export(self, compile: str | None, torchs: list[Frame]) -> bool:
        """Return True for a record of an export, which has a compile id since torch 2.15.

        Some of its records have the innermost frames of the stack only, so the others decide.
        """
        if compile not in self._exports:
            files = {frame.file or "" for frame in torchs}
            is_compile = any(map(_COMPILING.search, files))
            if is_compile or any(map(_EXPORTING.search, files)):
                if len(self._exports) > MAX_COMPILES:
                    self._exports = {None: True}
                self._exports[compile] = not is_compile
        return self._exports.get(compile, False)

    def _make_problem(self, kind: str, body: Body, common: dict[str, Any], is_export: bool) -> ExportProblem | None:
        """Make the row of a problem of an export; None for a record of another kind, or of a compile."""
        if kind in ("missing_fake_kernel", "mismatched_fake_kernel"):
            return ExportProblem(problem=kind, op=_read_text(body, "op"), reason=_read_text(body, "reason"), **common)
        if kind == "propagate_real_tensors_provenance":
            problem = "data_dependent"
        elif kind == "guard_added" and body.get("prefix") == _EVALUATED and body.get("symbol_to_sources"):
            problem = "constraint"
        else:
            return None
        if not is_export:
            return None
        values = body.get("frame_locals")
        groups = (values.get("symbols"), values.get("locals")) if isinstance(values, Mapping) else ()
        return ExportProblem(
            problem=problem,
            expression=_read_text(body, "expr"),
            result=_read_text(body, "result"),
            symbols=_read_texts(body.get("symbol_to_sources")),
            values={name: value for group in groups for name, value in (_read_texts(group) or {}).items()} or None,
            derivation=self._derive(body.get("expr_node_id")) or None,
            **common,
        )

    def _derive(self, node_id: object) -> list[str]:
        """Return how an expression was computed, one step per operation, operands first."""
        seen: set[int] = set()
        steps: list[str] = []

        def visit(number: object) -> None:
            if not isinstance(number, int) or number in seen or len(seen) >= MAX_DERIVATION:
                return
            body = self._expressions.get(number)
            if body is None:
                return
            seen.add(number)
            for argument in body.get("argument_ids") or ():
                visit(argument)
            steps.append(self._describe_step(body))

        visit(node_id)
        return steps

    def _describe_step(self, body: Body) -> str:
        line = find_user_frame(*(parse_logged_frames(body.get(name), self._names) for name in ("user_stack", "stack")))
        arguments = ", ".join(str(each) for each in body.get("arguments") or ())
        place = f" at {line.file}:{line.line}" if line is not None else ""
        return f"{body.get('result')} = {body.get('method')}({arguments}){place}"

    # Collectives

    def decode_collectives(
        self, name: str, text: str, compile_id: str | None, time_ns: int, compile_key: str | None = None
    ) -> list[Collective]:
        """Return the collectives of a graph in order, from the artifact that lists them.

        Another artifact, which comes before it, has what torch knows of their outputs. Any other text gives none.
        """
        try:
            logged = json.loads(text)
        except (ValueError, RecursionError):
            return []
        if name == TENSOR_META:
            if len(self._outputs) > MAX_COMPILES:
                self._outputs.clear()
            operators = _as_list(logged.get("ops")) if isinstance(logged, dict) else []
            found: list[Body] = [op for op in operators if isinstance(op, dict) and op.get("type") == "collective"]
            self._outputs[compile_key or compile_id] = found
            return []
        outputs = self._outputs.pop(compile_key or compile_id, [])
        columns: dict[str, Any] = {"time_ns": time_ns, "compile_id": compile_id, "compile_key": compile_key}
        return [Collective(**columns, **_describe(n, op, outputs)) for n, op in enumerate(_as_list(logged))]


def _is_suppressed(body: Body, torchs: list[Frame]) -> bool:
    """Return True if torch evaluated a condition and made no guard of it: it logs both alike, but for a prefix that
    only its verbose record has.
    """
    prefix = body.get("prefix")
    if isinstance(prefix, str):
        return "suppressed" in prefix
    outside = (frame for frame in reversed(torchs) if not _EVALUATING.search(frame.file or ""))
    return next((frame.function for frame in outside), None) in _SUPPRESSING


def _describe(position: int, op: object, outputs: list[Body]) -> dict[str, Any]:
    """The columns of a collective, with the first of `outputs` that has its name, which is removed from the list."""
    at = next((at for at, each in enumerate(outputs) if each.get("name") == op), None)
    known = {} if at is None else outputs.pop(at)
    runtime_ns = known.get("estimated_runtime_ns")
    tensors = [each for each in _as_list(known.get("outputs")) if isinstance(each, dict)]
    return {
        "position": position,
        "op": None if op is None else str(op),
        "outputs": [_format_tensor(each) for each in tensors if each.get("dtype")] or None,
        "estimate_us": runtime_ns / 1000 if isinstance(runtime_ns, int | float) else None,
    }


def _format_tensor(tensor: Body) -> str:
    sizes, strides = ("x".join(map(str, _as_list(tensor.get(name)))) for name in ("shape", "stride"))
    return f"{tensor.get('dtype')} {sizes or 'scalar'}" + (f" strides {strides}" if strides else "")


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_text(body: Body, name: str) -> str | None:
    value = body.get(name)
    return None if value is None or value == "" else str(value)


def _read_texts(values: object) -> dict[str, str] | None:
    """Return a mapping with all its values as text; None if it is empty."""
    if not isinstance(values, Mapping) or not values:
        return None
    return {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
