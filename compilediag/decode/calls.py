"""A call in a program: its text as a syntax tree, the argument that each parameter gets, and torch's frames between the
call and the function that it runs, most of which pass their arguments through.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..events import StackFrame
from ..formatting import cut_text
from .call_stacks import Frame, find_torch_path
from .guards.path import Expression, Path, Step

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
    return cut_text(" ".join(text.split()), limit)


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
    tree = _parse((code or "").strip())
    body = [] if tree is None else tree.body
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
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string in _CLOSING:
                waiting.append(_CLOSING[token.string])
            elif waiting and token.string == waiting[-1]:
                waiting.pop()
    is_block = text.split(" ", 1)[0] in ("for", "with", "if", "while", "elif", "async")
    return "".join(reversed(waiting)) + (": pass" if is_block and waiting else "")


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
    arguments = list(_open_starred(call.node.args))
    for place, argument in enumerate(arguments):
        if isinstance(argument, ast.Starred):
            if place + 1 < len(arguments):
                raise MappingFailed(f"`{call.shown}` has arguments after `*{get_text(argument.value, call.text)}`")
            return Argument(argument.value, (Step("item", position - place),))
        if place == position:
            return Argument(argument, ())
    return None


def _open_starred(arguments: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """The arguments with `x, y` in place of `*(x, y)`."""
    for argument in arguments:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List)):
            yield from _open_starred(argument.value.elts)
        else:
            yield argument


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
    path = Expression(node, "", (), has_scopes=False).read_path(node)
    if path is None or not all(step.kind in ("attr", "item") and type(step.value) in (str, int) for step in path.steps):
        return None
    return path


#: Functions of `eval_frame.py` that begin a compiled call. Until torch 2.9, `_fn` also ended one (`disable`).
_COMPILED, _ANY_CALL = ("compile_wrapper", "__call__"), "_fn"

#: File and function -> the object that it calls, as an attribute of the one that was called; None for the same object.
_CALLED_OBJECTS = {
    ("nn/modules/module.py", "__call__"): None,
    ("nn/modules/module.py", "_wrapped_call_impl"): None,
    ("nn/modules/module.py", "_call_impl"): None,
    ("nn/modules/module.py", "inner"): None,
    ("nn/modules/module.py", "_slow_forward"): None,
    ("_dynamo/eval_frame.py", "__call__"): None,
    ("nn/parallel/distributed.py", "forward"): None,
    ("nn/parallel/distributed.py", "_run_ddp_forward"): "module",
    ("distributed/fsdp/fully_sharded_data_parallel.py", "forward"): "_fsdp_wrapped_module",
    ("distributed/algorithms/_checkpoint/checkpoint_wrapper.py", "forward"): "_checkpoint_wrapped_module",
}
#: The wrappers of context managers as decorators are here; torch 2.15 names them after the context manager.
_CONTEXTS = "utils/_contextlib.py"
#: Functions of that file that are no wrapper: they return one, or run a generator.
_OWN_OF_CONTEXTS = {"__call__", "__new__", "clone", "context_decorator", "_wrap_generator", "generator_context"}
#: Functions that call a function with the arguments that they got.
_PASSING_ON = {
    ("_dynamo/eval_frame.py", "compile_wrapper"),
    ("_dynamo/eval_frame.py", "_fn"),
    ("_dynamo/eval_frame.py", "callback_fn"),
    ("_dynamo/eval_frame.py", "fail_callback"),
    ("_dynamo/external_utils.py", "inner"),
    ("_dynamo/external_utils.py", "nonrecursive_disable_wrapper"),
    ("_dynamo/decorators.py", "wrapper"),
    ("_dynamo/decorators.py", "inner"),
    ("_compile.py", "inner"),
    ("autograd/grad_mode.py", "decorate_context"),
    ("amp/autocast_mode.py", "decorate_autocast"),
    ("amp/autocast_mode.py", "decorate_fwd"),
    ("optim/optimizer.py", "wrapper"),
    ("optim/optimizer.py", "_use_grad"),
    ("optim/lr_scheduler.py", "wrapper"),
    ("distributed/elastic/multiprocessing/errors/__init__.py", "wrapper"),
}


class Passed(NamedTuple):
    """What torch's frames do to a call: is an object called, and which attribute of it is the object of the method?"""

    is_object: bool = False
    members: tuple[Step, ...] = ()


def find_compiled_call(frames: Sequence[Frame | StackFrame]) -> int | None:
    """The place of the outermost frame in which torch begins a compiled call; None if a log has left it out."""
    places = [at for at, frame in enumerate(frames) if find_torch_path(frame.file or "") == "_dynamo/eval_frame.py"]
    certain = [at for at in places if frames[at].function in _COMPILED]
    possible = [at for at in places if frames[at].function == _ANY_CALL]
    return min(certain or possible, default=None)


def follow_torch_frames(frames: Iterable[Frame]) -> Passed:
    """What the frames between a call and its function do. MappingFailed if they make arguments of their own."""
    is_object, members = False, list[Step]()
    for frame in frames:
        path = find_torch_path(frame.file or "")
        place = (path or "", frame.function or "")
        if place in _CALLED_OBJECTS:
            is_object = True
            if (attribute := _CALLED_OBJECTS[place]) is not None:
                members.append(Step("attr", attribute))
        elif place not in _PASSING_ON and (path != _CONTEXTS or frame.function in _OWN_OF_CONTEXTS):
            where = f"torch/{path}:{frame.line}" if path else f"{frame.file}:{frame.line}"
            raise MappingFailed(f"{place[1] or 'code'} ({where}) makes the arguments")
    return Passed(is_object, tuple(members))
