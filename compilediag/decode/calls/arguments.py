"""Which expression of a call a parameter of the called function gets."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from ..guards.path import NotConstant, Path, Step, read_constant
from .call_text import MappingFailed, ParsedCall, get_name, get_text

#: Names that the first parameter of a method has.
_OBJECTS = ("self", "cls")
#: Functions that are also called by calling their object.
_OF_CALLED_OBJECTS = ("forward", "__call__")


class Argument(NamedTuple):
    """An expression of a call, and the steps from it to the value."""

    node: ast.expr
    rest: tuple[Step, ...]


class Signature(NamedTuple):
    """The parameters of a function, by how they can be passed."""

    plain: tuple[str, ...]
    star: str | None
    keyword_only: tuple[str, ...]
    double_star: str | None

    @property
    def names(self) -> set[str]:
        return {*self.plain, *self.keyword_only, *filter(None, (self.star, self.double_star))}

    @property
    def has_object(self) -> bool:
        """True if the first parameter is the object of a method."""
        return bool(self.plain) and self.plain[0] in _OBJECTS


def read_signature(parameters: Sequence[str]) -> Signature:
    """Parameters as a stack frame has them: `x`, `*args`, `k=` for one that is passed by keyword only, `**kwargs`."""
    plain = tuple(name for name in parameters if name.isidentifier())
    star = next((name[1:] for name in parameters if name.startswith("*") and name[1:].isidentifier()), None)
    double = next((name[2:] for name in parameters if name.startswith("**")), None)
    return Signature(plain, star, tuple(name[:-1] for name in parameters if name.endswith("=")), double)


def bind_path(
    path: Path, signature: Signature, call: ParsedCall, function: str, is_object: bool
) -> tuple[Argument, ...]:
    """The argument that a value of the called function came in by; two, if it is in `*args` or in `**kwargs`.

    `is_object`: torch's module calls are in between, so what is called is the object itself. MappingFailed if no
    argument can be named.
    """
    shift = _count_implicit(signature, call.node, function, is_object)
    if path.root in signature.plain:
        position = signature.plain.index(path.root)
        if position < shift:
            return (Argument(find_object(call, function, is_object), path.steps),)
        return _find_plain(path, position - shift, call)
    if path.root == signature.star:
        return (_find_in_star(path, len(signature.plain) - shift, call),)
    if path.root == signature.double_star:
        return (_find_in_double_star(path, call),)
    return (_find_keyword(path.root, path.steps, call),)


def find_object(call: ParsedCall, function: str, is_object: bool) -> ast.expr:
    """The expression of the object whose method a call runs."""
    func = _find_function(call.node.func)
    is_called = is_object or (function in _OF_CALLED_OBJECTS and get_name(func) != function)
    if is_called:
        return func
    if isinstance(func, ast.Attribute):
        return func.value
    raise MappingFailed(f"`{call.shown}` does not name the object of {function}")


def _find_function(func: ast.expr) -> ast.expr:
    """What is called: `optimizer.step` of `torch.compile(optimizer.step)()`."""
    if isinstance(func, ast.Call) and func.args and "compile" in (get_name(func.func) or ""):
        return func.args[0]
    return func


def _count_implicit(signature: Signature, call: ast.Call, function: str, is_object: bool) -> int:
    """1 if the first parameter is the object and no argument of the call, else 0."""
    if is_object:
        return 1 if signature.has_object or (signature.plain and function in _OF_CALLED_OBJECTS) else 0
    if not signature.has_object:
        return 1 if signature.plain and function == "__call__" else 0
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Name) and first.id in _OBJECTS:
        return 0
    is_too_many = signature.star is None and len(call.args) > len(signature.plain) - 1
    return 0 if is_too_many and not any(isinstance(argument, ast.Starred) for argument in call.args) else 1


def _find_plain(path: Path, position: int, call: ParsedCall) -> tuple[Argument, ...]:
    keywords = {keyword.arg for keyword in call.node.keywords}
    found = None if path.root in keywords else _find_positional(position, call)
    if found is None:
        return (_find_keyword(path.root, path.steps, call),)
    positional = Argument(found.node, found.rest + path.steps)
    # An item of `*args` may not exist: then the value is in `**kwargs`.
    return (
        (positional, _find_keyword(path.root, path.steps, call)) if found.rest and None in keywords else (positional,)
    )


def _find_positional(position: int, call: ParsedCall) -> Argument | None:
    """The argument at a position; None if there are fewer."""
    for place, argument in enumerate(call.node.args):
        if isinstance(argument, ast.Starred):
            if isinstance(argument.value, (ast.Tuple, ast.List)):
                return _find_in_display(position, place, argument.value, call)
            if place + 1 < len(call.node.args):
                raise MappingFailed(f"`{call.shown}` has arguments after `*{get_text(argument.value, call.text)}`")
            return Argument(argument.value, (Step("item", position - place),))
        if place == position:
            return Argument(argument, ())
    return None


def _find_in_display(position: int, place: int, display: ast.Tuple | ast.List, call: ParsedCall) -> Argument | None:
    """The argument at a position of a call with `*(x, y)`."""
    args = [*call.node.args[:place], *display.elts, *call.node.args[place + 1 :]]
    shown = ast.Call(func=call.node.func, args=args, keywords=call.node.keywords)
    return _find_positional(position, call._replace(node=ast.copy_location(shown, call.node)))


def _find_in_star(path: Path, before: int, call: ParsedCall) -> Argument:
    """The argument of `args[1]`; of `args` itself only if the call passes `*args` and nothing else for it."""
    key = _get_key(path.steps)
    if not isinstance(key, int) or key < 0:
        starred = call.node.args[before:]
        if len(starred) == 1 and isinstance(starred[0], ast.Starred):
            return Argument(starred[0].value, path.steps)
        raise MappingFailed(f"`{path.text}` is all further arguments of `{call.shown}`")
    found = _find_positional(before + key, call)
    method = _find_function(call.node.func)
    if found is None and key == 0 and isinstance(method, ast.Attribute):
        return Argument(method.value, path.steps[1:])  # A wrapper of a method gets its object as well.
    if found is None:
        raise MappingFailed(f"`{call.shown}` has no argument for `{path.text}`")
    return Argument(found.node, found.rest + path.steps[1:])


def _find_in_double_star(path: Path, call: ParsedCall) -> Argument:
    """The argument of `kwargs['ids']`; of `kwargs` itself only if the call passes `**kwargs` and no other keyword."""
    key = _get_key(path.steps)
    if isinstance(key, str):
        return _find_keyword(key, path.steps[1:], call)
    keywords = call.node.keywords
    if len(keywords) == 1 and keywords[0].arg is None:
        return Argument(keywords[0].value, path.steps)
    raise MappingFailed(f"`{path.text}` is all keyword arguments of `{call.shown}`")


def _get_key(steps: tuple[Step, ...]) -> str | int | None:
    """The key of the first step, if that is an item by a text or a whole number."""
    key = steps[0].value if steps and steps[0].kind == "item" else None
    return key if isinstance(key, (str, int)) and not isinstance(key, bool) else None


def _find_keyword(name: str, rest: tuple[Step, ...], call: ParsedCall) -> Argument:
    for keyword in call.node.keywords:
        if keyword.arg == name:
            return Argument(keyword.value, rest)
    dicts = [keyword.value for keyword in call.node.keywords if keyword.arg is None]
    if len(dicts) == 1:
        return Argument(dicts[0], (Step("item", name), *rest))
    if dicts:
        raise MappingFailed(f"several dicts of `{call.shown}` can have `{name}`")
    if not call.is_whole:
        raise MappingFailed(f"`{name}` is not in the one line of the call that is recorded")
    raise MappingFailed(f"`{call.shown}` does not pass `{name}`: it has its default, or a partial function gives it")


def is_passed_through(signature: Signature, call: ParsedCall) -> bool:
    """True if a function only passes on its own `*args` and `**kwargs`, as decorators do."""
    own, node = signature.names, call.node
    stars = [argument.value for argument in node.args if isinstance(argument, ast.Starred)]
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    passed = [*stars, *plain, *(keyword.value for keyword in node.keywords)]
    is_variadic = bool(stars) or any(keyword.arg is None for keyword in node.keywords)
    return is_variadic and all(isinstance(argument, ast.Name) and argument.id in own for argument in passed)


def open_displays(argument: Argument) -> Argument:
    """Replace an item of a dict, tuple or list that is written in the call by the expression: `{"x": ids}["x"]`."""
    node, rest = argument
    while (key := _get_key(rest)) is not None:
        inner = _find_item(node, key)
        if inner is None:
            break
        node, rest = inner, rest[1:]
    return Argument(node, rest)


def _find_item(node: ast.expr, key: str | int) -> ast.expr | None:
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(key, int) and 0 <= key < len(node.elts):
        before = node.elts[: key + 1]
        return None if any(isinstance(element, ast.Starred) for element in before) else before[-1]
    if isinstance(node, ast.Dict):
        found = [
            v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant) and k.value == key
        ]
        return found[-1] if found else None
    if isinstance(node, ast.Call) and get_name(node.func) == "dict" and not node.args:
        return next((keyword.value for keyword in node.keywords if keyword.arg == key), None)
    return None


def read_path(node: ast.expr) -> Path | None:
    """The path that an expression is: names, attributes and items with constant keys; None if it computes something."""
    match node:
        case ast.Name(name):
            return Path(name)
        case ast.Attribute(value, name):
            path = read_path(value)
            return None if path is None else path.then("attr", name)
        case ast.Subscript(value, index):
            path, key = read_path(value), _read_key(index)
            return None if path is None or key is None else path.then("item", key)
    return None


def _read_key(node: ast.expr) -> object:
    try:
        key = read_constant(node)
    except NotConstant:
        return None
    return key if isinstance(key, (str, int)) and not isinstance(key, bool) else None
