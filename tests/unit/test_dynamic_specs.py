"""Specifications of a function's arguments as code: where they are written, and what they cannot express."""

from dataclasses import replace

import pytest

from compilediag.diagnosis.plan.specs import Slot, SpecEvidence, write_spec
from compilediag.events import Compile, GuardFailure, Recompile, StackFrame, SymbolicShape
from tests.inside import OwnCode, apply_edits

FILE = "/home/ada/train.py"
ROWS, COUNT = Slot("L['x']", 0), Slot("L['n']")
X_0 = '{"x": TensorSpec([ShapeVar("x_0"), STATIC])}'


def frame(code, file=FILE, function="step", parameters=("x", "n")):
    return StackFrame(time_ns=0, stack="a", file=file, line=2, function=function, code=code, parameters=[*parameters])


def write(code, *slots, groups=None, ranks=None, is_in_place=False, **options):
    slots = slots or (ROWS,)
    ranks = ranks or {slot.name: 2 for slot in slots if slot.dim is not None}
    groups = groups or tuple((slot,) for slot in slots)
    evidence = SpecEvidence(("step", FILE, 2), frame(code, **options), groups, ranks, is_in_place)
    return write_spec(evidence, OwnCode())


def follow(source, change):
    return apply_edits(source, change.edits).text.splitlines()


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("@torch.compile", f"@torch.compile(dynamic_shapes={X_0})"),
        ("@torch.compile()", f"@torch.compile(dynamic_shapes={X_0})"),
        ("@torch.compile(fullgraph=True,)  # fast", f"@torch.compile(fullgraph=True, dynamic_shapes={X_0})  # fast"),
    ],
)
def test_a_decorated_function_gets_an_argument(decorator, expected):
    lines = follow(f"import torch\n{decorator}\ndef step(x, n):\n    return x * n\n", write(decorator))
    imported = "from torch.fx.experimental.dynamic_spec import STATIC, ShapeVar, TensorSpec"
    assert lines == ["import torch", imported, expected, "def step(x, n):", "    return x * n"]


def test_another_function_gets_a_decorator():
    change = write("def step(x, n):", ROWS, COUNT)
    lines = follow("import torch\ndef step(x, n):\n    return x * n\n", change)
    imported = "from torch.fx.experimental.dynamic_spec import IntVar, STATIC, ShapeVar, TensorSpec, dynamic_spec"
    decorator = '@dynamic_spec({"x": TensorSpec([ShapeVar("x_0"), STATIC]), "n": IntVar("n")})'
    assert lines[1:4] == [imported, decorator, "def step(x, n):"]


def test_sizes_that_have_to_be_equal_share_a_variable():
    other = Slot("L['y']", 1)
    change = write("@torch.compile", groups=((ROWS, other),), ranks={"L['x']": 1, "L['y']": 2}, parameters=("x", "y"))
    lines = follow("import torch\n@torch.compile\ndef step(x, y):\n    return x @ y\n", change)
    spec = '{"x": TensorSpec([x_0]), "y": TensorSpec([STATIC, x_0])}'
    assert lines[2:4] == ['x_0 = ShapeVar("x_0")', f"@torch.compile(dynamic_shapes={spec})"]


def test_an_import_is_not_written_twice():
    change = write("@torch.compile")
    source = f"import torch\n{change.edits[0].imports}\n@torch.compile\ndef step(x, n):\n    return x * n\n"
    moved = replace(change, edits=tuple(replace(edit, line=3) for edit in change.edits))
    assert "\n".join(follow(source, moved)).count("import STATIC") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"code": "def step(x):", "file": "/usr/lib/python3.11/site-packages/model.py"}, "torch.compile(step, "),
        ({"code": "@wraps(f)"}, "torch.compile(step, "),
        ({"code": "def forward(self, x):", "function": "forward", "is_in_place": True}, "module.compile("),
        ({"code": "def __call__(self, x):", "function": "__call__"}, "torch.compile(function, "),
        ({"code": "f = torch.compile(lambda x: x)", "function": "<lambda>"}, "torch.compile(function, "),
    ],
)
def test_elsewhere_the_call_is_code_to_paste(options, expected):
    change = write(**options)
    assert not change.can_be_applied
    assert change.code.splitlines()[1] == f"{expected}dynamic_shapes={X_0})"


def test_parts_of_arguments():
    slots = (Slot("L['batch'].rows", 0), Slot("L['batch'].step"), Slot("L['self']._buffers['table']", 0))
    slots += (Slot("L['args'][1]", 0), Slot("L['kwargs']['mask']", 0), Slot("L['d']['keys'][1]"))
    names = ("self", "batch", "d", "*args", "**kwargs")
    change = write("@torch.compile", *slots, ranks={slot.name: 1 for slot in slots if slot.dim == 0}, parameters=names)
    assert [line.strip() for line in change.edits[-1].new.splitlines()[1:-1]] == [
        '"batch": ObjectSpec({"rows": TensorSpec([ShapeVar("rows_0")]), "step": IntVar("step")}),',
        '"self": ObjectSpec({"table": TensorSpec([ShapeVar("table_0")])}),',
        '"*args": [STATIC, TensorSpec([ShapeVar("args_1_0")])],',
        '"**kwargs": {"mask": TensorSpec([ShapeVar("mask_0")])},',
        '"d": DictSpec({"keys": SeqSpec([STATIC, IntVar("keys_1")])}),',
    ]


