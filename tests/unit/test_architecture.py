"""The rules that keep the code in order, held by reading it."""

import ast
import collections
import functools
import graphlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compilediag"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: What a part of the package may import of the package, beside itself. Nothing else.
MAY_IMPORT = {
    "document": set(),
    "json_document": set(),
    "errors": set(),
    "version": set(),
    "formatting": set(),
    "system": {"decode", "errors", "events"},
    "events": set(),
    "decode": {"errors", "events"},
    "storage": {"errors", "events", "decode"},
    "sources": {"errors", "events", "decode", "storage"},
    "recording": {"errors", "events", "sources", "storage", "version"},
    "diagnosis": {"errors", "events", "decode"},
    "trials": {"decode", "diagnosis", "errors", "events", "recording", "sources", "storage"},
    "fix": {"diagnosis", "errors", "events", "storage", "trials"},
    "views": {"decode", "diagnosis", "errors", "events", "storage", "version"},
    "logs": {"decode", "errors", "events", "storage", "version"},
    "session": {"decode", "diagnosis", "errors", "events", "logs", "storage", "views"},
    "console": {"diagnosis", "events", "recording"},
    "watch": {"console", "recording", "errors", "session"},
    "comparison": {"decode", "diagnosis", "errors", "events", "logs", "session", "storage", "views"},
    "frontends": {"comparison", "diagnosis", "errors", "events", "fix", "session", "trials", "views", "watch", ""},
    "integrations": {"diagnosis", "events", "session", "version", "views", "watch"},
    "cli": {"comparison", "diagnosis", "errors", "fix", "logs", "session", "sources", "trials", "views", "watch", ""},
    "": {"comparison", "frontends", "session", "version", "watch"},
    "__main__": {"cli"},
}
#: What every part may use.
EVERYWHERE = {"document", "formatting", "json_document", "system"}
#: Packages that only some parts may import at all, and those that have to wait until they are used.
ONLY_IN = {"torch": {"sources", "trials"}, "triton": {"sources", "trials"}}
WHEN_USED = {"IPython", "plotly", "anywidget", "ipywidgets", "ipykernel"}
#: Modules that are themselves imported when first used, and so may import the above at their top.
LOADED_WHEN_USED = {
    "compilediag.frontends.cell_process",
    "compilediag.frontends.magics",
    "compilediag.views.widget",
}


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module):
    """The part of the package that a module belongs to: "decode" for compilediag.decode.guards, "" for the package."""
    return [*module.split("."), ""][1]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(), filename=str(path))


@functools.cache
def nodes_of(path):
    return list(ast.walk(tree_of(path)))


