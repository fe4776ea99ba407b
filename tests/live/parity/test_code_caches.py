"""Caches of generated code: Python modules, C++ libraries and CUDA objects, in memory and on disk."""

import threading

import pytest
import torch
from torch._inductor import codecache
from torch._inductor.exc import CUDACompileError

from .assertion import in_parity

pytestmark = pytest.mark.usefixtures("fresh_inductor_cache")


def rows(seen, cache):
    found = seen.session.cache_lookups
    return found[found["cache"] == cache]


def list_outcomes(seen, cache):
    return rows(seen, cache)[["tier", "outcome"]].apply(tuple, axis=1).tolist()


def plus(x):
    return x.sin() + 1


def called(function, size=3):
    """What a function gives that is compiled anew, as far as the caches have not got it."""
    torch._dynamo.reset()
    return torch.compile(function)(torch.ones(size)).sum().item()


def forget_loaded_code():
    codecache.PyCodeCache.cache_clear()
    codecache.CppPythonBindingsCodeCache.cache.clear()


def test_code_is_built_once_found_in_memory_and_then_on_disk():
    def run():
        results = [called(plus), called(plus)]
        forget_loaded_code()
        results.append(called(plus))
        return results

    seen = in_parity(run)
    assert len(set(seen.result)) == 1
    assert list_outcomes(seen, "cpp_code") == [("local", "miss"), ("memory", "hit"), ("local", "hit")]
    assert set(list_outcomes(seen, "py_code")) == {("memory", "miss")}, (
        "a module of an entry has constants, and is loaded anew"
    )
    cpp, py = rows(seen, "cpp_code"), rows(seen, "py_code")
    assert cpp["key"].nunique() == 1 and cpp["key"].iloc[0] in codecache.CppPythonBindingsCodeCache.cache
    assert py["key"].tolist() == [module.key for module in codecache.PyCodeCache.modules[-1:]] * len(py)
    assert cpp["taken_s"].notna().tolist() == [True, False, False] and cpp["taken_s"].iloc[0] > 0
    assert (py["taken_s"] > 0).all() and py["taken_s"].iloc[0] > cpp["taken_s"].iloc[0], "it waits for its kernels"
    assert set(cpp["function"]) == {"plus"} and set(cpp["compile_id"]) == {"0/0"}


def test_a_module_is_loaded_once():
    def run():
        key, path = codecache.PyCodeCache.write("answer = 42")
        return [codecache.PyCodeCache.load_by_key_path(key, path).answer for _ in range(3)]

    seen = in_parity(run)
    assert seen.result == [42] * 3
    assert list_outcomes(seen, "py_code") == [("memory", "miss"), ("memory", "hit"), ("memory", "hit")]
    assert rows(seen, "py_code")["taken_s"].notna().tolist() == [True, False, False]


def test_a_module_that_does_not_load():
    def run():
        with pytest.raises(ZeroDivisionError) as raised:
            codecache.PyCodeCache.load("1 / 0")
        return str(raised.value)

    seen = in_parity(run)
    [row] = rows(seen, "py_code").itertuples()
    assert (row.outcome, row.exception_type) == ("failed", "ZeroDivisionError")
    assert row.reason == f"ZeroDivisionError: {seen.result}"


#: The module that several threads load at once waits here until all of them execute it.
ALL_LOADING = threading.Barrier(4, timeout=300)


def test_several_threads_at_once():
    def run():
        code = f"import time\nfrom {__name__} import ALL_LOADING\nALL_LOADING.wait()\ntime.sleep(0.05)\nnested = 1"
        key, path = codecache.PyCodeCache.write(code)
        threads = [
            threading.Thread(
                target=codecache.PyCodeCache.load_by_key_path, args=(key, path), kwargs={"attrs": {"n": n}}
            )
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    seen = in_parity(run)
    assert list_outcomes(seen, "py_code") == [("memory", "miss")] * 4
    assert (rows(seen, "py_code")["taken_s"] >= 0.05).all()


# The caches of CUDA objects are one class; here it is given a C++ compiler


class Objects(codecache.CUTLASSCodeCache):
    cache = {}
    _SOURCE_CODE_SUFFIX = "cpp"
    _BACKEND = "CUDA"

    @classmethod
    def _use_re_build(cls):
        return False

    @classmethod
    def _source_code_extra(cls):
        return ""

    @classmethod
    def _compile_command(cls, sources, target, extension, extra=None):
        return f"{'g++ -shared' if extension == 'so' else 'g++ -fPIC -c'} {' '.join(sources)} -o {target}"


def test_an_object_is_built_once_found_in_memory_and_then_on_disk():
    def run():
        source = 'extern "C" int answer() { return 42; }'
        first = Objects.compile(source, "o")
        Objects.compile(source, "o")
        Objects.cache.clear()
        assert Objects.compile(source, "o") == first
        return first

    seen = in_parity(run)
    assert list_outcomes(seen, "cuda_code") == [("local", "miss"), ("memory", "hit"), ("local", "hit")]
    assert rows(seen, "cuda_code")["key"].unique().tolist() == [seen.result[1]]
    assert rows(seen, "cuda_code")["taken_s"].notna().tolist() == [True, False, False]


def test_a_library_is_built_from_its_object():
    seen = in_parity(lambda: Objects.compile('extern "C" int other() { return 0; }', "so"))
    assert list_outcomes(seen, "cuda_code") == [("local", "miss")] * 2, "the object, then the library"


def test_an_object_that_does_not_compile():
    def run():
        for _ in range(2):
            with pytest.raises(CUDACompileError):
                Objects.compile("no C++", "o")

    seen = in_parity(run)
    assert rows(seen, "cuda_code")["outcome"].tolist() == ["failed"] * 2
    assert rows(seen, "cuda_code")["exception_type"].unique().tolist() == ["CUDACompileError"]
