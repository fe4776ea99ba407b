"""What a redacted view leaves out: source code, values and paths. Names of functions and arguments stay.

Each column says in `events/` what it can hold (`user_data`); this module only applies that. A text that is not what its
column declares is left out as a whole.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..decode.call_stacks import OwnCode, find_torch_path, is_torch_file
from ..decode.guards.path import MEMBER_DICTS, Opaque, Path, Step, parse_expression
from ..diagnosis.change import Settings, format_settings
from ..diagnosis.plan import Plan, PlanStep, UnresolvedCause
from ..diagnosis.plan.make_plan import NOT_ALWAYS
from ..diagnosis.plan.plan import Outcome
from ..diagnosis.rules.costs import find_compile_costs
from ..events import BY_TABLE, KINDS, Event, Rows, UserData, columns
from ..formatting import cache_short, format_amount, format_seconds
from ..json_document import read_plain
from ..storage.data import SessionData, TableProperties
from ..storage.store import Store

if TYPE_CHECKING:
    import pandas as pd

E = TypeVar("E", bound=Event)
Change = Callable[[Any], Any]

#: A name of code: `forward`, `<lambda>`, `compile_fx.<locals>.bw_compiler`, `aten::mm`, `triton_mm_12`, `*args`, `k=`.
_NAME = re.compile(r"[*+-]{0,2}(?:[\w$]+|<\w+>)(?:(?:\.|::)(?:[\w$]+|<\w+>)){0,20}=?")
#: How a configuration of a kernel is named: `XBLOCK=128 num_warps=4`. Texts in it can be the user's.
_CONFIGURATION = re.compile(r"\w+=(?:-?\d+|True|False|None)(?: \w+=(?:-?\d+|True|False|None))*")
#: What guards can be about that is no expression of the program.
_AMBIENT = (
    *("global state", "torch function modes", "functorch levels", "saved tensors hooks", "backend"),
    *("tensor guards", "forward AD level"),
)
_SYMBOL = re.compile(r"[a-z]{1,2}\d+")
#: Integers with more digits can be ids of the user's data; indexes have fewer.
_MAX_DIGITS = 3


class Redactor:
    """Changes cells so that they hold no source code, values or paths.

    A path becomes `file1.py` and a key of a cache `key1`, the same one each time. The keys in a source such as
    `self.table['key'].n` are left out, see `redact_source`. Whatever else can hold user data becomes None.
    """

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._own = OwnCode()
        self._changes: dict[type[Event], list[tuple[str, Change]]] = {}

    def get_change(self, kind: type[Event], column: str) -> Change | None:
        """What to do with the cells of a column; None if they may be shown as they are."""
        spec = columns(kind).get(column)
        user_data: UserData | None = spec["user_data"] if spec else None
        if user_data is None:
            return None
        changes: dict[UserData, Change] = {
            "path": self.replace_file,
            "key": self._replace_key,
            "source": redact_source,
            "torch_source": redact_torch_source,
            "name": keep_names,
            "numbers": keep_numbers,
        }
        return changes.get(user_data, _drop)

    def redact(self, event: E) -> E:
        """The event without user data."""
        kind = type(event)
        if kind not in self._changes:
            found = [(name, self.get_change(kind, name)) for name in columns(kind)]
            self._changes[kind] = [(name, change) for name, change in found if change is not None]
        return dataclasses.replace(
            event, **{name: change(getattr(event, name)) for name, change in self._changes[kind]}
        )

    def replace_file(self, path: str | None) -> str | None:
        """The stand-in for a path. Files of torch keep their names below its folder, and files of Python and of
        installed packages are still known as such: who calls whom stays visible.
        """
        if path is None:
            return None
        if is_torch_file(path):
            return f"site-packages/torch/{find_torch_path(path)}"
        folder = "" if self._own.is_own(path) else "site-packages/"
        return self._files.setdefault(path, f"{folder}file{len(self._files) + 1}.py")

    def _replace_key(self, key: str | None) -> str | None:
        """The stand-in for a key. It can be a path, or contain the name of a job."""
        return None if key is None else self._keys.setdefault(key, f"key{len(self._keys) + 1}")


class RedactedData(TableProperties):
    """The rows and DataFrames of a session without user data, for rules and panels."""

    def __init__(self, data: SessionData, redactor: Redactor):
        self._data = data
        self._redactor = redactor
        self._rows: dict[type[Event], Sequence[Any]] = {}

    @property
    def state(self) -> str:
        """The state of the session."""
        return self._data.state

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`."""
        if kind not in self._rows:
            self._rows[kind] = [self._redactor.redact(event) for event in self._data.rows(kind)]
        return self._rows[kind]

    def table(self, name: str) -> pd.DataFrame:
        """A table by its name, as a DataFrame of its own."""
        frame = self._data.table(name)
        if name == "events":  # Titles quote the other tables.
            return frame.assign(title=_redact_column(frame["title"], _drop))
        changes = {column: self._redactor.get_change(BY_TABLE[name], column) for column in frame.columns}
        redacted = {column: _redact_column(frame[column], change) for column, change in changes.items() if change}
        return frame.assign(**redacted)


