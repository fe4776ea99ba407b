"""Records of symbolic shapes, of exports and of collectives as events: what live feed and logs have in common."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
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
#: Where torch is asked for more than usual it logs a guard, and what it assumed, by two records, one after the other.
_TWICE = {"guard_added_fast": "guard_added", "propagate_real_tensors_provenance": "propagate_real_tensors"}
#: torch's prefix of a guard that it evaluated to go on, as against one that is checked when the program runs.
_EVALUATED = "eval"
MAX_EXPRESSIONS = MAX_COMPILES = 10_000
MAX_DERIVATION = 50
_SYMBOL = re.compile(r"\b(?:s|u|z|zuf)\d+\b")

Body = Mapping[str, Any]


class TracedRecords:
    """Makes events of one process's records; remembers the stacks and expressions that later ones name."""

    def __init__(self, stacks: CallStacks | None = None) -> None:
        self.stacks = CallStacks() if stacks is None else stacks
        self._expressions: dict[int, Body] = {}
        self._names: Mapping[int, str] = {}
        self._sources: dict[str | None, dict[str, str]] = defaultdict(dict)
        self._latest: tuple[str | None, str | None] = (None, None)
        self._outputs: dict[str | None, list[Body]] = {}

    def events(
        self,
        kind: str,
        body: Body,
        names: Mapping[int, str],
        compile_id: str | None,
        time_ns: int,
        stacks: tuple[list[Frame], list[Frame]] | None = None,
        compile_key: str | None = None,
    ) -> list[Event]:
        """What one record of `KINDS` tells. `names` are the names of files by torch's number; `stacks` are the user's
        and torch's where they are known without.
        """
        self._names = names
        if kind == "expression_created":
            self._remember(body)
            return []
        user, torchs = stacks or [parse_logged_frames(body.get(name), names) for name in ("user_stack", "stack")]
        common, told = self._where(user, _without_writing(torchs), compile_id, time_ns, compile_key)
        made = _shape(kind, body, common)
        if made is not None:
            made = self._name_sources(made, _texts(body.get("symbol_to_sources")) or {})
            is_told = kind in _TWICE and self._latest == (_TWICE[kind], made.expression)
            told += [] if is_told else [made]
            self._latest = (kind, made.expression)
        problem = self._problem(kind, body, common)
        return [*told, problem] if problem is not None else told

    def stack(self, stack: Any, names: Mapping[int, str], time_ns: int) -> tuple[str | None, list[Event]]:
        """The key of a logged stack, and its new frames."""
        key, fresh = self.stacks.add(parse_logged_frames(stack, names), time_ns)
        return key, [*fresh]

    def _where(
        self,
        user: list[Frame],
        torchs: list[Frame],
        compile_id: str | None,
        time_ns: int,
        compile_key: str | None,
    ) -> tuple[dict[str, Any], list[Event]]:
        """The columns that say where it was, and the new frames of both stacks."""
        user_key, user_new = self.stacks.add(user, time_ns)
        torch_key, torch_new = self.stacks.add(torchs, time_ns)
        # Of a compile torch's own stack holds where the compiled function was called from, not the line in it.
        line = find_user_frame(user, [] if compile_id is not None else torchs) or Frame(None, None, None, None)
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
        return common, [*user_new, *torch_new]

    # Collectives

    def collectives(
        self, name: str, text: str, compile_id: str | None, time_ns: int, compile_key: str | None = None
    ) -> list[Event]:
        """The collectives of a graph in their order, from the artifact that lists them. What torch knows of their
        outputs is in another artifact, which comes before it. A text that is neither tells nothing.
        """
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            return []
        if name == TENSOR_META:
            listed = [op for op in _list(told.get("ops")) if isinstance(op, dict)] if isinstance(told, dict) else []
            if len(self._outputs) > MAX_COMPILES:
                self._outputs.clear()
            self._outputs[compile_key or compile_id] = [op for op in listed if op.get("type") == "collective"]
            return []
        known = self._outputs.pop(compile_key or compile_id, [])
        ids = {"compile_id": compile_id, "compile_key": compile_key}
        return [_collective(position, op, known, time_ns, ids) for position, op in enumerate(_list(told))]

    # Exports

    def _name_sources(self, made: SymbolicShape, told: dict[str, str]) -> SymbolicShape:
        """Remembers what a symbol stands for, and says of a guard what its symbols do."""
        if len(self._sources) > MAX_COMPILES:
            self._sources.clear()
        known = self._sources[made.compile_key or made.compile_id]
        known.update(told)
        if made.symbol is not None and made.source is not None:
            known[made.symbol] = made.source
        if made.source is None and made.expression is not None:
            symbols = dict.fromkeys(_SYMBOL.findall(made.expression))
            source = ", ".join(f"{symbol} = {known[symbol]}" for symbol in symbols if symbol in known) or None
            return dataclasses.replace(made, source=source)
        return made

    def _problem(self, kind: str, body: Body, common: dict[str, Any]) -> ExportProblem | None:
        """What an export could not do soundly. A compile, which has an id, is no export."""
        if kind in ("missing_fake_kernel", "mismatched_fake_kernel"):
            return ExportProblem(problem=kind, op=_text(body, "op"), reason=_text(body, "reason"), **common)
        if kind == "propagate_real_tensors_provenance":
            problem = "data_dependent"
        elif kind == "guard_added" and body.get("prefix") == _EVALUATED and body.get("symbol_to_sources"):
            problem = "constraint"
        else:
            return None
        if common["compile_id"] is not None:
            return None
        return ExportProblem(
            problem=problem,
            expression=_text(body, "expr"),
            result=_text(body, "result"),
            symbols=_texts(body.get("symbol_to_sources")),
            values=_locals(body.get("frame_locals")),
            derivation=self._derivation(body.get("expr_node_id")) or None,
            **common,
        )

    def _remember(self, body: Body) -> None:
        if len(self._expressions) >= MAX_EXPRESSIONS:
            self._expressions.clear()
        if isinstance(body.get("result_id"), int):
            self._expressions[body["result_id"]] = body

    def _derivation(self, node_id: Any) -> list[str]:
        """How an expression came about, a step each: after those that it is made of."""
        seen: set[Any] = set()
        steps: list[str] = []

        def visit(number: Any) -> None:
            made = self._expressions.get(number)
            if made is None or number in seen or len(seen) >= MAX_DERIVATION:
                return
            seen.add(number)
            for each in made.get("argument_ids") or ():
                visit(each if isinstance(each, int) else None)
            steps.append(self._step(made))

        visit(node_id)
        return steps

    def _step(self, made: Body) -> str:
        line = find_user_frame(*(parse_logged_frames(made.get(name), self._names) for name in ("user_stack", "stack")))
        arguments = ", ".join(str(each) for each in made.get("arguments") or ())
        place = f" at {line.file}:{line.line}" if line is not None else ""
        return f"{made.get('result')} = {made.get('method')}({arguments}){place}"


