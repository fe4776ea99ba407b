"""Few choices, quickly tuned: what the GPU tests of autotuning stand on."""

import contextlib

import torch
from torch._inductor import config

GEMM = {
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "ATEN,TRITON",
    "max_autotune_conv_backends": "ATEN,TRITON",
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
    "triton.num_decompose_k_splits": 0,
}
#: Block sizes m, n and k, stages and warps of templates: two that any GPU has room for, one that none has.
GOOD = ((64, 64, 32, 2, 4), (32, 32, 32, 2, 4))
TOO_BIG = (128, 128, 128, 5, 8)


@contextlib.contextmanager
def templates(*sizes):
    """Inductor has these configurations for its matrix templates, instead of some twenty."""
    from torch._inductor.template_heuristics import triton as heuristics

    owners = [heuristics.CUDAMMTemplateConfigHeuristic(), heuristics.CUDAAddMMTemplateConfigHeuristic()]
    before = [owner.mm_configs for owner in owners]
    for owner in owners:
        owner.mm_configs = [heuristics.GemmConfig(*size) for size in sizes]
    try:
        yield
    finally:
        for owner, configs in zip(owners, before, strict=True):
            owner.mm_configs = configs


def tuned(function, *inputs, sizes=GOOD, **options):
    """What a compiled function gives that is tuned with few templates."""
    with config.patch(GEMM | options), templates(*sizes):
        return torch.compile(function, dynamic=False)(*inputs)


def pool_is_ready():
    """torch's pool of compiling processes is up; until it is, torch compiles in threads of this process."""
    from torch._inductor.async_compile import AsyncCompile

    AsyncCompile.use_process_pool()
    AsyncCompile.wait_pool_ready()
    return AsyncCompile.use_process_pool()
