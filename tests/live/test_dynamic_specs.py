"""Plans with torch's public spelling, `torch.compile(dynamic_shapes=...)` and `@dynamic_spec`: following them works.

The scenarios are those of the benchmark of pytorch/pytorch#184440 (benchmarks/dynamo/dynamic_spec_recompile_bench.py),
which observes the reasons of recompiles and emits a specification. Each is compiled with the specification that it
emits, with every dimension that had three values or more, and its number of compiles is the limit for ours.
"""

import importlib
import sys
from dataclasses import asdict, dataclass
from textwrap import dedent, indent

import pytest
import torch

import compilediag
from compilediag.events import Compile, GraphBreak
from tests.advice.source_changes import apply_edits

HAS_SPECS = importlib.util.find_spec("torch.fx.experimental._spec_binding") is not None
pytestmark = pytest.mark.skipif(
    not HAS_SPECS or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15),
    reason="torch.compile(dynamic_shapes=...) is public from torch 2.15 on",
)
START = "import torch\nfrom torch import nn\n"


@dataclass(frozen=True)
class Run:
    session: compilediag.Session
    results: list[torch.Tensor]

    @property
    def compiles(self) -> int:
        return sum(row.trigger != "lazy_backward" for row in self.session.data.rows(Compile))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(source: str) -> Run:
        """Import the program as if in a fresh process; its function `main` gives the results."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        path = tmp_path / "program.py"
        path.write_text(source)
        importlib.invalidate_caches()
        sys.modules.pop("program", None)
        with compilediag.watch() as session:
            results = importlib.import_module("program").main()
        return Run(session, results)

    yield run
    sys.modules.pop("program", None)
    torch._dynamo.reset()


def follow(source: str, changes) -> str:
    edits = [asdict(edit) for change in changes for edit in change.edits]
    return apply_edits(source, edits, edits[0]["file"])


def check(run, source: str, compiles: int) -> str:
    """Follow the specifications of a program's plan; returns them as text."""
    before = run(source)
    plan = before.session.plan()
    assert plan.specs, str(plan)
    assert [number for spec in plan.specs for number in spec.steps] == list(range(1, len(plan.steps) + 1))
    after = run(follow(source, [spec.change for spec in plan.specs]))
    assert after.compiles == compiles < before.compiles, list(after.session.recompiles.reason)
    assert len(after.results) == len(before.results)
    for one, other in zip(before.results, after.results, strict=True):
        torch.testing.assert_close(one, other)
    assert not after.session.data.rows(GraphBreak)
    return "\n".join(spec.change.code for spec in plan.specs)


# The scenarios of pytorch#184440

#: Name -> the program without its torch.compile, its inputs, and the specification that pytorch#184440 emits.
SCENARIOS = {
    "multi_dim_shifting": (
        "def compute(x):\n    return x * 2 + 1",
        "[(4, 3), (8, 3), (8, 5), (16, 7), (32, 11)]",
        '[ShapeVar("x_d0"), ShapeVar("x_d1")]',
    ),
    "zero_one_specialization": (
        "def compute(x):\n    return x.sum(0)",
        "[(4, 3), (8, 3), (0, 3), (1, 3), (16, 3)]",
        '[ShapeVar("x_d0"), None]',
    ),
    "tiny_transformer": (
        "model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).eval()\n\n\n"
        "def compute(x):\n    return model(x).mean(dim=1)",
        "[(1, 32, 64), (4, 32, 64), (4, 64, 64), (8, 64, 64), (8, 128, 64)]",
        '[ShapeVar("x_d0"), ShapeVar("x_d1"), None]',
    ),
    "variable_resolution_cnn": (
        "model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).eval()\n\n\n"
        "def compute(x):\n    return nn.functional.adaptive_avg_pool2d(model(x), 1).flatten(1)",
        "[(1, 3, 16, 16), (2, 3, 16, 16), (2, 3, 24, 32), (4, 3, 32, 32), (4, 3, 48, 64)]",
        '[ShapeVar("x_d0"), None, ShapeVar("x_d2"), ShapeVar("x_d3")]',
    ),
}


