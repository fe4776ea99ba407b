"""What Dynamo traced, summed over compiles: the user's functions, the cost in the plan, the flame graph, speedscope."""

import json

import pytest

from compilediag.diagnosis.trace_tree import LIBRARIES, TORCH, YOURS, build_trace_tree, sum_user_functions
from compilediag.errors import CompilediagError
from compilediag.events import SourceStatus, TracedFunction
from tests.unit.session_builder import stored
from tests.unit.tables_builder import SECOND, compiled, tables

FILE = "/home/ada/model.py"
LINEAR = "/usr/lib/python3/site-packages/torch/nn/modules/linear.py"
EINOPS = "/usr/lib/python3/site-packages/einops/einops.py"
ACTIVE = SourceStatus(time_ns=1, name="tracing", status="active")


def traced(stack, function, own_s, total_s, caller=None, count=1, file=FILE, line=30, **more):
    return TracedFunction(
        time_ns=SECOND, compile_id="0/0", compile_key="k", function=function, file=file, line=line, stack=stack,
        caller=caller, call_line=None if caller is None else 40, count=count, own_s=own_s, total_s=total_s, **more,
    )  # fmt: skip


#: 20 s: forward 2 s, block 3 s with einops, attend 15 s with torch.
MODEL = [
    traced("f", "forward", 2.0, 20.0),
    traced("b", "block", 1.0, 18.0, "f", 12, line=50),
    traced("e", "rearrange", 2.0, 2.0, "b", 24, EINOPS, 9),
    traced("a", "attend", 5.0, 15.0, "b", 48, line=31),
    traced("l", "forward", 10.0, 10.0, "a", 96, LINEAR, 130),
]


def find_cost(session):
    return next((cost for cost in session.plan().costs if cost.kind == "tracing"), None)


def test_the_tree_sums_compiles_and_keeps_callers():
    (root,) = build_trace_tree(tables(*MODEL, *MODEL))
    (block,) = root.calls
    assert (root.total_s, root.count, block.count) == (40.0, 2, 24)
    assert [(each.place[0], each.owner) for each in block.calls] == [("attend", YOURS), ("rearrange", LIBRARIES)]
    assert [each.owner for each in block.calls[0].calls] == [TORCH]


def test_a_function_has_its_own_time_and_that_of_libraries_but_not_that_of_other_functions_of_the_user():
    found = [(each.place[0], each.count, each.seconds) for each in sum_user_functions(tables(*MODEL))]
    assert found == [("attend", 48, 15.0), ("block", 12, 3.0), ("forward", 1, 2.0)]


def test_the_plan_names_the_function_that_is_traced_again_and_again(tmp_path):
    cost = find_cost(stored(tmp_path, compiled(duration_s=30.0), *MODEL, ACTIVE))
    assert (cost.place, cost.seconds) == (("attend", FILE, 31), 15.0)
    assert "attend (model.py:31) is inlined 48 times and takes 75 % of tracing: 15.0 s of 20.0 s" in cost.what
    assert [line.partition(",")[0] for line in cost.details] == [
        "attend (model.py:31)",
        "block (model.py:50)",
        "forward (model.py:30)",
    ]
    assert cost.headline == "", "the plan does not begin with it: what it saves was not tried"


@pytest.mark.parametrize(("version", "is_said"), [("2.11.0", False), ("2.13.0+cpu", True), ("2.15.0", True)])
def test_a_nested_region_is_advised_where_torch_traces_it_once(tmp_path, version, is_said):
    session = stored(tmp_path, compiled(duration_s=30.0), *MODEL, ACTIVE, torch_version=version)
    assert ("nested_compile_region" in find_cost(session).advice) is is_said


