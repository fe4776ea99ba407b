"""Every fix that a finding offers, tried: the program runs with it and the recompiles are gone. And what is not
offered, with the reason: the setting does not help. Real compiler, backend "eager".
"""

import contextlib
from dataclasses import dataclass, field

import pytest
import torch
from torch.fx.experimental import _config as symbolic_config

import compilediag


@contextlib.contextmanager
def configured(fix):
    """The settings of a finding's `fix`, in force for a block."""
    owners = {
        "dynamic_sources": torch.compiler.config,
        "unbacked_sources": torch.compiler.config,
        "use_duck_shape": symbolic_config,
    }
    with contextlib.ExitStack() as stack:
        for key, value in fix.items():
            stack.enter_context(owners.get(key, torch._dynamo.config).patch(**{key: value}))
        yield


@dataclass
class Outcome:
    recompiles: int
    findings: list = field(repr=False)

    def finding(self, rule):
        assert rule in (rules := {f.rule: f for f in self.findings}), sorted(rules)
        return rules[rule]


def run(program, dynamic=None, fix=None):
    """Run `program(compile)` from scratch: how often it recompiled, and the findings."""
    torch._dynamo.reset()
    with configured(fix or {}), compilediag.watch() as session:
        program(lambda f: torch.compile(f, backend="eager", dynamic=dynamic))
    return Outcome(len(session.recompiles), session.findings())


# --- programs -----------------------------------------------------------------------------------------------------


def double(x):
    return x * 2


def sizes_of_an_argument(compiled):
    f = compiled(double)
    for n in (4, 6, 7, 9):
        f(torch.randn(n, 4))


def sizes_in_a_dict(compiled):
    f = compiled(lambda d: d["a"] * 2)
    for n in (4, 6, 7, 9):
        f({"a": torch.randn(n, 4)})


def two_sizes_at_once(compiled):
    f = compiled(lambda x, y: x.sum() + y.sum())
    for n in (4, 6, 8, 10):
        f(torch.randn(n), torch.randn(n + 1))


def sizes_zero_and_one(compiled):
    f = compiled(double)
    for n in (4, 1, 0):
        f(torch.randn(n, 4))


class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.n = n
        self.register_buffer("table", torch.randn(4, 4))

    def forward(self, x):
        return self.lin(x) * self.n


class Counter(Block):
    def forward(self, x):
        self.n += 1
        return self.lin(x) * self.n


class Lookup(Block):
    def forward(self, x):
        return x @ self.table


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(3), Block(5)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def counter_of_a_module(compiled):
    f = compiled(Counter(0))
    for _ in range(5):
        f(torch.randn(2, 4))


def integers_of_repeated_blocks(compiled):
    model = Stack()
    f = compiled(model)
    for i in range(5):
        model.layers[i % 2].n += 10
        f(torch.randn(2, 4))


def sizes_of_a_buffer(compiled):
    model = Lookup(1)
    f = compiled(model)
    for n in (4, 6, 8):
        model.table = torch.randn(4, n)
        f(torch.randn(2, 4))


def integers_of_an_argument(compiled):
    f = compiled(lambda x, k: x * k)
    for k in (3, 9, 5, 7):
        f(torch.randn(4), k)


SCALE = 3


def scaled(x):
    return x * SCALE


def global_integers(compiled):
    global SCALE
    f = compiled(scaled)
    for value in (3, 9, 5, 7):
        SCALE = value
        f(torch.randn(4))


def equal_sizes_at_first(compiled):
    f = compiled(lambda x, y: x.sum() + y.sum())
    for m, n in ((4, 4), (5, 5), (6, 7)):
        f(torch.randn(m), torch.randn(n))


def strings(compiled):
    f = compiled(lambda x, k: x * int(k))
    for k in range(2, 13):
        f(torch.randn(4), str(k))


def many_functions(compiled):
    f = compiled(lambda x, g: g(x))
    for g in (torch.sin, torch.cos, torch.tan, torch.exp, torch.abs, torch.neg, torch.tanh, torch.ceil, torch.floor):
        f(torch.randn(4), g)
    f(torch.randn(4), torch.relu)


def floats(compiled):
    f = compiled(lambda x, k: x * k)
    for k in (0.5, 0.4, 0.3, 0.2):
        f(torch.randn(4), k)


def loop_over_a_size(compiled):
    def looped(x):
        total = x.sum()
        for i in range(x.size(0)):
            total = total + i
        return total

    f = compiled(looped)
    for n in (4, 6, 7):
        f(torch.randn(n))


# --- what is offered holds ----------------------------------------------------------------------------------------

