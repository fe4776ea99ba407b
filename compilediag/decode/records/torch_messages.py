"""torch's messages, parsed: the text of a graph break, which torch writes for people with fixed headings, and those
about CUDA graphs: why one was skipped, which invariant broke and for which input.

torch makes the latter in torch/_inductor/cudagraph_utils.py, output_code.py, compile_fx.py and cudagraph_trees.py,
read at torch 2.11, 2.13 and 2.15.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...events import GraphBreak
from ...formatting import SEARCHED, parse_resumed
from ..call_stacks import cut_stack, find_code, find_user_line

_PREFIX = re.compile(r"^(?:(?:skipping|disabling) cudagraphs? due to )+")
_STACK = re.compile(r"[.,:]?(?<!\s)\s*Found from ?:?\s*")
_LIMIT = re.compile(
    r"function (?P<function>\d+) exceeding max re-recording limit \(=(?P<limit>\d+)\) "
    r"on cudagraph node \S+ due to (?P<why>.*?)\.?\s*$",
    re.S,
)
#: torch 2.15, with cudagraph_managed_input_rerecord_action = "skip"
_THRESHOLD = re.compile(
    r"function (?P<function>\d+) reaching the cudagraph-managed input re-recording threshold \(=(?P<limit>\d+)\) "
    r"on cudagraph node \S+ for input indices \[(?P<places>[\d, ]*)\]"
)
#: torch 2.15
_SIZES = re.compile(
    r"\[(?P<compile>[^\]]*)\] (?P<mode>\w+) graph hit "
    r"(?P<what>cudagraph_dynamic_shape_rerecord_limit=\d+); (?P<rest>.*)"
)
_CHANGED = re.compile(
    r"input name: (?P<name>.*?)\. data pointer changed from \S+ to \S+\. "
    r"input stack trace: (?P<stack>.*?)(?=\ninput name: |\Z)",
    re.S,
)
_OVERWRITTEN = re.compile(r"accessing (?:gradient )?tensor output of CUDAGraphs that has been overwritten")
_OUTPUT = re.compile(r" Stack trace: (?P<stack>.*?)(?:\. (?:To prevent overwriting|This can happen with)\b.*)?\Z", re.S)
_MANAGED = "CudagraphManagedIdxMismatch"
#: torch's text for an invariant -> the name of the invariant.
_INVARIANTS = {
    "cudagraph managed tensor data pointer changed": _MANAGED,
    "static input data pointer changed": "StaticInputIdxMismatch",
    "expected dead indices before graph are live": "ExpectedDeadIndicesBeforeGraphMismatch",
}
#: Names shown of the inputs that changed.
MAX_INPUTS = 3


def parse_skip(message: str, stack: str = "") -> dict[str, Any]:
    """Return reason, user_file, user_line and user_code of a skip; `stack` is used if the message has no stack."""
    body = _PREFIX.sub("", message[:SEARCHED].strip())
    reason, *found = _STACK.split(body, maxsplit=1)
    reason = " ".join(reason.split()).strip(" .,")
    if reason.startswith("[") and reason.endswith("]"):
        reason = reason[1:-1].replace("'", "")
    if reason == "multiple devices:":
        reason = "no CUDA device in the graph"
    return {"reason": reason or None, **find_user_columns(found[0] if found else stack)}


def parse_limit(message: str, placeholders: Sequence[str]) -> dict[str, Any] | None:
    """Return the columns of the message after which torch runs a function without CUDA graphs; None for any other."""
    message = message[:SEARCHED]
    if found := _THRESHOLD.search(message):
        places = [int(place) for place in found["places"].split(",") if place.strip()]
        reason = f"the address of an input changed {found['limit']} times (cudagraph_managed_input_rerecord_limit)"
        return {"mismatch": _MANAGED, "reason": reason, "input": _name_places(places, placeholders)}
    found = _LIMIT.search(message)
    if found is None:
        return None
    why = parse_mismatch(found["why"], placeholders)
    return {**why, "reason": f"re-recorded more than {found['limit']} times, the last time as: {why['reason']}"}


def describe_demotion(places: Sequence[int], placeholders: Sequence[str]) -> dict[str, Any]:
    """Return the columns of inputs, by position, that torch copies before each replay from now on."""
    return {
        "mismatch": _MANAGED,
        "reason": "its address changed too often, so torch copies it before each replay from now on "
        "(cudagraph_managed_input_rerecord_limit)",
        "input": _name_places(places, placeholders),
    }


def parse_size_limit(message: str) -> dict[str, Any] | None:
    """Return compile_id, mode and reason of torch's warning that new sizes run eagerly; None for another message."""
    found = _SIZES.match(message[:SEARCHED])
    if found is None:
        return None
    compile_id = found["compile"] if found["compile"] not in ("", "None") else None
    return {"compile_id": compile_id, "mode": found["mode"], "reason": f"{found['what']}; {found['rest']}".strip(" .")}


