"""Find graph breaks by reason and line, and what removes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...decode.call_stacks import find_torch_path, is_called_code, is_torch_file
from ...decode.records.torch_messages import parse_graph_break
from ...document import BREAK_PAGE
from ...events import Compile, GraphBreak, Recompile, Rows
from ...formatting import (
    format_amount,
    format_line,
    format_names,
    format_place,
    get_basename,
    get_class_name,
    parse_resumed,
)
from ..causes.call_sites import find_call_fields
from ..causes.value_facts import find_threads
from ..change import CodeChange, place_settings
from ..evidence import Evidence, find_first, group_by, kept_of, sum_seconds
from ..finding import Finding, get_whole_function
from ..rule import Rule, report

#: From so many breaks at one line on, the severity is medium.
MANY_BREAKS = 5
_BREAK = Rule(
    "graph_break",
    title="graph break at {where}, {times}: {reason}",
    action="{advice}",
    many=MANY_BREAKS,
    is_at_user_line=True,
    docs="breaks",
)
_STORM = Rule(
    "graph_break_storm",
    title="graph breaks at {where}, {times}: {reason}",
    action="{advice}",
    why="Each graph break splits the function into compiled parts with eager code between.",
    severity="medium",
    worth_count=3,
    docs="breaks",
)
RULES = (_BREAK, _STORM)

#: The setting with the functions that torch calls after the graph.
_MOVED = "reorderable_logging_functions"
#: The setting with the methods of loggers that torch leaves out.
_IGNORED = "ignore_logging_functions"
#: torch's id of a graph break -> the setting that removes it, as its hints say (torch/_dynamo/graph_break_registry.json
#: of 2.11, 2.13 and 2.15). A session that is shared may have no hints, and a kind of break of another torch no id here.
#: `allow_rnn` is left out: what torch 2.13 compiles of an LSTM for the CPU raises.
_SETTINGS = {
    "GB0036": "capture_dynamic_output_shape_ops",
    "GB0075": "enable_trace_load_build_class",
    "GB0105": "trace_numpy",
    "GB0123": "trace_autograd_ops",
    "GB0124": "capture_scalar_outputs",
    "GB0231": "trace_numpy",
    "GB0263": "enable_trace_contextlib",
    "GB0291": _IGNORED,
    "GB0293": "trace_numpy",
    "GB0298": "use_numpy_random_stream",
    "GB0328": "inline_inbuilt_nn_modules",
    "GB8977": "enable_trace_load_build_class",
    "GB9186": "trace_autograd_ops",
}
#: The settings that remove a break where they are False; the others do where they are True.
_IF_OFF = ("use_numpy_random_stream",)
#: A setting in a hint. One of torch's hints leaves out `config`: "Set torch._dynamo.trace_autograd_ops=True".
_SETTING = re.compile(r"torch\._dynamo\.(?:config\.)?(\w+)")
_LOGGER = re.compile(r"(?<!\w)(?<!\w\.)((?:\w+\.)*\w+\.(?:debug|info|warning|error|critical|exception|log))\(")
_PRINT = re.compile(r"\b(print|(?:warnings\.)?warn)\(")
#: torch's words for a call with keyword arguments. When torch moves it, it drops them, or refuses from 2.15 on.
_KEYWORDS = "has_kwargs True"
#: In torch's words for a call, a type that it does not move; it moves tensors, constants and formatted texts.
_CONTAINERS = re.compile(r"argument types \[[^\]]*'(?:tuple|Size|list|dict|set|frozenset)'")
#: torch's words for the function that it was called to trace: a built-in one, a method of a logger.
_BUILTIN = re.compile(r"calling builtin `(\w+)`")
_METHOD = re.compile(r"method: <\w*Logger [^\n]*>\.(\w+), args: ")
#: torch's id of a graph break at a branch on the values of a tensor.
_BRANCH = "GB0170"
_LOOP = re.compile(r"\s*while\b")
_KNOWN_COUNT = (
    "Loop a number of times that is known before, `for step in range(n)`, or compile the body of the loop and not the "
    "loop: the end of this one depends on a tensor."
)
#: torch's id of a graph break at which it gives up on the function that has the call -> how to keep the rest compiled.
CALLS_TO_DISABLE = {
    "GB0014": "Call it in a method of its own with @torch.compiler.disable: torch then compiles what is around it.",
}
#: Hints for those who develop torch, not for those who use it.
_FOR_DEVELOPERS = re.compile(r"\b(?:report|file) an issue\b|\btracing rules\b|\bDynamo bug\b")
_MOVE_OUT = "torch cannot trace this call. Move it out of the compiled function, to its callers."
_CALLED_BRANCH = (
    "The branch is in a function that this line calls. Call it outside of the compiled function, or with arguments "
    "that need no branch on the values of a tensor."
)
_CAN_BRANCH = re.compile(r"\b(?:if|elif|while|assert|and|or|not|bool|any|all)\b")
_TEXTS = {
    _IGNORED: "Add the logging method to torch._dynamo.config.ignore_logging_functions.",
    _MOVED: "Add the function to torch._dynamo.config.reorderable_logging_functions.",
}


#: torch's id of a call of `torch._dynamo.graph_break()`.
_ON_PURPOSE = "GB0025"
#: Files of torch with what models are made of. The others run models and functions: wrappers, optimizers, hooks.
_OF_MODELS = re.compile(r"nn/(?:modules/|functional\.py$|utils/)")


def list_breaks(data: Rows) -> list[GraphBreak]:
    """The graph breaks that a user can change: those between two graphs, and those at which torch gave up on the
    function.
    """
    return [row for row in list_all_breaks(data) if not is_torchs_own(Evidence.of(data), row)]


def list_own_breaks(data: Rows) -> list[GraphBreak]:
    """The graph breaks of torch's own code, see `is_torchs_own`."""
    return [row for row in list_all_breaks(data) if is_torchs_own(Evidence.of(data), row)]