@pytest.mark.parametrize(
    "rows",
    [
        [],
        MODEL[:1],  # Nothing is inlined.
        [traced("f", "forward", 2.0, 20.0), traced("a", "attend", 18.0, 18.0, "f", 1)],  # Once is no "again".
        [traced("f", "forward", 0.02, 0.2), traced("a", "attend", 0.18, 0.18, "f", 48)],  # Less than a second.
        [traced("f", "forward", 90.0, 99.0), traced("a", "attend", 9.0, 9.0, "f", 48)],  # A tenth.
        [traced("f", "forward", 2.0, 20.0), traced("l", "forward", 18.0, 18.0, "f", 48, LINEAR)],  # Not the user's.
    ],
)
def test_what_is_cheap_or_not_the_users_is_no_cost(tmp_path, rows):
    assert find_cost(stored(tmp_path, compiled(duration_s=200.0), *rows, ACTIVE)) is None


def test_the_body_of_an_unrolled_loop_is_reported_once(tmp_path):
    loop = {"file": FILE, "line": 41, "function": "forward", "code": "for x in xs:", "count": 48, "ops": 10}
    whole = compiled(
        duration_s=30.0, trigger="dynamo", loop={**loop, "graph_ops": 490, "body": "attend", "module": None}
    )
    kinds = {cost.kind: cost for cost in stored(tmp_path, whole, *MODEL, ACTIVE).plan().costs}
    assert "attend" not in str(kinds.get("tracing")) and kinds["unrolled_loop"].seconds > 20


def test_the_flame_graph_puts_each_function_within_its_caller(tmp_path):
    figure = stored(tmp_path, *MODEL, ACTIVE).figure("tracing")
    bars = {}
    for trace in figure.data:
        for hover, begin, width, row in zip(trace.customdata, trace.base, trace.x, trace.y, strict=True):
            bars[hover[0]] = (trace.name, begin, begin + width, row)
    assert bars == {
        "forward (model.py:30)": (YOURS, 0.0, 20.0, 0),
        "block (model.py:50)": (YOURS, 0.0, 18.0, 1),
        "attend (model.py:31)": (YOURS, 0.0, 15.0, 2),
        "forward (linear.py:130)": (TORCH, 0.0, 10.0, 3),
        "rearrange (einops.py:9)": (LIBRARIES, 15.0, 17.0, 2),
    }


def test_what_no_bar_could_show_is_left_out(tmp_path):
    rows = [traced("f", "forward", 10.0, 10.0), traced("a", "attend", 0.001, 0.001, "f")]
    (trace,) = stored(tmp_path, *rows, ACTIVE).figure("tracing").data
    assert len(trace.x) == 1


def test_speedscope_gets_the_seconds_of_each_stack(tmp_path):
    session = stored(tmp_path, *MODEL, ACTIVE)
    whole = json.loads(session.export(tmp_path / "x.json", format="speedscope").read_text())
    names = [frame["name"] for frame in whole["shared"]["frames"]]
    (profile,) = whole["profiles"]
    stacks = ["/".join(names[at] for at in sample) for sample in profile["samples"]]
    assert dict(zip(stacks, profile["weights"], strict=True)) == {
        "forward": 2.0,
        "forward/block": 1.0,
        "forward/block/attend": 5.0,
        "forward/block/attend/forward": 10.0,
        "forward/block/rearrange": 2.0,
    }
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(CompilediagError, match="already exists and is not a profile"):
        session.export(tmp_path / "mine.json", format="speedscope")


def test_a_damaged_file_ends_the_walk(tmp_path):
    rows = [
        traced("x", "a", 1.0, 1.0, "y"), traced("y", "b", 1.0, 1.0, "x"),  # Each other's callers.
        traced("z", "c", float("nan"), None, "gone"), traced(None, None, 1.0, 1.0), traced("z", "c", 1.0, 2.0),
    ]  # fmt: skip
    session = stored(tmp_path, *rows, ACTIVE)
    assert {each.place[0] for each in build_trace_tree(session.data)} == {"c", None}
    assert session.plan() is not None and session.figure("tracing") is not None
    assert session.export(tmp_path / "x.json", format="speedscope").exists()
