"""Edits of the user's source: the code that they may insert, how they are made at a line, and applied to a file.

The code is a few fixed forms around paths such as `batch['ids']`. A session may come from somebody else, and a plan's
code is pasted, patched into files and run. So what a change inserts is made of parsed values, never of recorded text,
and it is checked again where it is applied: `is_only_inserted` compares whole syntax trees, whatever made the text.
"""

from __future__ import annotations

import ast
import bisect
import builtins
import io
import itertools
import re
import textwrap
import tokenize
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CompilediagError
from ..formatting import format_line, format_place
from .change import BEGIN, CallSite, Edit, Settings, find_config_module, format_settings, merge_fixes

#: A longer path is not one that users write.
MAX_PATH = 500
#: A statement with more levels of expressions is not one that users write.
MAX_DEPTH = 60
#: Functions that mark a size of a tensor.
MARKS = (
    "torch._dynamo.mark_dynamic",
    "torch._dynamo.maybe_mark_dynamic",
    "torch._dynamo.decorators.mark_unbacked",
)
#: What an argument of a call can be replaced by; {0} is the argument.
ARGUMENT_FORMS = (
    "{0}.contiguous()",
    "{0}.view_as({0})",
    "{0}.as_subclass(torch.Tensor)",
    "torch.tensor({0})",
    "torch.as_tensor({0})",
    "{0} if {0}.requires_grad else {0}.detach().requires_grad_()",
)
SPEC_MODULE = "torch.fx.experimental.dynamic_spec"
SPEC_NAMES = ("DictSpec", "IntVar", "ObjectSpec", "STATIC", "SeqSpec", "ShapeVar", "TensorSpec", "dynamic_spec")
_VARIABLES = ("IntVar", "ShapeVar")
_COMPILE = "torch.compile"
#: The option of torch.compile that keeps sizes and numbers static if it is False.
STATIC_OPTION = "dynamic"
#: Settings of torch that keep sizes or numbers static if they do not have these values, which are torch's.
STATIC_SETTINGS = {"automatic_dynamic_shapes": True, "specialize_int": False, "specialize_float": False}
_SPEC_OPTION = "dynamic_shapes"
#: What a decorator is parsed with.
_DECORATED = "def decorated(): pass"
_HOLE = "_0_"
_FORMS = [ast.parse(form.format(_HOLE), mode="eval").body for form in ARGUMENT_FORMS]
#: Names that a variable of a specification must not hide.
_TAKEN = frozenset({*dir(builtins), *SPEC_NAMES, "torch"})


# Values


def parse_expression(text: str) -> ast.expr | None:
    """The syntax tree of a text that is exactly one expression on one line; None for anything else."""
    if not text.isprintable():
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return tree if is_shallow(tree) else None


def parse_code(code: str) -> ast.Module | None:
    """The syntax tree of a statement; None if it is not whole, or not Python."""
    tree = _parse(code.strip())
    return tree if tree is not None and tree.body else None


def parse_call(code: str) -> ast.Call | None:
    """The call that is the value of a statement; None if it is not a call."""
    tree = parse_code(code)
    call = getattr(tree.body[0], "value", None) if tree is not None else None
    return call if isinstance(call, ast.Call) else None


def _parse(text: str) -> ast.Module | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return tree if is_shallow(tree) else None


