"""Print how large the code base is, how it hangs together, and how far a reader of a view has to go.

    python benchmarks/structure.py [FOLDER]

`FOLDER`: the root of another checkout, to compare with. Prints one table; nothing is written.
"""

from __future__ import annotations

import ast
import collections
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What tests may import beside the facade `compilediag`, and what is in it. Users and plug-ins import these modules
#: (docs/api.md, docs/plugins.md, docs/monitoring.md): a test that uses them breaks only where users' code would too.
PUBLIC = (
    "compilediag.events",
    "compilediag.diagnosis",
    "compilediag.errors",
    "compilediag.integrations",
    "compilediag.integrations.opentelemetry",
    "compilediag.integrations.prometheus",
)
#: Decorators that register a function: whoever calls it does not name it.
REGISTERS = {"hook", "hook_before", "line_magic", "cell_magic", "hookimpl", "fixture", "register"}
#: Runs in the measured checkout: files, functions and depth of what two views call.
WALK = """
import os, sys
import torch
import compilediag as cd

def double(x, n):
    return x * n

with cd.watch() as session:
    f = torch.compile(double, backend="eager")
    for n in range(3):
        f(torch.ones(2), n)

def walk(work):
    files, functions, depth, deepest, searches = set(), set(), 0, 0, 0
    def profile(frame, event, argument):
        nonlocal depth, deepest, searches
        if not frame.f_code.co_filename.startswith(OWN):
            return
        if event == "call":
            depth += 1
            deepest = max(deepest, depth)
            files.add(frame.f_code.co_filename)
            functions.add(frame.f_code)
            searches += frame.f_code.co_name == "_make_cause"
        elif event == "return":
            depth -= 1
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    print(len(files), len(functions), deepest, searches)

OWN = os.path.dirname(cd.__file__)
session.flush()
first = cd.load(session.path)
first.plan(), first.summary()  # Everything is imported then.
walk(lambda: cd.load(session.path).plan())
walk(lambda: cd.load(session.path).summary())
other = cd.load(session.path)
walk(lambda: (other.plan(), other.findings(), other.summary()))
"""


def list_modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file, of the package."""
    found = {}
    for file in sorted((root / "compilediag").rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def find_imported(name: str, file: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports, also later and for types."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            base = above[: len(above) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{target}.{alias.name}"
                if full in modules or target in modules:
                    yield full if full in modules else target


def count_lines(files: Iterator[Path] | list[Path]) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def registers(decorator: ast.expr) -> bool:
    """True for `@hook(...)` and `@pytest.hookimpl`."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).rpartition(".")[2] in REGISTERS


def count_single_functions(modules: dict[str, Path]) -> tuple[int, int]:
    """How many functions and methods are named at most once in the package, and how many there are.

    Dunder methods and those that a decorator registers are left out.
    """
    names: list[str] = []
    references: collections.Counter[str] = collections.Counter()
    for file in modules.values():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_named = not node.name.startswith("__") and not any(map(registers, node.decorator_list))
                names += [node.name] if is_named else []
            elif isinstance(node, ast.Name):
                references[node.id] += 1
            elif isinstance(node, ast.Attribute):
                references[node.attr] += 1
    return sum(references[name] <= 1 for name in names), len(names)


def find_cycles(imports: dict[str, set[str]]) -> int:
    """How many modules import themselves around a cycle."""

    def can_reach(begin: str) -> bool:
        seen: set[str] = set()
        waiting = list(imports[begin])
        while waiting:
            name = waiting.pop()
            if name == begin:
                return True
            if name not in seen:
                seen.add(name)
                waiting += imports.get(name, ())
        return False

    return sum(map(can_reach, imports))


def count_internal_imports(root: Path) -> tuple[int, int, int]:
    """Imports of the package in the tests: all but those of the facade, those of what is not PUBLIC either, and all."""
    strict = internal = every = 0
    for file in (root / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            own = [name for name in names if name.split(".")[0] == "compilediag"]
            every += len(own)
            strict += sum(name != "compilediag" for name in own)
            internal += sum(name not in ("compilediag", *PUBLIC) for name in own)
    return strict, internal, every


def main() -> None:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    modules = list_modules(root)
    imports = {name: set(find_imported(name, file, modules)) - {name} for name, file in modules.items()}
    importers = collections.Counter(target for found in imports.values() for target in found)
    single, functions = count_single_functions(modules)
    strict, internal, every = count_internal_imports(root)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")  # Values have the user's names only in a file.
        program.write_text(WALK)
        environment = {**os.environ, "PYTHONPATH": str(root)}
        run = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
    walked = run.stdout.splitlines()
    plan, summary, together = (line.split() for line in walked[-3:])
    tests = list((root / "tests").rglob("*.py"))
    rows = [
        ("package, lines of Python", count_lines(list(modules.values())), "35,000"),
        ("package, modules", len(modules), "200"),
        ("tests, lines of Python", count_lines(tests), "36,000"),
        ("tests, imports of more than the facade", f"{strict:,} of {every:,}", ""),
        ("tests, imports of internals: of modules that are not PUBLIC", f"{internal:,} of {every:,}", "100"),
        ("files that plan() / summary() pass", f"{plan[0]} / {summary[0]}", "25 / 30"),
        ("functions that they pass", f"{plan[1]} / {summary[1]}", ""),
        ("depth", f"{plan[2]} / {summary[2]}", "14"),
        ("times that the cause is made by plan() + findings() + summary()", together[3], "1"),
        ("functions with at most one reference", f"{single:,} of {functions:,}, {single / functions:.0%}", "20 %"),
        ("modules with one importer", sum(count == 1 for count in importers.values()), ""),
        ("modules in a cycle of imports", find_cycles(imports), "0"),
    ]
    for what, value, target in rows:
        shown = f"{value:,}" if isinstance(value, int) else value
        print(f"{what:<64}  {shown:>18}  {target:>8}")


if __name__ == "__main__":
    main()
