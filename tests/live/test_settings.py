"""Programs that use a setting, a stance or a function of torch.compiler: what is said about each is true.

docs/settings.md shows the programs of `CASES` by name, with what is reported.
"""

import contextlib
import importlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

import pytest
import torch

import compilediag

PAGE = Path(__file__).resolve().parents[2] / "docs/settings.md"
VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


@dataclass(frozen=True)
class Case:
    """A program, the rules of its findings, and texts that they have and have not.

    `since` is the first version of torch that has the setting.
    """

    name: str
    program: str
    rules: tuple[str, ...]
    says: tuple[str, ...] = ()
    never_says: tuple[str, ...] = ()
    since: tuple[int, int] = (2, 11)

    @property
    def source(self) -> str:
        return f"import torch\n\n\n{dedent(self.program)}"


def write(before: str = "", options: str = "", call: str = "double(torch.ones(n))") -> str:
    """A function that is compiled and called with four sizes; `call` is one call."""
    return f"{before}{DOUBLE.format(f', {options}' if options else '')}for n in (4, 5, 6, 7):\n{indent(call, '    ')}\n"


def within(stance: str, block: str = "double(torch.ones(4))") -> str:
    """A call, and a block of code under a stance."""
    with_stance = f"with torch.compiler.set_stance({stance}):\n{indent(block, '    ')}\n"
    return f"{DOUBLE.format('')}double(torch.ones(4))\n{with_stance}"