def is_shallow(tree: ast.AST) -> bool:
    """True for a tree that recursive functions can walk: a recorded text may be nested very deeply."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False


def write_path(text: str | None) -> str | None:
    """The text of a path as code: names, attributes, and items by constants or other paths; None for anything else."""
    if not text or len(text) > MAX_PATH:
        return None
    node = parse_expression(text)
    return ast.unparse(node) if node is not None and _is_path(node) else None


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not _is_key(node.slice):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def _is_key(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_is_key(item) for item in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) or _is_path(node)


# Forms


def _match(pattern: ast.AST, node: ast.AST) -> ast.expr | None:
    """What a form is filled with, the same in all places; None if a node does not have the form."""
    found: list[ast.expr] = []
    is_alike = _collect(pattern, node, found) and len({ast.dump(one) for one in found}) == 1
    return found[0] if is_alike else None


def _collect(pattern: ast.AST, node: ast.AST, found: list[ast.expr]) -> bool:
    if isinstance(pattern, ast.Name) and pattern.id == _HOLE:
        found += [node] if isinstance(node, ast.expr) else []
        return isinstance(node, ast.expr)
    if type(pattern) is not type(node):
        return False
    own, other = ([value for _, value in ast.iter_fields(one)] for one in (pattern, node))
    flat, others = ([item for v in one for item in (v if isinstance(v, list) else [v])] for one in (own, other))
    if len(flat) != len(others):
        return False
    return all(
        _collect(a, b, found) if isinstance(a, ast.AST) and isinstance(b, ast.AST) else a == b
        for a, b in zip(flat, others, strict=True)
    )


def is_known_code(text: str) -> bool:
    """True if each statement of a text has a form that changes insert, without comments or control characters."""
    if not all(line.isprintable() for line in text.split("\n")):
        return False
    try:
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)] if "#" in text else []
    except (tokenize.TokenError, SyntaxError):
        return False
    if any(token.type == tokenize.COMMENT for token in tokens):
        return False
    tree = _parse(text)
    if tree is not None:
        return all(map(_is_statement, tree.body))
    tree = _parse(f"{text}\n{_DECORATED}")
    if tree is None or not isinstance(last := tree.body[-1], ast.FunctionDef) or len(last.decorator_list) != 1:
        return False
    return all(map(_is_statement, tree.body[:-1])) and _is_decorator(last.decorator_list[0])


def _is_statement(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return _is_import(node)
    if isinstance(node, ast.Expr):
        return _is_mark(node.value) or _is_compile_call(node.value) or _is_argument(node.value)
    return isinstance(node, ast.Assign) and _is_assignment(node)


def _is_import(node: ast.Import | ast.ImportFrom) -> bool:
    names = [alias.name for alias in node.names if alias.asname is None]
    if len(names) != len(node.names):
        return False
    if isinstance(node, ast.Import):
        return names == ["torch"]
    return node.module == SPEC_MODULE and node.level == 0 and set(names) <= set(SPEC_NAMES)


def _is_mark(node: ast.expr) -> bool:
    """`torch._dynamo.mark_dynamic(batch['ids'], 0)`"""
    if not isinstance(node, ast.Call) or _get_dotted(node.func) not in MARKS or node.keywords or len(node.args) != 2:
        return False
    value, dim = node.args
    return _is_path(value) and isinstance(dim, ast.Constant) and type(dim.value) is int


def _is_argument(node: ast.expr) -> bool:
    filled = (_match(pattern, node) for pattern in _FORMS)
    return any(value is not None and _is_path(value) for value in filled)


def _is_assignment(node: ast.Assign) -> bool:
    """A setting, or a variable of a specification."""
    if len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        is_variable = isinstance(value, ast.Call) and _get_dotted(value.func) in _VARIABLES
        return is_variable and _is_spec(value) and target.id not in _TAKEN
    owner, _, key = (_get_dotted(target) or "").rpartition(".")
    return (
        owner == find_config_module(key) and isinstance(value, ast.Constant) and type(value.value) in (str, int, bool)
    )


def read_settings(edit: Edit) -> Settings:
    """The settings that an edit assigns. EditError if it is anything else."""
    tree, found = parse_code(edit.new), Settings()
    for node in tree.body if tree is not None else ():
        if not (isinstance(node, ast.Assign) and _is_assignment(node) and isinstance(node.value, ast.Constant)):
            raise EditError(f"{_place(edit)}: the code to insert is not a change that compilediag makes")
        found[ast.unparse(node.targets[0]).rpartition(".")[2]] = node.value.value  # type: ignore[assignment]
    return found


def _is_compile_call(node: ast.expr) -> bool:
    """`torch.compile(step, dynamic_shapes={...})`, `module.compile(dynamic_shapes={...})`: to paste, never inserted."""
    if not isinstance(node, ast.Call) or _get_dotted(node.func) not in (_COMPILE, "module.compile"):
        return False
    return all(isinstance(value, ast.Name) for value in node.args) and all(map(_is_spec_option, node.keywords))


def _is_decorator(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = _get_dotted(node.func)
    if name == "dynamic_spec":
        return len(node.args) == 1 and not node.keywords and _is_spec(node.args[0])
    if name != _COMPILE or node.args:
        return False
    return all(_is_spec_option(one) or (one.arg is not None and _is_plain(one.value)) for one in node.keywords)


def _is_plain(node: ast.expr) -> bool:
    """True for constants, paths, and displays of them: options of torch.compile."""
    if isinstance(node, ast.Dict):
        return all(key is not None and _is_plain(key) for key in node.keys) and all(map(_is_plain, node.values))
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(map(_is_plain, node.elts))
    return _is_key(node)


def _is_spec_option(keyword: ast.keyword) -> bool:
    return keyword.arg == _SPEC_OPTION and _is_spec(keyword.value)


def _is_spec(node: ast.expr) -> bool:
    """`{"x": TensorSpec([ShapeVar("x_0"), STATIC])}`"""
    if isinstance(node, ast.Dict):
        keys = all(isinstance(key, ast.Constant) and type(key.value) is str for key in node.keys)
        return keys and all(map(_is_spec, node.values))
    if isinstance(node, ast.List):
        return all(map(_is_spec, node.elts))
    if isinstance(node, ast.Call):
        is_known = isinstance(node.func, ast.Name) and node.func.id in SPEC_NAMES and not node.keywords
        return is_known and all(map(_is_spec, node.args))
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and type(node.value) is str)


def _get_dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def get_new_option(old: str, new: str) -> str | None:
    """The specification that `@torch.compile` has in `new` and not in `old`, as the text of an argument; None if that
    is not all, or if another option is no constant or path.
    """
    if not old.startswith("@") or not is_known_code(new):
        return None
    before, after = _parse(f"{old}\n{_DECORATED}"), _parse(f"{new}\n{_DECORATED}")
    found = after.body[0] if after is not None and len(after.body) == 1 else None
    decorator = found.decorator_list[-1] if isinstance(found, ast.FunctionDef) and found.decorator_list else None
    option = decorator.keywords[-1] if isinstance(decorator, ast.Call) and decorator.keywords else None
    if before is None or after is None or option is None or not _is_spec_option(option):
        return None
    written = ast.get_source_segment(new, option)
    return written if is_only_inserted(before, after) else None


def is_compile_call(node: ast.Call) -> bool:
    """True for a call of something named `compile`, or of `partial` with it."""
    names = ((_get_dotted(one) or "").rpartition(".")[2] for one in (node.func, *node.args[:1]))
    return "compile" in names


def is_static(keyword: ast.keyword) -> bool:
    """True for the option `dynamic=False`."""
    return keyword.arg == STATIC_OPTION and isinstance(keyword.value, ast.Constant) and keyword.value.value is False


def undo_static(code: str) -> str | None:
    """What the user wrote that keeps sizes and numbers static, as it should be: a call or decorator that compiles,
    without `dynamic=False`; or a setting of torch with its default. None for other code, or if it is not one line.
    """
    try:
        source = SourceText(f"{code}\n{_DECORATED}\n" if code.startswith("@") else code)
    except EditError:
        return None
    statement = source.tree.body[0]
    if isinstance(statement, ast.Assign) and _is_assignment(statement):
        target = ast.unparse(statement.targets[0])
        default = STATIC_SETTINGS.get(target.rpartition(".")[2])
        return None if default is None or ast.unparse(statement.value) == str(default) else f"{target} = {default}"
    decorators = statement.decorator_list if isinstance(statement, ast.FunctionDef) else []
    call = decorators[0] if decorators else getattr(statement, "value", None)
    if not isinstance(call, ast.Call) or not is_compile_call(call) or not any(map(is_static, call.keywords)):
        return None
    splice = source.set_option(call, STATIC_OPTION, None, bool(decorators))
    return None if splice is None else source.splice([splice]).text.removesuffix(f"\n{_DECORATED}\n")


# Making an edit at the user's line that calls into compiled code

#: A statement whose line cannot have another one before it that runs each time: a header of a loop, or a branch.
_HEADER = re.compile(r"(?:while|elif|else|except|finally|case|async|for|if|with|try)\b")
_RUNS_ONCE = re.compile(r"(?:if|with|for)\b")


def insert_before(site: CallSite, lines: tuple[str, ...]) -> tuple[Edit, ...]:
    """Put `lines` before the user's line; no edit if that is not possible there."""
    new = "\n".join(lines)
    if not lines or not site.code or not is_known_code(new):
        return ()
    code = site.code.strip()
    used = {name for line in lines for name in find_names(line)}
    tree = parse_code(code) or parse_code(f"{code}\n    pass") or parse_code(site.call or "")
    if tree is None or used & set(_list_bound_inside(tree)):
        return ()
    # `if f(x):` and `for y in f(x):` evaluate the call once, before their body; `for x in xs: f(x)` does not.
    loops = [node.target for node in ast.walk(tree) if isinstance(node, ast.For)]
    contexts = [node.optional_vars for node in ast.walk(tree) if isinstance(node, ast.withitem) and node.optional_vars]
    bound = {child.id for node in (*loops, *contexts) for child in ast.walk(node) if isinstance(child, ast.Name)}
    if _HEADER.match(code) and not (_RUNS_ONCE.match(code) and code.endswith(":") and not used & bound):
        return ()
    return (Edit(site.file, site.line, "insert_before", site.code, new, code=site.code),)


