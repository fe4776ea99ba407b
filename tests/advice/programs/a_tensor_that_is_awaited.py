import torch


class Pending(torch.Tensor):
    """A gathered tensor whose communication may not have finished."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def gather(weight, is_awaited):
    return weight if is_awaited else weight.as_subclass(Pending)


@torch.compile
def linear(x, weight):
    return torch.relu(x @ weight)


weight, x = torch.ones(4, 4), torch.ones(2, 4)
results = []
for step in range(4):
    results.append(linear(x, gather(weight, is_awaited=step % 2 == 1)).as_subclass(torch.Tensor))
