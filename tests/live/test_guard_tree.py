"""Failing guards of real cache entries: what is recorded for each kind, and that reading them changes nothing."""

from __future__ import annotations

import contextlib
import copy
import gc
import math
import random
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import compilediag as cd  # noqa: E402
from compilediag.events import GUARD_KINDS, GuardFailure  # noqa: E402
from compilediag.sources.guards.guard_scope import GuardScope  # noqa: E402
from compilediag.sources.guards.guard_tree import FailingGuards, failing_guards  # noqa: E402
from compilediag.sources.guards.guard_walk import Deadline, GuardWalk  # noqa: E402

randn = torch.randn
FILE = __file__
GLOBAL = 3


class Seen:
    """What a watch has recorded of failing guards."""

    def __init__(self, session: cd.Session):
        self.session = session

    @property
    def rows(self) -> list[GuardFailure]:
        return list(self.session.data.rows(GuardFailure))

    @property
    def all(self) -> list[GuardFailure]:
        """The guards of the oldest entry that failed at the last recompile."""
        rows = self.rows
        entry = min(row.entry_compile_id for row in rows if row.compile_key == rows[-1].compile_key)
        return self.of_entry(entry)

    def of_entry(self, compile_id: str) -> list[GuardFailure]:
        """The guards of an entry that failed at the last recompile."""
        rows = self.rows
        return [row for row in rows if (row.compile_key, row.entry_compile_id) == (rows[-1].compile_key, compile_id)]

    @property
    def first(self) -> GuardFailure:
        """That of them which torch reports."""
        (found,) = [row for row in self.all if row.is_first]
        return found


@pytest.fixture
def seen() -> Iterator[Seen]:
    with cd.watch() as session:
        yield Seen(session)


def compiled(function: Callable, **options) -> Callable:
    return torch.compile(function, backend="eager", **{"dynamic": False, **options})


def describe_failures(found: list[GuardFailure]) -> list[tuple]:
    return [(f.guard_kind, f.guard_source, f.expected, f.actual) for f in found]


def double(x):
    return x * 2


def line_of(function: Callable, offset: int = 1) -> int:
    return function.__code__.co_firstlineno + offset


def inference_tensor():
    with torch.inference_mode():
        return randn(4, 4)


class Subclass(torch.Tensor):
    pass


TENSORS = {
    "two sizes": (
        lambda: randn(2, 4),
        lambda: randn(3, 5),
        [("tensor_size", "x.size()[0]", "2", "3"), ("tensor_size", "x.size()[1]", "4", "5")],
    ),
    "size and stride": (
        lambda: randn(4, 4),
        lambda: randn(4, 3).t(),
        [
            ("tensor_size", "x.size()[0]", "4", "3"),
            ("tensor_stride", "x.stride()[0]", "4", "1"),
            ("tensor_stride", "x.stride()[1]", "1", "3"),
        ],
    ),
    "rank": (lambda: randn(4, 4), lambda: randn(4), [("tensor_rank", "x.dim()", "2", "1")]),
    "device": (lambda: randn(4), lambda: randn(4, device="meta"), [("tensor_device", "x.device", "cpu", "meta")]),
    "conjugate": (
        lambda: randn(4, dtype=torch.complex64),
        lambda: randn(4, dtype=torch.complex64).conj(),
        [("dispatch_keys", "x", "without Conjugate", "Conjugate")],
    ),
    "subclass": (lambda: randn(4), lambda: randn(4).as_subclass(Subclass), [("type", "x", "Tensor", "Subclass")]),
    "all at once": (
        lambda: randn(4, 2),
        lambda: randn(3, 2, dtype=torch.float64, requires_grad=True),
        [
            ("tensor_dtype", "x.dtype", "torch.float32", "torch.float64"),
            ("requires_grad", "x.requires_grad", "False", "True"),
            ("tensor_size", "x.size()[0]", "4", "3"),
        ],
    ),
}