def replace_argument(values: Mapping[CallSite, str | None], form: str) -> tuple[Edit, ...]:
    """Give each of the user's calls its value in one of ARGUMENT_FORMS; no edit if one of them does not have it as an
    argument, or if it is no path, which can be evaluated again without doing something twice.
    """
    edits = []
    for site, value in values.items():
        old = write_path(value)
        if old is None or not site.call or not site.code or not has_argument(site.call, old):
            return ()
        edits.append(Edit(site.file, site.line, "replace", old, form.format(old), code=site.code, call=site.call))
    return tuple(edits)


def has_argument(call: str, value: str) -> bool:
    """True if a text is exactly one call, and the value is one of its arguments."""
    tree, wanted = parse_code(call), parse_expression(value)
    outer = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if wanted is None or not isinstance(outer, ast.Expr) or not isinstance(outer.value, ast.Call):
        return False
    arguments = [*outer.value.args, *(keyword.value for keyword in outer.value.keywords)]
    return any(ast.dump(node) == ast.dump(wanted) for node in arguments)


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


# Programs


def is_only_inserted(before: ast.AST, after: ast.AST) -> bool:
    """True if two programs are the same but for code that has one of the forms. Both trees are used up."""
    try:
        return ast.dump(_Remover().visit(before)) == ast.dump(_Remover().visit(after))
    except RecursionError:
        return False


