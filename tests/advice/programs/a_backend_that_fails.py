import torch


def backend(graph, inputs):
    raise RuntimeError("no kernels today")


@torch.compile(backend=backend)
def scale(x):
    return x * 2


try:
    results = scale(torch.ones(4))
except Exception as error:
    results = type(error).__name__
