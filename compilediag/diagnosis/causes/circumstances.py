"""Add to an advice what is known of the calls that recompiled: a graph break before them, the thread they ran in."""

from __future__ import annotations

from dataclasses import replace

from ..break_remedies import describe_remedy
from .advice import Advice, list_changes
from .cause import MODES, Cause
from .source_paths import is_stack_value

#: The first version of torch in which what is set in one thread is not in force in another.
THREAD_SETTINGS_SINCE = (2, 12)
_SECOND_CALL = (
    "No change is needed: under the stance aot_eager_then_compile torch compiles the first call with aot_eager, and "
    "the next call with other inputs with the backend of torch.compile."
)


def add_circumstances(advice: Advice, cause: Cause) -> Advice:
    """The advice with what the stance, the graph break and the thread of its recompiles add to it."""
    if cause.facts.replaces_aot_eager:
        return replace(advice, action=_SECOND_CALL, explanation="", changes=(), ceiling="low", is_expected=True)
    return _add_thread(_add_graph_break(advice, cause), cause)


def _add_graph_break(advice: Advice, cause: Cause) -> Advice:
    """A value that a graph break hands over has no name to change: the break itself is what has to go."""
    breaks = cause.facts.graph_breaks
    if not breaks or not is_stack_value(cause.source):
        return advice
    change, text = describe_remedy(breaks)
    remove = f"Remove the graph break at line {breaks[0].user_line}, which hands this value over. {text}"
    settings = tuple(one for one in advice.changes if one.settings)
    changes = (*list_changes(change or remove), *settings)
    return replace(advice, action=remove, changes=changes, is_expected=False)


def _add_thread(advice: Advice, cause: Cause) -> Advice:
    """Modes belong to a thread, and since torch 2.12 settings too: those of one are not in force in another."""
    thread = cause.facts.thread
    if thread is None:
        return advice
    if cause.family in MODES:
        return replace(
            advice,
            action=f"{advice.action.rstrip('.')}: set it inside the function of the thread, {thread}.",
            explanation="The call ran in another thread, and each thread has its own gradient mode and autocast. "
            + advice.explanation,
            changes=list_changes(f"{advice.action.rstrip('.')}: set it inside {thread}."),
            is_expected=False,
        )
    if advice.fix is None or cause.facts.torch_version < THREAD_SETTINGS_SINCE:
        return advice
    text = f"The calls ran in another thread: set it inside {thread}, because settings are in force in one thread."
    return replace(advice, explanation=f"{text} {advice.explanation}")