class _Remover(ast.NodeTransformer):
    """Removes all code that has one of the forms, also if the user wrote it."""

    def visit(self, node: ast.AST) -> Any:
        match node:
            case ast.Import() | ast.ImportFrom() if _is_import(node):
                return None
            case ast.Expr() if _is_mark(node.value):
                return None
            case ast.Assign() if _is_assignment(node):
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.decorator_list = _strip_decorators(node.decorator_list)
            case ast.Call() if is_compile_call(node):
                node.keywords = [keyword for keyword in node.keywords if not is_static(keyword)]
        inside = self.generic_visit(node)
        found = (_match(pattern, inside) for pattern in _FORMS if isinstance(inside, ast.Call | ast.IfExp))
        return next((value for value in found if value is not None), inside)


def _strip_decorators(decorators: Iterable[ast.expr]) -> list[ast.expr]:
    left = []
    for node in decorators:
        if isinstance(node, ast.Call) and is_compile_call(node):
            kept = (keyword for keyword in node.keywords if not _is_spec_option(keyword))
            node.keywords = [keyword for keyword in kept if not is_static(keyword)]
            left.append(node if node.args or node.keywords else node.func)
        elif not (isinstance(node, ast.Call) and _get_dotted(node.func) == "dynamic_spec" and _is_decorator(node)):
            left.append(node)
    return left


# Applying edits to the text of a file

IMPORT_TORCH = "import torch"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class EditError(CompilediagError):
    """An edit cannot be applied: the file was changed since, or two edits want the same text."""


