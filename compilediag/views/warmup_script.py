"""A Python script that compiles what a session saw and saves torch's cache artifacts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ..diagnosis.variants import Variants, list_variants
from ..errors import CompilediagError
from ..events import Artifact, Compile
from ..formatting import (
    escape_controls,
    escape_lines,
    format_amount,
    format_function,
    format_line,
    format_seconds,
    get_basename,
)
from ..storage.data import SessionData
from ..system.files import WARMUP, check_output, make_absolute, write_file
from ..system.program import read_program

#: What marks a place that the user has to fill in.
TODO = "# TODO:"
GRAPH = "dynamo_output_graph"
#: An input of a graph as torch prints it: its name and its type.
_INPUT = re.compile(r"\b(L_\w+?)_?: \"([^\"]+)\"")
#: Between the sizes and the strides of a type, and the strides.
_STRIDES = re.compile(r"(?<=\])\[[^\]]*\]")
_PARAMETER = re.compile(r"_(?:parameters|buffers)_")
SHOWN_INPUTS = 8
#: Characters of a graph in which its inputs are looked for.
MAX_HEAD = 4 << 20

_HEADER = '''"""Compile what {what} compiled, and save torch's cache artifacts to {artifacts}.

Written by compilediag for torch {torch}: {amount}, {seconds} of compile time.
Run it once for each kind of machine and each version of torch, with the environment of the program:

    python {script}{arguments}

{stops}

In the next process, load the artifacts before the first compile:

    import torch

    with open({artifacts!r}, "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())
"""
'''
_STOPS = (
    "It runs the program that its command line names from the start, and interrupts it as Ctrl-C does once everything\n"
    "in VARIANTS is compiled. What the program writes until then, it writes again. Recorded was: {command}"
)
#: The program is named by the person who runs the script: a session may come from somebody else.
_RUN = """import os
import runpy
import sys

from compilediag.trials.warmup import Variants, save_artifacts


def run():
    if not sys.argv[1:]:
        sys.exit(f"usage: python {sys.argv[0]} SCRIPT [ARGUMENTS], or -m MODULE [ARGUMENTS]")
    is_module = sys.argv[1] == "-m"
    sys.argv[:] = sys.argv[1 + is_module :]
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
"""
_CALLS = (
    "Only the compiled functions are known of the program (it ran in a notebook or at a prompt): fill in `run`, where\n"
    "a call is marked with TODO."
)


def write_warmup(data: SessionData, path: str | os.PathLike[str]) -> Path:
    """Write the script; see `Session.warmup`."""
    target = make_absolute(path)
    check_output(target, WARMUP)
    variants = list_variants(data)
    if not variants:
        raise CompilediagError("nothing was compiled in this session, so there is nothing to warm up")
    # In a string of Python, an escape is the same character.
    write_file(target, escape_lines(format_warmup(data, variants, target.name)))
    return target


def format_warmup(data: SessionData, variants: list[Variants], script: str) -> str:
    """The text of the script, to be saved under the name `script`."""
    program = read_program(data.meta)
    artifacts = f"{os.path.splitext(script)[0]}.artifacts"
    header = _HEADER.format(
        what="the recorded program" if program else "the recorded session",
        torch=_escape(str(data.meta.get("torch_version"))),
        amount=format_amount(sum(found.count for found in variants), "compiled version"),
        seconds=format_seconds(sum(row.duration_s or 0.0 for row in data.rows(Compile))),
        arguments=" SCRIPT [ARGUMENTS]" if program else "",
        stops=_STOPS.format(command=_escape(f"python {program.command}")) if program else _CALLS,
        artifacts=artifacts,
        script=script,
    )
    body = [_RUN] if program else _format_calls(variants, _read_inputs(data))
    return "\n".join([header, *body, "", *_format_variants(variants), "", *_format_main(artifacts), ""])


def _escape(text: str) -> str:
    """A text that a docstring can hold."""
    return format_line(text, 100).replace("\\", "\\\\").replace('"', "'")


def _format_calls(variants: Iterable[Variants], inputs: dict[tuple[str, str, int], list[str]]) -> list[str]:
    """A function for the user to fill in, with what is known of each variant."""
    lines = ["from compilediag.trials.warmup import Variants, save_artifacts", "", "", "def run():"]
    for found in variants:
        function = escape_controls(format_function(found.function, found.file, found.line))
        lines.append(f"    {TODO} call {function}, once for each variant:")
        known = inputs.get(found.place, [])
        lines += [f"    #   {number}. {text}" for number, text in enumerate(known, 1)]
        if found.backwards:
            lines.append("    # and call backward() on the result, so that the backward is compiled too.")
    return [*lines, f'    raise NotImplementedError("fill in the calls that are marked with {TODO.strip("# :")}")', ""]


def _format_variants(variants: Iterable[Variants]) -> list[str]:
    """The list of variants as code."""
    lines = ["#: What has to be compiled: versions of each function, with a backward, and stored in torch's caches."]
    lines.append("VARIANTS = [")
    for found in variants:
        place = f"{found.function!r}, {found.file!r}, {found.line}"
        counts = f"count={found.count}, backwards={found.backwards}, stored={found.stored}"
        lines.append(f"    Variants({place}, {counts}),")
    return [*lines, "]"]


def _format_main(artifacts: str) -> list[str]:
    return [
        "",
        'if __name__ == "__main__":',
        "    # The path is absolute before the program changes the folder.",
        f"    save_artifacts(run, VARIANTS, {artifacts!r})",
    ]


def _read_inputs(data: SessionData) -> dict[tuple[str, str, int], list[str]]:
    """Function -> the tensors of each of its variants, from the graphs, which `full` records."""
    graphs = {row.compile_key: row for row in data.rows(Artifact) if row.name == GRAPH and row.digest}
    inputs: dict[tuple[str, str, int], list[str]] = {}
    known: dict[str | None, str] = {}  # Of each text: several compiles can have the same.
    for row in data.rows(Compile):
        graph = graphs.get(row.compile_key)
        if row.trigger == "dynamo" and graph is not None and graph.event_id is not None:
            place = (row.function or "", get_basename(row.file or ""), row.line or 0)
            if graph.digest not in known:
                known[graph.digest] = _list_inputs(_read_head(data, graph.event_id))
            inputs.setdefault(place, []).append(known[graph.digest])
    return inputs


def _read_head(data: SessionData, event_id: int) -> str:
    try:
        return data.artifact(event_id)[:MAX_HEAD]
    except KeyError:
        return ""  # The text was not stored, or is damaged.


def _list_inputs(graph: str) -> str:
    """`x: f32[4, 16], y: i64[4]`: the tensors of a graph that are no parameters."""
    found = dict.fromkeys(pair for pair in _INPUT.findall(graph) if not _PARAMETER.search(pair[0]))
    texts = [f"{name.removeprefix('L_')}: {_STRIDES.sub(' ', kind)}" for name, kind in found]
    more = f", and {len(texts) - SHOWN_INPUTS} more" if len(texts) > SHOWN_INPUTS else ""
    return format_line(", ".join(texts[:SHOWN_INPUTS]) + more, 110) or "no tensor inputs"
