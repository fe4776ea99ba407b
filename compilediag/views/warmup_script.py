"""A Python script that compiles what a session saw and saves torch's cache artifacts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..diagnosis.variants import Variants, list_inputs, list_variants
from ..errors import CompilediagError
from ..events import Compile
from ..formatting import (
    escape_controls,
    escape_lines,
    format_amount,
    format_function,
    format_line,
    format_seconds,
)
from ..storage.data import SessionData
from ..system.files import WARMUP, check_output, make_absolute, write_file
from ..system.program import read_program

#: What marks a place that the user has to fill in.
TODO = "# TODO:"

_HEADER = '''"""Compile what {what} compiled, and save torch's cache artifacts to {artifacts}.

Written by compilediag for torch {torch}: {amount}, {seconds} of compile time.
Run it once for each kind of machine and each version of torch, with the environment of the program:

    {launcher} {script}{arguments}

{stops}

In the next process, load the artifacts before the first compile:

    {load}
"""
'''
_LOAD = """import torch

    with open({artifacts!r}, "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())"""
#: A rank that begins to compile while another still reads would keep it waiting at the first collective.
_LOAD_RANK = """import os, torch

    torch.distributed.init_process_group(...)  # as the program does
    with open({artifacts!r}.replace("{{rank}}", os.environ["RANK"]), "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())
    torch.distributed.barrier()"""
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
_VARIANTS = """\
#: What has to be compiled: versions of each function, with a backward, and stored in torch's caches.
VARIANTS = ["""
_MAIN = """
if __name__ == "__main__":
    # The path is absolute before the program changes the folder.
    save_artifacts({arguments})
"""


def write_warmup(data: SessionData, path: str | os.PathLike[str], distributed: bool = False) -> Path:
    """Write the script; see `Session.warmup`."""
    target = make_absolute(path)
    check_output(target, WARMUP)
    variants = list_variants(data)
    if not variants:
        raise CompilediagError("nothing was compiled in this session, so there is nothing to warm up")
    # In a string of Python, an escape is the same character.
    write_file(target, escape_lines(format_warmup(data, variants, target.name, distributed)))
    return target


def format_warmup(data: SessionData, variants: list[Variants], script: str, distributed: bool) -> str:
    """The text of the script, to be saved under the name `script`."""
    program = read_program(data.meta)
    artifacts = f"{os.path.splitext(script)[0]}{'.{rank}' if distributed else ''}.artifacts"
    ranks = {row.rank for row in data.rows(Compile)}
    launcher = f"torchrun --nproc-per-node {len(ranks)}" if distributed else "python"
    header = _HEADER.format(
        what="the recorded program" if program else "the recorded session",
        torch=_escape(str(data.meta.get("torch_version"))),
        amount=format_amount(sum(found.count for found in variants), "compiled version"),
        seconds=format_seconds(sum(row.duration_s or 0.0 for row in data.rows(Compile))),
        arguments=" SCRIPT [ARGUMENTS]" if program else "",
        stops=_STOPS.format(command=_escape(f"python {program.command}")) if program else _CALLS,
        artifacts=artifacts,
        launcher=launcher,
        load=(_LOAD_RANK if distributed else _LOAD).format(artifacts=artifacts),
        script=script,
    )
    body = [_RUN] if program else _format_calls(variants, list_inputs(data))
    lines = [header, *body, "", _VARIANTS]
    for found in variants:
        place = f"{found.function!r}, {found.file!r}, {found.line}"
        counts = f"count={found.count}, backwards={found.backwards}, stored={found.stored}"
        lines.append(f"    Variants({place}, {counts}),")
    more = ", distributed=True" if distributed else ""
    return "\n".join([*lines, "]", "", _MAIN.format(arguments=f"run, VARIANTS, {artifacts!r}{more}")])


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
