"""Two ranks (gloo, on the CPU) that agree on what their caches had, of which one lost its cache; a program for tests.

python -m tests.live.ranks_share_hits RANK MEETING FOLDER
"""

import shutil
import sys

import torch
import torch.distributed as dist
from torch._inductor.codecache import cache_dir
from torch._inductor.utils import clear_caches

import compilediag as cd


def scale(x):
    return x * 2


def main(rank: int, meeting: str, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    with torch._functorch.config.patch(_sync_cache_decision_cross_ranks=True), cd.watch(path=folder):
        torch.compile(scale)(torch.ones(4))
        if rank == 1:
            shutil.rmtree(cache_dir())
            clear_caches()
        torch._dynamo.reset()
        torch.compile(scale)(torch.ones(4))
        cd.current().flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