@dataclass(frozen=True)
class EditedSource:
    """The text of a file with edits applied. `lines` has, for each of its lines, the line in the original file."""

    text: str
    lines: tuple[int, ...]

    def compile(self, file: str, flags: int = 0) -> types.CodeType:
        """Compile it under the name of the original file; tracebacks show the lines of the original file."""
        code: types.CodeType = compile(self.parse(file, flags), file, "exec", flags, dont_inherit=True)
        return code

    def parse(self, file: str, flags: int = 0) -> ast.Module:
        """Parse it; the nodes have the lines of the original file."""
        tree: ast.Module = compile(self.text, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        placed = (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias, ast.pattern)
        for node in (node for node in ast.walk(tree) if isinstance(node, placed)):
            end = node.end_lineno or node.lineno
            node.lineno, node.end_lineno = (self.lines[min(line, len(self.lines)) - 1] for line in (node.lineno, end))
            if node.lineno == node.end_lineno and (node.end_col_offset or 0) < node.col_offset:
                node.end_col_offset = node.col_offset
        return tree


@dataclass(frozen=True, order=True)
class Splice:
    """Text that replaces a part of the source. Several lines (`is_line`) may be put at the same place."""

    start: int
    end: int
    new: str
    is_line: bool


def apply_edits(
    source: str, edits: Iterable[Edit], settings: Settings | None = None, has_torch: bool = False
) -> EditedSource:
    """Apply edits of one file to its text, and put settings below its imports; `import torch` is added where it is
    needed, unless the code has the name already (`has_torch`). A setting that the file assigns at its top level gets
    the merged value there: the later of two assignments would undo the other.

    EditError if one of them does not fit the text, or is not one that compilediag makes: the result is the same program
    but for code that has one of the forms.
    """
    try:
        return _apply_edits(source, [*edits], settings or {}, has_torch)
    except RecursionError:
        raise EditError("the code of the file is nested too deeply") from None


def _apply_edits(source: str, edits: Sequence[Edit], settings: Settings, has_torch: bool) -> EditedSource:
    edited = SourceText(source)
    imports = dict.fromkeys(edit.imports for edit in edits if edit.imports)
    has_torch = has_torch or imports_torch(edited.tree)
    head = ""
    if not has_torch and any("torch." in edit.new for edit in edits):
        imports = {IMPORT_TORCH: None, **imports}
    elif not has_torch:
        head = f"{IMPORT_TORCH}\n\n"
    # Two steps may need the same line, so equal splices are one.
    own = edited.find_all_splices(edits)
    block = edited.assign_settings(settings, head)
    result = edited.join(dict.fromkeys([*map(edited.insert_import, imports), *block, *own]))
    if not is_only_inserted(_parse_source(source), _parse_source(result.text)):
        raise EditError("the changes would do more to the file than they say")
    return result


def _parse_source(text: str) -> ast.Module:
    """The syntax tree of a file or of a notebook cell."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree: ast.Module = compile(text, "<source>", "exec", flags, dont_inherit=True)
    return tree


class SourceText:
    """The text of a file with its syntax tree and the places in it."""

    def __init__(self, source: str):
        self.text = source
        # The pattern matches once more at the end, with an empty line.
        self.starts = [match.start() for match in _LINE.finditer(source)]
        try:
            self.tree = _parse_source(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise EditError(f"the file is not valid Python: {error}") from None

    def find_line(self, offset: int) -> int:
        """The number of the line at an offset, from 1 on."""
        return bisect.bisect_right(self.starts, offset)

    def _find_offset(self, line: int, column: int) -> int:
        """The offset of a place in the syntax tree, where columns count UTF-8 bytes."""
        return self.starts[line - 1] + len(self.get_line(line).encode()[:column].decode(errors="ignore"))

    def find_span(self, node: ast.stmt | ast.expr | ast.keyword | ast.arg) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._find_offset(node.lineno, node.col_offset), self._find_offset(end_line, end_column)

    def get_text(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """The text of a node as it stands in the file."""
        start, end = self.find_span(node)
        return self.text[start:end]

    def set_option(self, call: ast.expr, name: str, value: str | None, is_decorator: bool = False) -> Splice | None:
        """A keyword of a call with another value, one more, or one less (None); None if nothing changes. A decorator
        without options needs no parentheses.
        """
        end = self.find_span(call)[1]
        if not isinstance(call, ast.Call):
            return None if value is None else Splice(end, end, f"({name}={value})", False)
        parts = self.list_items(call)
        spans = [self.find_span(part) for part in parts]
        at = next((i for i, part in enumerate(parts) if isinstance(part, ast.keyword) and part.arg == name), None)
        if at is None:
            last = spans[-1][1] if spans else end - 1
            is_short = "\n" not in self.text[last:end]  # A trailing comma goes where it is on the same line.
            new = f"{', ' if spans else ''}{name}={value}"
            return None if value is None else Splice(last, end - 1 if is_short else last, new, False)
        if value is not None:
            new = f"{name}={value}"
            return None if self.text[slice(*spans[at])] == new else Splice(*spans[at], new, False)
        if len(parts) == 1:
            return Splice(self.find_span(call.func)[1], end, "" if is_decorator else "()", False)
        start, stop = self.starts[parts[at].lineno - 1], self.starts[parts[at].end_lineno or parts[at].lineno]
        alone = re.fullmatch(
            r"\s*,?\s*(?:#[^\r\n]*)?\s*", self.text[start : spans[at][0]] + self.text[spans[at][1] : stop]
        )
        return Splice(start, stop, "", False) if alone else self.remove_item(parts, at)

    def list_items(self, call: ast.Call) -> list[ast.expr | ast.keyword]:
        """The arguments of a call in their order."""
        items: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        return sorted(items, key=lambda item: (item.lineno, item.col_offset))

    def remove_item(self, items: Sequence[ast.expr | ast.keyword | ast.arg], at: int) -> Splice:
        """The splice that removes one of several items with its comma."""
        spans = [self.find_span(item) for item in items]
        start = spans[at - 1][1] if at else spans[at][0]
        stop = spans[at][1] if at or len(spans) == 1 else spans[at + 1][0]
        return Splice(start, stop, "", False)

    def find_all_splices(self, edits: Iterable[Edit]) -> Iterator[Splice]:
        """The splices that make edits. What several of them set in one function has the merged value there."""
        begun: dict[ast.FunctionDef | ast.AsyncFunctionDef, list[Settings]] = {}
        for edit in edits:
            if edit.kind == BEGIN:
                begun.setdefault(self.find_begun(edit), []).append(read_settings(edit))
            else:
                yield from self.find_splices(edit)
        for function, settings in begun.items():
            yield from self.assign_settings(merge_fixes(settings), function=function)

    def find_begun(self, edit: Edit) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """The function at the beginning of which an edit assigns settings. EditError if the file was changed since."""
        self._check_line(edit)
        function = self.find_function(edit.line)
        if function is None or function.name != edit.old:
            raise EditError(f"{_place(edit)} is not in a function `{format_line(edit.old, 80)}`")
        return function

    def _check_line(self, edit: Edit) -> None:
        """EditError unless the line of an edit is the whole recorded one. What the file has there instead is not shown:
        a session from elsewhere may name any file.
        """
        if not 1 <= edit.line <= len(self.starts):
            raise EditError(f"{_place(edit)} has no code")
        if not edit.code.strip() or self.get_line(edit.line).strip() != edit.code.strip():
            raise EditError(f"{_place(edit)} is no longer `{format_line(edit.code, 80)}`: the file was changed since")

    def find_splices(self, edit: Edit) -> Iterator[Splice]:
        """The splices that make one edit. EditError unless its line is the whole recorded one."""
        self._check_line(edit)
        statement = self._find_statement(edit)
        if edit.kind == "insert_before":
            yield self._insert(edit, statement)
            return
        found = [*(self._replace_argument(edit, statement) if edit.call else self._change_whole(edit, statement))]
        if not found:
            raise EditError(f"{_place(edit)} does not have `{format_line(edit.call or edit.old, 80)}`")
        own = [splice for splice in found if self.find_line(splice.start) == edit.line]
        yield from own or found

    def insert_import(self, statement: str) -> Splice:
        """The splice that puts an import below those at the top; it is empty if the file has it."""
        if not is_known_code(statement):
            raise EditError(f"`{format_line(statement, 80)}` is not an import that compilediag adds")
        is_known = any(ast.unparse(node) == statement for node in self.tree.body)
        return self.insert_below_imports("" if is_known else statement)

    def insert_below_imports(self, lines: str) -> Splice:
        """The splice that puts lines below the imports at the top of a module, or below its docstring.

        Imports that follow other code, such as an assignment to `os.environ`, count up to the block with torch's.
        """
        body, last = self.tree.body, 0
        first_torch = next((number for number, node in enumerate(body) if _binds_torch(node)), 0)
        for number, node in enumerate(body):
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if number >= first_torch and not isinstance(node, (ast.Import, ast.ImportFrom)) and not is_docstring:
                break
            last = node.end_lineno or 0
        start = self.starts[min(last, len(self.starts) - 1)]
        return Splice(start, start, self.end_lines(lines), True)

    def assign_settings(
        self, settings: Settings, head: str = "", function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    ) -> Iterator[Splice]:
        """The splices that assign settings: in the statement of the file, or of the function, that assigns one already,
        with the merged value, because the later of two assignments would undo the other; else below the imports, after
        `head`, or at the beginning of the function. EditError if that has no line of its own.
        """
        left = dict(settings)
        body = self.tree.body if function is None else function.body
        for node in body:
            if isinstance(node, ast.Assign) and _is_assignment(node) and isinstance(node.value, ast.Constant):
                key, value = ast.unparse(node.targets[0]).rpartition(".")[2], node.value.value
                if key in settings and isinstance(value, (str, int)):
                    left.pop(key, None)
                    merged = merge_fixes([{key: settings[key]}, {key: value}])[key]
                    yield Splice(*self.find_span(node.value), repr(merged), False)
        if left and function is None:
            yield self.insert_below_imports(f"{head}{format_settings(left)}")
        elif left and function is not None:
            inserted = self.begin_function(function, format_settings(left).splitlines())
            if inserted is None:
                raise EditError("the settings have no place")
            yield inserted

    def find_function(self, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around a line."""
        around = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body[0].lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def begin_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str]) -> Splice | None:
        """Lines at the beginning of a function, below its docstring; None where no line can be put."""
        first, *others = function.body
        has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return self.insert_before(others[0] if others and has_docstring else first, lines)

    def insert_before(self, statement: ast.stmt, lines: Sequence[str]) -> Splice | None:
        """Lines before a statement, with its indentation; None where no line can be put."""
        start = self.starts[statement.lineno - 1]
        offset = self.find_span(statement)[0]
        indent = self.text[start:offset]
        has_own_line = not indent.strip() and not getattr(statement, "decorator_list", None)
        if not has_own_line or self.text.startswith("elif", offset):
            return None
        return Splice(start, start, self.end_lines("\n".join(f"{indent}{line}" for line in lines)), True)

    def end_lines(self, lines: str) -> str:
        """Lines with the line ends of the file."""
        end = "\r\n" if self.text.partition("\n")[0].endswith("\r") else "\n"
        return "".join(line + end for line in lines.splitlines())

    def _find_statement(self, edit: Edit) -> ast.stmt:
        """The innermost statement at the line of an edit. EditError if the line has other code."""
        around = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt) and edit.line in _list_lines(node)]
        if not around:
            raise EditError(f"{_place(edit)} has no code")
        innermost = sorted(around, key=lambda node: (len(_list_lines(node)), len(self._get_header(node))))
        wanted = _squeeze(edit.call or edit.old)
        fitting = [node for node in innermost if wanted in _squeeze(self._get_header(node))]
        if fitting:
            return fitting[0]
        if sum(_list_lines(node) == _list_lines(innermost[0]) for node in around) > 1:
            raise EditError(f"{_place(edit)} has several statements; put each on a line of its own")
        return innermost[0]

    def get_line(self, line: int) -> str:
        return self.text[self.starts[line - 1] : self.starts[line] if line < len(self.starts) else None]

    def _get_header(self, node: ast.stmt) -> str:
        """The text of a statement without its body, unless that begins on the same line."""
        (start, end), body = self.find_span(node), self._find_body(node)
        if body is None or self.text[start:body].rpartition("\n")[2].strip():
            return self.text[start:end]
        return self.text[start:body]

    def _find_body(self, node: ast.stmt) -> int | None:
        """Where the body of a statement begins; None if it has none."""
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.match_case):
            first = first.pattern
        if not isinstance(first, (ast.stmt, ast.pattern)):
            return None
        return self._find_offset(first.lineno, first.col_offset)

    def _insert(self, edit: Edit, statement: ast.stmt) -> Splice:
        if not is_known_code(edit.new):
            raise EditError(f"{_place(edit)}: the code to insert is not a change that compilediag makes")
        line, column = _find_start(statement)
        start, offset = self.starts[line - 1], self._find_offset(line, column)
        before = self.text[start:offset]
        if self.text.startswith("elif", offset):
            raise EditError(f"{_place(edit)}: no line can be put before `elif`")
        if before.strip(" \t\f") not in ("", "@"):
            raise EditError(f"{_place(edit)} has several statements; put each on a line of its own")
        return Splice(start, start, self.end_lines(textwrap.indent(edit.new, before.partition("@")[0])), True)

    def _replace_argument(self, edit: Edit, statement: ast.stmt) -> Iterator[Splice]:
        """The argument of a call in one of the forms, made of the text that the file itself has there."""
        path = write_path(edit.old)
        form = next((form for form in ARGUMENT_FORMS if path is not None and form.format(path) == edit.new), None)
        if form is None:
            raise EditError(f"{_place(edit)}: the new argument is not a change that compilediag makes")
        call, argument = _dump(edit.call), _dump(edit.old)
        limit = self._find_body(statement) or len(self.text)
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        for node in (node for node in calls if ast.dump(node) == call):
            values: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
            spans = [self.find_span(value) for value in values if ast.dump(value) == argument]
            yield from (Splice(a, b, form.format(self.text[a:b]), False) for a, b in spans if b <= limit)

    def _change_whole(self, edit: Edit, statement: ast.stmt) -> Iterator[Splice]:
        """A decorator or call that compiles, with a specification as one more option or without `dynamic=False`; or a
        setting with another value.
        """
        option, is_decorator = get_new_option(edit.old, edit.new), edit.old.startswith("@")
        if option is None and undo_static(edit.old) != edit.new:
            raise EditError(f"{_place(edit)}: the new code is not a change that compilediag makes")
        if isinstance(statement, ast.Assign) and ast.unparse(statement) == edit.old:
            yield Splice(*self.find_span(statement), edit.new, False)
        limit, wanted = self._find_body(statement) or len(self.text), _dump(edit.old.removeprefix("@"))
        nodes = getattr(statement, "decorator_list", ()) if is_decorator else ast.walk(statement)
        for node in nodes:
            if isinstance(node, ast.expr) and ast.dump(node) == wanted and self.find_span(node)[0] <= limit:
                name, _, value = (option or f"{STATIC_OPTION}=").partition("=")
                splice = self.set_option(node, name, value or None, is_decorator)
                yield from [splice] if splice is not None else []

    def join(self, splices: Iterable[Splice], may_meet: bool = False) -> EditedSource:
        """The text with all splices made. EditError if two of them want the same text, or the result is no Python.
        `may_meet`: several may insert something at one place.
        """
        ordered = sorted(splices, key=lambda splice: (splice.start, splice.end))
        for one, other in itertools.pairwise(ordered):
            is_same_place = one.start == other.start and not (one.is_line or other.is_line)
            is_insertion = may_meet and one.start == one.end
            if other.start < one.end or (is_same_place and not is_insertion):
                raise EditError(f"two changes replace the same code in line {self.find_line(other.start)}")
        result = self.splice(ordered)
        try:
            _parse_source(result.text)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise EditError(f"the changed code is not valid Python: {error}") from None
        return result

    def splice(self, splices: Sequence[Splice]) -> EditedSource:
        """The text with splices made, which are in their order."""
        text, origins, at = "", [1], 0
        for splice in splices:
            text, origins = _append(text, origins, self.text[at : splice.start], self._list_origins(at, splice.start))
            new = splice.new.count("\n")
            line = self.find_line(splice.start)
            text, origins = _append(text, origins, splice.new, [line] * (new + 1))
            at = splice.end
        text, origins = _append(text, origins, self.text[at:], self._list_origins(at, len(self.text)))
        return EditedSource(text, tuple(origins))

    def _list_origins(self, start: int, end: int) -> list[int]:
        return list(range(self.find_line(start), self.find_line(end) + 1))


