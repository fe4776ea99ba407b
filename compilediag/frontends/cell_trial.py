"""Runs a notebook cell again, without and with its plan: `%compilewatch try` and `%%compilewatch try`."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..diagnosis.plan import Plan
from ..errors import CompilediagError
from ..session import Session
from ..trials.verify import Verification, verify
from ..views.text_layout import wrap

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@dataclass(frozen=True)
class CellCode:
    """A cell as typed, below its first line, which has the magic; and its number, as in `Cell In[3]`."""

    text: str
    number: int


def try_cell(shell: InteractiveShell, cell: CellCode, session: Session | None) -> str:
    """Try the plan of `session`, or that of the first run, on a cell; gives the plan and its outcome as text.

    The cell runs three times in this process, isolated: the variables, modules and optimizers that it uses are restored
    after each run, and its output is not shown. The outcome is stored in `session`.
    """
    names = set(shell.user_ns)
    workload = _make_workload(shell, cell)
    try:
        verified = verify(None, workload) if session is None else session.verify(session.plan(), workload)
    finally:
        # The trial leaves no variables that the cell made.
        for name in set(shell.user_ns) - names:
            del shell.user_ns[name]
    return _format_trial(verified)


def _make_workload(shell: InteractiveShell, cell: CellCode) -> Callable[[], Any]:
    """A function that runs the cell. CompilediagError if it is not valid Python, or awaits something."""
    # The first line stays empty, so that line numbers are those of the cell.
    source = "\n" + shell.transform_cell(cell.text)
    name = shell.compile.cache(source, cell.number, raw_code=source)
    try:
        # The flags have what the notebook imported from __future__.
        code = compile(source, name, "exec", shell.compile.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        raise CompilediagError(f"the cell is not valid Python: {error}") from None
    if code.co_flags & inspect.CO_COROUTINE:
        raise CompilediagError("a cell with a top-level await cannot be tried; use compilediag try in a terminal")
    # A partial, because a trial follows its arguments to the user's objects.
    return functools.partial(_run_quietly, types.FunctionType(code, shell.user_ns))


def _run_quietly(run_cell: Callable[[], object]) -> None:
    """Run a cell without showing its output."""
    from IPython.utils.capture import capture_output

    with capture_output():
        run_cell()


def _format_trial(verified: Verification) -> str:
    if verified.recompiles_after is None:
        return f"compilediag: {verified.note}"
    # The plan has an outcome only if it was tried before.
    plan = str(verified.plan) if isinstance(verified.plan, Plan) and not verified.plan.tried else ""
    outcome = "\n".join(wrap(str(verified.outcome)))
    return f"{plan}\n\n{outcome}".strip()