@pytest.mark.parametrize(("before", "now", "expected"), TENSORS.values(), ids=TENSORS)
def test_every_differing_property_of_a_tensor_is_shown(seen, before, now, expected):
    call = compiled(double)
    call(before())
    call(now())
    assert describe_failures(seen.all) == expected
    assert [f.is_first for f in seen.all] == [True] + [False] * (len(expected) - 1)
    assert {(f.user_file, f.user_line) for f in seen.all} == {(FILE, line_of(double))}
    assert seen.session.recompiles["user_code"].tolist() == ["return x * 2"]


def test_inference_tensor_differs_in_its_dispatch_keys(seen):
    call = compiled(double)
    call(randn(4, 4))
    call(inference_tensor())
    [found] = seen.all
    assert (found.guard_kind, found.guard_source) == ("dispatch_keys", "x")
    assert "AutogradCPU" in found.expected and found.actual.startswith("without ")


class Plain:
    def __init__(self, k):
        self.k = k


def use_float(x, k):
    return x * k


def use_attribute(x, k):
    return x * k.k


def use_len(x, k):
    return x * len(k)


def use_items(x, k):
    for key, value in k.items():
        x = x + value + len(key)
    return x


def use_function(x, k):
    return k(x)


def plus_one(x):
    return x + 1


def plus_two(x):
    return x + 2


def scaled_by(scale):
    def inner(x):
        return x * scale

    return inner


VALUES = {
    "int": (use_float, 1, 2, "value", "k", "1", "2"),
    "float": (use_float, 1.5, 2.5, "value", "k", "1.5", "2.5"),
    "bool": (lambda x, k: x + 1 if k else x - 1, True, False, "value", "k", "True", "False"),
    "str": (lambda x, k: x + 1 if k == "a" else x, "a", "b", "value", "k", "'a'", "'b'"),
    "None": (lambda x, k: x + 1 if k is None else x, None, 1, "value", "k", "None", "1"),
    "attribute": (use_attribute, Plain(1), Plain(2), "value", "k.k", "1", "2"),
    "nan": (use_float, float("nan"), 1.0, "value", "k", "nan", "1.0"),
    "type": (use_len, [1], (1,), "type", "k", "list", "tuple"),
    "type of object": (lambda x, k: x + 1 if isinstance(k, Plain) else x, Plain(1), [1], "type", "k", "Plain", "list"),
    "length": (use_len, [1], [1, 2], "length", "len(k)", "1", "2"),
    "empty": (use_len, [], [1, 2], "length", "len(k)", "0", "2"),
    "dict length": (use_items, {"a": 1}, {"a": 1, "b": 2}, "length", "len(k)", "1", "2"),
    "dict keys": (use_items, {"a": 1}, {"b": 1}, "dict_keys", "list(k.keys())[0]", "'a'", "'b'"),
    "dict value": (use_items, {"a": 1}, {"a": 2}, "value", "k['a']", "1", "2"),
    "builtin": (
        use_function,
        torch.sin,
        torch.cos,
        "identity",
        "k",
        "<builtin _VariableFunctionsClass.sin>",
        "<builtin _VariableFunctionsClass.cos>",
    ),
    "closure": (use_function, scaled_by(2), scaled_by(3), "value", None, "2", "3"),
    "no function": (use_function, plus_one, torch.sin, "type", "k", "a Python function", "builtin_function_or_method"),
}


@pytest.mark.parametrize(
    ("function", "before", "now", "kind", "source", "expected", "actual"), VALUES.values(), ids=VALUES
)
def test_values_are_shown_before_and_after(seen, function, before, now, kind, source, expected, actual):
    call = compiled(function)
    call(randn(2), before)
    call(randn(2), now)
    found = seen.first
    assert (found.guard_kind, found.expected, found.actual) == (kind, expected, actual)
    # torch 2.13 names a closure variable in its text, torch 2.11 has only its cell.
    assert found.guard_source in ([source] if source else ["scale", "k.__closure__[0].cell_contents"])


