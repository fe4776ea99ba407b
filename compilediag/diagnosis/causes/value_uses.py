"""What a line of the user's code does with a value: calculate with it, index with it, or pass it on."""

from __future__ import annotations

import ast

from .edits import parse_code

#: Functions of Python that need the number itself.
_NEED_NUMBER = frozenset({"range", "list", "tuple", "enumerate", "zip", "str", "repr", "format"})
_SHAPE_CALLS = frozenset({"zeros", "ones", "empty", "full", "view", "reshape", "expand", "repeat", "arange", "rand"})


def find_uses(code: str | None, name: str) -> frozenset[str]:
    """How a line uses `name`: any of "operand", "update", "index", "range", "argument", "condition", "other".

    "update" is `name += 1`. "operand" is arithmetic whose result is not itself an option of a call: there a tensor can
    take the number's place. Empty if the line does not contain it, or cannot be parsed.
    """
    text = (code or "").strip()
    tree, wanted = parse_code(text) or parse_code(f"{text}\n    pass"), parse_code(name)
    if tree is None or wanted is None or not isinstance(wanted.body[0], ast.Expr):
        return frozenset()
    target = ast.dump(wanted.body[0].value)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.expr) and _dump(node) == target)
    return frozenset(_classify(node, parents) for node in found)


def _dump(node: ast.expr) -> str:
    # `self.step += 1` stores what it reads; its context is no difference here.
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()")


def _classify(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    parent = parents.get(node)
    if isinstance(parent, ast.BinOp | ast.UnaryOp):
        outer = _classify(parent, parents)
        return "operand" if outer == "other" else outer
    if isinstance(parent, ast.AugAssign) and parent.target is node:
        return "update"
    if isinstance(parent, ast.Slice) or (isinstance(parent, ast.Subscript) and parent.slice is node):
        return "index"
    if isinstance(parent, ast.Compare | ast.If | ast.IfExp | ast.While | ast.BoolOp):
        return "condition"
    if isinstance(parent, ast.keyword):
        return "argument"
    if isinstance(parent, ast.Call):
        return _classify_argument(node, parent)
    return "other"


def _classify_argument(node: ast.AST, call: ast.Call) -> str:
    function = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if isinstance(call.func, ast.Name) and function in _NEED_NUMBER:
        return "range"
    # `torch.relu(x * k)` takes the tensor that the arithmetic gives; `dropout(x, 2 * k)` takes a number.
    is_first = bool(call.args) and call.args[0] is node and isinstance(node, ast.BinOp)
    return "other" if is_first and function not in _SHAPE_CALLS else "argument"