DOUBLE = '@torch.compile(backend="eager"{})\ndef double(x):\n    return x * 2\n\n'
SCALE = """
    torch._dynamo.config.{0} = True

    @torch.compile(backend="eager")
    def scale(x, k):
        return x * k

    for k in {1}:
        scale(torch.ones(4), k)
"""
CATCH = "try:\n    double(torch.ones(n))\nexcept Exception:\n    pass"
BREAK = """
    @torch.compile(backend="eager"{options})
    def double(x):
        {first}
            print(x.shape)
        return x * 2

    try:
        double(torch.ones(4))
    except Exception:
        pass
"""
CASES = (
    # Sizes and numbers that stay static
    Case(
        "dynamic=False",
        write(options="dynamic=False"),
        ("size_changes",),
        ('Write `@torch.compile(backend="eager")` at', "`dynamic=False` ("),
    ),
    Case(
        "automatic_dynamic_shapes = False",
        write("torch._dynamo.config.automatic_dynamic_shapes = False\n"),
        ("size_changes",),
        ("Write `torch._dynamo.config.automatic_dynamic_shapes = True` at", "dynamic_sources"),
    ),
    Case("assume_static_by_default = False", write("torch._dynamo.config.assume_static_by_default = False\n"), ()),
    Case(
        "mark_static",
        write(call="x = torch.ones(n)\ntorch._dynamo.mark_static(x, 0)\ndouble(x)"),
        ("specialized",),
        ("Remove torch._dynamo.mark_static", "marking it dynamic has no effect"),
        ("A line of the code (",),
    ),
    Case(
        "specialize_int = True",
        SCALE.format("specialize_int", (2, 3, 4, 5)),
        ("counter",),
        ("Write `torch._dynamo.config.specialize_int = False` at", "dynamic_sources"),
    ),
    Case(
        "specialize_float = True",
        SCALE.format("specialize_float", (2.5, 3.5, 4.5, 5.5)),
        ("float_changes",),
        ("Write `torch._dynamo.config.specialize_float = False` at", "torch.tensor(k)"),
    ),
    # Limits
    Case(
        "config.patch(recompile_limit=2)",
        """
        @torch._dynamo.config.patch(recompile_limit=2)
        def train():
            for n in (4, 5, 6, 7):
                double(torch.ones(n))

        @torch.compile(backend="eager", dynamic=False)
        def double(x):
            return x * 2

        train()
        """,
        ("recompile_limit", "size_changes"),
        ("hit recompile_limit (2): it silently runs eagerly", "Raise torch._dynamo.config.recompile_limit only if"),
    ),
    Case(
        "accumulated_recompile_limit = 2",
        write("torch._dynamo.config.accumulated_recompile_limit = 2\n", "dynamic=False"),
        ("recompile_limit", "size_changes"),
        ("hit accumulated_recompile_limit (2)", "Raise torch._dynamo.config.accumulated_recompile_limit only if"),
    ),
    Case(
        "torch.compile(recompile_limit=2)",
        write(options="dynamic=False, recompile_limit=2"),
        ("recompile_limit", "size_changes"),
        ("(2, an argument of torch.compile)", "Raise the argument recompile_limit of torch.compile only if"),
        ("torch._dynamo.config.recompile_limit",),
        since=(2, 13),
    ),
    Case(
        "fail_on_recompile_limit_hit = True",
        write(
            "torch._dynamo.config.fail_on_recompile_limit_hit = True\ntorch._dynamo.config.recompile_limit = 2\n",
            "dynamic=False",
            CATCH,
        ),
        ("recompile_limit", "size_changes"),
        ("torch raised an exception (fail_on_recompile_limit_hit)",),
        ("eagerly",),
    ),
    Case(
        "fullgraph=True at the limit",
        write("torch._dynamo.config.recompile_limit = 2\n", "fullgraph=True, dynamic=False", CATCH),
        ("recompile_limit", "size_changes"),
        ("torch raised an exception (fullgraph=True)",),
        ("eagerly",),
    ),
    Case(
        "isolate_recompiles=True",
        """
        def double(x):
            return x * 2

        first = torch.compile(double, backend="eager", isolate_recompiles=True, recompile_limit=2, dynamic=False)
        second = torch.compile(double, backend="eager", isolate_recompiles=True, dynamic=False)
        for n in (4, 5, 6):
            first(torch.ones(n))
        for n in (14, 15, 16):
            second(torch.ones(n))
        """,
        ("recompile_limit", "size_changes", "size_changes"),
        ("x.shape[0] was 4, then 5, 6", "x.shape[0] was 14, then 15, 16", "of isolate_recompiles"),
        since=(2, 13),
    ),
    Case(
        "error_on_recompile = True",
        write("torch._dynamo.config.error_on_recompile = True\n", "dynamic=False", CATCH),
        ("compile_failed", "size_changes"),
        ("error_on_recompile allows no recompile. Fix its cause",),
        ('with backend="eager"', "eagerly"),
    ),
    # Stances
    Case(
        'set_stance("eager_on_recompile")',
        within('"eager_on_recompile"', "for _ in range(20):\n    double(torch.ones(5))"),
        ("refused_calls",),
        ("ran eagerly 20x", "compiles nothing new: x.shape[0] was 4, then 5", "dynamic_sources"),
    ),
    Case(
        'set_stance("fail_on_recompile")',
        within('"fail_on_recompile"', "try:\n    double(torch.ones(5))\nexcept RuntimeError:\n    pass"),
        ("refused_calls",),
        ("raised an exception once", "allows no compile: x.shape[0] was 4, then 5"),
        ("eagerly",),
    ),
    Case('set_stance("force_eager")', within('"force_eager"'), ("refused_calls",), ("turns torch.compile off",)),
    Case(
        "set_stance(force_backend=...)",
        within('force_backend="aot_eager"'),
        ("backend_changes",),
        ("if the stance is intended, this recompile is expected",),
    ),
    Case(
        "set_stance(skip_guard_eval_unsafe=True)",
        within("skip_guard_eval_unsafe=True"),
        ("unchecked_guards",),
        ("guards are not checked",),
    ),
    # Graph breaks and exceptions
    Case(
        "fullgraph=True",
        BREAK.format(options=", fullgraph=True", first="if True:"),
        ("compile_failed",),
        ("torch raised an exception once", "compile without fullgraph=True"),
        ("runs eagerly:",),
    ),
    Case(
        "error_on_graph_break(True)",
        BREAK.format(options="", first="with torch._dynamo.error_on_graph_break(True):"),
        ("compile_failed",),
        ("torch raised an exception once", "with torch._dynamo.error_on_graph_break(False):"),
        ("fullgraph",),
    ),
    Case(
        "suppress_errors = True",
        """
        torch._dynamo.config.suppress_errors = True

        def backend(graph, inputs):
            raise RuntimeError("no such kernel")

        @torch.compile(backend=backend)
        def double(x):
            return x * 2

        double(torch.ones(4))
        """,
        ("runs_eagerly",),
        ("RuntimeError: no such kernel", "suppress_errors hides the exception"),
        ("loop", "graph break"),
    ),
    Case(
        "skip_frame",
        """
        @torch.compile(backend="eager")
        def double(x):
            torch._dynamo.skip_frame()
            return x * 2

        double(torch.ones(4))
        """,
        ("runs_eagerly",),
        ("Remove that call",),
        ("loop",),
    ),
    Case(
        "nested_compile_region",
        """
        @torch.compiler.nested_compile_region
        def double(x):
            print(x.shape)
            return x * 2

        @torch.compile(backend="eager")
        def twice(x):
            return double(double(x))

        try:
            twice(torch.ones(4))
        except Exception:
            pass
        """,
        ("compile_failed",),
        ("nested_compile_region", "allows no graph break: Failed to trace builtin", "reorderable_logging_functions"),
        ("Find the step that fails",),
    ),
    Case(
        "disable",
        """
        @torch.compiler.disable
        def double(x):
            return x * 2

        @torch.compile(backend="eager")
        def twice(x):
            return double(x + 1) * 2

        twice(torch.ones(4))
        """,
        ("graph_break",),
        ("Remove the `torch.compiler.disable` call.",),
    ),
    Case(
        "disable(recursive=False)",
        """
        def double(x):
            return x * 2

        @torch.compiler.disable(recursive=False)
        def call(x):
            return double(x)

        @torch.compile(backend="eager")
        def twice(x):
            return call(x + 1) * 2

        twice(torch.ones(4))
        """,
        ("graph_break",),
        ("Skip inlining `torch.compiler.disable()`d function", "Remove the `torch.compiler.disable` call."),
    ),
    # Nothing to report
    Case("torch.compile(disable=True)", write(options="disable=True"), ()),
    Case("config.disable = True", write("torch._dynamo.config.disable = True\n"), ()),
    Case(
        "allow_in_graph",
        """
        @torch.compiler.allow_in_graph
        def double(x):
            return x * 2

        @torch.compile(backend="eager")
        def twice(x):
            return double(x) * 2

        twice(torch.ones(4))
        """,
        (),
    ),
    Case(
        "assume_constant_result",
        """
        factor = 1

        @torch.compiler.assume_constant_result
        def read():
            return factor

        @torch.compile(backend="eager")
        def scale(x):
            return x * read()

        for factor in (2, 3):
            scale(torch.ones(4))
        """,
        (),
    ),
)


