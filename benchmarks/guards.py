"""What a call pays for about 1,000 guards, compared with torch's own figure, and after changes: docs/compile_time.md.

    python -m benchmarks.guards

Each row is a process of its own. A check is that of the look-up, on the arguments of a live call, with warm caches.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import torch
from torch import nn
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

LAYERS, CHECKS, ROUNDS = 36, 500, 15
CHANGES = {
    "as it is": "",
    "numbers in the code": "constants",
    "recursive dict tags": "tags",
    "one block in a frame": "blocks",
}


class Layer(nn.Module):
    def __init__(self, constants: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        if not constants:
            self.scale, self.shift, self.slope, self.limit = 1.5, 0.25, 0.125, 6.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.linear(x) * self.scale + self.shift).clamp(-self.limit, self.limit) * self.slope


class ConstantLayer(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.linear(x) * 1.5 + 0.25).clamp(-6.0, 6.0) * 0.125


class Model(nn.Module):
    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def measure(name: str, change: str) -> None:
    import compilediag

    if change == "tags":
        torch._dynamo.config.use_recursive_dict_tags_for_guards = True
    kind = ConstantLayer if change == "constants" else Layer
    layers, x = [kind(change == "constants") for _ in range(LAYERS)], torch.randn(2, 8)
    with torch.no_grad(), compilediag.watch(detail="lean") as session:
        if change == "blocks":
            model, traced = Model([torch.compile(layer, backend="eager") for layer in layers]), layers[0]
            call = model
        else:
            model = traced = Model(layers)
            call = torch.compile(model, backend="eager")
        for _ in range(10):
            call(x)
    (entry,) = _debug_get_cache_entry_list(type(traced).forward.__code__)
    locals_ = {"self": traced, "x": x}
    with torch.no_grad():
        us = time_check(entry.guard_manager.root, locals_) * (LAYERS if change == "blocks" else 1)
    (row,) = session.compiles.to_dict("records")
    print(
        f"{name:34} {row['guard_count']:5} guards, {us:8.1f} us per call, torch's figure {row['guard_latency_us']} us"
    )


def time_check(root: Any, locals_: dict[str, Any]) -> float:
    """us of a check that holds, in the fastest of several rounds: others share the cores."""
    assert root.check(locals_)
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(CHECKS):
            root.check(locals_)
        rounds.append((time.perf_counter_ns() - begin) / CHECKS / 1e3)
    return min(rounds)


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1], CHANGES[sys.argv[1]])
        return
    for name in CHANGES:
        subprocess.run([sys.executable, "-m", "benchmarks.guards", name], check=True)


if __name__ == "__main__":
    main()
