"""The plainest scenarios: what everything else is compared like."""

import torch

from .assertion import in_parity


def test_a_compile_that_misses_and_is_saved(fresh_inductor_cache):
    seen = in_parity(lambda: torch.compile(lambda x: x.sin() + 1)(torch.ones(3)))
    assert seen.counters["inductor"]["fxgraph_cache_miss"] == 1