def parse_mismatch(text: str, placeholders: Sequence[str]) -> dict[str, Any]:
    """Return mismatch, reason, input and the user's line of torch's text about a broken invariant.

    `placeholders` are the names of the inputs, in order.
    """
    text = text[:SEARCHED]
    words, _, _ = text.partition("\n")
    words = words.strip(" .")
    changed = list(_CHANGED.finditer(text))
    return {
        "mismatch": _INVARIANTS.get(words),
        "reason": words or None,
        "input": _name_inputs([c["name"] for c in changed], placeholders),
        **find_user_columns(next((c["stack"] for c in changed if c["stack"] != "None"), "")),
    }


def is_overwritten(message: str) -> bool:
    """Return True for torch's error at the use of an output whose memory a later run has overwritten."""
    return _OVERWRITTEN.search(message) is not None


def parse_overwritten(message: str) -> dict[str, Any]:
    """Return the reason and the line that made the output, from torch's error at its use."""
    message = message[:SEARCHED]
    stack = _OUTPUT.search(message)
    reason = " ".join(message.partition(" Stack trace: ")[0].split())
    return {"reason": reason, **find_user_columns(stack["stack"] if stack else "")}


def _name_inputs(names: Sequence[str], placeholders: Sequence[str]) -> str | None:
    """Format the names of inputs as `primals_3 (input 2)`; of several the first few."""
    places = {name: place for place, name in enumerate(placeholders)}
    return _join_inputs([f"{n} (input {places[n]})" if n in places else n for n in names])


def _name_places(places: Sequence[int], placeholders: Sequence[str]) -> str | None:
    """Format positions of inputs in the same way."""
    names = dict(enumerate(placeholders))
    return _join_inputs([f"{names[p]} (input {p})" if p in names else f"input {p}" for p in places])


def _join_inputs(texts: Sequence[str]) -> str | None:
    more = len(texts) - MAX_INPUTS
    return (", ".join(texts[:MAX_INPUTS]) + (f" and {more} more" if more > 0 else "")) or None


def find_user_columns(stack: str) -> dict[str, Any]:
    """Return the user's line in a stack as columns."""
    file, line, code = find_user_line(stack) or (None, None, None)
    return {"user_file": file, "user_line": line, "user_code": code}


BREAK_ID = re.compile(r"\bgb(\d{4})\b", re.IGNORECASE)
#: A graph break in a log: the user's line and the reason, then the user's stack after another heading.
LOGGED = re.compile(
    r"Graph break in user code at (?P<file>[^\n]*):(?P<line>\d{1,9})\n(?:Graph Break )?Reason: ",
)
STACK = re.compile(r"\n\n?User code traceback:\n")
#: Prefix that a log adds to the reason of a break at a call.
LED_IN = re.compile(r"Encountered graph break when attempting to trace [^\n]*:\n+")
_UP_TO_NEXT = r"(.*?)(?=^  Hint: |^  Developer debug context: |\Z)"
EXPLANATION = re.compile(rf"^  Explanation: {_UP_TO_NEXT}", re.DOTALL | re.MULTILINE)
HINT = re.compile(rf"^  Hint: {_UP_TO_NEXT}", re.DOTALL | re.MULTILINE)


def parse_graph_break(
    text: str,
    time_ns: int,
    compile_id: str | None,
    user_file: str | None = None,
    user_line: int | None = None,
    user_code: str | None = None,
    compile_key: str | None = None,
) -> GraphBreak:
    """Parse torch's reason for a break. The user's line is added if it is known."""
    break_id = BREAK_ID.search(text)
    explanation = EXPLANATION.search(text)
    hints = [_join_lines(hint) for hint in HINT.findall(text)]
    return GraphBreak(
        time_ns=time_ns,
        compile_id=compile_id,
        compile_key=compile_key,
        reason=_join_lines(text.strip().partition("\n")[0]) or None,
        break_id=f"GB{break_id[1]}" if break_id else None,
        explanation=_join_lines(explanation[1]) if explanation else None,
        hints=[h for h in hints if h] or None,
        user_file=user_file,
        user_line=user_line,
        user_code=user_code,
    )


def parse_logged_break(
    text: str,
    time_ns: int,
    compile_id: str | None,
    compile_key: str | None = None,
    function: str | None = None,
    file: str | None = None,
) -> GraphBreak | None:
    """Parse the artifact of a break in a log. `function` and `file` are those of the compiled function.

    None for a frame that torch skips because of a break: it reports that break a second time.
    """
    found = LOGGED.match(text)
    if found is None:
        return None
    reason, *rest = STACK.split(text[found.end() :], maxsplit=1)
    # torch's own stack follows, as a traceback.
    reason, stack = LED_IN.sub("", reason, count=1), "".join(rest).partition("\nTraceback (most recent call last):")[0]
    # The stack begins outside of the compiled function, and has the function itself for the code after a break in it.
    resumed = parse_resumed(function)
    line = find_user_line(cut_stack(stack, resumed[0] if resumed else function or "", file or ""))
    innermost = found["file"], int(found["line"])
    place = line or (*innermost, find_code(stack, *innermost))
    return parse_graph_break(reason, time_ns, compile_id, *place, compile_key)


def _join_lines(text: str) -> str:
    return " ".join(text.split())