def write_scenario(name: str, spec: str = "") -> str:
    code, shapes, _ = SCENARIOS[name]
    option = f', dynamic_shapes={{"x": TensorSpec({spec})}}' if spec else ""
    return (
        f"{START}from torch.fx.experimental.dynamic_spec import ShapeVar, TensorSpec\n\n"
        f'{code}\n\n\ncompiled = torch.compile(compute, backend="eager"{option})\n\n\n'
        f"def main():\n    results = []\n    for shape in {shapes}:\n        x = torch.randn(shape)\n"
        f"        results.append(compiled(x))\n    return results\n"
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_plan_needs_no_more_compiles_than_what_torch_emits(run, name):
    theirs = run(write_scenario(name, SCENARIOS[name][2]))
    assert theirs.compiles == 1
    source = write_scenario(name)
    before = run(source)
    plan = before.session.plan()
    assert plan.specs, str(plan)
    specified = run(follow(source, [spec.change for spec in plan.specs]))
    assert specified.compiles <= theirs.compiles
    with torch.compiler.config.patch({key: value for key, value in plan.settings.items() if key.endswith("_sources")}):
        planned = run(follow(source, plan.steps))
    assert planned.compiles <= theirs.compiles
    for one, other, same in zip(before.results, specified.results, planned.results, strict=True):
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(one, same)


# What it does not cover


def write(functions: str, calls: str) -> str:
    """A program that makes these calls for several `n`."""
    body = indent(dedent(calls).strip(), "        ")
    main = f"def main():\n    results = []\n    for n in (2, 3, 5, 7):\n{body}\n    return results\n"
    return f"{START}\n{dedent(functions)}\n\n{main}"


def test_integers(run):
    functions = """
        @torch.compile(backend="eager")
        def scale(x, rows, *, power):
            return x[:rows] * power
    """
    calls = "results.append(scale(torch.ones(9, 2), n, power=n + 1))"
    code = check(run, write(functions, calls), 1)
    assert '@torch.compile(backend="eager", dynamic_shapes={"power": IntVar("power"), "rows": IntVar("rows")})' in code


def test_attributes_and_containers(run):
    functions = """
        import dataclasses

        @dataclasses.dataclass
        class Batch:
            rows: torch.Tensor
            step: int

        @torch.compile(backend="eager")
        def compute(batch, tensors, *args, **kwargs):
            return batch.rows * batch.step + tensors["first"][0] + args[1] + kwargs["mask"]
    """
    calls = """
        x = torch.ones(n, 2)
        results.append(compute(Batch(x, n * n), {"first": [x.clone()]}, None, x.clone(), mask=x.clone()))
    """
    code = check(run, write(functions, calls), 1)
    assert '"*args": [STATIC, TensorSpec([args_1_0, STATIC])]' in code
    assert '"batch": ObjectSpec({"rows": TensorSpec([args_1_0, STATIC]), "step": IntVar("step")})' in code
    assert '"**kwargs": {"mask": TensorSpec([args_1_0, STATIC])}' in code
    assert '"tensors": DictSpec({"first": SeqSpec([TensorSpec([args_1_0, STATIC])])})' in code


MODULE = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.step = nn.Linear(4, 4), 0

        def forward(self, x):
            return self.linear(x) * self.step

    model = Model()
"""


def test_a_module_and_its_number(run):
    functions = f'{dedent(MODULE)}compiled = torch.compile(model, backend="eager")'
    calls = "model.step += 3\nresults.append(compiled(torch.ones(n, 4)).detach())"
    code = check(run, write(functions, calls), 1)
    assert '"self": ObjectSpec({"step": IntVar("step")}),' in code


def test_a_number_that_a_module_counts_up(run):
    functions = dedent(MODULE).replace("        return", "        self.step += 1\n        return")
    calls = "results.append(compiled(torch.ones(n, 4)).detach())"
    check(run, write(f'{functions}compiled = torch.compile(model, backend="eager")', calls), 1)


def test_a_module_that_is_compiled_in_place_gets_code_to_paste(run):
    source = write(
        f'{dedent(MODULE)}model.compile(backend="eager")', "results.append(model(torch.ones(n, 4)).detach())"
    )
    (spec,) = run(source).session.plan().specs
    assert not spec.change.can_be_applied
    imported, call = spec.change.code.splitlines()
    assert call == 'module.compile(dynamic_shapes={"x": TensorSpec([ShapeVar("x_0"), STATIC])})'
    options = call.removeprefix("module.compile(").removesuffix(")")
    after = run(
        source.replace("\nfrom torch import nn", f"\n{imported}\nfrom torch import nn").replace(
            'backend="eager"', f'backend="eager", {options}'
        )
    )
    assert after.compiles == 1


def test_modes_stay_as_they_are(run):
    functions = """
        @torch.compile(backend="eager")
        def compute(x):
            return x * 2
    """
    source = write(functions, "with torch.set_grad_enabled(n < 4):\n    results.append(compute(torch.ones(n, 2)))")
    before = run(source)
    (spec,) = before.session.plan().specs
    after = run(follow(source, [spec.change]))
    assert after.compiles == 2 < before.compiles


def test_several_functions_at_once(run):
    functions = """
        @torch.compile(backend="eager")
        def encode(x):
            return x * 2

        def decode(y, count):
            return y * count

        compiled = torch.compile(decode, backend="eager")
    """
    code = check(run, write(functions, "results.append(compiled(encode(torch.ones(n, 2)), n + 1))"), 2)
    assert '@torch.compile(backend="eager", dynamic_shapes={"x": ' in code
    assert '@dynamic_spec({"count": IntVar("count"), "y": ' in code


def test_sizes_that_the_code_compares_share_one_variable(run):
    # With one variable for each, torch cannot decide the comparison and runs the function eagerly without a word.
    functions = """
        @torch.compile(backend="eager")
        def loss(x, y):
            return nn.functional.mse_loss(x, y)
    """
    code = check(run, write(functions, "results.append(loss(torch.ones(n, 2), torch.zeros(n, 2)))"), 1)
    assert 'x_0 = ShapeVar("x_0")' in code
    assert '"x": TensorSpec([x_0, STATIC]),' in code
    assert '"y": TensorSpec([x_0, STATIC]),' in code


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ("return x * 2 if x.size(0) > 4 else x + 1", "torch.ones(n, 2)"),
        ("return torch.cat([x for _ in range(k)])", "torch.ones(2, 2), n"),
        ("torch._dynamo.graph_break(); return x * 2", "torch.ones(n, 2)"),
        ("return x * 2", "torch.ones(*[n] * (1 + n % 2))"),
        ("return x * n", "torch.ones(n, 2)"),
        ("return x * 2", "torch.ones(n, 2).as_subclass(nn.Parameter) if n == 5 else torch.ones(n, 2)"),
    ],
    ids=["branch", "range", "graph break", "rank", "global", "type"],
)
def test_no_specification_where_it_would_not_hold(run, body, call):
    functions = f"""
        @torch.compile(backend="eager")
        def compute(x, k=None):
            {body}
    """
    source = write(functions, f"globals().update(n=n)\nresults.append(compute({call}))")
    plan = run(source).session.plan()
    assert plan.recompiles
    assert plan.specs == ()
