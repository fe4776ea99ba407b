"""Where a compile was asked for, what became of its symbolic shapes, what an export met, collectives of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column

#: What an `action` column of symbolic shapes can name. `created`: a size or number of an input became a symbol;
#: `unbacked`: a symbol without a value, as `.item()` gives; `specialized`: a symbol was given one value for good;
#: `guarded`: an expression has to hold for the compiled code; `suppressed`: torch evaluated an expression and made no
#: guard of it; `assumed`: a value that only data can tell was taken
#: from the example inputs; `undecided`: an expression that only data can decide, an error.
SHAPE_ACTIONS = ("created", "unbacked", "specialized", "guarded", "suppressed", "assumed", "undecided")

#: What a `problem` column of an export can name. `data_dependent`: a value that only data can tell was made constant;
#: `constraint`: sizes that were asked to be dynamic got a guard; the others are of a custom operator's fake kernel.
EXPORT_PROBLEMS = ("data_dependent", "constraint", "missing_fake_kernel", "mismatched_fake_kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame(Event):
    """A frame of a call stack. Stacks share their outer frames, so each frame is stored once, with its caller."""

    kind: ClassVar[str] = "stack_frame"
    table: ClassVar[str] = "stacks"
    shown_first: ClassVar[tuple[str, ...]] = ("function", "file", "line", "code")

    stack: str | None = column(
        "string", "key of the stack that ends in this frame, the same in any session", sources=("phases",)
    )
    caller: str | None = column("string", "key of the stack without this frame; NA for the outermost frame")
    function: str | None = column("string", "name of the code object", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "line that runs; first line of a compiled frame")
    code: str | None = column("string", "text of that line; NA for torch's code", user_data="code")
    call: str | None = column(
        "string", "text of the call that runs, whole; NA for torch's code and in logs", user_data="code"
    )
    parameters: list[str] | None = column(
        "json",
        "parameters of the function in the order of its signature: x, *args, k= (keyword only), **kwargs",
        user_data="name",
    )
    assigned: list[str] | None = column(
        "json", "those of them that were assigned again before that line", user_data="name"
    )

    @property
    def title(self) -> str:
        return self.function or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicShape(Event):
    kind: ClassVar[str] = "symbolic_shape"
    table: ClassVar[str] = "symbolic_shapes"

    action: str | None = column("string", "one of the shape actions", sources=("trace",))
    symbol: str | None = column("string", "torch's name of the symbol: s0, u0", user_data="name")
    source: str | None = column(
        "string",
        "what the symbol stands for: L['x'].size()[0]; for an expression, each symbol of it",
        user_data="torch_source",
    )
    expression: str | None = column(
        "string", "the expression that was guarded, assumed or left undecided", user_data="content"
    )
    symbols: dict[str, str] | None = column(
        "json", "each symbol of the expression -> what it stands for, as torch names it", user_data="content"
    )
    value: str | None = column(
        "string", "value when it was created, or the value that it was specialized to", user_data="content"
    )
    range: str | None = column("string", "values that it can have", user_data="content")
    reason: str | None = column("string", "torch's reason", user_data="content")
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    user_stack: str | None = column("string", "key of the user's stack")
    torch_stack: str | None = column("string", "key of torch's stack")

    @property
    def title(self) -> str:
        return f"{self.action}: {self.expression or self.symbol}" + (f" = {self.value}" if self.value else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportProblem(Event):
    kind: ClassVar[str] = "export_problem"
    table: ClassVar[str] = "export_problems"

    problem: str | None = column("string", "one of the export problems", sources=("trace",))
    op: str | None = column("string", "for a fake kernel: the operator", user_data="name")
    expression: str | None = column("string", "expression that had to be decided", user_data="content")
    result: str | None = column("string", "value that was assumed", user_data="content")
    reason: str | None = column("string", "torch's reason", user_data="content")
    symbols: dict[str, str] | None = column(
        "json", "each symbol of the expression -> what it is the size or value of", user_data="content"
    )
    values: dict[str, str] | None = column("json", "the user's locals and symbols at that line", user_data="content")
    derivation: list[str] | None = column(
        "json", "steps that led to the expression, first one first", user_data="content"
    )
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    user_stack: str | None = column("string", "key of the user's stack")
    torch_stack: str | None = column("string", "key of torch's stack")

    @property
    def title(self) -> str:
        return f"{self.problem}: {self.op or self.expression}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective(Event):
    kind: ClassVar[str] = "collective"
    table: ClassVar[str] = "collectives"

    position: int | None = column("Int64", "position in its graph, from 0", sources=("trace",))
    op: str | None = column("string", "name of the collective operator", user_data="name")
    outputs: list[str] | None = column(
        "json", "one text per output: dtype, sizes and strides, if torch logged them", user_data="content"
    )
    estimate_us: float | None = column("float64", "duration that torch estimates, if it logged one", unit="us")

    @property
    def title(self) -> str:
        return f"{self.op} at {self.position}"
