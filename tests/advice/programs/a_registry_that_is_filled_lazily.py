import torch

_backends = {}


class TorchBackend:
    def reduce_mean(self, x, axes):
        return x.mean(axes)


def get_backend(tensor):
    kind = type(tensor).__name__
    if kind not in _backends:
        _backends[kind] = TorchBackend()
    return _backends[kind]


@torch.compile
def pool(x):
    return get_backend(x).reduce_mean(x, (1,)) * 2


results = []
for step in range(3):
    results.append(pool(torch.full((2, 4), 1.0 + step)))
