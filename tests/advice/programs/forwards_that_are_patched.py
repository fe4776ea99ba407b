import functools

import torch


def scaled_forward(module, x):
    return torch.nn.functional.linear(x, module.weight, module.bias) * 2


layers = [torch.nn.Linear(4, 4) for _ in range(4)]
for layer in layers:
    layer.forward = functools.partial(scaled_forward, layer)


@torch.compile
def apply(layer, x):
    return layer(x).relu()


x = torch.ones(2, 4)
results = []
for layer in layers:
    results.append(apply(layer, x))
