"""The text of a call: the call in it that runs a given function, as a syntax tree."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
import warnings
from collections.abc import Iterator
from typing import NamedTuple

#: Statements whose first line is no statement of its own, and what makes it one.
_BEGINNINGS = ("", "if 1: pass\n", "try: pass\n")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
#: Built-in functions that call what they are given, or run a generator that they are given.
_CALLING = frozenset(
    {"all", "any", "bytes", "dict", "enumerate", "filter", "frozenset", "list", "map", "max", "min", "next", "reduce"}
    | {"reversed", "set", "sorted", "sum", "tuple", "zip"}
)


class MappingFailed(Exception):
    """A value has no name at the call; the text says why."""


class ParsedCall(NamedTuple):
    """A call, in the text that it was parsed from. If not `is_whole`, more arguments can follow."""

    node: ast.Call
    text: str
    is_whole: bool = True

    @property
    def shown(self) -> str:
        """The call on one line, for messages."""
        return shorten(get_text(self.node, self.text))


class ObjectUse(NamedTuple):
    """Code that runs a method without a call of it: an attribute that is a property, an item, an operator."""

    value: ast.expr
    text: str


def get_text(node: ast.AST, text: str) -> str:
    """The text of a node as it was written; on one line."""
    segment = ast.get_source_segment(text, node)
    return ast.unparse(node) if segment is None or "\n" in segment else segment


def shorten(text: str, limit: int = 60) -> str:
    """A text on one line of at most `limit` characters."""
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 3] + "..."


def find_call(call: str | None, code: str | None, function: str, is_next: bool = True) -> ParsedCall | ObjectUse:
    """The call that runs `function`: `call` is the text of what runs in the frame, or else it is looked for in `code`,
    the text of one line. Unless `is_next`, frames between can be missing, so that only a call of that name is certain.
    MappingFailed if there is none, or it is not certain.
    """
    if call is not None:
        return _read_running(call, function)
    if code is None:
        raise MappingFailed("the text of the call is not recorded")
    return _search_line(code, function, is_next)


# The text of what runs


def _read_running(call: str, function: str) -> ParsedCall | ObjectUse:
    text = call.strip()
    parsed = parse_statement(text)
    if parsed is None:
        raise MappingFailed(f"`{shorten(text)}` can't be parsed")
    tree, text, is_whole = parsed
    node = _find_expression(tree)
    while isinstance(node, (ast.Await, ast.YieldFrom)):
        node = node.value
    if isinstance(node, ast.Call):
        return ParsedCall(_enter_builtin(_join_partial(node), text, function), text, is_whole)
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return ObjectUse(node.value, text)
    raise MappingFailed(f"`{shorten(text)}` is no call")


def _join_partial(node: ast.Call) -> ast.Call:
    """`partial(f, x)(y)` is the call `f(x, y)`."""
    made = node.func
    if not isinstance(made, ast.Call) or get_name(made.func) != "partial" or not made.args:
        return node
    joined = ast.Call(func=made.args[0], args=[*made.args[1:], *node.args], keywords=[*made.keywords, *node.keywords])
    return ast.copy_location(joined, node)


def _find_expression(tree: ast.Module) -> ast.expr | None:
    """The expression that a statement is about: that of `for x in <it>:`, of `with <it>:`, of `y = <it>`."""
    statement = tree.body[-1]
    if isinstance(statement, ast.Try):
        statement = statement.handlers[0]  # type: ignore[assignment]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return statement.items[0].context_expr
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def _enter_builtin(node: ast.Call, text: str, function: str) -> ast.Call:
    """In `list(f(x))`, what runs is `list`, which runs the generator `f`. `map(f, xs)` gives the arguments no names."""
    name = get_name(node.func)
    if name not in _CALLING or name == function:
        return node
    inner = [child for child in ast.walk(node) if isinstance(child, ast.Call) and child is not node]
    for child in inner:
        if get_name(child.func) == function:
            return child
    passing = next((child for child in (*inner, node) if get_name(child.func) in ("map", "filter", "starmap")), node)
    items = ", ".join(f"`{shorten(get_text(argument, text), 40)}`" for argument in passing.args[1:])
    of = f"the items of {items}" if items else "its arguments"
    raise MappingFailed(f"`{get_name(passing.func)}` passes {of}, which have no name there")


# One line of a log


def _search_line(code: str, function: str, is_next: bool) -> ParsedCall:
    """The call in a line that runs `function`: the one of that name, or else the only one that can."""
    parsed = parse_statement(code.strip())
    if parsed is None:
        raise MappingFailed(f"`{shorten(code)}` can't be parsed")
    tree, text, is_whole = parsed
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    same = [node for node in calls if get_name(node.func) == function]
    found = same or [node for node in calls if _can_run_user_code(node)]
    if not found:
        passing = [node for node in calls if get_name(node.func) in _CALLING]
        if passing:
            _enter_builtin(passing[0], text, function)
        raise MappingFailed(f"`{shorten(code)}` has no call")
    if not same and not is_next:
        raise MappingFailed(f"`{shorten(code)}` does not call {function}, and a log leaves out the innermost frames")
    if len(found) > 1:
        raise MappingFailed(f"`{shorten(code)}` has several calls")
    return ParsedCall(found[0], text, is_whole)


def _can_run_user_code(node: ast.Call) -> bool:
    """False for built-in functions, for torch's, and for methods of a result, such as `model(x).sum()`."""
    func: ast.expr = node.func
    while isinstance(func, (ast.Attribute, ast.Subscript)):
        func = func.value
    if isinstance(func, ast.Name):
        is_builtin = isinstance(node.func, ast.Name) and hasattr(builtins, func.id)
        return not is_builtin and func.id not in ("torch", "np", "numpy", "time", "logging", "logger", "F")
    return isinstance(node.func, (ast.Name, ast.Lambda))


# Both


def find_result_name(code: str | None) -> str | None:
    """The variable that gets the result of a line's only call: `width = box[2].item()` is "width"; None for others."""
    try:
        body = ast.parse((code or "").strip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or not isinstance(body[0].value, ast.Call):
        return None
    target, calls = body[0].targets[0], [node for node in ast.walk(body[0]) if isinstance(node, ast.Call)]
    return target.id if isinstance(target, ast.Name) and len(calls) == 1 else None


def get_name(func: ast.expr) -> str | None:
    """The last name of what is called: `self.model.step` is "step"."""
    if isinstance(func, ast.Name):
        return func.id
    return func.attr if isinstance(func, ast.Attribute) else None


def parse_statement(text: str) -> tuple[ast.Module, str, bool] | None:
    """The tree of a statement, or of its first line: the text that was parsed, and true if nothing was added to it
    in place of lines that are missing; None if it is no Python.
    """
    for is_whole, ending in ((True, ""), (True, " pass"), (False, close_brackets(text))):
        for beginning in _BEGINNINGS:
            whole = beginning + text + ending
            if (tree := _parse(whole)) is not None and tree.body:
                return tree, whole, is_whole
    return None


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def close_brackets(text: str) -> str:
    """The brackets that close those that are open at the end of a line, and the body that its statement lacks."""
    waiting = []
    for token in _list_tokens(text):
        if token in _CLOSING:
            waiting.append(_CLOSING[token])
        elif waiting and token == waiting[-1]:
            waiting.pop()
    is_block = text.split(" ", 1)[0] in ("for", "with", "if", "while", "elif", "async")
    return "".join(reversed(waiting)) + (": pass" if is_block and waiting else "")


def _list_tokens(text: str) -> Iterator[str]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            yield token.string
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return
