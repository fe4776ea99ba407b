"""Advice about autotuning, followed: a program has a finding, the changed one has none and computes the same."""

import pytest
import torch

import compilediag as cd
from tests.gpu.tuning import GOOD, TOO_BIG, tuned

RULES = ("tuning_", "choices_")
#: Configurations that no device has room for.
ALL_TOO_BIG = (TOO_BIG, (256, 128, 128, 5, 8), (128, 256, 128, 5, 8))
#: One compile after the other in this process, and nothing from a cache of whole graphs.
ALONE = {"compile_threads": 1, "fx_graph_cache": False}


@pytest.fixture(autouse=True)
def empty_caches(fresh_inductor_cache):
    """Each test tunes for itself."""


def tune(sizes=GOOD, times=1, **options):
    """What a product is after it was tuned `times` times, or the error; and the findings on the tuning."""
    torch.manual_seed(0)
    x, y = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    with cd.watch() as session:
        for _ in range(times):
            torch._dynamo.reset()
            try:
                result = tuned(lambda x, y: x @ y, x, y, sizes=sizes, **ALONE | options)
            except Exception as error:
                result = error
    found = {finding.rule: finding for finding in session.findings() if finding.rule.startswith(RULES)}
    return result, found, x @ y


def check(result, expected):
    torch.testing.assert_close(result, expected, atol=0.2, rtol=0.1)


def test_what_tuning_does_not_make_faster_is_left_to_torchs_own_kernels():
    small = ((16, 16, 16, 1, 1), (16, 32, 16, 1, 1), (32, 16, 16, 1, 1), (16, 16, 32, 1, 1), (32, 32, 16, 1, 1))
    result, found, expected = tune(small)
    check(result, expected)
    assert 'max_autotune_gemm_backends = "ATEN"' in found["tuning_small_gain"].suggestion
    result, left, expected = tune(small, max_autotune_gemm_backends="ATEN")
    check(result, expected)
    assert left == {}


def test_what_was_tuned_is_cached():
    result, found, expected = tune(times=2, autotune_local_cache=False)
    check(result, expected)
    assert "torch._inductor.config.autotune_local_cache" in found["tuning_repeated"].suggestion
    result, left, expected = tune(times=2)
    check(result, expected)
    assert "tuning_repeated" not in left


def test_without_a_kernel_of_triton_torchs_own_is_taken():
    error, found, _ = tune(ALL_TOO_BIG, max_autotune_gemm_backends="TRITON")
    assert "NoValidChoicesError" in str(error)
    assert 'max_autotune_gemm_backends = "ATEN,TRITON"' in found["tuning_all_failed"].suggestion
    result, left, expected = tune(ALL_TOO_BIG, max_autotune_gemm_backends="ATEN,TRITON")
    check(result, expected)
    assert "tuning_all_failed" not in left


def test_choices_without_room_need_no_change():
    result, found, expected = tune((*GOOD, *ALL_TOO_BIG))
    check(result, expected)
    assert found["choices_failed"].suggestion.startswith("There is nothing to do")