#: Facts about a session that are no user data.
_SHOWN_FACTS = ("torch_version", "device", "detail", "created_ns", "stopped_ns")


def write_redacted(data: SessionData, path: pathlib.Path) -> None:
    """Write a copy of a session without source code, values, paths and texts to a new file."""
    redactor, facts = Redactor(), data.meta
    with data.settled():
        rows = [row for kind in KINDS for row in data.rows(kind)]
    rows.sort(key=lambda row: row.event_id or 0)
    with contextlib.closing(Store.create(path, {name: facts[name] for name in _SHOWN_FACTS if name in facts})) as store:
        store.append([redactor.redact(row) for row in rows])


def _redact_column(column: pd.Series, change: Change) -> pd.Series:
    import pandas as pd

    cells = [change(None if value is pd.NA else value) for value in column]
    return pd.Series(cells, dtype=column.dtype, index=column.index)


def _drop(value: object) -> None:
    return None


def keep_names(cell: Any) -> Any:
    """The cell if it is a name of code; None for anything else. Of a list, each item that is none becomes `...`."""
    if isinstance(cell, list):
        return [item if _is_name(item) else "..." for item in cell]
    return cell if _is_name(cell) else None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def keep_numbers(cell: Any) -> Any:
    """The numbers of a kernel's configuration, by their names. A text in it can be a constant of the user's kernel."""
    if isinstance(cell, dict):
        shown = {name: value for name, value in cell.items() if _is_name(name)}
        return {name: value if isinstance(value, int | float | None) else "..." for name, value in shown.items()}
    return cell if isinstance(cell, str) and _CONFIGURATION.fullmatch(cell) else keep_names(cell)


# Sources


def redact_source(text: str | None) -> str | None:
    """The name of a guarded value, or several of them, without the user's keys: `self.table['...'].n`.

    A text that is anything else becomes None. It is parsed and never evaluated.
    """
    return text if text is None or text in _AMBIENT else _redact_paths(text, is_torchs=False)


def redact_torch_source(text: str | None) -> str | None:
    """The same for a name as torch writes it: `L['self'].table['...'].n`. Names of locals and globals stay."""
    return None if text is None else _redact_paths(text, is_torchs=True)


@cache_short(4_096)
def _redact_paths(text: str, is_torchs: bool) -> str | None:
    expression = parse_expression(f"_({text}\n)", is_torchs)
    if expression is None or expression.objects:
        return None
    match expression.node:
        # torch's symbols are named in front of their source: `s0 = L['x'].size()[0], s1 = L['n']`.
        case ast.Call(ast.Name("_"), args, named) if all(is_torchs and _SYMBOL.fullmatch(p.arg or "") for p in named):
            found = [("", part) for part in args] + [(f"{part.arg} = ", part.value) for part in named]
        case _:
            return None
    paths = [expression.read_path(node) for _, node in found]
    shown = [path and _redact_path(path, is_torchs) for path in paths]
    if None in shown:
        return None
    return ", ".join(f"{name}{path.torch_text}" for (name, _), path in zip(found, shown, strict=True) if path) or None


