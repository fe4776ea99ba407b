"""Plotly figures: what they draw is what the tables and the runs say, and of nothing they say so."""

import json
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.diagnosis.rules.cudagraphs import group_by_function
from compilediag.errors import CompilediagError
from compilediag.events import TracedFunction
from compilediag.views.figures import ACTIONS, FIGURES, GRAPH_CALLS, KINDS, OUTCOMES, find_axis_end
from tests.unit.session_builder import saved
from tests.unit.tables_builder import compiled, graph, lookup, sizes, tuning

RUN = {"mm": 0.102, "triton_mm_1": 0.1, "triton_mm_2": 0.125, "triton_mm_3": "no room"}
ALL = [
    compiled(),
    *sizes("4", "6"),
    *tuning("1", RUN, parameters={"BLOCK_M": 64}),
    *tuning("2", {"bmm": 0.5, "triton_bmm": 0.75}, op="bmm"),
    *tuning("3", {"triton_a": 0.03, "triton_b": 0.09}, op="_attn_fwd"),
    lookup("miss"), lookup("hit"), lookup("hit", tier="remote"), lookup("saved"),
    graph("warmup"), graph("record", 2, duration_ms=3.0), graph("rerecord", 4, mismatch="StaticInputIdxMismatch"),
    graph("replays", 5, count=97), graph("skip", 6, function="g", reason="mutated inputs (1 instances)"),
    graph("skip", 7, function="h", reason="mutated inputs (1 instances)"), graph("limit", 8, reason="too often"),
    TracedFunction(time_ns=1, function="forward", stack="f", count=1, own_s=1.0, total_s=1.0),
]  # fmt: skip


@pytest.fixture
def session(tmp_path):
    return saved(tmp_path, *ALL)


def traces(figure):
    return {trace.name: trace for trace in figure.data}


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_draws_something_and_none_fails_on_nothing(session, tmp_path, name):
    if name != "phases":
        assert sum(len(trace.y) for trace in session.figure(name).data) > 0
    (tmp_path / "empty").mkdir()
    empty = saved(tmp_path / "empty").figure(name)
    assert [a.text for a in empty.layout.annotations] == ["no data in this session"]
    assert empty.to_json()
    assert "bdata" not in session.figure(name).to_json(), "numbers are written as numbers"


def test_a_figure_that_is_not_there_names_those_that_are(session):
    with pytest.raises(CompilediagError, match="autotune, autotune_margins, autotune_payoff, caches"):
        session.figure("nothing")


def test_choices_stand_by_their_time_against_the_winners(session):
    found = traces(session.figure("autotune"))
    assert set(found) == {"extern", "triton"}
    assert list(found["extern"].x) == pytest.approx([1.02, 1.0])
    assert list(found["triton"].x) == pytest.approx([1.0, 1.25, 1.5, 1.0, 3.0])
    assert found["triton"].customdata[0] == ["triton_mm_1", "0.1 ms, 0 % longer than the winner", "BLOCK_M=64"]


def test_margins_are_those_of_the_runs(session):
    found = traces(session.figure("autotune_margins"))
    assert list(found["vs. runner-up"].x) == pytest.approx([200.0, 50.0, 2.0])
    extern = found["vs. extern kernel"].x
    assert list(extern) == [None, 0.0, pytest.approx(2.0)]


def test_what_tuning_took_stands_against_what_it_saves(session):
    found = traces(session.figure("autotune_payoff"))
    assert list(found["pays off"].x) == [0.8] and list(found["pays off"].y) == pytest.approx([0.002])
    assert found["pays off"].customdata[0][1] == "pays off after 400,001 calls"
    never = found["never pays off: the extern kernel won"]
    assert never.customdata[0][1] == "never pays off" and never.y[0] < 0.002
    line = found["pays off after 1,000,000 calls"]
    assert list(line.y) == pytest.approx([0.8 * 1e3 / 1e6] * 2), "0.8 s in so many calls"


def test_cache_outcomes_are_counted_by_cache_and_tier(session):
    found = traces(session.figure("caches"))
    assert list(found) == ["hit", "miss", "stored"]
    assert list(found["hit"].x) == ["FX graph", "FX graph (remote)"]
    assert list(found["hit"].y) == [1, 1]


def test_actions_are_counted_by_function(session):
    found = traces(session.figure("cudagraphs"))
    assert set(found) == {"warm-up", "captured", "re-recorded", "skipped", "re-record limit reached"}
    assert dict(zip(found["skipped"].y, found["skipped"].x, strict=True)) == {"g:30": 1, "h:30": 1}


