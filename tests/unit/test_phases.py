"""Phases are attributed to what torch does in them."""

import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.events import Phase
from tests.inside import PHASE_KINDS, find_phase_kind

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = [
    *sorted((ROOT / "notebooks" / "data").glob("*.cdiag")),
    *sorted((ROOT / "tests" / "golden").glob("*.log.gz")),
]
#: Phases of any part of the compiler: they belong to the phase that contains them.
CONTAINED = {
    *("GraphPickler.loads", "debug_insert_nops", "gc", "invoke_subgraph_fake_tensor", "invoke_subgraph_proxy_tensor"),
    *("invoke_subgraph_reuse_hash_fn", "invoke_subgraph_reuse_lookup", "invoke_subgraph_reuse_stamp_out"),
    *("invoke_subgraph_trace", "vllm_log_compile_start_torch_trace_only", "vllm_print_readable"),
}
#: Calls that time a phase: `dynamo_timed("code_gen")`, `dynamo_timed("_compile", phase_name="entire_frame_compile")`.
TIMED = re.compile(r'dynamo_timed\(\s*(?:key=)?f?"([^"]+)"(?:,\s*phase_name="(\w+)")?')


def read_phases(path):
    session = cd.ingest(path) if path.suffix == ".gz" else cd.load(path)
    return session.data.rows(Phase)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name)
def test_each_phase_of_a_recorded_session_has_a_kind_or_belongs_to_another(path):
    unknown = {phase.name for phase in read_phases(path) if find_phase_kind(phase.name) is None}
    assert unknown <= CONTAINED


def test_no_tuning_is_taken_for_another_kind():
    seconds = Counter()
    for path in SESSIONS:
        for phase in read_phases(path):
            if re.search("tuning|precompiling|benchmark|do_bench", phase.name):
                seconds[find_phase_kind(phase.name)] += phase.duration_s
    assert set(seconds) == {"tuning"} and seconds["tuning"] > 100


def test_the_figure_colors_phases_by_kind():
    traces = cd.load(ROOT / "notebooks" / "data" / "autotune.cdiag").figure("phases").data
    seconds = {trace.name: sum(trace.x) for trace in traces}
    assert seconds["tuning"] > 0.9 * sum(seconds.values())
    assert {*seconds} == {"Dynamo", "AOTAutograd", "Inductor", "code generation", "tuning"}


def test_every_phase_that_the_installed_torch_times_has_a_kind():
    torch = Path(find_spec("torch").submodule_search_locations[0])
    names = set()
    for folder in ("_dynamo", "_inductor", "_functorch", "_higher_order_ops", "fx"):
        for path in (torch / folder).rglob("*.py"):
            if path.name != "utils.py":  # whose docstrings have examples
                names.update(phase or key for key, phase in TIMED.findall(path.read_text(encoding="utf-8")))
    names = {re.sub(r"\{\w+(\.\w+)*\}", "1", name) for name in names}
    assert len(names) > 50
    assert {name for name in names if find_phase_kind(name) is None} <= CONTAINED
    assert {find_phase_kind(name) for name in names} >= {*PHASE_KINDS}