def _redact_path(path: Path, is_torchs: bool) -> Path | None:
    """The path without the user's keys; None if nothing of it may be shown."""
    # Names of the program are keys of locals, of globals, and of the attributes of a module.
    holds_names = is_torchs and path.scope == "G" and path.root.startswith("__builtins_dict__")
    steps = []
    for step in path.steps:
        key = step.value
        is_name = holds_names and isinstance(key, str) and key.isidentifier()
        holds_names = is_torchs and step.kind == "attr" and key in MEMBER_DICTS
        if not all(map(_is_index, step.arguments)):
            return None
        is_shown = step.kind != "item" or is_name or _is_index(key)
        steps.append(step if is_shown else Step("item", "..." if isinstance(key, str) else Opaque("...")))
    root = path.root if not path.scope or path.root.isidentifier() else "..."
    return None if path.scope == "function" else Path(root, path.scope, tuple(steps))


def _is_index(key: object) -> bool:
    """True for a key or an argument that is no data of the user's: a small integer, None, True or False."""
    return key is None or (isinstance(key, int) and abs(key) < 10**_MAX_DIGITS)


# The plan

NOTE = "This plan is redacted: source code, values and paths are left out."
_LEFT_OUT = "The change is left out, because it contains source code."


def redact_plan(plan: Plan, redactor: Redactor, data: Rows) -> Plan:
    """The plan without user data; `data` has the redacted rows, which its costs are made of.

    The plan itself is made of all data, because without values recompiles of one cause cannot be joined. What is shown
    is built here from the parts that may be shown; a new part of a plan stays out until it is added.
    """
    tried: dict[str, Any] | None = None
    if plan.tried is not None:
        # The numbers of a trial, without the code that was tried and the program's own messages.
        outcome = read_plain(Outcome, plan.tried)
        tried = dataclasses.replace(outcome, backend=keep_names(outcome.backend), note=None, code="").to_dict()
    return Plan(
        steps=tuple(_redact_step(step, redactor) for step in plan.steps),
        recompiles=plan.recompiles,
        recompiles_saved=plan.recompiles_saved,
        seconds=plan.seconds,
        seconds_saved=plan.seconds_saved,
        settings=_redact_settings(plan.settings),
        unresolved=tuple(
            UnresolvedCause(f"A cause of {format_amount(len(cause.evidence), 'recompile')}", "", "", cause.evidence)
            for cause in plan.unresolved
        ),
        tried=tried,
        costs=find_compile_costs(data),
        notes=(NOTE, *(note for note in plan.notes if note == NOT_ALWAYS)) if plan.recompiles else (),
        is_collected=plan.is_collected,
    )


def _redact_step(step: PlanStep, redactor: Redactor) -> PlanStep:
    name = redact_source(step.expression or None)
    settings = _redact_settings(step.settings) if step.settings and not step.edits else None
    timed = f" and {format_seconds(step.seconds_saved)}" if step.seconds_saved else ""
    saves = "Saves" if step.is_certain else "May save"
    together = f"{saves} {format_amount(step.recompiles_saved, 'recompile')}{timed} with the steps before it"
    return PlanStep(
        rule=step.rule,
        what=f"{name} changed" if name else "A guarded value changed",
        title=f"`{name}` changes" if name else "A guarded value changes",
        change=format_settings(settings) if settings else _LEFT_OUT,
        why="",
        saving=f"{together}, {format_amount(step.recompiles_saved_alone, 'recompile')} alone.",
        recompiles_saved_alone=step.recompiles_saved_alone,
        recompiles_saved=step.recompiles_saved,
        seconds_saved=step.seconds_saved,
        evidence=step.evidence,
        file=redactor.replace_file(step.file),
        line=step.line,
        function=keep_names(step.function),
        expression=name,
        settings=settings,
        is_certain=step.is_certain,
    )


def _redact_settings(settings: Settings) -> Settings:
    """The settings; the texts among them are lists of names as torch writes them."""
    return {
        key: redact_torch_source(value) or "..." if isinstance(value, str) else value for key, value in settings.items()
    }
