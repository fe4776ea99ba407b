"""The program of docs/logs.md: rank 1 sees another size than rank 0. Run it with torchrun."""

import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()


@torch.compile(backend="aot_eager", dynamic=False)
def step(x):
    return x * 2


@torch.compile(backend="aot_eager")
def scale(x):
    return x / 2


for size in (4, 8, 8 + rank):
    scale(step(torch.ones(size)))
torch.distributed.destroy_process_group()
