"""A file of the user's program as text that can be changed, and where it compiles something."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..formatting import find_cell_number, format_place
from .source_edits import SourceText, Splice

#: The options of `module.compile()`, which nothing else tells from other methods of that name.
_OPTIONS = frozenset(("fullgraph", "dynamic", "backend", "mode", "options", "disable", "isolate_recompiles"))


class ProgramFile(SourceText):
    """One file of the program. `name` is its path, or `Cell In[3]`."""

    def __init__(self, name: str, text: str):
        super().__init__(text)
        self.name = name

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def find_statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that has a node."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parents.get(current)
        return current

    def insert_after(self, statement: ast.stmt, lines: Sequence[str]) -> Splice | None:
        """Lines after a statement, with its indentation; None where no line can be put."""
        before = self.insert_before(statement, lines)
        end = statement.end_lineno or statement.lineno
        rest = self.get_line(end)[len(self.get_line(end).rstrip()) :]
        if before is None or not rest:
            return None
        after = self.starts[end]
        return Splice(after, after, before.new, True)

    def remove(self, statement: ast.stmt) -> Splice | None:
        """The splice that removes a statement with its lines; None if it shares them."""
        start, end = self.starts[statement.lineno - 1], self.starts[statement.end_lineno or statement.lineno]
        around = self.text[start:end].replace(self.get_text(statement), "", 1).strip()
        return None if around and not around.startswith("#") else Splice(start, end, "", False)

    def replace_statements(self, first: ast.stmt, last: ast.stmt, new: str) -> Splice:
        """Other code in place of statements that follow each other."""
        return Splice(self.find_span(first)[0], self.find_span(last)[1], new, False)

    def replace(self, node: ast.expr, new: str) -> Splice:
        """Other code in place of an expression."""
        start, end = self.find_span(node)
        return Splice(start, end, new, False)


@dataclass(frozen=True)
class CompileCall:
    """A place where the program compiles something: `torch.compile(model, ...)`, `@torch.compile`, `model.compile()`.

    `target` is what is compiled, where it is an argument or the owner of the method. `name` is what the result is
    assigned to, and `function` what a decorator compiles.
    """

    file: ProgramFile
    node: ast.expr
    target: ast.expr | None = None
    name: str | None = None
    function: ast.stmt | None = None

    @property
    def place(self) -> str:
        return format_place(self.file.name, self.node.lineno)

    @property
    def result(self) -> str:
        """What is called then: the name of the result, or what is compiled."""
        return self.name or (ast.unparse(self.target) if self.target is not None else "")

    @property
    def options(self) -> list[ast.keyword]:
        """Its keywords."""
        return self.node.keywords if isinstance(self.node, ast.Call) else []


def find_compile_calls(file: ProgramFile) -> Iterator[CompileCall]:
    """Where a file compiles something, in the order of `ast.walk`."""
    modules, functions = _find_torch_names(file)
    decorated = {
        decorator: node
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for decorator in node.decorator_list
    }
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.expr) or not (isinstance(node, ast.Call) or node in decorated):
            continue
        named, args = (node.func, node.args) if isinstance(node, ast.Call) else (node, [])
        if _is_compile(named, modules, functions):
            parent, name = file.parents.get(node), None
            if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
                name = ast.unparse(parent.targets[0])
            yield CompileCall(file, node, args[0] if args else None, name, decorated.get(node))
        elif args and _is_compile(args[0], modules, functions):
            yield CompileCall(file, node, function=decorated.get(node))  # functools.partial(torch.compile, ...)
        elif (
            modules
            and isinstance(named, ast.Attribute)
            and isinstance(node, ast.Call)
            and named.attr == "compile"
            and not args
            and all(keyword.arg in _OPTIONS for keyword in node.keywords)
        ):
            # `model.compile(dynamic=True)`: a method named so, with none but torch's options.
            yield CompileCall(file, node, named.value)


def _find_torch_names(file: ProgramFile) -> tuple[set[str], set[str]]:
    """The names of the module torch, and those of its function compile. A cell has what one before it imported."""
    modules, functions = {"torch"} if find_cell_number(file.name) is not None else set(), set()
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or "torch" for alias in node.names if alias.name.partition(".")[0] == "torch"}
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            functions |= {alias.asname or alias.name for alias in node.names if alias.name == "compile"}
    return modules, functions


def _is_compile(node: ast.expr, modules: set[str], functions: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in functions
    is_attribute = isinstance(node, ast.Attribute) and node.attr == "compile"
    return is_attribute and isinstance(node.value, ast.Name) and node.value.id in modules  # type: ignore[attr-defined]
