"""Record the session of `02_autotune.ipynb` on a GPU: `python notebooks/record_autotune.py OUT.cdiag`.

The script tunes matrix products of several sizes and kinds, a convolution, a kernel that Inductor generates, and a
Triton kernel of its own, with choices that fail because they need more shared memory than the GPU has. It also writes
OUT.json: for each function, the time of a call and of the compile, tuned and not tuned, and in how many rounds of calls
the tuned function was faster. These give the number of calls after which tuning pays off.
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

import torch  # noqa: E402 the cache folders must be set before the import
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
    """Compute one tile of a product of square matrices. 256 x 256 tiles of float32 exceed shared memory."""
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


def make_tensor(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def make_programs():
    """Yield the name, the function and the inputs of each program."""
    half = torch.bfloat16
    yield "product_512", product, (make_tensor(512, 512), make_tensor(512, 512))
    yield "product_2048", product, (make_tensor(2048, 2048), make_tensor(2048, 2048))
    yield "product_bf16", product, (make_tensor(4096, 4096, dtype=half), make_tensor(4096, 4096, dtype=half))
    yield "long_sum", product, (make_tensor(32, 65536), make_tensor(65536, 32))
    yield (
        "product_and_more",
        product_and_more,
        (make_tensor(2048, 2048, dtype=half), make_tensor(2048, 2048, dtype=half)),
    )
    yield "biased", biased, (make_tensor(1024), make_tensor(1024, 1024), make_tensor(1024, 1024))
    yield "products", products, (make_tensor(64, 256, 256), make_tensor(64, 256, 256))
    yield "sum_of_products", sum_of_products, (make_tensor(1024, 1024), make_tensor(1024, 1024))
    yield "pointwise_convolution", pointwise_convolution, (make_tensor(16, 128, 64, 64), make_tensor(128, 128, 1, 1))
    yield "softmax_of_transposed", softmax_of_transposed, (make_tensor(4096, 4096),)


def rename(function, name):
    """Return a copy of the function with another name, by which the session identifies its compile."""
    return types.FunctionType(function.__code__.replace(co_name=name), function.__globals__, name)


def compile_and_call(function, name, inputs):
    """Return the compiled function and the seconds of its first call."""
    compiled = torch.compile(rename(function, name), dynamic=False)
    began = time.perf_counter()
    compiled(*inputs)
    torch.cuda.synchronize()
    return compiled, time.perf_counter() - began


def measure_call_ms(function, inputs):
    """Return the mean time of a call in ms."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(CALLS):
        function(*inputs)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / CALLS


def compare_calls(plain, tuned, inputs):
    """Measure calls of both functions in alternating rounds, so that other load affects both. Skip the first."""
    rounds = [(measure_call_ms(plain, inputs), measure_call_ms(tuned, inputs)) for _ in range(ROUNDS + 1)][1:]
    not_tuned_ms, tuned_ms = (statistics.median(times) for times in zip(*rounds, strict=True))
    faster = sum(tuned < plain for plain, tuned in rounds)
    return {"not_tuned_ms": not_tuned_ms, "tuned_ms": tuned_ms, "rounds": ROUNDS, "tuned_faster": faster}


def tune_user_kernel():
    """Launch the user-defined kernel with two sizes; each size is tuned separately."""
    for n in (256, 512):
        x, y = make_tensor(n, n), make_tensor(n, n)
        out = torch.empty_like(x)
        tile_product[lambda meta, n=n: (triton.cdiv(n, meta["TILE"]), triton.cdiv(n, meta["TILE"]))](x, y, out, n)


def record(path):
    """Record all programs in the session file `path`, and write the times of calls to the JSON file next to it."""
    torch.manual_seed(0)
    calls = []
    compile_and_call(
        product, "first", (make_tensor(64, 64), make_tensor(64, 64))
    )  # The first compile includes torch's initialization.
    with torch.no_grad(), cd.watch(path, detail="lean") as session:
        for name, function, inputs in make_programs():
            plain, plain_s = compile_and_call(function, f"{name}_not_tuned", inputs)
            with torch._inductor.config.patch(TUNED):
                tuned, tuned_s = compile_and_call(function, name, inputs)
            times = compare_calls(plain, tuned, inputs)
            calls.append({"function": name, **times, "not_tuned_compile_s": plain_s, "tuned_compile_s": tuned_s})
            torch._dynamo.reset()
            print(calls[-1], flush=True)
        tune_user_kernel()
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    Path(path).with_suffix(".json").write_text(json.dumps({**about, "calls": calls}, indent=1) + "\n")
    print(session.autotune.groupby("tuner")[["time_ms", "fail_reason"]].count().to_string())
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    from recording import main

    main(__file__, __doc__)
