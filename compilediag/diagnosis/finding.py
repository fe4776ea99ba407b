"""A finding: one thing that cost time, why it happened, and what to change; and the name of its cause."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..document import Block, Code, CodeBlock, Items, Lines, Para, Place, shorten_items, to_html
from ..events import Compile
from ..formatting import find_cell_number, format_line, format_names, format_place, get_basename, parse_resumed
from ..system.program import read_program
from .causes.call_sites import read_own_code
from .change import CodeChange, Settings
from .evidence import Evidence, find_first, kept_after

SEVERITIES = ("high", "medium", "low")

#: Characters of a title, and findings that a notebook shows of a list.
MAX_TITLE, MAX_SHOWN = 500, 100

#: Steps that are listed one by one.
MAX_STEPS = 3

#: A cause has the first of these severities whose seconds or number it reaches: (severity, s lost, occurrences).
THRESHOLDS = (("high", 5.0, 5), ("medium", 1.0, 2))


@dataclass(frozen=True)
class Finding:
    """One cause, reported once however often it happened.

    `title` is what it cost and what changed, `suggestion` what to do and then why. `seconds_lost` (s) counts what was
    timed; the seconds of a "recompile_limit" finding are those of the recompiles that led to it, so the findings of its
    causes have them too. `seconds_at_stake` (s) also counts the recompiles of other causes at which this guard failed
    too, because they stay until both are fixed. `seconds_recoverable` (s) is what following the suggestion can save; it
    ranks findings. `count` is 0 for a guard that never failed first: its recompiles are counted elsewhere.
    `is_expected`: nothing can be saved, as where each compiled version is needed.

    `call_file` and `call_line` are the user's own line that calls into compiled code.

    `source` and `kind` are the guarded value and the kind of guard, `what_changed` says how the value changed.
    `places` are all functions that it affected, as (function, file, line); `function`, `file` and `line` are the first
    of them. `evidence` holds event ids, oldest first. `details` holds what was seen, in order of appearance (old value
    first). `cost` is what following the suggestion costs. `changes` are the ways to follow it, the preferred one
    first. `steps` are the program's own steps in which it happened (`compilediag.step`). `fingerprint` names the cause
    in every session (`docs/findings.md`). `fix` is the configuration of the first change that needs no edit, or None:

    - "dynamic_sources", "unbacked_sources": of `torch.compiler.config`,
    - "use_duck_shape": of `torch.fx.experimental._config`,
    - any other key: of `torch._dynamo.config`.
    """

    rule: str
    severity: str
    title: str
    seconds_lost: float
    evidence: tuple[int, ...]
    suggestion: str
    fix: Settings | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    count: int = 1
    details: tuple[str, ...] = field(default=())
    user_file: str | None = None
    user_line: int | None = None
    user_code: str | None = None
    call_file: str | None = None
    call_line: int | None = None
    source: str | None = None
    kind: str | None = None
    places: tuple[tuple[str | None, str | None, int | None], ...] = field(default=())
    seconds_at_stake: float = 0.0
    cost: str | None = None
    what_changed: str | None = None
    changes: tuple[CodeChange, ...] = field(default=())
    is_expected: bool = False
    steps: tuple[int, ...] = ()
    fingerprint: str = ""

    @property
    def seconds_recoverable(self) -> float:
        """s that following the suggestion can save at most; 0.0 where every compiled version is needed."""
        return 0.0 if self.is_expected else max(self.seconds_lost, self.seconds_at_stake)

    @property
    def lines(self) -> tuple[tuple[str, int | None], ...]:
        """The lines to look at: your line that made the guard, the one that calls into compiled code, the function."""
        user, call = (self.user_file, self.user_line), (self.call_file, self.call_line)
        places = (user, call, (self.file, self.line))
        return tuple((file, line) for file, line in places if file)

    def _repr_html_(self) -> str:
        return to_html(Lines(*describe_finding(self)))


class FindingList(list[Finding]):
    """Findings, those first that can save most seconds. A notebook shows the first ones."""

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No findings.</p>"
        rest = (f": the list has {len(self)} findings.",)
        items = Items([describe_finding(finding) for finding in self], "numbered", rest)
        return to_html(shorten_items(items, MAX_SHOWN))


def describe_finding(finding: Finding) -> list[Block]:
    """What a finding says: its title, the user's line, the advice, and the change if a program can make it."""
    change = [CodeBlock(finding.changes[0].code)] if finding.changes and finding.changes[0].can_be_applied else []
    title = Para(format_line(finding.title, MAX_TITLE), strong=True)
    return [title, *locate_finding(finding), finding.suggestion, *change]