def use_key(x, k):
    return x * k["a"]


def test_key_that_is_gone(seen):
    call = compiled(use_key)
    call(randn(2), {"a": 1})
    with pytest.raises(KeyError):
        call(randn(2), {"b": 1})
    assert describe_failures(seen.all) == [("dict_keys", "k['a']", "present", "missing")]


def test_functions_are_described_by_name_and_line(seen):
    call = compiled(use_function)
    call(randn(2), plus_one)
    call(randn(2), plus_two)
    place = "test_guard_tree.py"
    expected = f"plus_one at {place}:{line_of(plus_one, 0)}"
    assert describe_failures(seen.all) == [("identity", "k", expected, f"plus_two at {place}:{line_of(plus_two, 0)}")]


def test_same_name_is_another_object(seen):
    def make():
        class Config:
            k = 1

        return Config

    old, new = make(), make()
    call = compiled(use_attribute)
    call(randn(2), old())
    call(randn(2), new())
    [found] = seen.all
    assert found.guard_kind == "type"
    assert found.expected.endswith(".Config") and found.actual == f"{found.expected} (another class)"
    assert found.lookalike == found.expected


def read_global(x):
    return x * GLOBAL


def test_globals(seen, monkeypatch):
    call = compiled(read_global)
    call(randn(2))
    monkeypatch.setitem(globals(), "GLOBAL", 4)
    call(randn(2))
    assert describe_failures(seen.all) == [("value", "GLOBAL", "3", "4")]
    assert (seen.first.user_file, seen.first.user_line) == (FILE, line_of(read_global))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Dropout(0.5))
        self.steps = 0
        self.names = ["a"]

    def forward(self, x):
        if hasattr(self, "extra"):
            x = x + 1
        return self.layers(x) + self.steps + len(self.names)


