"""The triton bundle: kernels that an entry of FxGraphCache brings along."""

import shutil

import pytest
import torch
from torch._functorch import config as functorch
from torch._inductor import config
from torch._inductor.utils import clear_caches

from tests.live.parity.assertion import in_parity


@pytest.fixture(autouse=True)
def triton_cache(fresh_inductor_cache, monkeypatch):
    """The folder of triton's own files."""
    folder = fresh_inductor_cache / "triton"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    return folder


def called():
    torch._dynamo.reset()
    clear_caches()
    compiled = torch.compile(lambda x: (x.sin() + 1, x.cos().sum(dim=1)))
    return [y.sum().item() for y in compiled(torch.ones(64, 512, device="cuda"))]


def rows(seen):
    found = seen.session.cache_lookups
    return found[found["cache"] == "triton_bundle"]


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_kernels_are_saved_with_their_graph(triton_cache):
    seen = in_parity(called)
    [saved] = rows(seen).query("tier == 'local'").itertuples()
    assert (saved.outcome, saved.compile_id) == ("saved", "0/0")
    assert saved.kernels >= 1 and 0 < saved.files <= len(files_of(triton_cache))
    assert saved.bytes > 0 and seen.counters["inductor"]["triton_bundler_save_kernel"] == saved.files


def test_their_files_are_put_in_place_again(triton_cache):
    first = called()
    before = len(files_of(triton_cache))
    shutil.rmtree(triton_cache)
    seen = in_parity(called)
    assert seen.result == first
    [written] = rows(seen).query("outcome == 'written'").itertuples()
    assert written.files == len(files_of(triton_cache)) <= before
    assert seen.counters["inductor"]["triton_bundler_read_and_emit_kernel"] == written.files


def test_files_that_are_there_are_left_alone():
    called()
    seen = in_parity(called)
    [hit] = rows(seen).query("tier == 'local'").itertuples()
    assert (hit.outcome, hit.reason) == ("hit", "the files already exist") and hit.kernels >= 1


def test_kernels_that_are_launched_without_triton():
    if not config.use_static_triton_launcher:
        pytest.skip("static launchers are off here")
    called()
    seen = in_parity(called)
    memory = rows(seen).query("tier == 'memory'")
    assert set(memory["outcome"]) == {"hit"}
    assert memory["kernels"].sum() == seen.counters["inductor"]["triton_bundler_load_static_autotuner"] >= 1


def test_a_graph_that_an_entry_of_the_other_cache_holds():
    with functorch.patch(bundled_autograd_cache=True):
        first = called()
        seen = in_parity(called)
    assert seen.result == first
    [hit] = seen.session.cache_lookups.query("cache == 'aot_autograd'").itertuples()
    assert hit.outcome == "hit" and hit.counted_again["async_compile_cache_miss"] >= 1
    assert set(rows(seen)["outcome"]) == {"hit"}


def test_without_bundles_there_are_none():
    with config.patch(bundle_triton_into_fx_graph_cache=False):
        assert rows(in_parity(called)).empty