def type_checking_only(path):
    """The nodes under `if TYPE_CHECKING:`, which import nothing."""
    blocks = [n for n in nodes_of(path) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {child for block in blocks for child in ast.walk(block)}


@functools.cache
def imports(path):
    """(module imported, the node) of each import that runs, with relative ones resolved."""
    return list(find_imports(path))


def find_imports(path):
    package = name_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in set(nodes_of(path)) - type_checking_only(path):
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


def each_module(check):
    """A test that checks every module of the package: one test for each would be 3,000."""

    def test():
        failed = {}
        for module in MODULES:
            try:
                check(module)
            except AssertionError as error:
                failed[name_of(module)] = str(error)
        assert failed == {}

    return test


#: Classes of errors that can be what a signal handler of the program raises.
WIDE = {"Exception", "BaseException", "OSError", "TimeoutError"}
#: Parts that run in processes and threads of their own, or that a command calls.
NOT_IN_THE_PROGRAM = {"cli", "fix", "logs", "trials"}
#: What decides whether an error is an interrupt, and functions that call it.
ASK = {"pass_on", "find_interrupt", "handle_escaped", "_handle", "_fail"}
#: Modules with such a clause that need not ask.
NEED_NOT_ASK = {
    "compilediag.system.interrupts": "decides",
    "compilediag.recording.recorder": "the writer's own thread, which no signal handler runs in",
}


@each_module
def test_a_wide_except_clause_lets_interrupts_pass(module):
    if part_of(name_of(module)) in NOT_IN_THE_PROGRAM or name_of(module) in NEED_NOT_ASK:
        return
    swallowing = [node.lineno for node in nodes_of(module) if swallows_wide(node)]
    assert swallowing == [], "call interrupts.pass_on, or use interrupts.ignore"


def swallows_wide(node):
    """True for an `except` clause, or a `contextlib.suppress`, that can swallow what a signal handler raises."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith("suppress") and WIDE & {ast.unparse(each) for each in node.args} != set()
    if not isinstance(node, ast.ExceptHandler) or not WIDE & list_caught(node):
        return False
    called = {ast.unparse(each.func).split(".")[-1] for each in ast.walk(node) if isinstance(each, ast.Call)}
    last = node.body[-1]
    return not called & ASK and not (isinstance(last, ast.Raise) and last.exc is None)


def list_caught(handler):
    """The names of the classes that an `except` clause catches."""
    if handler.type is None:
        return {"BaseException"}
    return {ast.unparse(each) for each in getattr(handler.type, "elts", [handler.type])}


@each_module
def test_a_part_imports_only_what_lies_before_it(module):
    part = part_of(name_of(module))
    assert part in MAY_IMPORT, f"{part} is new: say in MAY_IMPORT what it may import"
    used = {part_of(name) for name, _ in imports(module) if name.split(".")[0] == "compilediag"}
    assert used - {part} <= MAY_IMPORT[part] | EVERYWHERE


def imported_modules(path):
    """The modules of ours that a module imports when it runs, at its top or later."""
    names = {name_of(other) for other in MODULES}
    for base, node in imports(path):
        aliases = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        found = {f"{base}.{alias}" for alias in aliases} & names
        yield from found or {base} & names


def test_no_modules_import_each_other_not_even_later():
    graph = {name_of(path): {*imported_modules(path)} - {name_of(path)} for path in MODULES}
    in_order = graphlib.TopologicalSorter(graph).static_order()  # CycleError names the modules
    assert {*in_order} >= {*graph}


def test_class_names_are_unique():
    names = collections.defaultdict(list)
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                names[node.name].append(name_of(path))
    assert {name: where for name, where in names.items() if len(where) > 1} == {}


@each_module
def test_the_host_is_imported_only_where_it_may_be(module):
    own = part_of(name_of(module))
    for name, node in imports(module):
        allowed = ONLY_IN.get(name.split(".")[0])
        assert allowed is None or own in allowed, f"line {node.lineno} imports {name}"


#: The parts that touch torch, and the only file in each group of theirs that names torch's private parts.
TOUCH_TORCH, TORCH_API = ("sources", "trials"), "torch_api.py"
PRIVATE_NAME = re.compile(r"\b(?:torch\._|triton\.)")
#: Private attributes that are Python's own.
PYTHONS = {"_asdict", "_exit", "_replace", "_getframe"}


@functools.cache
def hook_names():
    """The names of the functions that the sources watch; ordinary words such as `get` are left out."""
    strings = set()
    for file in PACKAGE.rglob(TORCH_API):
        for node in nodes_of(file):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("HookPoint", "hook_points"):
                strings |= {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {name for text in strings if "_" in (name := text.rpartition(".")[2])}


def documentation(tree):
    """The string nodes that are docstrings."""
    owners = [n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    return {n.body[0].value for n in owners if n.body and isinstance(n.body[0], ast.Expr)}


def private_parts_of_torch(path):
    """(line, what) of each private part of torch or triton that a file names."""
    tree, hooks = tree_of(path), hook_names()
    for node in set(ast.walk(tree)) - documentation(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if PRIVATE_NAME.search(node.value) or node.value in hooks:
                yield node.lineno, node.value
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if ast.unparse(node.value) not in ("self", "cls") and node.attr not in PYTHONS:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from ((node.lineno, name) for name in names if PRIVATE_NAME.match(f"{name}."))


@each_module
def test_torchs_private_parts_are_named_in_one_file_a_group(module):
    if part_of(name_of(module)) in TOUCH_TORCH and module.name != TORCH_API:
        assert list(private_parts_of_torch(module)) == []


def test_each_group_of_sources_has_one_such_file():
    groups = [folder for folder in (PACKAGE / "sources").iterdir() if (folder / "__init__.py").exists()]
    without = {folder.name for folder in groups if not (folder / TORCH_API).exists()}
    assert len(groups) > 5 and without == {"hooks"}
    assert len(hook_names()) > 50


@each_module
def test_jupyter_and_plotly_wait_until_they_are_used(module):
    if name_of(module) in LOADED_WHEN_USED:
        assert all(
            importer_waits(other, name_of(module)) for other in MODULES if name_of(other) not in LOADED_WHEN_USED
        ), f"{name_of(module)} is imported at a top"
        return
    at_top = top_level_nodes(module)
    for name, node in imports(module):
        assert name.split(".")[0] not in WHEN_USED or node not in at_top, f"line {node.lineno} imports {name}"


@functools.cache
def top_level_nodes(path):
    """The nodes that run when the module is imported: those outside of every function."""
    functions = [n for n in nodes_of(path) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    inside = {child for function in functions for child in ast.walk(function) if child is not function}
    return set(nodes_of(path)) - inside


def importer_waits(path, target):
    at_top = top_level_nodes(path)
    return not any(name == target and node in at_top for name, node in imports(path))