OFFERED = [
    (sizes_of_an_argument, "size_changes", None, 1),
    (sizes_of_an_argument, "size_changes", False, 3),
    (sizes_in_a_dict, "size_changes", False, 3),
    (two_sizes_at_once, "size_changes", False, 3),
    (sizes_zero_and_one, "size_zero_one", None, 2),
    (sizes_zero_and_one, "size_zero_one", False, 2),
    (sizes_of_a_buffer, "module_tensor_size", None, 2),
    (sizes_of_a_buffer, "module_tensor_size", False, 2),
    (counter_of_a_module, "counter", None, 4),
    (counter_of_a_module, "counter", False, 4),
    (integers_of_repeated_blocks, "module_int", None, 4),
    (integers_of_an_argument, "int_changes", None, 1),
    (integers_of_an_argument, "int_changes", False, 3),
    (global_integers, "global_int", None, 3),
    (global_integers, "global_int", False, 3),
    (equal_sizes_at_first, "duck_sizing", True, 1),
]


@pytest.mark.parametrize(("program", "rule", "dynamic", "before"), OFFERED)
def test_with_the_fix_that_is_offered_it_compiles_once(program, rule, dynamic, before):
    without = run(program, dynamic)
    assert without.recompiles == before
    fix = without.finding(rule).fix
    assert fix is not None
    assert run(program, dynamic, fix).recompiles == 0


def test_a_higher_limit_keeps_a_function_compiled():
    without = run(many_functions)
    limit = without.finding("recompile_limit")
    assert limit.fix == {"recompile_limit": 64}
    assert "recompile_limit" not in [f.rule for f in run(many_functions, fix=limit.fix).findings]


def test_a_limit_is_not_raised_for_values_that_need_no_compiled_version_each():
    assert run(strings).finding("recompile_limit").fix is None


def test_integers_of_a_module_by_the_setting_that_torch_names():
    setting = {"allow_unspec_int_on_nn_module": True}
    assert run(counter_of_a_module).recompiles == 4
    assert run(counter_of_a_module, fix=setting).recompiles == 1
    # Which is why dynamic_sources is offered first: under dynamic=False this setting does nothing.
    assert run(counter_of_a_module, False, setting).recompiles == 4


# --- what is not offered, and why ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fix", [{"specialize_float": False}, {"dynamic_sources": "L['k']"}])
def test_no_setting_fixes_floats_under_dynamic_false(fix):
    without = run(floats, False)
    assert without.recompiles == 3
    assert without.finding("float_changes").fix is None
    assert run(floats, False, fix).recompiles == 3


def test_floats_vary_freely_by_default_and_not_once_they_are_specialized():
    assert run(floats).recompiles == 1
    assert run(floats, fix={"specialize_float": True}).recompiles == 3


def test_a_size_that_code_needs_as_a_number_cannot_be_made_dynamic():
    without = run(loop_over_a_size)
    assert without.finding("specialized").fix is None
    assert run(loop_over_a_size, fix={"dynamic_sources": "L['x']"}).recompiles == without.recompiles == 2


def test_marking_does_not_fix_sizes_of_module_tensors():
    def marked(compiled):
        model = Lookup(1)
        f = compiled(model)
        for n in (4, 6, 8):
            model.table = torch.randn(4, n)
            torch._dynamo.mark_dynamic(model.table, 1)
            f(torch.randn(2, 4))

    assert run(marked).recompiles == 2
    assert run(sizes_of_a_buffer, fix={"force_nn_module_property_static_shapes": False}).recompiles == 2


def test_marking_does_not_fix_sizes_0_and_1():
    def marked(compiled):
        f = compiled(double)
        for n in (4, 1, 6):
            x = torch.randn(n, 4)
            torch._dynamo.mark_dynamic(x, 0)
            f(x)

    assert run(marked).recompiles == 1
    assert run(sizes_zero_and_one, fix={"dynamic_sources": "L['x']"}).recompiles == 2


# --- what is suggested in code holds ------------------------------------------------------------------------------


def test_mark_dynamic_before_the_first_call_compiles_once():
    def marked(compiled):
        f = compiled(double)
        for n in (4, 6, 7, 9):
            x = torch.randn(n, 4)
            torch._dynamo.mark_dynamic(x, 0)
            f(x)

    assert run(marked).recompiles == 0
    assert run(marked, False).recompiles == 0


def test_mark_unbacked_takes_sizes_0_and_1():
    def marked(compiled):
        f = compiled(double)
        for n in (4, 1, 0):
            x = torch.randn(n, 4)
            torch._dynamo.decorators.mark_unbacked(x, 0)
            f(x)

    assert run(marked).recompiles == 0


def test_numbers_as_tensors_compile_once():
    def tensors(compiled):
        f = compiled(lambda x, k: x * k)
        for k in (0.5, 0.4, 0.3):
            f(torch.randn(4), torch.tensor(k))
        g = compiled(lambda x, k: x + k)
        for k in (3, 9, 5):
            g(torch.randn(4), torch.tensor(k))

    assert run(tensors, False).recompiles == 0


def test_a_list_stacked_into_a_tensor_is_a_dynamic_size():
    def lists(compiled):
        f = compiled(lambda parts: sum(parts))
        for n in (2, 3, 4, 5):
            f([torch.ones(4)] * n)

    def stacked(compiled):
        f = compiled(lambda parts: parts.sum(0))
        for n in (2, 3, 4, 5):
            f(torch.stack([torch.ones(4)] * n))

    assert run(lists).finding("growing_container").count == 3
    assert run(stacked).recompiles == 1
