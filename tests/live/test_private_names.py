"""Each private name of torch that is used, but for what happens on a GPU only: without it, a source says so."""

import pytest

import compilediag as cd
from tests import inside
from tests.live import programs
from tests.live.private_names import MISSING, list_names, put_instead

#: Their sources are off without a GPU, or wait until torch imports them.
LATE = ("torch._inductor.cudagraph_trees", "torch._inductor.runtime.triton_heuristics", "torch.cuda.graphs", "triton")
#: What is never looked up: an object's class is compared with the name, a method is called on the object that torch
#: hands over, or what is missing has a meaning.
NOT_LOOKED_UP = {
    "torch._dynamo.guards.DeletedGuardManagerWrapper",
    "torch._inductor.async_compile.AsyncCompile._ready_future",
    "torch._inductor.codecache.CppWrapperCodeCache",
    "torch._inductor.scheduler.Scheduler.should_partition",
    "torch._inductor.select_algorithm.TritonTemplateCaller",
}
#: What counting calls needs, which is on request.
FOR_CALLS = {
    "torch._C._dynamo.eval_frame.get_eval_frame_callback",
    "torch._C._dynamo.eval_frame.set_code_exec_strategy",
    "torch._dynamo.convert_frame.input_codes",
    "torch._dynamo.types.FrameAction",
    "torch._dynamo.types.FrameExecStrategy",
}
#: What timing the functions that Dynamo traces needs, which is on request.
FOR_TRACING = {
    "torch._dynamo.output_graph.OutputGraph.mark_bytecode_tracing_stop",
    "torch._dynamo.symbolic_convert.InstructionTranslatorBase.run",
}
#: What raising after the warm-up needs, which is on request.
FOR_RAISING = {"torch._dynamo.convert_frame.CatchErrorsWrapper.__call__"}


def list_states():
    """The states of all sources that would record now. Nothing is recorded."""
    detach = inside.attach()
    try:
        return [source.status() for source in inside.list_watching()]
    finally:
        detach()


@pytest.mark.parametrize("value", [MISSING, None], ids=["missing", "None"])
def test_without_a_name_that_is_used_a_source_is_unavailable_and_names_it(value):
    with cd.watch():  # Imports what the names are of.
        programs.numbers()
    names = [name for name in list_names() if name.required and not name.module.startswith(LATE)]
    unnamed, tried = set(), 0
    for name in names:
        with put_instead(name, value) as is_changed:
            states = list_states()
        tried += is_changed
        reasons = [state.reason or "" for state in states if state.status == "unavailable"]
        if is_changed and not any(name.path in reason for reason in reasons):
            unnamed.add(str(name))
        assert all(name.path in reason for reason in reasons), f"{name}: {reasons}"
    assert unnamed == NOT_LOOKED_UP | FOR_CALLS | FOR_TRACING | FOR_RAISING
    assert tried > 90 and {state.status for state in list_states()} == {"active", "off"}
