"""Compile workers on the CPU: C++ kernels are built in threads, or where the compile runs."""

import os
import signal
import stat
import sys
from pathlib import Path

import pytest
import torch
from torch._inductor import codecache, config, cpp_builder

from .assertion import in_parity

pytestmark = pytest.mark.usefixtures("fresh_inductor_cache")


def two_kernels(x):
    return (x.sin() + 1).sum() * torch.ones(2), (x @ x).cos()


def called(function):
    torch._dynamo.reset()
    return [y.sum().item() for y in torch.compile(function)(torch.ones(8, 8))]


def kernels(seen):
    """What was built for the scenario itself. The precompiled header is built by whoever is the first on a machine."""
    return seen.session.kernels.query("name != 'precompiled header'").reset_index(drop=True)


def test_kernels_are_built_in_threads_and_then_found():
    def run():
        first = called(two_kernels)
        assert called(two_kernels) == first
        codecache.PyCodeCache.cache_clear()
        codecache.CppPythonBindingsCodeCache.cache.clear()
        assert called(two_kernels) == first

    with config.patch(compile_threads=2):
        seen = in_parity(run)
    found = kernels(seen)
    names = found["name"].unique().tolist()
    assert all(name.startswith("cpp_fused_") for name in names) and len(found) == 3 * len(names)
    text = "".join(path.read_text() for path in Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).rglob("*.py"))
    assert all(f"{name} = async_compile.cpp_pybinding" in text for name in names)
    assert text.count("async_compile.cpp_pybinding(") == len(names)
    built, in_memory, on_disk = (found.iloc[i * len(names) : (i + 1) * len(names)] for i in range(3))
    assert set(built["outcome"]) == {"compiled"} and set(built["where"]) == {"thread"}
    assert (built["duration_s"] > 0).all()
    for cached in (in_memory, on_disk):
        assert set(cached["outcome"]) == {"cached"} and cached["duration_s"].isna().all()
    assert set(found["language"]) == {"cpp"} and set(found["worker_pid"]) == {os.getpid()}
    assert set(found["compile_id"]) == {"0/0"}


def plus(x):
    return (x.sin() + 1,)


def test_with_one_thread_kernels_are_built_where_the_compile_runs():
    with config.patch(compile_threads=1):
        seen = in_parity(lambda: called(plus))
    [kernel] = kernels(seen).itertuples()
    assert (kernel.name, kernel.where, kernel.outcome) == ("cpp_fused_add_sin_0", "process", "compiled")
    assert kernel.duration_s > 0


def test_a_cpp_wrapper_is_built_without_a_module_that_waits():
    """The real one takes long; this one is built, and then is no Python module."""

    def run():
        with pytest.raises(ImportError):
            codecache.CppWrapperCodeCache.load_async('extern "C" int answer() { return 42; }')()

    with config.patch(cpp_cache_precompile_headers=False):
        seen = in_parity(run)
    [kernel] = kernels(seen).itertuples()
    assert (kernel.name, kernel.outcome, kernel.where) == ("cpp_wrapper", "compiled", "process")
    [lookup] = seen.session.cache_lookups.itertuples()
    assert (lookup.cache, lookup.tier, lookup.outcome) == ("cpp_code", "local", "miss")


COMPILER = """#!{python}
import os, signal, sys
if any(a.endswith(".main.cpp") or "kernel" in open(a).read() for a in sys.argv if a.endswith(".cpp")):
    {then}
os.execvp({real!r}, [{real!r}, *sys.argv[1:]])
"""


@pytest.fixture(
    params=["sys.exit('no space left')", f"os.kill(os.getpid(), {int(signal.SIGKILL)})"], ids=["fails", "killed"]
)
def broken_compiler(request, tmp_path):
    """A C++ compiler that ends without a result; the precompiled header would be one more thing to build with it."""
    real = cpp_builder.get_cpp_compiler()
    path = tmp_path / "g++"
    path.write_text(COMPILER.format(python=sys.executable, then=request.param, real=real))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    with config.patch({"cpp.cxx": (str(path),), "cpp_cache_precompile_headers": False}):
        yield request.param


@pytest.mark.parametrize("threads", [2, 1])
def test_a_worker_that_ends_without_a_result(broken_compiler, threads):
    def run():
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
            called(plus)
        return str(raised.value)

    with config.patch(compile_threads=threads):
        seen = in_parity(run)
    assert "C++ compile error" in seen.result
    [kernel] = kernels(seen).itertuples()
    assert (kernel.outcome, kernel.where) == ("failed", "thread" if threads == 2 else "process")
    assert "C++ compile error" in kernel.fail_reason
    lookups = seen.session.cache_lookups.query("cache == 'cpp_code'")
    assert lookups["outcome"].tolist() == ["failed"] and lookups["reason"].str.contains("C\\+\\+ compile error").all()