def test_coverage_is_the_share_of_calls_that_a_replay_answered(session):
    found = traces(session.figure("cudagraphs_coverage"))
    assert found["replayed"].y == ("forward:30", "g:30", "h:30")
    assert list(found["replayed"].x) == [97.0, 0.0, 0.0]
    assert list(found["captured"].x) == [3.0, 0.0, 0.0]
    assert list(found["no graph"].x) == [0.0, 100.0, 100.0], "g and h were skipped"
    assert list(found["no graph"].customdata) == ["0 calls, 0 %", "calls not counted", "calls not counted"]


def test_the_groups_of_functions_have_the_same_numbers(session, tmp_path):
    forward, *others = (function.as_dict() for function in group_by_function(session.data))
    assert [forward[name] for name in ("function", "captured", "rerecorded", "warmups", "skipped", "replays")] == [
        *("forward", 2, 1, 1, 1, 97)
    ]
    assert [other["replays"] for other in others] == [None, None]
    shares = [function.coverage for function in group_by_function(session.data)]
    assert shares == [0.97, 0.0, 0.0], "what was skipped has no replays, counted or not"
    (tmp_path / "empty").mkdir()
    assert group_by_function(saved(tmp_path / "empty").data) == []


def test_functions_with_one_reason_share_a_bar(session):
    (bar,) = session.figure("cudagraphs_skips").data
    assert dict(zip(bar.y, bar.x, strict=True)) == {"too often": 1, "mutated inputs (1 instances)": 2}
    assert "g:30, h:30" in bar.text


def test_captures_stand_over_time_by_what_broke(session):
    found = traces(session.figure("cudagraphs_captures"))
    assert list(found["captured"].x) == [0.0]
    assert list(found["re-recorded"].x) == [2.0]
    assert list(found["re-recorded"].y) == ["forward:30: a static input is at a new address"]


RECORDED = Path(__file__).resolve().parents[2] / "notebooks" / "data"


def test_a_kernel_that_torch_has_not_named_is_called_unnamed():
    recorded = cd.load(RECORDED / "autotune.cdiag")
    assert "unnamed kernel [bfloat16[2048, 2048]]" in recorded.figure("autotune_margins").data[0].y
    assert "Placeholder" not in recorded.summary() + recorded.figure("autotune").to_json()


def compute_contrast(color, other):
    def luminance(hexadecimal):
        parts = [int(hexadecimal[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", FIGURES)
def test_colors_can_be_read_on_light_and_dark_backgrounds(session, name):
    drawn = json.loads(session.figure(name).to_json())
    look = drawn["layout"]["template"]["layout"]
    assert look["paper_bgcolor"] == look["plot_bgcolor"] == "rgba(0, 0, 0, 0)"
    parts = [part for trace in drawn["data"] for part in (trace.get("marker", {}), trace.get("line", {}))]
    colors = {part["color"] for part in parts if "color" in part}
    assert all(compute_contrast(color, back) >= 3 for color in colors for back in ("#ffffff", "#111111"))
    text = look["font"]["color"]
    assert all(compute_contrast(text, back) > 4.2 for back in ("#ffffff", "#111111"))


def test_every_color_of_an_outcome_and_an_action_is_readable():
    colors = [*OUTCOMES.values(), *(color for _, color in (*ACTIONS.values(), *GRAPH_CALLS.values())), *KINDS.values()]
    assert min(compute_contrast(color, back) for color in colors for back in ("#ffffff", "#111111")) >= 3


def test_counts_have_ticks_at_whole_numbers(session, tmp_path):
    few = [session.figure("caches").layout.yaxis]
    few += [session.figure(name).layout.xaxis for name in ("cudagraphs", "cudagraphs_skips")]
    assert [(axis.dtick, axis.tickformat) for axis in few] == [(1, ",d")] * 3
    (tmp_path / "many").mkdir()
    many = saved(tmp_path / "many", *(lookup("hit") for _ in range(40))).figure("caches").layout.yaxis
    assert (many.dtick, many.tickformat) == (None, ",d")


def test_one_outlier_does_not_hide_the_other_margins(tmp_path):
    runs = {"1": 0.11, "2": 0.13, "3": 0.15, "4": 5.0}
    events = [event for run, other in runs.items() for event in tuning(run, {"mm": other, "triton_mm_1": 0.1})]
    figure = saved(tmp_path, compiled(), *events).figure("autotune_margins")
    assert figure.layout.xaxis.range == pytest.approx((0, 1.15 * 50))
    assert [(note.text, note.y) for note in figure.layout.annotations] == [("4,900 % \u25b8", figure.data[0].y[0])]


def test_close_margins_share_one_whole_axis(session):
    figure = session.figure("autotune_margins")
    assert find_axis_end([10, 12, 29]) is None and find_axis_end([]) is None and find_axis_end([None, 5.0]) is None
    assert find_axis_end([900, 800, 10, 9, 8, 7, 6, 5, 4, 3]) == pytest.approx(11.5), "both outliers"
    assert figure.layout.xaxis.ticksuffix == " %" and "percent" not in figure.layout.xaxis.title.text
