"""One small program for each thing that compilediag records, and whether it did: the rows of docs/torch_versions.md.

`docs/make_torch_versions.py --run` runs all of them with the torch that is installed; tests/live/test_torch_versions.py
runs those that need no C++ compiler.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import compilediag as cd

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Scenario:
    """What is recorded, by which source, a program for it, and a check of the session.

    `since` is the first torch version that can do this at all. `needs` is what the program needs beside torch.
    """

    source: str
    records: str
    run: Callable[[], Any]
    found: Callable[[cd.Session], Any]
    since: str = "2.11"
    needs: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def is_recorded(self) -> bool:
        """Run the program under a watch; True if the session has what it should."""
        torch._dynamo.reset()
        try:
            with cd.watch(**self.options) as session:
                self.run()
            return bool(self.found(session))
        finally:
            torch._dynamo.reset()


def fresh(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, **{"backend": "eager", **options})


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def inline() -> None:
    fresh(lambda x: double(double(x)))(torch.ones(4))


def unroll() -> None:
    def repeat(x: torch.Tensor) -> torch.Tensor:
        for _ in range(20):
            x = double(x)
        return x

    fresh(repeat)(torch.ones(4))


def find_loop(session: cd.Session) -> bool:
    (loop,) = session.compiles["loop"]
    return (loop["count"], loop["body"]) == (20, "double")


def sizes(*numbers: int, **options: Any) -> None:
    compiled = fresh(double, **options)
    for n in numbers:
        compiled(torch.ones(n, 3))


def break_graph() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    fresh(function)(torch.ones(3))


def change_two() -> None:
    def function(x: torch.Tensor, n: int, name: str) -> torch.Tensor:
        return x * n + len(name)

    compiled = fresh(function, dynamic=False)
    compiled(torch.ones(3), 2, "a")
    compiled(torch.ones(3), 3, "b")


def train() -> None:
    x = torch.ones(3, requires_grad=True)
    fresh(lambda x: x.sin().sum(), backend="aot_eager")(x).backward()


def compile_autograd() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        (x * 2).sum().backward()


def compile_twice(**options: Any) -> None:
    """With Inductor: what the first misses, the second finds."""
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(double, **options)(torch.ones(4, 3))


def change_a_setting() -> None:
    for nodes in (4, 8):
        torch._dynamo.reset()
        with torch._inductor.config.patch(max_fusion_size=nodes):
            torch.compile(double)(torch.ones(7, 3))


def ask_redis() -> None:
    from tests.live.redis_server import RedisServer

    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        os.environ["TORCHINDUCTOR_REDIS_HOST"], os.environ["TORCHINDUCTOR_REDIS_PORT"] = "127.0.0.1", str(server.port)
        settings = {"fx_graph_remote_cache": True, "force_disable_caches": False}
        try:
            with torch._inductor.config.patch(settings), torch._functorch.config.patch(enable_autograd_cache=False):
                torch.compile(double)(torch.ones(9, 3))
        finally:
            server.stop()


def tune() -> None:
    with torch._inductor.config.patch(max_autotune=True, autotune_num_choices_displayed=0):
        torch.compile(torch.bmm)(torch.ones(4, 32, 32), torch.ones(4, 32, 32))


def use_profile() -> None:
    with torch.compiler.config.patch(job_id="compilediag"):
        sizes(4, 5)


def skip_graphs() -> None:
    fresh(double, backend="cudagraphs")(torch.ones(3))


def specialize() -> None:
    fresh(lambda x: x + torch.ones(5), dynamic=True)(torch.ones(5))


def export() -> None:
    from torch.export._draft_export import draft_export

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.sum() > 0 else x

    draft_export(Model(), (torch.ones(3),))


def mark_with_ranges() -> None:
    compiled = fresh(double)
    for most in (8, 16):
        x = torch.ones(5, 3)
        torch._dynamo.mark_dynamic(x, 0, min=2, max=most)
        compiled(x)


def refuse_recompiles() -> None:
    with torch.compiler.set_stance("default"):
        compiled = fresh(double)
        compiled(torch.ones(4, 3))
        with torch.compiler.set_stance("eager_on_recompile"):
            compiled(torch.ones(5, 3))


def call_ahead_of_time() -> None:
    with torch._dynamo.config.patch(enable_aot_compile=True):
        compiled = fresh(double, fullgraph=True, backend="inductor").aot_compile(((torch.ones(4, 3),), {}))
    with contextlib.suppress(RuntimeError):
        compiled(torch.ones(5, 3))


def reach_limit() -> None:
    with torch._dynamo.config.patch(recompile_limit=1):
        sizes(4, 5, 6, dynamic=False)


def fail_to_break() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with contextlib.suppress(torch._dynamo.exc.Unsupported):
        fresh(function, fullgraph=True)(torch.ones(3))


def keep_static() -> None:
    with torch.compiler.config.patch(static_sources="L['x']"):
        sizes(4, 5, 6)


def specify() -> None:
    from torch.fx.experimental.dynamic_spec import ShapeVar, TensorSpec

    spec = TensorSpec([ShapeVar("rows", max=5), None])
    with contextlib.suppress(Exception):
        sizes(4, 9, dynamic_shapes={"x": spec})


def capture_ahead() -> None:
    from torch.compiler import precompile

    with tempfile.TemporaryDirectory() as folder:
        paths = {"artifact_path": Path(folder, "a.py"), "cache_path": Path(folder, "a.cache")}
        with precompile.capture(double, **paths, backend="eager") as capture:
            capture(torch.ones(3))


def replay_capture() -> None:
    compiled = torch.compile(double, mode="reduce-overhead")
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        compiled(torch.ones(3, device="cuda"))


def capture_own() -> None:
    x = torch.ones(3, device="cuda")
    double(x)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        double(x)


def tune_kernels() -> None:
    from torch._inductor.utils import fresh_cache

    with fresh_cache(), torch._inductor.config.patch(max_autotune=True):
        torch.compile(lambda x: x.softmax(-1))(torch.ones(512, 512, device="cuda"))


def tune_own_kernel() -> None:
    from tests.gpu import triton_kernels

    triton_kernels.add_one.cache.clear()
    triton_kernels.launch(triton_kernels.add_one, torch.ones(1 << 16, device="cuda"))


def launch_own_kernel() -> None:
    import triton

    from tests.gpu import triton_kernels

    kernel = triton.jit(triton_kernels.add_one.fn.fn)  # One that has compiled nothing yet.
    x = torch.ones(256, device="cuda")
    kernel[(1,)](x, torch.empty_like(x), x.numel(), BLOCK=256)


def compile_twice_on_gpu() -> None:
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(lambda x: x.sin() + 3)(torch.ones(77, device="cuda"))


@functools.cache
def read_log() -> cd.Session:
    """The session of a TORCH_TRACE log that another process wrote."""
    program = (
        "import torch\n@torch.compile(backend='eager')\ndef f(x):\n    torch._dynamo.graph_break()\n    return x * 2\n"
        "for n in (2, 3):\n    f(torch.ones(n))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(program)
        environment = {**os.environ, "TORCH_TRACE": folder, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, file], env=environment, check=True, capture_output=True)
        return cd.ingest(folder)


def log_has(table: str) -> Callable[[cd.Session], bool]:
    return lambda _: len(read_log().table(table)) > 0


def lookups(cache: str, *outcomes: str) -> Callable[[cd.Session], bool]:
    """True if all of these outcomes are recorded of a cache."""
    return lambda s: set(outcomes) <= set(s.cache_lookups.query(f"cache == '{cache}'")["outcome"])


def rows(table: str, **equal: Any) -> Callable[[cd.Session], bool]:
    """True if a row of a table has these values; a list contains one of them."""

    def found(session: cd.Session) -> bool:
        frame = session.table(table)
        for name, value in equal.items():
            frame = frame[frame[name].isin(value if isinstance(value, list) else [value])]
        return len(frame) > 0

    return found


COMPILER, GPU = ("a C++ compiler",), ("a GPU",)

SCENARIOS = (
    Scenario(
        "compiles", "each compile, with its duration and outcome", lambda: sizes(4), rows("compiles", outcome="ok")
    ),
    Scenario("compiles", "compiles of a backward, at its first call", train, rows("compiles", trigger="lazy_backward")),
    Scenario(
        "compiles", "compiles of compiled autograd", compile_autograd, rows("compiles", trigger="compiled_autograd")
    ),
    Scenario(
        "compiles",
        "captures of `torch.compiler.precompile`",
        capture_ahead,
        rows("compiles", trigger="precompile", outcome="ok"),
        since="2.15",
    ),
    Scenario("phases", "timed phases of a compile", lambda: sizes(4), rows("phases")),
    Scenario(
        "tracing",
        "seconds of tracing by function",
        inline,
        rows("trace_functions", function="double", count=2),
        options={"tracing": True},
    ),
    Scenario("compiles", "Python loops that are unrolled", unroll, find_loop),
    Scenario(
        "recompiles",
        "each recompile and the entry with the fewest failing guards",
        lambda: sizes(4, 5),
        lambda s: s.recompiles["closest_compile_key"].notna().all() and len(s.recompiles),
    ),
    Scenario(
        "recompiles",
        "every failing guard with its values, not only the first",
        change_two,
        lambda s: len(s.guard_failures) == 2 and s.guard_failures[["expected", "actual"]].notna().all(axis=None),
    ),
    Scenario(
        "recompiles",
        "changed ranges of `mark_dynamic(min=, max=)`",
        mark_with_ranges,
        lambda s: s.guard_failures["guard_source"].str.startswith("x.").all() and len(s.guard_failures),
        since="2.15",
    ),
    Scenario(
        "recompiles",
        "sizes that `static_sources` keeps static, with the setting in the advice",
        keep_static,
        lambda s: any("static_sources" in finding.suggestion for finding in s.findings()),
        since="2.15",
    ),
    Scenario(
        "recompiles",
        "sizes outside of what `dynamic_shapes=` allows",
        specify,
        lambda s: len(s.guard_failures) or s.compiles["outcome"].isin(["failed"]).any(),
        since="2.15",
    ),
    Scenario(
        "recompiles",
        "functions that reach a recompile limit",
        reach_limit,
        lambda s: any("limit" in finding.rule for finding in s.findings()),
    ),
    Scenario(
        "refusals",
        "calls that a stance refuses to compile, with the guards that failed",
        refuse_recompiles,
        rows("refused_calls", refused_by="eager_on_recompile", guard_source="x.size()[0]"),
    ),
    Scenario(
        "refusals",
        "calls that code of `aot_compile` refuses, with the guards that failed",
        call_ahead_of_time,
        rows("refused_calls", refused_by="aot_compile"),
        needs=COMPILER,
    ),
    Scenario(
        "graph_breaks", "breaks that raise with `fullgraph=True`", fail_to_break, rows("compiles", outcome="failed")
    ),
    Scenario(
        "graph_breaks",
        "graph breaks with reason and line",
        break_graph,
        lambda s: len(s.graph_breaks) and s.graph_breaks[["reason", "user_line"]].notna().all(axis=None),
    ),
    Scenario("dynamic", "sizes and numbers that torch makes dynamic", lambda: sizes(4, 5), rows("dynamic_decisions")),
    Scenario(
        "dynamo_cache",
        "Dynamo's own entries: misses and what is saved",
        lambda: sizes(4, 5),
        lookups("dynamo_code", "miss", "saved"),
    ),
    Scenario("pgo", "profiles of earlier runs, read and written", use_profile, lookups("pgo", "miss", "saved")),
    Scenario(
        "calls",
        "calls of each entry",
        lambda: sizes(4, 4, 4),
        lambda s: s.calls["count"].sum() >= 3,
        needs=("Python 3.12",),
        options={"calls": True},
    ),
    Scenario(
        "guard_checks",
        "one check of the guards of each entry, with warm caches",
        lambda: sizes(4, 4),
        lambda s: len(s.compiles) and (s.compiles["guard_check_us"] > 0).all(),
        options={"calls": True},
    ),
    Scenario(
        "fx_graph_cache",
        "misses and hits of FxGraphCache",
        lambda: without_aot(compile_twice),
        lookups("fx_graph", "miss", "hit"),
        needs=COMPILER,
    ),
    Scenario(
        "aot_autograd_cache",
        "misses and hits of AOTAutogradCache",
        compile_twice,
        lookups("aot_autograd", "miss", "hit"),
        needs=COMPILER,
    ),
    Scenario(
        "keys",
        "what changed in the key of a miss",
        change_a_setting,
        lambda s: s.cache_lookups["key_diff"].astype(str).str.contains("max_fusion_size").any(),
        needs=COMPILER,
    ),
    Scenario(
        "remote_cache",
        "lookups in a Redis server",
        ask_redis,
        rows("cache_lookups", tier="remote"),
        needs=("a C++ compiler", "redis"),
    ),
    Scenario(
        "code_caches",
        "caches of generated code and C++ libraries",
        compile_twice,
        lookups("py_code", "miss"),
        needs=COMPILER,
    ),
    Scenario(
        "select_algorithm",
        "choices of operators that are tuned, with their times",
        tune,
        rows("autotune", choice_kind="cpp"),
        needs=COMPILER,
    ),
    Scenario(
        "cudagraph_skips", "functions that are not captured, and why", skip_graphs, rows("cudagraphs", action="skip")
    ),
    Scenario("trace", "graphs, guards and code as texts", lambda: sizes(4), rows("artifacts")),
    Scenario("trace", "symbols that are created, guarded and specialized", specialize, rows("symbolic_shapes")),
    Scenario("trace", "problems of `draft_export`", export, rows("export_problems")),
    Scenario("TORCH_TRACE log", "compiles and recompiles", lambda: None, log_has("recompiles")),
    Scenario("TORCH_TRACE log", "graph breaks", lambda: None, log_has("graph_breaks")),
    Scenario(
        "triton_bundle",
        "kernels that come with a cached graph",
        compile_twice_on_gpu,
        rows("cache_lookups", cache="triton_bundle"),
        needs=GPU,
    ),
    Scenario(
        "triton_heuristics",
        "configurations of Inductor's Triton kernels, with their times",
        tune_kernels,
        rows("autotune", tuner="triton_heuristics"),
        needs=GPU,
    ),
    Scenario(
        "triton_autotune",
        "configurations of your own `triton.autotune` kernels",
        tune_own_kernel,
        rows("autotune", tuner="triton_autotune"),
        needs=GPU,
    ),
    Scenario(
        "triton_jit",
        "your own Triton kernels, each time that one is compiled",
        launch_own_kernel,
        rows("kernels", language="triton", where="process"),
        needs=GPU,
    ),
    Scenario(
        "cudagraphs",
        "warm-ups and captures of CUDA graphs",
        replay_capture,
        rows("cudagraphs", action=["capture", "record"]),
        needs=GPU,
    ),
    Scenario(
        "captures",
        "CUDA graphs that the program captures itself",
        capture_own,
        rows("cudagraphs", action="user_capture"),
        needs=GPU,
    ),
    Scenario(
        "replays",
        "replays of CUDA graphs",
        replay_capture,
        rows("cudagraphs", action="replays"),
        needs=GPU,
        options={"replays": True},
    ),
)


def without_aot(run: Callable[[], None]) -> None:
    """FxGraphCache alone: with AOTAutogradCache on, a hit of that one asks no other."""
    with torch._functorch.config.patch(enable_autograd_cache=False):
        run()
