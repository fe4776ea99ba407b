"""Programs that recompile, watched by the real thing: each gives the finding that is its cause, and no other."""

import enum
import gc
import inspect
import re

import pytest
import torch

import compilediag


def watched(program, detail="full"):
    with compilediag.watch(detail=detail) as session:
        program(lambda f, **options: torch.compile(f, **{"backend": "eager", **options}))
    return session


def calls(function, *arguments, **options):
    """A program: `function` compiled once and called with each of `arguments`."""

    def program(compiled):
        f = compiled(function, **options)
        for args in arguments:
            f(*args)

    program.function = getattr(function, "forward", function)
    return program


def name_in_call(program, text):
    """What the finding says: it names the arguments of `f(*args)`, the user's own call."""
    function = getattr(program, "function", None)
    for number, name in enumerate(inspect.signature(function).parameters if function else ()):
        text = re.sub(rf"\b{name}\b(?! ?=)", f"args[{number}]", text)
    return text


X = torch.ones(4)


def double(x):
    return x * 2


def times(x, k):
    return x * k


def looped(x):
    total = x.sum()
    for i in range(x.size(0)):
        total = total + i
    return total


def repeated(x, k):
    return sum(x for _ in range(k))


def either(x, flag):
    return x + 1 if flag else x - 1


def maybe(x, k):
    return x + 1 if k is None else x * k


def sides(x):
    return x * 2 if x.size(0) < 10 else x * 3


def added(x, y):
    return x + y


def applied(x, g):
    return g(x)


def lengths(x, parts):
    return x + len(parts)


def membership(d):
    return d["a"] + ("b" in d)


class Holder:
    pass


def has_extra(x, holder):
    return x + hasattr(holder, "extra")


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


def valued(x, colour):
    return x + colour.value


