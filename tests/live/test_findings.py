"""Programs that recompile, watched by the real thing: each gives the finding that is its cause, and no other."""

import enum
import math
import threading

import pytest
import torch

import compilediag
from tests.live.programs import calls


def watched(program, detail="full"):
    with compilediag.watch(detail=detail) as session:
        program(lambda f, **options: torch.compile(f, **{"backend": "eager", **options}))
    return session


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


def applied(x, g):
    return g(x)


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


def then_within(context):
    def program(compiled):
        f = compiled(double)
        f(X)
        with context():
            f(X)

    return program


def deterministic_later(compiled):
    f = compiled(double)
    f(X)
    torch.use_deterministic_algorithms(True)
    try:
        f(X)
    finally:
        torch.use_deterministic_algorithms(False)


def a_backend_each_time(compiled):
    for _ in range(3):
        compiled(double, backend=lambda graph, inputs: graph)(X)


#: Program -> the rule of its only finding.
PROGRAMS = [
    (calls(double, *[(torch.ones(n, 2),) for n in (4, 6, 7)]), "size_changes"),
    (calls(double, *[(torch.ones(n),) for n in (4, 6, 7)], dynamic=False), "size_changes"),
    (calls(double, (torch.ones(4),), (torch.ones(1),)), "size_zero_one"),
    (calls(looped, *[(torch.ones(n),) for n in (4, 6, 7)]), "specialized"),
    (calls(lambda x: x * 2 if x.size(0) < 10 else x * 3, *[(torch.ones(n),) for n in (4, 5, 15)]), "branch"),
    (calls(double, (torch.ones(4, 6),), (torch.ones(6, 4).t(),)), "stride_changes"),
    (calls(double, (torch.ones(4, 6),), (X,)), "rank_changes"),
    (calls(double, (X,), (X.double(),)), "dtype_changes"),
    (calls(double, (X,), (X.to("meta"),)), "device_changes"),
    (calls(double, (X,), (X.clone().requires_grad_(),)), "requires_grad_changes"),
    (calls(double, (X,), (torch.nn.Parameter(X, requires_grad=False),)), "type_changes"),
    (calls(times, (X, 3), (X, 9), (X, 5)), "int_changes"),
    (calls(times, (X, 3), (X, 9), (X, 5), dynamic=False), "int_changes"),
    (calls(times, (X, 0.5), (X, 0.25), (X, 0.1), dynamic=False), "float_changes"),
    (calls(lambda x, k: sum(x for _ in range(k)), (X, 3), (X, 5), (X, 4)), "specialized"),
    (calls(lambda x, flag: x + 1 if flag else x - 1, (X, True), (X, False), (X, True)), "flag"),
    (calls(lambda x, k: x + 1 if k is None else x * k, (X, 3), (X, None)), "optional_argument"),
    (calls(lambda x, k: x * len(k), (X, "a"), (X, "bb")), "string_changes"),
    (calls(lambda x, y: x + y, (X, torch.ones(4)), (X, X)), "alias_changes"),
    (calls(lambda x, parts: x + len(parts), *[(X, [X] * n) for n in (2, 3, 4)]), "growing_container"),
    (calls(lambda d: d["a"] + ("b" in d), ({"a": X},), ({"a": X, "b": X},)), "dict_keys_change"),
    (calls(applied, (X, torch.sin), (X, torch.cos)), "identity_changes"),
    (calls(valued, (X, Colour.RED), (X, Colour.GREEN)), "identity_changes"),
    (train_and_eval, "train_eval"),
    (an_attribute_that_comes, "hasattr_changes"),
    (then_within(torch.no_grad), "grad_mode"),
    (then_within(lambda: torch.autocast("cpu")), "autocast"),
    (deterministic_later, "deterministic"),
    (then_within(lambda: torch.device("cpu")), "mode_stack"),
    (a_backend_each_time, "backend_changes"),
]


@pytest.mark.parametrize(("program", "rule"), PROGRAMS, ids=[f"{n}-{p[1]}" for n, p in enumerate(PROGRAMS)])
def test_a_program_gives_the_finding_of_its_cause(program, rule):
    """With the guards that a watch with less detail reads; `tests/advice` has whole programs with full detail."""
    session = watched(program, "lean")
    (found,) = session.findings()
    assert found.rule == rule
    assert found.count == len(session.recompiles)
    assert found.seconds_lost == pytest.approx(session.recompiles["lost_s"].sum())
    assert list(found.evidence) == session.recompiles["event_id"].tolist()


def test_two_causes_in_one_function_are_two_findings():
    found = watched(calls(times, (X, 3), (torch.ones(6), 3), (torch.ones(6), 5), dynamic=False)).findings()
    assert sorted(f.rule for f in found) == ["int_changes", "size_changes"]


def compile_at_once():
    """A session in which two threads call a new function; whether both find it uncompiled is up to them."""
    torch._dynamo.reset()
    function, start = torch.compile(times, backend="eager"), threading.Barrier(2)

    def serve():
        start.wait()
        function(X, 2)

    with compilediag.watch() as session:
        threads = [threading.Thread(target=serve) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return session


@pytest.mark.since_torch("2.13", "another thread's tracing is taken for its own, and fails")
def test_threads_that_compile_the_same_at_once_are_a_cause_of_their_own():
    session = next(session for _ in range(50) if len((session := compile_at_once()).recompiles))
    (finding,) = session.findings()
    assert (finding.rule, finding.kind, finding.function) == ("compiled_by_threads_at_once", "all_passed", "times")
    assert session.compiles["thread"].nunique() == 2


def test_a_change_that_saves_nothing_by_itself_is_not_offered_as_an_edit():
    """The rate needs its value, and it fails at the same calls as the size."""

    def program(compiled):
        f = compiled(lambda x, rate: x * math.exp(rate))
        for n in range(5):
            x = torch.ones(4 + n)
            f(x, 0.5 + n / 10)

    document = watched(program).findings_document()
    assert {finding.rule for finding in document.findings} == {"size_changes", "specialized"}
    assert {finding.fix.kind for finding in document.findings} == {"text"}