def list_all_breaks(data: Rows) -> list[GraphBreak]:
    """All graph breaks, torch's own included."""
    failed = (row for row in data.rows(Compile) if row.outcome == "failed" and row.limit is None)
    return [*data.rows(GraphBreak), *(read_break(row) for row in failed if is_break(row))]


def is_torchs_own(evidence: Evidence, row: GraphBreak) -> bool:
    """True for a break in code of torch that runs a user's model or function, such as DistributedDataParallel or an
    optimizer. What torch compiled there contains no line of the user's, and no setting removes the break; or torch
    breaks the graph on purpose, in a function that the user calls.
    """
    if row.break_id == _ON_PURPOSE and row.user_code and "graph_break" not in row.user_code:
        return True
    compiles = evidence.by_compile(Compile).get(row.compile_key, ())
    compiled = next((each.file for each in compiles if each.file), row.user_file) or ""
    if not (is_called_code(row.user_file or "") and is_called_code(compiled)) or find_remedy(row) is not None:
        return False
    # A context manager or a decorator of torch is a function of Python's library, which torch calls.
    callers = (frame.file or "" for frame in evidence.stacks.walk(evidence.stacks.find(row.compile_key)))
    files = (row.user_file or "", compiled, *callers)
    caller = next((each for each in files if is_torch_file(each) or not is_called_code(each)), "")
    return is_torch_file(caller) and not _OF_MODELS.match(find_torch_path(caller) or "")


def is_break(row: Compile) -> bool:
    """True for a compile that ended at a graph break."""
    return get_class_name(row.fail_type) == "Unsupported"


def read_break(row: Compile, text: str | None = None) -> GraphBreak:
    """The graph break that a compile ended at, by torch's `text` on it. The code is the call that it names."""
    text = text or row.fail_reason or ""
    builtin, method = _BUILTIN.search(text), _METHOD.search(text)
    called = builtin[1] if builtin else f"logging.Logger.{method[1]}" if method else None
    return replace(
        parse_graph_break(text, row.time_ns, row.compile_id, row.user_file, row.user_line),
        user_code=f"{called}()" if called else None,
        compile_key=row.compile_key,
    )


def find_remedy(row: GraphBreak) -> CodeChange | None:
    """The change that removes a graph break, where torch has one for it; None if the code has to be changed."""
    hints, code = " ".join(row.hints or ()), row.user_code or ""
    named = (name for name in _SETTING.findall(hints) if name in (_MOVED, *_SETTINGS.values()))
    name = next(named, None) or _SETTINGS.get(row.break_id or "")
    if row.break_id in CALLS_TO_DISABLE:
        return CodeChange(text=CALLS_TO_DISABLE[row.break_id])
    if name == _IGNORED:
        return _register(name, _LOGGER.search(code))
    if name == _MOVED:
        found = _PRINT.search(code)
        if found and _KEYWORDS in (row.explanation or ""):
            return CodeChange(
                text=f"Call {found[1]} without keyword arguments, which torch drops when it moves the call."
            )
        if found and _CONTAINERS.search(row.explanation or ""):
            code = _register(name, found).text
            text = f"Give {found[1]} one f-string, as torch moves no tuple or list, and before the first compiled call"
            return CodeChange(text=f"{text}: {code}.")
        return _register(name, found) if found else None
    return CodeChange(settings={name: name not in _IF_OFF}) if name else None


def _register(setting: str, found: re.Match[str] | None) -> CodeChange:
    return CodeChange(text=f"torch._dynamo.config.{setting}.add({found[1]})" if found else _TEXTS[setting])


def is_inlined(evidence: Evidence, rows: Sequence[GraphBreak]) -> bool:
    """True if the function with the line of these breaks is part of another one's graph, and compiled for itself only
    because of them.
    """
    compiles = evidence.by_compile(Compile)
    firsts = (compiles[row.compile_key][0] for row in rows if row.compile_key in compiles)
    return len({(row.file, get_whole_function(row.function)) for row in firsts}) > 1