class Dropping(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout()

    def forward(self, x):
        return self.dropout(x)


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x * self.step


def train_and_eval(compiled):
    f = compiled(Dropping())
    f(X)
    f.eval()
    f(X)


def an_attribute_that_comes(compiled):
    f, holder = compiled(has_extra), Holder()
    f(X, holder)
    holder.extra = 1
    f(X, holder)


def with_and_without_gradients(compiled):
    f = compiled(double)
    f(X)
    with torch.no_grad():
        f(X)


def under_autocast(compiled):
    f = compiled(double)
    f(X)
    with torch.autocast("cpu"):
        f(X)


def deterministic_later(compiled):
    f = compiled(double)
    f(X)
    torch.use_deterministic_algorithms(True)
    try:
        f(X)
    finally:
        torch.use_deterministic_algorithms(False)


def under_a_default_device(compiled):
    f = compiled(double)
    f(X)
    with torch.device("cpu"):
        f(X)


def a_backend_each_time(compiled):
    for _ in range(3):
        compiled(double, backend=lambda graph, inputs: graph)(X)


def an_optimizer_each_time(compiled):
    weight = torch.nn.Parameter(torch.ones(4))
    for _ in range(3):
        weight.grad = torch.ones(4)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        compiled(optimizer.step)()
        del optimizer
        gc.collect()


PROGRAMS = [
    (calls(double, *[(torch.ones(n, 2),) for n in (4, 6, 7)]), "size_changes", "x.shape[0] was 4, then 6"),
    (calls(double, *[(torch.ones(n),) for n in (4, 6, 7)], dynamic=False), "size_changes", "was 4, then 6, 7"),
    (calls(double, (torch.ones(4),), (torch.ones(1),)), "size_zero_one", "x.shape[0] was 4, then 1"),
    (calls(looped, *[(torch.ones(n),) for n in (4, 6, 7)]), "specialized", "x.shape[0] was 4, then 6, 7"),
    (calls(sides, *[(torch.ones(n),) for n in (4, 5, 15)]), "branch", "x.shape[0] was 4, then 5, 15"),
    (calls(double, (torch.ones(4, 6),), (torch.ones(6, 4).t(),)), "stride_changes", "x.stride(0) was 6, then 1"),
    (calls(double, (torch.ones(4, 6),), (X,)), "rank_changes", "x.dim() was 2, then 1"),
    (calls(double, (X,), (X.double(),)), "dtype_changes", "x.dtype was torch.float32, then torch.float64"),
    (calls(double, (X,), (X.to("meta"),)), "device_changes", "x.device was cpu, then meta"),
    (
        calls(double, (X,), (X.clone().requires_grad_(),)),
        "requires_grad_changes",
        "x.requires_grad was False, then True",
    ),
    (
        calls(double, (X,), (torch.nn.Parameter(X, requires_grad=False),)),
        "type_changes",
        "x was Tensor, then Parameter",
    ),
    (calls(times, (X, 3), (X, 9), (X, 5)), "int_changes", "k was 3, then 9"),
    (calls(times, (X, 3), (X, 9), (X, 5), dynamic=False), "int_changes", "k was 3, then 9, 5"),
    (calls(times, (X, 0.5), (X, 0.25), (X, 0.1), dynamic=False), "float_changes", "k was 0.5, then 0.25, 0.1"),
    (calls(repeated, (X, 3), (X, 5), (X, 4)), "specialized", "k was 3, then 5, 4"),
    (calls(either, (X, True), (X, False), (X, True)), "flag", "flag was True, then False"),
    (calls(maybe, (X, 3), (X, None)), "optional_argument", "k was 3, then None"),
    (calls(lambda x, k: x * len(k), (X, "a"), (X, "bb")), "string_changes", "k was 'a', then 'bb'"),
    (calls(added, (X, torch.ones(4)), (X, X)), "alias_changes", "same tensor at some calls only"),
    (calls(lengths, *[(X, [X] * n) for n in (2, 3, 4)]), "growing_container", "len(parts) was 2, then 3, 4"),
    (calls(membership, ({"a": X},), ({"a": X, "b": X},)), "dict_keys_change", "d['b'] was absent, then present"),
    (calls(applied, (X, torch.sin), (X, torch.cos)), "identity_changes", "g was another object"),
    (calls(valued, (X, Colour.RED), (X, Colour.GREEN)), "identity_changes", "colour was another object: Colour.GREEN"),
    (train_and_eval, "train_eval", "training was True, then False"),
    (an_attribute_that_comes, "hasattr_changes", "holder.extra was absent, then present"),
    (with_and_without_gradients, "grad_mode", "grad_mode was True, then False"),
    (under_autocast, "autocast", "autocast"),
    (deterministic_later, "deterministic", "deterministic_algorithms was False, then True"),
    (under_a_default_device, "mode_stack", "the stack of torch function modes changed"),
    (a_backend_each_time, "backend_changes", "compiled with another backend callable"),
]


@pytest.mark.parametrize(("program", "rule", "says"), PROGRAMS, ids=[f"{n}-{p[1]}" for n, p in enumerate(PROGRAMS)])
@pytest.mark.parametrize("detail", ["full", "lean"])
def test_a_program_gives_the_finding_of_its_cause(program, rule, says, detail):
    session = watched(program, detail)
    found = session.findings()
    assert [f.rule for f in found] == [rule], [f.title for f in found]
    assert name_in_call(program, says) in found[0].title
    assert found[0].count == len(session.recompiles)
    assert found[0].seconds_lost == pytest.approx(session.recompiles["lost_s"].sum())
    assert list(found[0].evidence) == session.recompiles["event_id"].tolist()


def test_a_healthy_program_has_no_findings():
    session = watched(calls(double, (X,), (X,), (X,)))
    assert len(session.compiles) == 1
    assert session.findings() == []
    assert "Nothing to fix." in session.summary()


def test_an_optimizer_that_is_created_again_is_a_dead_reference():
    found = watched(an_optimizer_each_time).findings()
    (dead,) = [f for f in found if f.rule == "dead_reference"]
    assert "optimizer was deallocated" in dead.title


def test_a_counter_up_to_the_limit():
    session = watched(calls(Counting(), *[(X,)] * 11))
    limit, counter = session.findings()
    assert (limit.rule, counter.rule) == ("recompile_limit", "counter")
    assert "self.step was 9 values between 0 and 8" in counter.title
    assert counter.severity == limit.severity == "high"
    assert limit.fix == counter.fix == {"dynamic_sources": "L['self'].step"}
    assert counter.user_code == "self.step += 1"
    summary = session.summary()
    assert "hit recompile_limit: it silently runs eagerly from then on" in " ".join(summary.split())
    assert summary.count("\n") > 8


def test_two_causes_in_one_function_are_two_findings():
    found = watched(calls(times, (X, 3), (torch.ones(6), 3), (torch.ones(6), 5), dynamic=False)).findings()
    assert sorted(f.rule for f in found) == ["int_changes", "size_changes"]


def test_sizes_that_change_together_are_fixed_together():
    pairs = [(torch.ones(n), torch.ones(n + 1)) for n in (4, 6, 8)]
    found = watched(calls(lambda x, y: x.sum() + y.sum(), *pairs, dynamic=False)).findings()
    assert {frozenset(f.fix["dynamic_sources"].split(",")) for f in found} == {frozenset(["L['x']", "L['y']"])}


def broken(x):
    x = x + 1
    print(end="")
    return x * 2


def test_a_graph_break_is_reported_with_its_line_and_torchs_hint():
    found = watched(calls(broken, (X,))).findings()
    assert [f.rule for f in found] == ["graph_break"]
    assert "test_findings.py" in found[0].title
    assert found[0].user_code == 'print(end="")'
    assert "print" in found[0].suggestion
    assert "graph-break-site/gb/gb" in found[0].suggestion


def test_a_failed_compile_is_reported_with_its_error():
    def failing(graph, inputs):
        raise RuntimeError("no kernels today")

    def program(compiled):
        with pytest.raises(Exception, match="no kernels today"):
            compiled(double, backend=failing)(X)

    found = watched(program).findings()
    assert [f.rule for f in found] == ["compile_failed"]
    assert "no kernels today" in found[0].title
