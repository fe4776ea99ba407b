"""Records the session of `02_autotune.ipynb` on a machine with a GPU: `python notebooks/record_autotune.py OUT.cdiag`.

It tunes matrix products of several sizes and kinds, a convolution, a kernel of Inductor's and one of a user's own, with
choices that fail because the GPU has no room for them. Beside the session it writes OUT.json: how long a call of each
function takes tuned and not tuned, in how many rounds of calls tuned was the faster, and how long its compile took.
All that gives the number of calls after which tuning pays.
"""

import json
import os
import statistics
import tempfile
import time
import types
from pathlib import Path

CACHE = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHE.name
os.environ["TRITON_CACHE_DIR"] = os.path.join(CACHE.name, "triton")

import torch  # noqa: E402 the caches have to be set first
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import compilediag as cd  # noqa: E402

CALLS = 200
ROUNDS = 9
TUNED = {
    "max_autotune": True,
    "coordinate_descent_tuning": True,
    "test_configs.max_mm_configs": 10,
    "triton.num_decompose_k_splits": 3,
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}

TILES = [triton.Config({"TILE": tile}, num_warps=warps, num_stages=1) for tile in (32, 64, 256) for warps in (4, 8)]


@triton.autotune(configs=TILES, key=["n"])
@triton.jit
def tile_product(x, y, out, n, TILE: tl.constexpr):
    """One tile of a product of square matrices. Tiles of 256 x 256 of float32 need more shared memory than there is."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, n, TILE):
        inner = start + tl.arange(0, TILE)
        left, right = x + rows[:, None] * n + inner[None, :], y + inner[:, None] * n + columns[None, :]
        total += tl.dot(tl.load(left), tl.load(right))
    tl.store(out + rows[:, None] * n + columns[None, :], total)


def product(x, y):
    return x @ y


def product_and_more(x, y):
    return (x @ y).relu() * 2 + 1


def biased(bias, x, y):
    return torch.addmm(bias, x, y)


def products(x, y):
    return torch.bmm(x, y)


def sum_of_products(x, y):
    return x @ y + y @ x


def pointwise_convolution(x, weight):
    return torch.nn.functional.conv2d(x, weight)


def softmax_of_transposed(x):
    return torch.softmax(x.t() + x, dim=-1)


def numbers(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def programs():
    """Name, function and inputs of what is tuned."""
    half = torch.bfloat16
    yield "product_512", product, (numbers(512, 512), numbers(512, 512))
    yield "product_2048", product, (numbers(2048, 2048), numbers(2048, 2048))
    yield "product_bf16", product, (numbers(4096, 4096, dtype=half), numbers(4096, 4096, dtype=half))
    yield "long_sum", product, (numbers(32, 65536), numbers(65536, 32))
    yield "product_and_more", product_and_more, (numbers(2048, 2048, dtype=half), numbers(2048, 2048, dtype=half))
    yield "biased", biased, (numbers(1024), numbers(1024, 1024), numbers(1024, 1024))
    yield "products", products, (numbers(64, 256, 256), numbers(64, 256, 256))
    yield "sum_of_products", sum_of_products, (numbers(1024, 1024), numbers(1024, 1024))
    yield "pointwise_convolution", pointwise_convolution, (numbers(16, 128, 64, 64), numbers(128, 128, 1, 1))
    yield "softmax_of_transposed", softmax_of_transposed, (numbers(4096, 4096),)


def named(function, name):
    """The same function under a name of its own, by which the session tells its compile."""
    return types.FunctionType(function.__code__.replace(co_name=name), function.__globals__, name)


def compiled(function, name, inputs):
    """A compiled function, and how long its first call took, in seconds."""
    ready = torch.compile(named(function, name), dynamic=False)
    began = time.perf_counter()
    ready(*inputs)
    torch.cuda.synchronize()
    return ready, time.perf_counter() - began


def call_ms(function, inputs):
    """The time of one call among many, in ms."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(CALLS):
        function(*inputs)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / CALLS


def compared(plain, tuned, inputs):
    """What calls of the two take, in turn, so that a busy machine is busy for both; after a first round for nothing."""
    rounds = [(call_ms(plain, inputs), call_ms(tuned, inputs)) for _ in range(ROUNDS + 1)][1:]
    not_tuned_ms, tuned_ms = (statistics.median(times) for times in zip(*rounds, strict=True))
    faster = sum(tuned < plain for plain, tuned in rounds)
    return {"not_tuned_ms": not_tuned_ms, "tuned_ms": tuned_ms, "rounds": ROUNDS, "tuned_faster": faster}


def users_kernel():
    """Launch the user's own kernel with sizes that are tuned one by one."""
    for n in (256, 512):
        x, y = numbers(n, n), numbers(n, n)
        out = torch.empty_like(x)
        tile_product[lambda meta, n=n: (triton.cdiv(n, meta["TILE"]), triton.cdiv(n, meta["TILE"]))](x, y, out, n)


def record(path):
    """Record all of the above into the session file `path`, and what calls take into the JSON file beside it."""
    torch.manual_seed(0)
    calls = []
    compiled(product, "first", (numbers(64, 64), numbers(64, 64)))  # What torch does once is no function's.
    with torch.no_grad(), cd.watch(path, detail="lean") as session:
        for name, function, inputs in programs():
            plain, plain_s = compiled(function, f"{name}_not_tuned", inputs)
            with torch._inductor.config.patch(TUNED):
                tuned, tuned_s = compiled(function, name, inputs)
            times = compared(plain, tuned, inputs)
            calls.append({"function": name, **times, "not_tuned_compile_s": plain_s, "tuned_compile_s": tuned_s})
            torch._dynamo.reset()
            print(calls[-1], flush=True)
        users_kernel()
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    Path(path).with_suffix(".json").write_text(json.dumps({**about, "calls": calls}, indent=1) + "\n")
    print(session.autotune.groupby("tuner")[["time_ms", "fail_reason"]].count().to_string())
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    from recording import main

    main(__file__, __doc__)
