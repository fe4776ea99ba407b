"""Kernels of triton that the program launches itself: each compile is a row, and an incident after the warm-up."""

import pytest
import torch

import compilediag as cd
from compilediag.events import KernelCompile

pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def scale(tmp_path, monkeypatch):
    """Launches a kernel that nothing has compiled yet; its number of elements is a part of its key."""
    import triton
    import triton.language as tl

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    @triton.jit
    def scale_block(x, y, factor, N: tl.constexpr):
        at = tl.arange(0, N)
        tl.store(y + at, tl.load(x + at) * factor)

    def launch(size: int) -> torch.Tensor:
        x = torch.ones(size, device="cuda")
        y = torch.empty_like(x)
        scale_block[(1,)](x, y, 3.0, N=size)
        return y

    return launch


def test_a_kernel_that_is_compiled_after_the_warm_up_is_an_incident(scale):
    with cd.watch() as session:
        cd.step(1)
        assert scale(64).sum() == 192
        session.end_warmup()
        cd.step(2)
        scale(64)
        assert scale(128).sum() == 384
    rows = [row for row in session.data.rows(KernelCompile) if row.language == "triton"]
    assert [(row.name, row.outcome, row.step) for row in rows] == [("scale_block", "compiled", step) for step in (1, 2)]
    assert all(row.duration_s > 0 and row.compile_key is None for row in rows)
    (incident,) = session.incidents.to_dict("records")
    assert (incident["kind"], incident["function"], incident["step"]) == ("triton_jit", "scale_block", 2)
    assert incident["seconds"] == rows[1].duration_s


def test_nothing_of_ours_stays(scale):
    from triton.runtime.jit import JITFunction

    before = JITFunction._do_compile
    with cd.watch():
        scale(64)
        assert JITFunction._do_compile is not before
    assert JITFunction._do_compile is before
