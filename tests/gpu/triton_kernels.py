"""Kernels of a user's own, with configurations to choose from; some of them can't run anywhere."""

import torch
import triton
import triton.language as tl

BLOCKS = [triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024}, num_warps=8)]
#: Square tiles of float32: two of 256 x 256 need 512 kB of shared memory.
TILES = [triton.Config({"TILE": tile}, num_stages=1) for tile in (16, 32, 256)]


@triton.autotune(configs=BLOCKS, key=["n"])
@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.autotune(configs=BLOCKS, key=["n"], cache_results=True)
@triton.jit
def add_two(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 2, mask=at < n)


@triton.autotune(configs=TILES, key=["n"])
@triton.jit
def square_tile(x, y, n, TILE: tl.constexpr):
    """The product with itself of the tile in the corner; `y` must begin as zeros to be the same for each tile."""
    r = tl.arange(0, TILE)
    at = r[:, None] * n + r[None, :]
    tile = tl.load(x + at)
    tl.store(y + at, tl.dot(tile, tile))


@triton.autotune(configs=BLOCKS, key=["n"])
@triton.jit
def small_blocks_only(x, y, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 1024, "blocks of 1024 are not for us")
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.autotune(configs=BLOCKS, key=["n"])
@triton.jit
def small_blocks_assemble(x, y, n, BLOCK: tl.constexpr):
    """Twice x. With big blocks there is an instruction in it that no GPU has."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    if BLOCK == 1024:
        value = tl.inline_asm_elementwise("bogus.f32 $0, $1;", "=r,r", [value], tl.float32, is_pure=True, pack=1)
    tl.store(y + at, value + value, mask=at < n)


def launch(kernel, x):
    """Launch one of the kernels that work on blocks."""
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


def launch_tile(x):
    y = torch.zeros_like(x)
    square_tile[(1,)](x, y, x.shape[1])
    return y
