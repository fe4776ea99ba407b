"""Limits of torch 2.15 after which CUDA graphs go on in another way: what torch's own code does about them, recorded.

No graph is captured here: these parts of torch run without a GPU. tests/gpu has what needs one.
"""

from __future__ import annotations

import collections
import types

import pytest

torch = pytest.importorskip("torch")

import compilediag as cd  # noqa: E402

pytestmark = [
    pytest.mark.since_torch("2.15", "these limits are new"),
    pytest.mark.skipif(not torch.backends.cuda.is_built(), reason="this torch was built without CUDA"),
]


def make_manager(trees, action):
    """A manager of trees without its device: what counts the addresses of inputs needs none."""
    manager = object.__new__(trees.CUDAGraphTreeManager)
    manager.device_index = 0
    manager.cudagraph_managed_input_rerecord, manager.demoted_cudagraph_managed_idxs = {}, {}
    manager.skip_cudagraph = collections.defaultdict(dict)
    function = types.SimpleNamespace(
        model=len,
        placeholders=[types.SimpleNamespace(name=f"primals_{n}") for n in (1, 2, 3)],
        cudagraph_managed_input_rerecord_action=action,
        cudagraph_managed_input_rerecord_limit=5,
    )
    manager.ids_to_funcs, manager.id_to_compile_id = {trees.FunctionID(0): function}, {}
    manager.id_to_mode = {trees.FunctionID(0): trees.CompilationMode.INFERENCE}
    manager.active_warmup_function, manager.warmed_up_functions = None, set()
    return manager


@pytest.mark.parametrize("action", ["copy", "skip"])
def test_an_input_whose_address_keeps_changing_is_copied_from_then_on(action):
    from torch._inductor import cudagraph_trees as trees
    from torch.utils._ordered_set import OrderedSet

    manager = make_manager(trees, action)
    with cd.watch() as session:
        for _ in range(6):
            manager._update_cudagraph_managed_input_rerecord(None, trees.FunctionID(0), OrderedSet([1]))
    found = session.cudagraphs.to_dict("records")
    if action == "skip":  # torch announces that itself.
        assert not found
        return
    [row] = found
    assert (row["action"], row["input"], row["count"], row["mode"]) == (
        "demoted",
        "primals_2 (input 1)",
        5,
        "inference",
    )
    assert "cudagraph_managed_input_rerecord_limit" in row["reason"]


def test_a_new_size_beyond_the_limit_of_sizes_is_reported_once():
    from torch._inductor import cudagraph_trees as trees

    options = {"is_backward": False, "is_inference": True, "device_index": 0, "compile_id": "7/3"}
    with cd.watch() as session, torch._inductor.config.patch({"triton.cudagraph_dynamic_shape_rerecord_limit": 0}):
        call = trees.cudagraphify_impl(lambda inputs: list(inputs), [4], (), **options)
        assert [call([n]) for n in (4, 5, 6)] == [[4], [5], [6]]
    [row] = session.cudagraphs.to_dict("records")
    assert (row["action"], row["mode"], row["compile_id"]) == ("limit", "inference", "7/3")
    assert row["reason"].startswith("cudagraph_dynamic_shape_rerecord_limit=0; ")
    assert [f.rule for f in session.findings()] == ["cudagraph_limit"]


def test_a_request_for_another_warm_up_outside_of_one_changes_nothing():
    from torch._inductor import cudagraph_trees as trees

    manager = make_manager(trees, "copy")
    with cd.watch() as session:
        torch.compiler.cudagraph_mark_warmup_incomplete()
        manager.mark_warmup_incomplete()
    assert session.cudagraphs.empty
