"""Edits at the user's line that calls into compiled code: a line before the call, or another argument in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..change import Edit
from ..inserted_code import is_known_code, is_shallow, parse_expression, write_argument, write_path
from .call_sites import CallSite
from .cause import Cause

#: A statement whose line cannot have another one before it that runs each time: a header of a loop, or a branch.
_HEADER = re.compile(r"(?:while|elif|else|except|finally|case|async|for|if|with|try)\b")
_RUNS_ONCE = re.compile(r"(?:if|with|for)\b")


def get_site(cause: Cause) -> CallSite | None:
    """The user's line that calls into compiled code; None if it is not known."""
    return cause.call_site


def get_user_value(cause: Cause) -> str | None:
    """The guarded value in the user's names at the call, without a tensor's property; None if it is not known."""
    return cause.user.value


def insert_before(site: CallSite, lines: tuple[str, ...]) -> tuple[Edit, ...]:
    """Put `lines` before the user's line; no edit if that is not possible there."""
    new = "\n".join(lines)
    if not lines or not site.code or not is_known_code(new) or not _can_insert(site, lines):
        return ()
    return (Edit(site.file, site.line, "insert_before", site.code, new, code=site.code),)


def _can_insert(site: CallSite, lines: tuple[str, ...]) -> bool:
    """False inside a loop's header or a branch on one line, and for names that a comprehension or lambda binds."""
    code = (site.code or "").strip()
    used = {name for line in lines for name in find_names(line)}
    tree = parse_code(code) or parse_code(f"{code}\n    pass") or parse_code(site.call or "")
    if tree is None or used & set(_list_bound_inside(tree)):
        return False
    if not _HEADER.match(code):
        return True
    # `if f(x):` and `for y in f(x):` evaluate the call once, before their body; `for x in xs: f(x)` does not.
    return bool(_RUNS_ONCE.match(code)) and code.endswith(":") and not used & set(_list_targets(tree))


def replace_argument(cause: Cause, form: str) -> tuple[Edit, ...]:
    """Give each of the user's calls the guarded value in one of ARGUMENT_FORMS; no edit if one of them does not have it
    as an argument, or if it is no path, which can be evaluated again without doing something twice.
    """
    named = {one.site: one.names.get(cause.source) for one in cause.user.sites}
    site = get_site(cause)
    if site is not None:
        named[site] = get_user_value(cause)
    edits = [_replace_at(site, value, form) for site, value in named.items()]
    return tuple(edit for found in edits for edit in found) if all(edits) else ()


def _replace_at(site: CallSite, value: str | None, form: str) -> tuple[Edit, ...]:
    old = write_path(value)
    new = None if old is None else write_argument(form, old)
    if old is None or new is None or not site.call or not site.code or not has_argument(site.call, old):
        return ()
    return (Edit(site.file, site.line, "replace", old, new, code=site.code, call=site.call),)


def has_argument(call: str, value: str) -> bool:
    """True if a text is exactly one call, and the value is one of its arguments."""
    tree, wanted = parse_code(call), parse_expression(value)
    outer = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if wanted is None or not isinstance(outer, ast.Expr) or not isinstance(outer.value, ast.Call):
        return False
    return any(ast.dump(node) == ast.dump(wanted) for node in list_arguments(outer.value))


def list_arguments(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call, and the values of its keywords."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def parse_code(code: str) -> ast.Module | None:
    """The syntax tree of a statement; None if it is not whole, or not Python."""
    try:
        tree = ast.parse(code.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return tree if tree.body and is_shallow(tree) else None


def find_names(code: str) -> set[str]:
    """The names that an expression or statement reads."""
    tree = parse_code(code)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()


def _list_bound_inside(tree: ast.Module) -> Iterator[str]:
    """The names that comprehensions, lambdas and := inside of a statement bind: they do not exist before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            yield from (child.id for child in ast.walk(node.target) if isinstance(child, ast.Name))
        elif isinstance(node, ast.Lambda):
            yield from (argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg))
        elif isinstance(node, ast.NamedExpr):
            yield node.target.id


def _list_targets(tree: ast.Module) -> Iterator[str]:
    """The names that a statement's header binds: `x` of `for x in xs:`."""
    for node in ast.walk(tree):
        targets: list[ast.expr | None] = []
        if isinstance(node, ast.For):
            targets = [node.target]
        elif isinstance(node, ast.With):
            targets = [item.optional_vars for item in node.items]
        for target in filter(None, targets):
            yield from (child.id for child in ast.walk(target) if isinstance(child, ast.Name))
