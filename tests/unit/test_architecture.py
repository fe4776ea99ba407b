"""The rules that keep the code in order, held by reading it."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compilediag"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_FUNCTION, MAX_MODULE = 60, 400

#: What a part of the package may import of the package, beside itself. Nothing else.
MAY_IMPORT = {
    "errors": set(),
    "formatting": set(),
    "plugins": set(),
    "events": set(),
    "output_paths": {"errors"},
    "notebook_cells": {"events"},
    "storage": {"errors", "events", "decode"},
    "decode": {"errors", "events"},
    "diagnosis": {"errors", "events", "decode", "plugins", "session"},
    "recording": {"errors", "events", "storage", "notebook_cells"},
    "sources": {"errors", "events", "decode", "recording"},
    "trials": {"errors", "diagnosis", "sources", "watch"},
    "views": {"errors", "events", "decode", "storage", "diagnosis", "notebook_cells", "output_paths", "plugins"},
    "logs": {"errors", "events", "storage", "decode", "diagnosis", "output_paths", "plugins", ""},
    "session": {
        "errors",
        "events",
        "decode",
        "storage",
        "recording",
        "diagnosis",
        "views",
        "output_paths",
        "trials",
        "logs",
        "plugins",
    },
    "watch": {"errors", "events", "storage", "recording", "session", "sources", ""},
    "comparison": {"events", "diagnosis", "session", "views"},
    "frontends": {"errors", "events", "output_paths", "session", "watch", "views", "diagnosis", "logs", ""},
    "cli": {"errors", "output_paths", "session", "watch", "logs", "comparison", "diagnosis", "sources", "views", ""},
    "": {"session", "watch", "comparison", "frontends"},
    "__main__": {"cli"},
}
#: Parts that import nothing of the package, so that every other part may import them.
EVERYWHERE = {"formatting"}
#: Packages that only some parts may import at all, and those that have to wait until they are used.
ONLY_IN = {"torch": {"sources", "trials"}, "triton": {"sources", "trials"}}
WHEN_USED = {"IPython", "plotly", "anywidget", "ipywidgets", "ipykernel"}
#: Modules that are themselves imported when first used, and so may import the above at their top.
LOADED_WHEN_USED = {
    "compilediag.frontends.magics",
    "compilediag.views.widget",
}


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module):
    """The part of the package that a module belongs to: "decode" for compilediag.decode.guards, "" for the package."""
    return (module.split(".") + [""])[1]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(), filename=str(path))


def type_checking_only(tree):
    """The nodes under `if TYPE_CHECKING:`, which import nothing."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {child for block in blocks for child in ast.walk(block)}


def imports(path):
    """(module imported, the node) of each import that runs, with relative ones resolved."""
    tree = tree_of(path)
    package = name_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in set(ast.walk(tree)) - type_checking_only(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module == "compilediag":
                # `from compilediag import sources`: the parts are what is imported.
                yield from ((f"compilediag.{a.name}" if part_exists(a.name) else module, node) for a in node.names)
            else:
                yield module, node


def part_exists(name):
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


@pytest.fixture(params=MODULES, ids=name_of)
def module(request):
    return request.param


def test_a_part_imports_only_what_lies_before_it(module):
    part = part_of(name_of(module))
    assert part in MAY_IMPORT, f"{part} is new: say in MAY_IMPORT what it may import"
    used = {part_of(name) for name, _ in imports(module) if name.split(".")[0] == "compilediag"}
    assert used - {part} <= MAY_IMPORT[part] | EVERYWHERE


def modules_of_ours(path):
    """Name in a module -> the file of the module of ours that it was imported as."""
    package = path.parent
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = package.joinpath(*[".."] * (node.level - 1), *(node.module or "").split(".")).resolve()
            for alias in node.names:
                for file in (folder / f"{alias.name}.py", folder / alias.name / "__init__.py"):
                    if file.exists():
                        yield alias.asname or alias.name, file


def bound(node):
    """The names that a statement or an assignment's target binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name for alias in node.names]
    return []


def names_in(path):
    """All names that a module binds anywhere, and the modules of a package."""
    beside = {file.stem for file in path.parent.glob("*.py")} if path.name == "__init__.py" else set()
    return beside.union(*(bound(node) for node in ast.walk(tree_of(path))))


def test_what_is_asked_of_a_module_of_ours_is_there(module):
    """Some hooks run on a GPU alone: a name that they have wrong would be found there only."""
    known = {name: names_in(file) for name, file in modules_of_ours(module)}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            assert node.attr in known[node.value.id] | {"__file__"}, (
                f"line {node.lineno}: {ast.unparse(node)} is nowhere"
            )


def test_the_host_is_imported_only_where_it_may_be(module):
    own = part_of(name_of(module))
    for name, node in imports(module):
        allowed = ONLY_IN.get(name.split(".")[0])
        assert allowed is None or own in allowed, f"line {node.lineno} imports {name}"


def test_jupyter_and_plotly_wait_until_they_are_used(module):
    if name_of(module) in LOADED_WHEN_USED:
        assert all(importer_waits(other, name_of(module)) for other in MODULES), (
            f"{name_of(module)} is imported at a top"
        )
        return
    at_top = top_level_nodes(module)
    for name, node in imports(module):
        assert name.split(".")[0] not in WHEN_USED or node not in at_top, f"line {node.lineno} imports {name}"


def top_level_nodes(path):
    """The nodes that run when the module is imported: those outside of every function."""
    tree = tree_of(path)
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    inside = {child for function in functions for child in ast.walk(function) if child is not function}
    return set(ast.walk(tree)) - inside


def importer_waits(path, target):
    at_top = top_level_nodes(path)
    return not any(name == target and node in at_top for name, node in imports(path))


def test_functions_are_short(module):
    functions = [n for n in ast.walk(tree_of(module)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    long = {f.name: f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno - f.lineno + 1 > MAX_FUNCTION}
    assert long == {}


def test_modules_are_short(module):
    assert len(module.read_text().splitlines()) <= MAX_MODULE


def test_nothing_is_left_to_do_and_nothing_is_swallowed(module):
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            assert "NotImplementedError" not in ast.unparse(node.exc), f"line {node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
            silent = all(isinstance(s, (ast.Pass, ast.Continue)) or is_constant(s) for s in node.body)
            assert not (broad and silent), f"line {node.lineno} swallows whatever was raised"


def is_constant(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_every_module_says_what_it_is(module):
    assert ast.get_docstring(tree_of(module)) or not module.read_text(), "no docstring"


def test_every_test_can_fail():
    def checks(function):
        calls = [ast.unparse(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)]
        words = ("assert", "raises", "warns", "expect", "check", "verify", "compare")
        asserts = any(isinstance(n, (ast.Assert, ast.Raise)) for n in ast.walk(function))
        return asserts or any(word in call.lower() for call in calls for word in words)

    files = sorted((ROOT / "tests").rglob("test_*.py"))
    tests = [(f.name, n) for f in files for n in ast.walk(tree_of(f)) if isinstance(n, ast.FunctionDef)]
    idle = [(file, n.name) for file, n in tests if n.name.startswith("test") and not checks(n)]
    assert len(tests) > 20 and idle == []
