"""The code that a change may put into a program: a few fixed forms around paths such as `batch['ids']`.

A session may come from somebody else, and a plan's code is pasted, patched into files and run. So what a change inserts
is made of parsed values, never of recorded text, and it is checked again where it is applied: `is_only_inserted`
compares whole syntax trees, so it does not depend on how a text was put together.
"""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections.abc import Iterable

from .settings import find_config_module

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
    "torch.tensor({0})",
    "torch.as_tensor({0})",
    "{0} if {0}.requires_grad else {0}.detach().requires_grad_()",
)
SPEC_MODULE = "torch.fx.experimental.dynamic_spec"
SPEC_NAMES = ("DictSpec", "IntVar", "ObjectSpec", "STATIC", "SeqSpec", "ShapeVar", "TensorSpec", "dynamic_spec")
_VARIABLES = ("IntVar", "ShapeVar")
_COMPILE = "torch.compile"
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


def write_argument(form: str, path: str) -> str | None:
    """An argument in one of ARGUMENT_FORMS; None if it is no path."""
    written = write_path(path)
    return None if written is None else form.format(written)


def find_form(old: str, new: str) -> str | None:
    """The form that makes `new` of the path `old`; None if there is none."""
    return next((form for form in ARGUMENT_FORMS if write_argument(form, old) == new), None)


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
    flat, others = ([item for value in one for item in _as_list(value)] for one in (own, other))
    if len(flat) != len(others):
        return False
    return all(
        _collect(a, b, found) if isinstance(a, ast.AST) and isinstance(b, ast.AST) else a == b
        for a, b in zip(flat, others, strict=True)
    )


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def is_known_code(text: str) -> bool:
    """True if each statement of a text has a form that changes insert, without comments or control characters."""
    if not all(line.isprintable() for line in text.split("\n")) or _has_comment(text):
        return False
    tree = _parse(text)
    if tree is not None:
        return all(map(_is_statement, tree.body))
    tree = _parse(f"{text}\n{_DECORATED}")
    if tree is None or not isinstance(last := tree.body[-1], ast.FunctionDef) or len(last.decorator_list) != 1:
        return False
    return all(map(_is_statement, tree.body[:-1])) and _is_decorator(last.decorator_list[0])


def _parse(text: str) -> ast.Module | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return tree if is_shallow(tree) else None


def _has_comment(text: str) -> bool:
    if "#" not in text:
        return False
    try:
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return True
    return any(token.type == tokenize.COMMENT for token in tokens)


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
    return name == _COMPILE and not node.args and all(map(_is_option, node.keywords))


def _is_option(keyword: ast.keyword) -> bool:
    return _is_spec_option(keyword) or (keyword.arg is not None and _is_plain(keyword.value))


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


# Programs


def is_only_inserted(before: ast.AST, after: ast.AST) -> bool:
    """True if two programs are the same but for code that has one of the forms. Both trees are used up."""
    try:
        return ast.dump(_Remover().visit(before)) == ast.dump(_Remover().visit(after))
    except RecursionError:
        return False


class _Remover(ast.NodeTransformer):
    """Removes all code that has one of the forms, also if the user wrote it."""

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if _is_import(node) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if _is_import(node) else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_mark(node.value) else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return None if _is_assignment(node) else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = _strip_decorators(node.decorator_list)
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = _strip_decorators(node.decorator_list)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._unwrap(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._unwrap(node)

    def _unwrap(self, node: ast.expr) -> ast.AST:
        inside = self.generic_visit(node)
        found = (_match(pattern, inside) for pattern in _FORMS)
        return next((value for value in found if value is not None), inside)


def _strip_decorators(decorators: Iterable[ast.expr]) -> list[ast.expr]:
    left = []
    for node in decorators:
        if isinstance(node, ast.Call) and _get_dotted(node.func) == _COMPILE:
            node.keywords = [keyword for keyword in node.keywords if not _is_spec_option(keyword)]
            left.append(node if node.args or node.keywords else node.func)
        elif not (isinstance(node, ast.Call) and _get_dotted(node.func) == "dynamic_spec" and _is_decorator(node)):
            left.append(node)
    return left
