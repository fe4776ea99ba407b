"""Between two tests the GPU is as it was: no captured graph, no cached memory."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def empty_gpu() -> Iterator[None]:
    yield
    import torch

    torch._dynamo.reset()  # With CUDA graphs, trees and all.
    gc.collect()
    torch.cuda.empty_cache()
