"""How two cache keys differ, as text: `name: old -> new`, one text per difference."""

from __future__ import annotations

import difflib
import re
from collections import Counter

from .key_components import CODE, GRAPH, USUAL, Component, Components, describe_component, parse_tensor_fields

#: A value in a difference is cut to this many characters.
VALUE_CHARS = 200
#: Differences shown, and lines shown of one graph.
MAX_DIFFERENCES, MAX_LINES = 24, 4
#: Longest graphs, in lines, that are aligned; longer ones are compared line by line.
MAX_ALIGNED = 1_000
ABSENT = "(absent)"
INPUT = "example_inputs["
#: Code that frees a value which is not used again; it ends a line of a graph.
FREED = re.compile(r";  (?:\w+ = )+None$")
#: The order of differences: what the user sets or passes comes before what follows from it.
ORDER = ("inductor_config", "autograd_config", "fx_kwargs", "aot_config", "example_inputs", "constant", *CODE)


def measure_distance(then: Components, now: Components) -> float:
    """Return how far two keys are apart: components that differ, plus the share of lines of each graph that does."""
    then = _align_inputs(then, now)
    names = _find_differing(then, now)
    return len(names) + sum(_measure_share(then.get(n), now.get(n)) for n in names if n.startswith(CODE))


def describe_differences(then: Components, now: Components) -> list[str]:
    """Return the differences between two keys, the causes first."""
    then = _align_inputs(then, now)
    names = sorted(_find_differing(then, now), key=_find_place)
    texts = [text for name in names for text in _describe_difference(name, then.get(name), now.get(name), names)]
    more = len(texts) - MAX_DIFFERENCES
    return texts if more <= 0 else [*texts[:MAX_DIFFERENCES], f"and {more} more"]


def _find_differing(then: Components, now: Components) -> list[str]:
    found = [name for name in {**then, **now} if not _is_same(then.get(name), now.get(name))]
    # The digest of a graph covers its constants: if it is the same, they made no difference.
    return found if GRAPH in found else [name for name in found if not name.startswith("constant[")]


def _align_inputs(then: Components, now: Components) -> Components:
    """Return `then` with its inputs numbered as in `now`, if one was added or removed (a size that became dynamic)."""
    before, after = _find_inputs(then), _find_inputs(now)
    if len(before) == len(after) or max(len(before), len(after)) > MAX_ALIGNED:
        return then
    old_texts, new_texts = ([component.text for component in inputs.values()] for inputs in (before, after))
    old, new = list(before), list(after)
    names: dict[str, str] = {}
    matcher = difflib.SequenceMatcher(None, old_texts, new_texts, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind in ("equal", "replace"):  # Sizes come before the tensors that have them, so the ends match.
            names.update(zip(reversed(old[i1:i2]), reversed(new[j1:j2]), strict=False))
    return {names.get(name, name.replace("[", "[old ") if name in before else name): c for name, c in then.items()}


def _find_inputs(key: Components) -> Components:
    return {name: component for name, component in key.items() if name.startswith(INPUT)}


def _is_same(old: Component | None, new: Component | None) -> bool:
    return old is not None and new is not None and (old is new or old.same_as(new))


def _find_place(name: str) -> tuple[int, int]:
    place = next((place for place, head in enumerate(ORDER) if name.startswith(head)), -1)
    number = re.search(r"\d+", name) if name.startswith(INPUT) else None
    return place, int(number[0]) if number else 0


def _describe_difference(name: str, old: Component | None, new: Component | None, names: list[str]) -> list[str]:
    if old is None or new is None:
        return [f"{name}: {_format_value(old)} -> {_format_value(new)}"]
    if old.text == new.text:
        return _describe_hidden(name, names)
    if name.startswith(CODE):
        return _describe_lines(name, old.text, new.text)
    before, after = parse_tensor_fields(old.text), parse_tensor_fields(new.text)
    if before and after:
        changed = [field for field in {**before, **after} if before.get(field) != after.get(field)]
        return [f"{name} {field}: {_format_field(before, field)} -> {_format_field(after, field)}" for field in changed]
    return [f"{name}: {' -> '.join(_show_difference(describe_component(old.text), describe_component(new.text)))}"]


def _describe_hidden(name: str, names: list[str]) -> list[str]:
    """Describe a component with the same text and another digest."""
    if name == GRAPH:
        # The digest of a graph covers its constants, its code does not; small ones are components of their own.
        return [] if any(n.startswith("constant[") for n in names) else ["graph: same code, other constants"]
    return [f"{name}: same text, other content"]


def _format_field(tensor: dict[str, str], name: str) -> str:
    return tensor.get(name) or USUAL.get(name, ABSENT).removeprefix("torch.")


def _format_value(component: Component | None) -> str:
    return ABSENT if component is None else _shorten_value(describe_component(component.text))


def _shorten_value(value: str) -> str:
    return value if len(value) <= VALUE_CHARS else value[: VALUE_CHARS - 3] + "..."


def _show_difference(old: str, new: str) -> tuple[str, str]:
    """Return two values; of long ones the part that differs."""
    if max(len(old), len(new)) <= VALUE_CHARS:
        return old, new
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(same - VALUE_CHARS // 4, 0)
    head = "..." if begin else ""
    return head + _shorten_value(old[begin:]), head + _shorten_value(new[begin:])


# Graphs


def _split_code(text: str) -> list[str]:
    """Return the lines of a graph's code from its `def`, without comments, empty lines and code that frees values."""
    lines = [FREED.sub("", line.strip()) for line in text.split("\n")]
    begin = next((i for i, line in enumerate(lines) if line.startswith("def ")), 0)
    return [line for line in lines[begin:] if line and not line.startswith("#")]


def _describe_lines(name: str, old: str, new: str) -> list[str]:
    """Describe the lines of code that differ, numbered from the `def`, which is line 1."""
    label = "graph" if name == GRAPH else name
    before, after = _split_code(old), _split_code(new)
    pairs = _pair_lines(before, after)
    texts = [
        f"{label} line {at}: {_shorten_value(a or ABSENT)} -> {_shorten_value(b or ABSENT)}"
        for at, a, b in pairs[:MAX_LINES]
    ]
    if len(pairs) > MAX_LINES:
        texts.append(f"{label}: {len(pairs) - MAX_LINES} more of {len(after)} lines differ")
    return texts or [f"{label}: the first {len(after)} lines are the same, later lines are not stored"]


def _pair_lines(before: list[str], after: list[str]) -> list[tuple[int, str | None, str | None]]:
    """Return (line number in the new graph, old line, new line) of each line that differs."""
    if max(len(before), len(after)) > MAX_ALIGNED:
        both = zip(before, after, strict=False)
        return [(at, a, b) for at, (a, b) in enumerate(both, 1) if a != b]
    found: list[tuple[int, str | None, str | None]] = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for step in range(max(i2 - i1, j2 - j1)):
            old = before[i1 + step] if i1 + step < i2 else None
            new = after[j1 + step] if j1 + step < j2 else None
            found.append((j1 + step + 1, old, new))
    return found


def _measure_share(old: Component | None, new: Component | None) -> float:
    """Return the share of lines that two codes do not have in common, 0 to 1."""
    if old is None or new is None:
        return 1.0
    before, after = (Counter(component.text.split("\n")) for component in (old, new))
    lines = max(before.total(), after.total(), 1)
    return 1 - (before & after).total() / lines