CHANGES = {
    "new attribute": (lambda net: setattr(net, "extra", 1), ("hasattr", "self.extra", "absent", "present")),
    "parameter": pytest.param(
        lambda net: net.layers[0].requires_grad_(False),
        ("requires_grad", "self.layers[0].weight.requires_grad", "True", "False"),
        marks=pytest.mark.since_torch("2.13", "requires_grad of a parameter makes no guard"),
    ),
    "module": (
        lambda net: net.layers.__setitem__(1, torch.nn.GELU()),
        ("type", "self.layers[1]", "ReLU", "GELU"),
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_module_state(seen, change, expected):
    net = Net()
    call = compiled(net)
    call(randn(2, 4))
    change(net)
    call(randn(2, 4))
    assert expected in describe_failures(seen.all)
    assert "other" not in {f.guard_kind for f in seen.all}


def test_all_of_several_failures_are_found(seen):
    net = Net()
    call = compiled(net)
    call(randn(2, 4))
    net.steps, net.names = 7, ["a", "b", "c"]
    net.layers[2].eval()
    call(randn(3, 4))
    assert sorted(describe_failures(seen.all)) == sorted(
        [
            ("tensor_size", "x.size()[0]", "2", "3"),
            ("value", "self.steps", "0", "7"),
            ("length", "len(self.names)", "1", "3"),
            ("value", "self.layers[2].training", "True", "False"),
        ]
    )
    assert sum(f.is_first for f in seen.all) == 1


class Mixed(torch.nn.Module):
    """Guards of many kinds at once: tensors that must not be one, a dict, a list, a function, numbers, a global."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)
        self.steps, self.scale, self.mode = 1, 1.5, "a"
        self.names, self.table, self.act = ["a", "b"], {"u": 1, "v": 2}, torch.sin

    def forward(self, x, y, k):
        for name, value in self.table.items():
            x = x * value + len(name)
        if k is not None and self.mode == "a" and hasattr(self, "extra"):
            x = x + 1
        return self.act(self.second(self.first(x))) * self.steps * self.scale * GLOBAL + len(self.names) + y.sum()


MIXED_CHANGES = [
    lambda net, call: setattr(net, "steps", 2),
    lambda net, call: setattr(net, "scale", 2.5),
    lambda net, call: setattr(net, "mode", "b"),
    lambda net, call: setattr(net, "extra", 1),
    lambda net, call: setattr(net, "act", torch.cos),
    lambda net, call: setattr(net, "first", torch.nn.Linear(4, 4, bias=False)),
    lambda net, call: net.first.requires_grad_(False),
    lambda net, call: net.second.eval(),
    lambda net, call: net.names.append("c"),
    lambda net, call: net.names.__setitem__(0, 1),
    lambda net, call: net.table.update(u=3),
    lambda net, call: net.table.update(v=4, w=5),
    lambda net, call: net.table.pop("u"),
    lambda net, call: delattr(net, "steps"),
    lambda net, call: call.update(x=randn(3, 4)),
    lambda net, call: call.update(x=randn(2, 4, dtype=torch.float64)),
    lambda net, call: call.update(y=randn(5, requires_grad=True)),
    lambda net, call: call.update(y=call["x"]),
    lambda net, call: call.update(x=[1]),
    lambda net, call: call.update(k=None),
    lambda net, call: call.update(k=1),
]


def walked(manager, f_locals) -> FailingGuards:
    return _make_walk(manager, f_locals).run()


def at_once(manager, f_locals) -> FailingGuards | None:
    """What is found without walking; None if that is not enough, or if nothing fails."""
    walk, debug = _make_walk(manager, f_locals), manager.root.check_verbose(f_locals)
    return walk.found if not debug.result and walk.run_fast(debug) else None


def _make_walk(manager, f_locals) -> GuardWalk:
    return GuardWalk(manager, GuardScope(manager, f_locals), deadline=Deadline(math.inf))


def _entries_of(function):
    return _debug_get_cache_entry_list(function.__code__)


def test_the_short_way_finds_what_the_walk_finds():
    """Whatever changes at once: from one change each to five of them."""
    net, args = Mixed(), {"x": randn(2, 4), "y": randn(3), "k": "a"}
    compiled(Mixed.forward)(net, **args)
    [entry] = _entries_of(Mixed.forward)
    state = {name: copy.deepcopy(vars(net)[name]) for name in ("steps", "scale", "mode", "names", "table", "act")}
    modules = {name: (module, module.training) for name, module in net.named_children()}
    pick = random.Random(0)
    short = 0
    for count in [1] * 40 + [2, 3, 4, 5] * 30:
        changed = {"self": net, **args}
        for change in pick.sample(MIXED_CHANGES, count):
            with contextlib.suppress(KeyError, AttributeError, RuntimeError):
                change(net, changed)
        found = at_once(entry.guard_manager, changed)
        short += found is not None
        assert found in (None, walked(entry.guard_manager, changed))
        vars(net).pop("extra", None)
        vars(net).update(copy.deepcopy(state))
        for name, (module, training) in modules.items():
            setattr(net, name, module.train(training).requires_grad_(True))
    assert short > 40
    assert at_once(entry.guard_manager, {"self": net, **args}) is None
    assert failing_guards(entry.guard_manager, {"self": net, **args}) == []


class KnownByTwoNames(torch.nn.Module):
    """torch.nn.functional is `F` in the module of Linear, and an attribute of torch here: guarded as one object."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x, y):
        return torch.nn.functional.dropout(self.layer(x), 0.5, self.training) + y.sum()


def test_one_module_under_two_names_and_dynamic_sizes_need_no_walk():
    net = KnownByTwoNames()
    call = torch.compile(KnownByTwoNames.forward, backend="eager")
    for size in (2, 3):
        call(net, randn(size, 4), randn(5))
    for entry in _entries_of(KnownByTwoNames.forward):
        changed = {"self": net, "x": randn(1, 4), "y": randn(6)}
        found = at_once(entry.guard_manager, changed)
        assert found is not None and found == walked(entry.guard_manager, changed)
        assert {f.source for f in found} == {"x.size()[0]", "y.size()[0]"}


def add(x, y):
    return x + y


def test_tensors_that_became_one(seen):
    call = compiled(add)
    same = randn(3)
    call(randn(3), randn(3))
    call(same, same)
    assert describe_failures(seen.all) == [("alias", "x, y", "different tensors", "the same tensor")]


def test_tensor_that_became_two(seen):
    call = compiled(add)
    same = randn(3)
    call(same, same)
    call(randn(3), randn(3))
    [(kind, source, expected, actual)] = describe_failures(seen.all)
    assert (kind, actual) == ("alias", "another object")
    assert (source, expected) in [("x", "the same object as y"), ("y", "the same object as x")]


def in_place(x, y):
    x.add_(1)
    return x + y


def test_storage_that_no_longer_overlaps(seen):
    call = torch.compile(in_place, backend="aot_eager", dynamic=True)
    base = randn(64)
    call(base[0:10], base[5:15])
    call(base[0:10], base[20:30])
    assert describe_failures(seen.all) == [("alias", "x, y", "overlapping storage: x, y", "overlapping storage: none")]


def small_or_large(x, y):
    return x.sum() + y.sum() if x.size(0) < 10 else x.sum()


def test_symbolic_shapes(seen):
    call = compiled(small_or_large, dynamic=True)
    call(randn(4), randn(5))
    call(randn(14), randn(5))
    assert describe_failures(seen.all) == [("symbolic_shape", "x.size()[0]", ">= 2 and <= 9", "14")]
    assert (seen.all[0].user_file, seen.all[0].user_line) == (FILE, line_of(small_or_large))
    call(randn(1), randn(1))
    assert describe_failures(seen.of_entry("0/1"))[0] == ("symbolic_shape", "x.size()[0]", ">= 10", "1")
    assert [f.guard_kind for f in seen.of_entry("0/0")] == ["symbolic_shape", "symbolic_shape"]


def test_sizes_that_are_no_longer_equal(seen):
    call = compiled(add, dynamic=True)
    call(randn(4), randn(4))
    call(randn(4), randn(1))
    found = seen.all[0]
    assert found.guard_kind == "symbolic_shape"
    assert found.expected in ("x.size()[0] == y.size()[0]", "y.size()[0] == x.size()[0]")
    assert "x.size()[0] = 4" in found.actual and "y.size()[0] = 1" in found.actual


def test_marked_dimension(seen):
    call = compiled(double, dynamic=None)
    call(randn(4, 4))
    marked = randn(4, 4)
    torch._dynamo.mark_dynamic(marked, 0)
    call(marked)
    assert describe_failures(seen.all) == [("symbolic_shape", "x._dynamo_dynamic_indices", "absent", "present")]


def marked(high):
    tensor = randn(8, 4)
    torch._dynamo.mark_dynamic(tensor, 0, min=2, max=high)
    return tensor


@pytest.mark.since_torch("2.15", "the bounds of mark_dynamic have no guard")
def test_other_bounds_of_a_marked_dimension(seen):
    call = compiled(double, dynamic=None)
    call(marked(16))
    call(marked(32))
    expected = ("symbolic_shape", "x._dynamo_dynamic_range", "dim 0: 2 to 16", "dim 0: 2 to 32")
    assert describe_failures(seen.all) == [expected]


class OwnSet(set):
    def __len__(self):
        raise AssertionError("a guard on it does not run it")


class OwnFrozenSet(frozenset):
    pass


def add_length(x, values):
    return x + len(list(values))


NEW_LENGTHS = {
    "reversed list": (lambda n: reversed([*range(n)]), "values"),
    "subclass of frozenset": (lambda n: OwnFrozenSet(range(n)), "values"),
    "subclass of set": (lambda n: OwnSet(range(n)), "values"),
}


@pytest.mark.since_torch("2.15", "these guards are new")
@pytest.mark.parametrize(("make", "name"), NEW_LENGTHS.values(), ids=NEW_LENGTHS)
def test_lengths_of_new_kinds(seen, make, name):
    call = compiled(add_length)
    call(randn(2), make(2))
    call(randn(2), make(3))
    assert ("length", f"len({name})", "2", "3") in describe_failures(seen.all)
    assert seen.first.guard_kind == "length"


def ask_for_lazy_clone(x):
    return x + int(torch._C._is_cow_tensor(x))


@pytest.mark.since_torch("2.15", "this guard is new")
def test_a_lazy_clone_is_shown_as_a_flag(seen):
    call = compiled(ask_for_lazy_clone)
    call(randn(2))
    call(torch._lazy_clone(randn(2)))
    assert ("value", "torch._C._is_cow_tensor(x)", "False", "True") in describe_failures(seen.all)


class OwnMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def setting(change: Callable, value: object, before: object) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(before)


THREADS = torch.get_num_threads()
STATES = {
    "no_grad": (torch.no_grad, [("global_state", "grad_mode", "True", "False")]),
    "autocast": (
        lambda: torch.autocast("cpu", torch.bfloat16),
        [("global_state", "autocast", "off", "on: cpu torch.bfloat16")],
    ),
    "default dtype": (
        lambda: setting(torch.set_default_dtype, torch.float64, torch.float32),
        [("global_state", "default_dtype", "torch.float32", "torch.float64")],
    ),
    "deterministic": (
        lambda: setting(torch.use_deterministic_algorithms, True, False),
        [("global_state", "deterministic_algorithms", "False", "True")],
    ),
    "threads": (
        lambda: setting(torch.set_num_threads, THREADS + 1, THREADS),
        [("global_state", "num_threads", str(THREADS), str(THREADS + 1))],
    ),
    "function mode": (OwnMode, [("mode_stack", "torch function modes", "no mode", "OwnMode")]),
    "default device": (
        lambda: setting(torch.set_default_device, "meta", None),
        [
            ("mode_stack", "torch function modes", "no mode", "DeviceContext"),
            ("default_device", "torch.get_default_device()", "None", "meta"),
        ],
    ),
}


@pytest.mark.parametrize(("context", "expected"), STATES.values(), ids=STATES)
def test_ambient_state(seen, context, expected):
    call = compiled(double)
    x = randn(2)
    call(x)
    with context():
        call(x)
    found = [t if t[0] != "default_device" else (*t[:3], "meta") for t in describe_failures(seen.all)]
    assert found == expected


@pytest.mark.since_torch("2.13", "an entry outlives the class that it was made for")
def test_entry_whose_object_died(seen):
    call = compiled(use_attribute)

    def compile_with_a_class_that_dies():
        class Shortlived:
            k = 1

        call(randn(2), Shortlived())

    compile_with_a_class_that_dies()
    gc.collect()
    call(randn(2), Plain(1))
    assert describe_failures([seen.first]) == [("dead_reference", "type(k)", "alive", "deallocated")]


def fail_counts(manager) -> list[tuple[str, int]]:
    """Sources with their counts, in the accessors' order."""
    details = [(manager.get_source(), manager.fail_count())]
    for child in manager.get_child_managers():
        details += fail_counts(child)
    if hasattr(manager, "get_key_value_managers"):
        for _, pair in sorted(manager.get_key_value_managers().items(), key=lambda item: item[0]):
            details += [t for part in pair if part is not None for t in fail_counts(part)]
    return details


def alias_workload() -> list[tuple]:
    a, b, c = randn(3), randn(3), randn(4)
    return [(a, b), (a, a), (b, a), (c, c), (a, b), (c, randn(4)), (b, b), (randn(5), randn(5)), (a, b), (c, c)]


def run_alias_workload() -> tuple[int, list]:
    torch._dynamo.reset()
    call = compiled(add)
    for x, y in alias_workload():
        assert torch.equal(call(x, y), x + y)
    entries = _entries_of(add)
    return len(entries), [fail_counts(entry.guard_manager.root) for entry in entries]


def test_looking_changes_neither_recompiles_nor_counts_nor_order():
    plain = run_alias_workload()
    with cd.watch() as session:
        looked = run_alias_workload()
    assert len(session.guard_failures) > 0
    assert looked == plain


def test_looking_at_live_entries_leaves_their_guards_as_they_are():
    """NO_TENSOR_ALIASING keeps the tensors that it met: a leftover would fail the next real look-up."""
    net, x, y = Net(), randn(3), randn(3)
    calls = [(compiled(add), (x, y)), (compiled(Net.forward), (net, randn(2, 4)))]
    for call, args in calls:
        call(*args)
    [first], [second] = _entries_of(add), _entries_of(Net.forward)
    wrong = {"x": x, "y": x}, {"self": net, "x": randn(5, 4)}
    before = [fail_counts(entry.guard_manager.root) for entry in (first, second)]
    for _ in range(5):
        assert failing_guards(first.guard_manager, wrong[0])[0].kind == "alias"
        assert failing_guards(first.guard_manager, {"x": x, "y": y}) == []
        assert failing_guards(second.guard_manager, wrong[1])[0].kind == "tensor_size"
        for call, args in calls:
            call(*args)
    assert (len(_entries_of(add)), len(_entries_of(Net.forward))) == (1, 1)
    assert [fail_counts(entry.guard_manager.root) for entry in (first, second)] == before


def test_fail_count_is_torchs_own(seen):
    call = compiled(double)
    for size in (2, 3, 4, 5):
        call(randn(size))
    counts = [seen.of_entry(f"0/{number}")[0].fail_count for number in range(3)]
    assert counts == sorted(counts, reverse=True) and counts[0] == 3


def test_a_short_budget_cuts_and_says_so():
    net = Net()
    compiled(Net.forward)(net, randn(2, 4))
    [entry] = _entries_of(Net.forward)
    found = failing_guards(entry.guard_manager, {"self": net, "x": randn(3, 4)}, budget_s=0)
    assert found.truncated
    assert [(f.kind, f.source, f.expected, f.actual) for f in found] == [("tensor_size", "x.size()[0]", "2", "3")]


class Lazy:
    """Raises from attribute access, once `broken` is set."""

    broken = False

    def __getattr__(self, name):
        if Lazy.broken or name != "late":
            raise RuntimeError("user code fails")
        return 2


def read_late(x, k):
    return x * k.late


def test_user_code_that_raises_is_not_our_failure(seen, monkeypatch):
    call, lazy = compiled(read_late), Lazy()
    call(randn(2), lazy)
    monkeypatch.setattr(Lazy, "broken", True)
    with pytest.raises(Exception, match="user code fails"):
        call(randn(3), lazy)
    assert ("tensor_size", "x.size()[0]", "2", "3") in describe_failures(seen.all)


def test_missing_attribute_is_reported(seen):
    call, gone = compiled(use_attribute), Plain(1)
    call(randn(2), Plain(1))
    del gone.k
    with pytest.raises(AttributeError):
        call(randn(2), gone)
    found = [(f.guard_kind in ("hasattr", "dict_keys"), f.guard_source, f.actual) for f in seen.all]
    assert found == [(True, "k.k", "missing")]


def test_kinds_are_known_and_none_is_other(seen):
    call = compiled(use_items)
    values = [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {}, {"a": 2.5}, {"a": randn(2)}]
    for value in values:
        call(randn(2), value)
    kinds = [row.guard_kind for row in seen.rows]
    assert len(kinds) >= 5
    assert kinds.count("other") == 0 and set(kinds) <= set(GUARD_KINDS)