def describe_remedy(rows: Sequence[GraphBreak], evidence: Evidence | None = None) -> tuple[CodeChange | None, str]:
    """The change that removes these graph breaks, or None, and what to do: that change in words, or torch's hint."""
    change = next((found for row in rows if (found := find_remedy(row)) is not None), None)
    if change is not None and _MOVED in change.code and evidence is not None and is_inlined(evidence, rows):
        # Calls that are moved belong to the frame that is traced, and only those of the outermost one are made
        # (torch 2.13, OutputGraph.codegen_suffix).
        why = "in a function that torch inlines, as here, it prints nothing once torch moves it"
        change = CodeChange(text=f"Remove the call, or move it to the callers: {why}.")
    if change is not None:
        before = "Before the first compiled call: "
        return change, change.code if change.code.endswith(".") else f"{before}{change.code}."
    if any(row.break_id == _BRANCH and _LOOP.match(row.user_code or "") for row in rows):
        return CodeChange(text=_KNOWN_COUNT), _KNOWN_COUNT
    if all(row.break_id == _BRANCH and row.user_code and not _CAN_BRANCH.search(row.user_code) for row in rows):
        return CodeChange(text=_CALLED_BRANCH), _CALLED_BRANCH
    hints = next((row.hints for row in rows if row.hints), [])
    explanation = next((row.explanation for row in rows if row.explanation), "")
    hint = format_line(find_hint(hints) if hints else explanation, 300)
    text = f"{_MOVE_OUT} {hint}".strip() if hints and find_hint(hints[:1]) == "" else hint
    return None, f"{text}." if text and text[-1].isalnum() else text


def find_hint(hints: Iterable[str]) -> str:
    """torch's first hint for users; "" if there is none."""
    return next((hint for hint in hints if not _FOR_DEVELOPERS.search(hint)), "")


#: What a finding on many lines has of the line with the most breaks.
_OF_LINE = ("fix", "changes", "file", "line", "user_file", "user_line", "user_code")
_BREAK_ID = re.compile(r"GB\d{1,6}", re.ASCII)


@kept_of(GraphBreak)
def find_graph_breaks(evidence: Evidence) -> list[Finding]:
    """One finding per kind of break and line, or per file if it breaks at many lines."""
    users = [row for row in evidence.rows(GraphBreak) if not is_torchs_own(evidence, row)]
    groups = group_by(users, lambda row: (row.break_id, row.reason, row.user_file))
    # The recompiles of code after a graph break, each with the line of that break.
    recompiles = ((row, parse_resumed(row.function)) for row in evidence.rows(Recompile))
    resumed = [(row, found[1]) for row, found in recompiles if found is not None]
    findings = []
    for rows in groups.values():
        by_line = group_by(rows, lambda row: row.user_line)
        is_storm = len(by_line) >= _STORM.worth_count
        for own in [rows] if is_storm else by_line.values():
            finding = _report_storm(evidence, own, by_line) if is_storm else _report_break(evidence, own)
            # Without these graph breaks there is no code after them, so its recompiles are theirs.
            breaks = {(row.user_file, row.user_line) for row in own}
            if caused := [row for row, line in resumed if (row.file, line) in breaks]:
                count = format_amount(len(caused), "recompile")
                finding = replace(
                    finding,
                    severity="medium",
                    seconds_at_stake=sum_seconds(row.lost_s for row in caused),
                    suggestion=f"{finding.suggestion} The code after it is compiled by itself: {count} of it.",
                )
            findings.append(replace(finding, **find_call_fields(evidence, own)))
    return findings


def _report_storm(evidence: Evidence, rows: list[GraphBreak], by_line: dict[int | None, list[GraphBreak]]) -> Finding:
    most = max(by_line.values(), key=len)
    lines = format_names([str(line) for line in sorted(line for line in by_line if line is not None)], 8)
    file = get_basename(find_first(row.user_file for row in rows) or "unknown file")
    one = _report_break(evidence, most)
    code = dict.fromkeys(format_line(row.user_code) for row in rows if row.user_code)
    return report(
        _STORM,
        rows,
        {"where": f"{len(by_line)} lines of {file} ({lines})", "advice": _advise(evidence, rows)},
        details=tuple(code),
        **{name: getattr(one, name) for name in _OF_LINE},
    )


def _report_break(evidence: Evidence, rows: list[GraphBreak]) -> Finding:
    file, line = find_first(row.user_file for row in rows), find_first(row.user_line for row in rows)
    code = find_first(row.user_code for row in rows)
    remedy, text = describe_remedy(rows, evidence)
    threads = find_threads(evidence).list_all(rows)
    return report(
        _BREAK,
        rows,
        {"where": format_place(file, line) or "unknown line", "advice": _advise(evidence, rows)},
        fix=remedy.settings if remedy else None,
        changes=(place_settings(remedy or CodeChange(text=text), threads),) if remedy or text else (),
        file=file,
        line=line,
        details=(format_line(code),) if code else (),
    )


def _advise(evidence: Evidence, rows: list[GraphBreak]) -> str:
    """What removes it, or torch's own hint, and its page on this kind of break."""
    _, advice = describe_remedy(rows, evidence)
    break_id = find_first(row.break_id for row in rows)
    page = f"See {BREAK_PAGE}{break_id.lower()}.html." if break_id and _BREAK_ID.fullmatch(break_id) else ""
    return " ".join(part for part in (advice, page) if part) or "torch gave no hint."