@pytest.mark.parametrize(
    "slots",
    [
        (Slot("L['x']['a']"), Slot("L['x'].b")),
        (Slot("L['x']"), Slot("L['x'].b")),
        (Slot("L['variable_of_a_closure']"),),
    ],
)
def test_what_cannot_be_expressed(slots):
    assert write("@torch.compile", *slots) is None


@pytest.mark.parametrize("option", ["dynamic=True", "dynamic_shapes=SPEC"])
def test_an_option_that_excludes_a_specification(option):
    assert write(f"@torch.compile({option})") is None


@pytest.fixture
def find_plan(session_of):
    """`find_plan(...)`: the plan of `make_rows(...)` in a version of torch."""
    return lambda version="2.15.0", **rows: session_of(*make_rows(**rows), torch_version=version).plan()


def make_rows(frames=(), **shape):
    """A function whose first size went from 4 to 6, at the top level of a script, and became dynamic."""
    function = {"function": "step", "file": FILE, "line": 2}
    guard = "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, size=[4, 3], stride=[3, 1])"
    size = {"guard_source": "x.size()[0]", "guard_kind": "tensor_size", "expected": "4", "actual": "6"}
    symbol = {"action": "created", "symbol": "s0", "source": "L['x'].size()[0]", "value": "6"}
    key = {"time_ns": 2, "compile_id": "0/1", "compile_key": "b"}
    reason = "tensor 'x' size mismatch at index 0. expected 4, actual 6"
    main, wrapper = {"stack": "m", "file": FILE, "function": "<module>"}, "/lib/torch/_dynamo/eval_frame.py"
    return [
        StackFrame(time_ns=0, line=9, code="step(x)", call="step(x)", parameters=[], **main),
        StackFrame(time_ns=0, stack="w", caller="m", file=wrapper, line=1, function="compile_wrapper"),
        replace(frame("@torch.compile", parameters=("x",)), stack="s", caller="w"),
        Compile(time_ns=1, compile_id="0/0", compile_key="a", stack="s", **function),
        Compile(compile_id="0/1", compile_key="b", time_ns=2, stack="s", is_recompile=True, **function),
        Recompile(**key, **function, **size, closest_compile_key="a", reason=reason),
        GuardFailure(**key, entry_compile_key="a", is_first=True, guard=guard, **size),
        SymbolicShape(**key, **symbol),
        *(
            [SymbolicShape(**key, source="s0 = L['x'].size()[0]", symbols={"s0": "L['x'].size()[0]"}, **shape)]
            if shape
            else []
        ),
        *frames,
    ]


def test_a_plan_has_the_specification_among_the_alternatives_of_its_steps(find_plan):
    plan = find_plan()
    (spec,) = plan.specs
    assert spec.title == "Instead of step 1, one specification of step (train.py:2):"
    assert f"@torch.compile(dynamic_shapes={X_0})" in str(plan)
    assert plan.steps[0].alternatives[-1] == spec.change
    assert plan.to_dict()["specs"] == [{"title": spec.title, "steps": [1], "code": spec.change.code}]
    assert "dynamic_shapes" in plan._repr_html_()
    assert "dynamic_shapes" not in plan.code()


def test_earlier_versions_of_torch_have_no_specification(find_plan):
    assert find_plan("2.14.1").specs == ()


def test_a_value_that_the_code_depends_on_is_not_specified(find_plan):
    assert len(find_plan().specs) == 1
    assert find_plan(action="guarded", expression="s0 < 16", torch_stack="t").specs == ()
    assert find_plan(action="specialized", value="6").specs == ()


def test_a_condition_that_torch_drops_for_unbacked_sizes_is_none(find_plan):
    stack = [
        StackFrame(time_ns=0, stack="o", function="conv", file="/lib/torch/_subclasses/fake_impls.py"),
        StackFrame(time_ns=0, stack="g", caller="o", function="_guard_or", file="/lib/torch/fx/symbolic_shapes.py"),
        StackFrame(time_ns=0, stack="t", caller="g", function="evaluate_expr", file="/lib/torch/fx/symbolic_shapes.py"),
    ]
    condition = {"action": "guarded", "expression": "s0 < 16", "torch_stack": "t"}
    assert len(find_plan(frames=stack, **condition).specs) == 1
    assert find_plan(frames=stack[:1], **condition).specs == ()
