"""describe() of torch's own values: metadata only."""

from __future__ import annotations

import functools

import pytest

import compilediag as cd
from compilediag.sources.guards.read_values import describe
from tests.inside import find_source

torch = pytest.importorskip("torch")
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode


class Loud(torch.Tensor):
    """A tensor subclass whose every operation, property and repr fails."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} ran")

    def __repr__(self, *args):
        raise AssertionError("repr ran")

    @property
    def shape(self):
        raise AssertionError("shape ran")


class Net(torch.nn.Linear):
    def __repr__(self):
        raise AssertionError("repr ran")

    def extra_repr(self):
        raise AssertionError("extra_repr ran")


def test_tensors_are_described_by_dtype_shape_and_device():
    assert describe(torch.zeros(2, 3)) == "Tensor float32[2, 3] cpu"
    assert describe(torch.zeros(4, dtype=torch.bool, device="meta")) == "Tensor bool[4] meta"
    assert describe(torch.nn.Parameter(torch.zeros(2))) == "Parameter float32[2] cpu"
    assert describe([torch.zeros(())]) == "[Tensor float32[] cpu]"


def test_no_code_of_a_tensor_subclass_runs():
    assert describe(torch.zeros(2).as_subclass(Loud)) == "Loud float32[2] cpu"


def test_modules_are_described_by_their_class():
    assert describe(Net(2, 2)) == "Net module"
    assert describe(torch.nn.Sequential(Net(1, 1))) == "Sequential module"


class NoOperators(TorchDispatchMode):
    """No operator runs: whatever waits for a device, to read a value or to copy one, is an operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} ran")


def test_no_operator_runs_so_that_nothing_waits_for_a_device():
    tensors = [torch.ones(()), torch.ones(3), torch.nn.Parameter(torch.ones(2)), torch.ones(2, device="meta")]
    with NoOperators():
        with pytest.raises(AssertionError, match="_local_scalar_dense"):
            tensors[0].item()
        details = [describe(tensor) for tensor in tensors]
        describe({"weights": tensors, "net": torch.nn.Module()})
    assert details == [
        "Tensor float32[] cpu",
        "Tensor float32[3] cpu",
        "Parameter float32[2] cpu",
        "Tensor float32[2] meta",
    ]


def test_no_operator_runs_while_failing_guards_are_found(monkeypatch):
    found = []
    with cd.watch():
        recompiles = type(find_source("recompiles"))
    original = recompiles._all_failed

    @functools.wraps(original)
    def without_operators(self, *args):
        with NoOperators():
            original(self, *args)
        found.append(args)

    monkeypatch.setattr(recompiles, "_all_failed", without_operators)
    function = torch.compile(lambda x, scale, net: net(x) * scale, backend="eager")
    nets = [torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2))]
    with cd.watch() as session:
        for x, scale, net in [
            (torch.ones(2, 2), torch.ones(()), nets[0]),
            (torch.ones(3, 2), torch.ones(2), nets[0]),
            (torch.ones(3, 2), 2.5, nets[0]),
            (torch.ones(3, 2), torch.ones((), dtype=torch.float64), nets[1]),
        ]:
            with torch.no_grad():
                function(x, scale, net)
    assert len(found) == len(session.recompiles) == 3
    assert set(session.guard_failures["guard_kind"]) >= {"type", "tensor_rank"}


@pytest.mark.parametrize(
    "value", [torch.float16, torch.device("cpu"), torch.device("cuda", 1), torch.strided, torch.channels_last], ids=repr
)
def test_torch_constants_are_described_exactly(value):
    assert describe(value) == repr(value)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_sizes_numpy_and_odd_layouts():
    numpy = pytest.importorskip("numpy")
    assert describe(torch.Size([2, 3])) == "torch.Size([2, 3])"
    assert describe(numpy.int64(3)) == "int64(3)"
    assert describe(numpy.zeros((2, 3), "f4")) == "ndarray float32[2, 3]"
    assert describe(torch.zeros(2, 2).to_sparse()) == "Tensor float32[2, 2] cpu"
    assert describe(torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)])).startswith("Tensor float32[")
