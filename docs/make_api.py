"""Writes docs/api.md to stdout, from the signatures and docstrings of what users call: `make docs`."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import compilediag as cd
from compilediag.comparison import ColdStartReport, Diff
from compilediag.diagnosis import Finding
from compilediag.diagnosis.causes.what_if import WhatIf
from compilediag.diagnosis.cold_start import ColdCause
from compilediag.diagnosis.plan.plan import Plan, PlanStep
from compilediag.diagnosis.rank_comparison import Ranks
from compilediag.integrations.training_watch import LightningHooks, TransformersHooks, read_metrics
from compilediag.storage.data import TableProperties

INTRODUCTION = """# Python API

```python
import compilediag as cd
```

Everything else of the package is internal and can change. `make docs` writes this page from the docstrings.
"""
MAX_LINE = 120
#: A page of the documentation, as docstrings name it.
_PAGE = re.compile(r"`?docs/(\w+)\.md`?")
#: Classes whose objects are returned: the name of such an object in the examples of the documentation.
RETURNED = {
    "session": cd.Session,
    "plan": Plan,
    "diff": Diff,
    "start": ColdStartReport,
    "ranks": Ranks,
    "what_if": WhatIf,
}
FIELDS = {"PlanStep": PlanStep, "Finding": Finding, "ColdCause": ColdCause}
CALLBACKS = {"TransformersCallback": TransformersHooks, "LightningCallback": LightningHooks}


def main() -> None:
    print(INTRODUCTION)
    print("## Record, load and compare\n")
    functions = [value for name in cd.__all__ if inspect.isfunction(value := getattr(cd, name))]
    for function in sorted(functions, key=lambda function: function is not cd.watch):
        same = "those of `cd.watch`" if function is cd.start else None
        write_callable(f"cd.{function.__name__}", function, same=same)
    for name, kind in RETURNED.items():
        print(f"## {kind.__name__}\n\n{write_text(kind)}\n")
        if kind is cd.Session:
            write_table(
                "[table](tables.md)",
                ((f"session.{table}", value) for table, value in list_members(TableProperties) if table != "table"),
            )
        if dataclasses.is_dataclass(kind):
            write_fields(kind)
        members = [*list_members(kind)]
        write_table("member", ((f"{name}.{member}", value) for member, value in members if not list_parameters(value)))
        for member, value in members:
            if list_parameters(value):
                write_callable(f"{name}.{member}", value)
    for name, kind in FIELDS.items():
        print(f"## {name}\n\n{write_text(kind)}\n")
        write_fields(kind)
    print("## Integrations\n\nIn `compilediag.integrations`; [Jobs outside notebooks](jobs.md) has examples.\n")
    write_callable("read_metrics", read_metrics)
    for name, kind in CALLBACKS.items():
        write_callable(name, kind)


def list_members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class itself, in the order of its source."""
    for name, value in vars(kind).items():
        if name[0] != "_" and (isinstance(value, property) or inspect.isfunction(value)):
            yield name, value


def write_callable(name: str, function: Callable[..., Any], same: str | None = None) -> None:
    """The signature, what it does, and a row for each argument. ValueError if one is not explained."""
    parameters = list_parameters(function)
    text, arguments, errors = split_docstring(function)
    if same is None and [p.name for p in parameters] != [*arguments]:
        raise ValueError(
            f"the docstring of {name} explains {[*arguments]}, and it takes {[p.name for p in parameters]}"
        )
    shown = [p.name if p.default is p.empty else f"{p.name}={write_default(p.default)}" for p in parameters]
    call = f"{name}({', '.join(shown)})"
    if len(call) > MAX_LINE:
        call = f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + ")"
    print(f"### {name}\n\n```python\n{call}\n```\n\n{text}\n" if parameters else f"### {name}()\n\n{text}\n")
    if same is not None:
        print(f"Arguments: {same}.\n")
    elif parameters:
        rows = [f"| `{p.name}` | {write_type(p.annotation)} | {arguments[p.name]} |" for p in parameters]
        print("\n".join(["| argument | type | meaning |", "|---|---|---|", *rows]) + "\n")
    for line in write_errors(errors):
        print(f"{line}\n")


def list_parameters(value: Any) -> list[inspect.Parameter]:
    """What a function or method takes, without `self`; nothing for a property."""
    parameters = () if isinstance(value, property) else inspect.signature(value).parameters.values()
    return [parameter for parameter in parameters if parameter.name != "self"]


def write_table(head: str, members: Iterable[tuple[str, Any]]) -> None:
    """A row for each property, and for each method without arguments."""
    rows = [
        f"| `{name}{'' if isinstance(value, property) else '()'}` | {' '.join(write_all(value).split())} |"
        for name, value in members
    ]
    if rows:
        print("\n".join([f"| {head} | meaning |", "|---|---|", *rows]) + "\n")


def write_fields(kind: Any) -> None:
    print(f"Fields: {', '.join(f'`{field.name}: {field.type}`' for field in dataclasses.fields(kind))}.\n")


def write_default(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def write_type(annotation: str) -> str:
    parts = annotation.replace("os.PathLike[str]", "PathLike").split(" | ")
    return " or ".join(f"`{part}`" for part in parts if part)


def write_errors(errors: dict[str, str]) -> list[str]:
    return [f"Raises {', '.join(f'`{one}`' for one in name.split(', '))}: {errors[name]}" for name in errors]


def write_all(value: Any) -> str:
    text, _, errors = split_docstring(value)
    return " ".join([text, *write_errors(errors)])


def write_text(value: Any) -> str:
    return split_docstring(value)[0]


def split_docstring(value: Any) -> tuple[str, dict[str, str], dict[str, str]]:
    """The text of a docstring, argument -> meaning, and exception -> when it is raised."""
    text, *sections = re.split(r"^(Args|Raises):\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
    found = {title: dict(read_entries(body)) for title, body in zip(sections[::2], sections[1::2], strict=True)}
    return join_lines(text), found.get("Args", {}), found.get("Raises", {})


def join_lines(text: str) -> str:
    """The paragraphs of a text, each in one line; what is indented is code, and lists stay."""
    paragraphs = []
    for part in re.split(r"\n\s*\n", text.strip()):
        if part.startswith("    "):
            paragraphs.append(f"```python\n{textwrap.dedent(part)}\n```")
        else:
            paragraphs.append(part if part.startswith("- ") else _PAGE.sub(r"[\1](\1.md)", " ".join(part.split())))
    return "\n\n".join(paragraphs)


def read_entries(body: str) -> Iterator[tuple[str, str]]:
    """`name: meaning` in lines that are indented; what is indented further continues the meaning."""
    for entry in re.split(r"\n(?=\S)", textwrap.dedent(body).strip()):
        name, _, meaning = entry.partition(": ")
        yield name, _PAGE.sub(r"[\1](\1.md)", " ".join(meaning.split()))


if __name__ == "__main__":
    main()
