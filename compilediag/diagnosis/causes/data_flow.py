"""What one call of the user's own code gives and a later one gets: `hidden = first(batch)`, then `second(hidden)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .cause import Cause
from .edits import get_user_value, parse_code
from .source_paths import is_size


def group_by_flow(causes: Sequence[Cause]) -> list[list[Cause]]:
    """The causes, those together that are one size in several calls of the user's function."""
    groups: list[list[Cause]] = []
    for cause in causes:
        found = next((group for group in groups if any(_is_passed_on(one, cause) for one in group)), None)
        if found is None:
            groups.append([cause])
        else:
            found.append(cause)
    return groups


def _is_passed_on(origin: Cause, cause: Cause) -> bool:
    """True if the size of `cause` changed as that of `origin` did, and its value is the same one or comes from it."""
    if not (is_size(origin.source) and is_size(cause.source)) or _get_change(origin) != _get_change(cause):
        return False
    first, second = origin.call_site, cause.call_site
    value, passed = get_user_value(origin), get_user_value(cause)
    if first is None or second is None or value is None or passed is None:
        return False
    if (first.file, first.function) != (second.file, second.function):
        return False
    return value == passed or passed in _list_results(first.code or "")


def _get_change(cause: Cause) -> tuple[object, ...]:
    return cause.values, cause.bounds, cause.is_still_static, cause.is_first


def _list_results(code: str) -> Iterator[str]:
    """The variables that an assignment gives new values."""
    tree = parse_code(code)
    statement = tree.body[0] if tree else None
    if isinstance(statement, ast.Assign):
        names = (node for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name))
        yield from (node.id for node in names)
