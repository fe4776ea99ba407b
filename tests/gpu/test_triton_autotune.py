"""Tuning of a user's own kernels by `triton.autotune`, outside of torch.compile."""

import pytest
import torch

import compilediag as cd
from tests.live.entered import entered
from tests.live.parity.assertion import in_parity

pytest.importorskip("triton")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """The kernels of `triton_kernels`, of which none was tuned, here or in a file."""
    from tests.gpu import triton_kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for name in ("add_one", "add_two", "square_tile", "small_blocks_only", "small_blocks_assemble"):
        getattr(triton_kernels, name).cache.clear()
    return triton_kernels


def ones(n=1 << 16):
    return torch.ones(n, device="cuda")


def rows(seen):
    return seen.session.autotune


def lookups(seen):
    return list(seen.session.cache_lookups["outcome"])


def test_each_configuration_with_its_time_and_the_one_that_was_taken(kernels):
    seen = in_parity(lambda: kernels.launch(kernels.add_one, ones()))
    assert torch.equal(seen.result, ones() + 1)
    timed = rows(seen)
    assert set(timed["tuner"]) == {"triton_autotune"} and set(timed["op"]) == {"add_one"}
    expected = {config.kwargs["BLOCK"]: times[0] for config, times in kernels.add_one.configs_timings.items()}
    got = dict(zip(timed["parameters"].map(lambda p: p["BLOCK"]), timed["time_ms"], strict=True))
    assert got == pytest.approx(expected)
    winner = timed[timed["is_winner"]]["parameters"].iloc[0]
    assert winner["BLOCK"] == kernels.add_one.best_config.kwargs["BLOCK"] and winner["num_warps"] in (4, 8)
    assert timed["inputs"].iloc[0] == ["float32[65536] strides [1] cuda:0"] * 2 and set(timed["device"]) == {"cuda:0"}
    assert timed["benchmark_s"].gt(0).all() and timed["compile_id"].isna().all() and timed["from_cache"].isna().all()


def test_a_launch_that_knows_its_configuration_enters_nothing_of_ours(kernels):
    with cd.watch() as session:
        kernels.launch(kernels.add_one, ones())
        assert not entered(lambda: kernels.launch(kernels.add_one, ones()))
        kernels.launch(kernels.add_one, ones(1 << 10))
    assert session.autotune["run_id"].nunique() == 2


def test_a_configuration_without_room_says_how_much_it_needs(kernels):
    x = torch.randn(512, 512, device="cuda")
    seen = in_parity(lambda: kernels.launch_tile(x))
    failed = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert list(failed["parameters"].map(lambda p: p["TILE"])) == [256]
    assert failed["fail_reason"].iloc[0].startswith("OutOfResources: out of resource: shared memory, Required: ")
    assert failed["time_ms"].isna().all() and rows(seen)["is_winner"].sum() == 1 and len(rows(seen)) == 3


def test_a_configuration_that_does_not_compile_says_so(kernels):
    seen = in_parity(lambda: kernels.launch(kernels.small_blocks_only, ones()))
    assert torch.equal(seen.result, ones() + 1)
    failed = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert len(failed) == 1 and failed["parameters"].iloc[0]["BLOCK"] == 1024
    assert "blocks of 1024 are not for us" in failed["fail_reason"].iloc[0]


def test_a_configuration_that_does_not_assemble_says_so(kernels):
    seen = in_parity(lambda: kernels.launch(kernels.small_blocks_assemble, ones()))
    assert torch.equal(seen.result, ones() * 2)
    failed = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert len(failed) == 1 and failed["parameters"].iloc[0]["BLOCK"] == 1024
    assert failed["fail_reason"].iloc[0].startswith("PTXASError: PTXAS error")


def test_times_from_the_file_of_an_earlier_process(kernels):
    first = in_parity(lambda: kernels.launch(kernels.add_two, ones()))
    kernels.add_two.cache.clear()
    again = in_parity(lambda: kernels.launch(kernels.add_two, ones()))
    assert torch.equal(again.result, ones() + 2)
    assert (lookups(first), lookups(again)) == (["miss"], ["hit"])
    assert list(rows(again)["time_ms"]) == list(rows(first)["time_ms"])
    assert list(rows(again)["is_winner"]) == list(rows(first)["is_winner"])
    assert set(rows(again)["from_cache"]) == {"local"} and rows(again)["benchmark_s"].isna().all()


def test_what_a_users_hook_raises_is_the_users(kernels, monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("not today")

    monkeypatch.setattr(kernels.add_one, "pre_hook", refuse)
    with pytest.raises(RuntimeError, match="^not today$"), cd.watch() as session:
        kernels.launch(kernels.add_one, ones())
    assert list(session.autotune["fail_reason"]) == ["RuntimeError: not today"]
    assert not session.autotune["is_winner"].any()