def locate_finding(finding: Finding) -> list[Block]:
    """The user's line that made the guard, or that calls it. The title of a graph break already has the place."""
    steps = [Para(format_steps(finding.steps))] if finding.steps else []
    if finding.user_code:
        place = format_place(finding.user_file, finding.user_line)
        code = Code(format_line(finding.user_code))
        return [Para("at ", Place(place), ": ", code) if place else Para(code), *steps]
    call = format_place(finding.call_file, finding.call_line)
    is_known = call and finding.source is None and finding.user_line is None
    return [*([Para("called at ", Place(call))] if is_known else []), *steps]


def format_steps(steps: Sequence[int]) -> str:
    """`at step 412`; `at steps 3, 7 and 412`; of many, `at 12 steps from 3 to 412`."""
    if len(steps) > MAX_STEPS:
        return f"at {len(steps)} steps from {min(steps)} to {max(steps)}"
    return f"at step{'s' if len(steps) > 1 else ''} {format_names([str(step) for step in steps])}"


def list_steps(rows: Iterable[object]) -> tuple[int, ...]:
    """The steps of the program in which events began, each once."""
    return tuple(dict.fromkeys(step for row in rows if (step := getattr(row, "step", None)) is not None))


def get_severity(seconds: float, count: int, ceiling: str = "high") -> str:
    """The severity of so many seconds (s) and occurrences, but no worse than `ceiling`."""
    severity = next((name for name, s, n in THRESHOLDS if seconds >= s or count >= n), "low")
    return max(severity, ceiling, key=SEVERITIES.index)


def make_rank_key(finding: Finding) -> tuple[float, bool, float, int, int, str, str, int, str, str, tuple[int, ...]]:
    """Sort findings: most seconds that can be saved first, a limit before its causes, then by severity and number."""
    is_cause = finding.rule != "recompile_limit"
    return (
        -finding.seconds_recoverable,
        is_cause,
        -finding.seconds_lost,
        SEVERITIES.index(finding.severity),
        -finding.count,
        finding.rule,
        finding.file or "",
        finding.line or 0,
        finding.function or "",
        finding.title,
        finding.evidence,
    )


# Names of causes that are the same in other sessions: after edits elsewhere in a file, on other ranks and machines, in
# other versions of torch, in a notebook and in a script.
#
# A fingerprint is a digest of what is found, the function, the name of the file, the guarded value or the line of code,
# and the kind of guard. It has no values, no line numbers and no folders. The program itself has no file name: a cell
# of a notebook and a script can have the same code. Causes that are alike in all of these are numbered in the order of
# their lines.


def get_whole_function(function: str | None) -> str | None:
    """The function that a resumed one, which torch compiles after a graph break, is a part of; any other by itself."""
    resumed = parse_resumed(function)
    return resumed[0] if resumed else function


def make_fingerprint(
    what: str,
    function: str | None,
    file: str | None,
    expression: str | None = None,
    kind: str | None = None,
    number: int = 1,
) -> str:
    """The fingerprint of a cause; `file` is a name without its folders, None for the program itself."""
    parts = [what, get_whole_function(function), file, expression, kind, str(number) if number > 1 else None]
    text = "\0".join(part or "" for part in parts)
    return f"f-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:10]}"


def name_findings(evidence: Evidence, findings: Iterable[Finding], what: str | None = None) -> list[Finding]:
    """The findings with fingerprints; those that have one keep it.

    `what` is what is found, by default the rule. Rules about guards differ with what was recorded: a log lacks most of
    the values by which a live session recognizes a counter. Their causes have one name, whatever rule explains them.
    """
    found, program, seen = list(findings), find_program_file(evidence), Counter[tuple[str | None, ...]]()
    named: dict[int, str] = {}
    places = [
        (one.file or one.user_file or "", one.line or 0, one.user_line or 0, one.call_line or 0, one.evidence[:1])
        for one in found
    ]
    for at in sorted(range(len(found)), key=places.__getitem__):
        one = found[at]
        if not one.fingerprint:
            file = name_file(one.file or one.user_file, program)
            parts = (what or one.rule, get_whole_function(one.function), file, one.source or one.user_code, one.kind)
            seen[parts] += 1
            named[at] = make_fingerprint(*parts, number=seen[parts])
    return [replace(one, fingerprint=named[at]) if at in named else one for at, one in enumerate(found)]


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
