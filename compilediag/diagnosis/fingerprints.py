"""Names of causes that are the same in other sessions: after edits elsewhere in a file, on other ranks and machines, in
other versions of torch, in a notebook and in a script.

A fingerprint is a digest of what is found, the function, the name of the file, the guarded value or the line of code,
and the kind of guard. It has no values, no line numbers and no folders. The program itself has no file name: a cell of
a notebook and a script can have the same code. Causes that are alike in all of these are numbered in the order of their
lines.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..events import Compile
from ..formatting import get_basename, parse_resumed
from ..system.program import read_program
from ..system.source_files import find_cell_number
from .causes.call_sites import read_own_code
from .evidence import Evidence, find_first, kept_after
from .finding import Finding


def make_fingerprint(
    what: str,
    function: str | None,
    file: str | None,
    expression: str | None = None,
    kind: str | None = None,
    number: int = 1,
) -> str:
    """The fingerprint of a cause; `file` is a name without its folders, None for the program itself."""
    resumed = parse_resumed(function)
    parts = [what, resumed[0] if resumed else function, file, expression, kind, str(number) if number > 1 else None]
    text = "\0".join(part or "" for part in parts)
    return f"f-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:10]}"


def name_findings(evidence: Evidence, findings: Iterable[Finding], what: str | None = None) -> list[Finding]:
    """The findings with fingerprints; those that have one keep it.

    `what` is what is found, by default the rule. Rules about guards differ with what was recorded: a log lacks most of
    the values by which a live session recognizes a counter. Their causes have one name, whatever rule explains them.
    """
    found, program, seen = list(findings), find_program_file(evidence), Counter[tuple[str | None, ...]]()
    named: dict[int, str] = {}
    for at in sorted(range(len(found)), key=lambda at: _get_lines(found[at])):
        one = found[at]
        if not one.fingerprint:
            resumed = parse_resumed(one.function)
            function = resumed[0] if resumed else one.function
            file = name_file(one.file or one.user_file, program)
            parts = (what or one.rule, function, file, one.source or one.user_code, one.kind)
            seen[parts] += 1
            named[at] = make_fingerprint(what or one.rule, *parts[1:], number=seen[parts])
    return [replace(one, fingerprint=named[at]) if at in named else one for at, one in enumerate(found)]


def _get_lines(finding: Finding) -> tuple[str, int, int, int, tuple[int, ...]]:
    lines = finding.line or 0, finding.user_line or 0, finding.call_line or 0
    return finding.file or finding.user_file or "", *lines, finding.evidence[:1]


def name_file(file: str | None, program: str | None = None) -> str | None:
    """The name of a file in a fingerprint; None for the program itself, be it a script or a cell."""
    if file is None or find_cell_number(file) is not None:
        return None
    name = get_basename(file)
    return None if name == program else name


@kept_after("meta", Compile)
def find_program_file(evidence: Evidence) -> str | None:
    """The name of the script that ran: as recorded, or in logs the file of the first call outside of all functions.

    Logs leave out the frame that calls a compiled function. If there is no other one, the function is taken for one of
    the script.
    """
    program = read_program(evidence.meta)
    if program is not None:
        return get_basename(program.script) if program.script else f"{(program.module or '').rpartition('.')[2]}.py"
    own, stacks = read_own_code(evidence), evidence.stacks
    frames = [
        frame
        for row in evidence.rows(Compile)
        for frame in stacks.walk(row.stack)
        if frame.file is not None and own.is_own(frame.file)
    ]
    outside = find_first(frame.file for frame in frames if frame.function == "<module>")
    found = outside or find_first(frame.file for frame in frames)
    return None if found is None else get_basename(found)