def imports_torch(tree: ast.Module) -> bool:
    """True if a module binds the name `torch` at its top."""
    return any(map(_binds_torch, tree.body))


def _binds_torch(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and "torch" in [
        alias.asname or alias.name.partition(".")[0] for alias in node.names
    ]


def _append(text: str, origins: list[int], new: str, lines: list[int]) -> tuple[str, list[int]]:
    """Append text whose lines come from `lines`; a line belongs to where it begins."""
    is_at_start = not text or text.endswith(("\n", "\r"))
    return text + new, [*origins[:-1], lines[0] if is_at_start else origins[-1], *lines[1:]]


def _list_lines(node: ast.stmt) -> range:
    return range(_find_start(node)[0], (node.end_lineno or node.lineno) + 1)


def _find_start(node: ast.stmt) -> tuple[int, int]:
    """Line and column of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first: ast.stmt | ast.expr = decorators[0] if decorators else node
    return first.lineno, first.col_offset


def _dump(code: str) -> str | None:
    """The syntax tree of exactly one expression as text; None for anything else."""
    try:
        return ast.dump(ast.parse(f"({code.strip()}\n)", mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _squeeze(text: str) -> str:
    """Code without white space: recorded lines have no indentation, and calls may be over several lines."""
    return "".join(text.split())


def _place(edit: Edit) -> str:
    return format_place(edit.file, edit.line)