def _without_writing(frames: list[Frame]) -> list[Frame]:
    """A stack of torch's without the frames that write the record."""
    at = next((at for at, frame in enumerate(frames) if frame.function == "trace_structured"), len(frames))
    return frames[:at]


def _shape(kind: str, body: Body, common: dict[str, Any]) -> SymbolicShape | None:
    make = _SHAPES.get(kind)
    return None if make is None else SymbolicShape(**make(body), **common)


def _created(body: Body) -> dict[str, Any]:
    names = {"symbol": "symbol", "value": "val", "range": "vr", "source": "source"}
    return {"action": "created", **{column: _text(body, name) for column, name in names.items()}}


def _specialized(body: Body) -> dict[str, Any]:
    sources = body.get("sources")
    source = ", ".join(map(str, sources)) if isinstance(sources, list) else ""
    told = {name: _text(body, name) for name in ("symbol", "value", "reason")}
    return {"action": "specialized", "source": source or None, **told}


def _guarded(body: Body) -> dict[str, Any]:
    return {"action": "guarded", "expression": _text(body, "expr")}


def _assumed(body: Body) -> dict[str, Any]:
    return {**_guarded(body), "action": "assumed", "value": _text(body, "result")}


_SHAPES: dict[str, Callable[[Body], dict[str, Any]]] = {
    "create_symbol": _created,
    "create_unbacked_symbol": lambda body: {**_created(body), "action": "unbacked"},
    "symbolic_shape_specialization": _specialized,
    "guard_added": _guarded,
    "guard_added_fast": _guarded,
    "propagate_real_tensors": _assumed,
    "propagate_real_tensors_provenance": _assumed,
    "guard_on_data_dependent_error": lambda body: {"action": "undecided", "expression": _text(body, "expr")},
}


def _collective(position: int, op: Any, told: list[Body], time_ns: int, ids: Mapping[str, str | None]) -> Collective:
    """One collective, with the first of `told` that has its name, which is taken out."""
    at = next((at for at, each in enumerate(told) if each.get("name") == op), None)
    known = {} if at is None else told.pop(at)
    runtime_ns, outputs = known.get("estimated_runtime_ns"), known.get("outputs")
    tensors = [each for each in _list(outputs) if isinstance(each, dict)]
    return Collective(
        time_ns=time_ns,
        position=position,
        op=None if op is None else str(op),
        outputs=[_tensor(each) for each in tensors if each.get("dtype")] or None,
        estimate_us=runtime_ns / 1000 if isinstance(runtime_ns, int | float) else None,
        **ids,
    )


def _tensor(told: Body) -> str:
    sizes, strides = ("x".join(map(str, _list(told.get(name)))) for name in ("shape", "stride"))
    return f"{told.get('dtype')} {sizes or 'scalar'}" + (f" strides {strides}" if strides else "")


def _list(told: Any) -> list[Any]:
    return told if isinstance(told, list) else []


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    return None if value is None or value == "" else str(value)


def _texts(told: Any) -> dict[str, str] | None:
    """A mapping of anything as one of texts; None if there is nothing in it."""
    if not isinstance(told, Mapping) or not told:
        return None
    return {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}


def _locals(told: Any) -> dict[str, str] | None:
    if not isinstance(told, Mapping):
        return None
    return {**(_texts(told.get("symbols")) or {}), **(_texts(told.get("locals")) or {})} or None