@pytest.fixture
def clean(monkeypatch):
    """No stance and no module of a program is left."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    torch.compiler.set_stance("default")
    sys.modules.pop("settings_program", None)


def keep_settings(source):
    """Restore the settings that a program assigns."""
    config = torch._dynamo.config
    names = {"recompile_limit", *re.findall(r"^torch\._dynamo\.config\.(\w+) = ", source, flags=re.M)}
    return config.patch({name: getattr(config, name) for name in names})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_about_a_setting_is_true(case, clean, tmp_path, monkeypatch):
    if case.since > VERSION:
        pytest.skip(f"before torch {'.'.join(map(str, case.since))}: there is no such argument")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "settings_program.py").write_text(case.source)
    importlib.invalidate_caches()
    with keep_settings(case.source), compilediag.watch() as session, contextlib.redirect_stdout(io.StringIO()):
        importlib.import_module("settings_program")
    findings = session.findings()
    assert sorted(found.rule for found in findings) == sorted(case.rules)
    text = "\n".join(f"{found.title}\n{found.suggestion}" for found in findings)
    assert [part for part in case.says if part not in text] == [], text
    assert [part for part in case.never_says if part in text] == [], text
    assert session.sources.status.isin(["active", "off"]).all()


def test_the_page_has_each_of_these_programs_and_no_other():
    rows = re.findall(r"^\| `([^`]+)` \|([^|]*)\|", PAGE.read_text(), flags=re.M)
    assert {name: set(re.findall(r"`(\w+)`", rules)) for name, rules in rows} == {
        case.name: set(case.rules) for case in CASES
    }
