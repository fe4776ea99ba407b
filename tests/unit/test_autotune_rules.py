"""Runs of tuners: winners, margins, seconds, break-even; and what the rules have to say about them."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.diagnosis.rules.autotune import find_tuning_runs
from tests.unit.tables_builder import FORWARD, tables, tuning

NO_ROOM = "out of resource: shared memory, Required: 294912, Hardware limit: 232448"


def run(*events):
    (found,) = find_tuning_runs(tables(*events))
    return found


def found(rule, *events):
    return [f for f in diagnose(tables(*events)) if f.rule == rule]


def test_a_run_is_described_by_its_winner_and_what_came_next():
    got = run(*tuning("1", {"mm": 0.102, "triton_mm_1": 0.1, "triton_mm_2": 0.125, "triton_mm_3": NO_ROOM}))
    assert (got.winner, got.winner_kind, got.winner_ms) == ("triton_mm_1", "triton", 0.1)
    assert (got.next_choice, got.next_ms, got.extern_ms) == ("mm", 0.102, 0.102)
    assert (got.choices, got.timed, got.failed) == (4, 3, 1)
    assert got.margin_next == got.margin_extern == pytest.approx(0.02)
    assert got.saved_ms == pytest.approx(0.002)
    assert (got.benchmark_s, got.precompile_s, got.spent_s) == (0.5, 0.3, 0.8)
    assert got.fail_reasons == ((NO_ROOM, 1),)
    assert got.label == "mm [bf16[64, 64], bf16[64, 64]]"


def test_an_extern_winner_saves_nothing_and_never_pays():
    got = run(*tuning("1", {"mm": 0.1, "triton_mm_1": 0.15}))
    assert (got.margin_extern, got.saved_ms, got.break_even) == (0.0, 0.0, None)
    assert (got.next_choice, got.margin_next) == ("triton_mm_1", pytest.approx(0.5))


def test_without_an_extern_kernel_there_is_nothing_to_hold_it_against():
    got = run(*tuning("1", {"triton_a": 0.1, "triton_b": 0.2}))
    assert (got.extern_ms, got.margin_extern, got.saved_ms, got.break_even) == (None, None, None, None)
    assert got.margin_next == pytest.approx(1.0)


@pytest.mark.parametrize("aside", ["fusion", "profile"])
def test_times_of_something_else_than_the_op_decide_nothing(aside):
    timed = tuning("1", {"mm": 0.3, "triton_mm_1": 0.2})
    other = tuning("1", {"triton_mm_1": 0.9}, stage=aside)
    got = run(*timed, *other)
    assert (got.winner, got.winner_ms, got.next_ms, got.timed) == ("triton_mm_1", 0.2, 0.3, 2)


def test_a_winner_that_nobody_named_is_not_guessed():
    rows = tuning("1", {"mm": 0.1, "triton_mm_1": 0.2}, winner="somebody else")
    got = run(*rows)
    assert (got.winner, got.winner_ms, got.next_choice, got.margin_next) == (None, None, None, None)
    assert (got.timed, got.extern_ms) == (2, 0.1)


def test_times_of_a_later_stage_replace_those_of_an_earlier_one():
    early = tuning("1", {"mm": 0.3, "triton_mm_1": 0.1, "triton_mm_2": 0.9}, stage="prescreen", winner="-")
    late = tuning("1", {"mm": 0.2, "triton_mm_1": 0.25}, benchmark_s=0.25)
    got = run(*early, *late)
    assert (got.winner, got.winner_ms, got.next_ms) == ("mm", 0.2, 0.25)
    assert (got.choices, got.timed, got.order) == (3, 2, (4, 5))
    assert got.stages == ("benchmark", "prescreen")
    assert got.benchmark_s == pytest.approx(0.75), "each stage took its time"
    assert got.precompile_s == 0.3


def test_a_descent_goes_on_from_the_best_and_may_end_where_it_began():
    first = tuning("1", {"triton_a": 0.2, "triton_b": 0.1}, benchmark_s=0.01)
    then = tuning("1", {"triton_c": 0.15, "triton_a": 0.12}, stage="coordinate_descent", benchmark_s=1.0, winner="-")
    end = tuning("1", {"triton_b": 0.1}, stage="cached", benchmark_s=1.0)
    got = run(*first, *then, *end)
    assert (got.winner, got.winner_ms, got.next_choice, got.next_ms) == ("triton_b", 0.1, "triton_a", 0.12)
    assert (got.choices, got.timed, got.order) == (3, 3, (5, 4, 3))
    assert got.benchmark_s == pytest.approx(1.01), "what was remembered was not timed again"


def test_times_with_what_was_fused_are_not_held_against_those_without():
    alone = tuning("1", {"mm": 0.1, "triton_mm_1": 0.12}, winner="triton_mm_1")
    fused = tuning("1", {"triton_mm_1": 0.13}, stage="fusion", benchmark_s=None)
    got = run(*alone, *fused)
    assert (got.winner, got.winner_ms, got.extern_ms) == ("triton_mm_1", 0.12, 0.1)
    assert got.margin_extern == pytest.approx(-1 / 6), "by itself the extern kernel was faster"


def test_a_label_has_types_and_sizes_and_no_more():
    got = run(*tuning("1", inputs=["float32[4, 8] strides [8, 1] cuda:0", "bfloat16[8, 2] strides [2, 1] cpu"]))
    assert got.label == "mm [float32[4, 8], bfloat16[8, 2]]"
    many = run(*tuning("1", inputs=["f32[1]"] * 6))
    assert many.label == "mm [f32[1], f32[1], f32[1], f32[1], ...]"


def test_runs_of_two_processes_may_have_the_same_number():
    rows = [*tuning("1", {"mm": 0.1}, pid=1), *tuning("1", {"mm": 0.2}, pid=2)]
    assert [r.winner_ms for r in find_tuning_runs(tables(*rows))] == [0.1, 0.2]
    alone = tuning(None, {"mm": 0.1, "triton_mm_1": 0.2})
    assert len(find_tuning_runs(tables(*alone))) == 2, "a choice without a run is one of its own"


def test_what_is_not_known_of_a_run_is_none():
    rows = [*tuning("1"), *tuning("2", {"triton_a": 0.1}, benchmark_s=None, precompile_s=None)]
    known, unknown = find_tuning_runs(tables(*rows))
    assert (known.winner, unknown.winner) == ("triton_mm_1", "triton_a")
    assert (known.margin_extern, known.spent_s) == pytest.approx((0.02, 0.8)) and known.break_even is not None
    assert unknown.margin_extern is unknown.spent_s is unknown.break_even is None
    assert find_tuning_runs(tables()) == []


def test_long_tuning_for_little_is_reported_by_op():
    rows = [*tuning("1"), *tuning("2", inputs=["bf16[8, 8]"]), *tuning("3", {"bmm": 0.2, "triton_bmm": 0.1}, op="bmm")]
    (got,) = found("tuning_small_gain", *rows)
    assert got.title == "tuning mm 2x took 1.6 s: at most 2.0 % faster than the extern kernel"
    assert "At these times, tuning pays off after 400,001 calls of each." in got.suggestion
    assert (got.seconds_lost, got.count, got.function) == (pytest.approx(1.6), 2, "forward")
    assert got.evidence == (1, 2, 3, 4, 5, 6)


def test_a_gain_that_lies_in_what_was_fused_is_not_called_small():
    alone = tuning("1", {"mm": 0.1, "triton_mm_1": 0.12}, winner="triton_mm_1")
    fused = tuning("1", {"triton_mm_1": 0.13}, stage="fusion", benchmark_s=None)
    assert found("tuning_small_gain", *alone, *fused) == []


def test_a_tuning_that_the_extern_kernel_won_never_pays():
    (got,) = found("tuning_small_gain", *tuning("1", {"mm": 0.1, "triton_mm_1": 0.15}))
    assert got.title == "tuning mm [bf16[64, 64], bf16[64, 64]] took 800 ms: the extern kernel won"
    assert "At these times, tuning never pays off." in got.suggestion


@pytest.mark.parametrize(
    "more",
    [
        {"times": {"mm": 0.2, "triton_mm_1": 0.1}},
        {"benchmark_s": 0.1, "precompile_s": 0.1},
        {"from_cache": "local"},
        {"times": {"triton_a": 0.2, "triton_b": 0.1}},
    ],
    ids=["worth it", "cheap", "from a cache", "nothing to hold it against"],
)
def test_tuning_that_is_worth_it_or_cheap_is_no_finding(more):
    assert found("tuning_small_gain", *tuning("1", **more)) == []


def test_what_is_tuned_again_in_one_process_is_reported():
    again = {"times": {"mm": 0.5, "triton_mm_1": 0.1}}
    (got,) = found("tuning_repeated", *tuning("1", **again), *tuning("2", **again), *tuning("3", **again))
    assert got.title.startswith("mm [bf16[64, 64], bf16[64, 64]] was tuned 3x in one process: 1.6 s after the first")
    assert got.seconds_lost == pytest.approx(1.6)
    others = [{"inputs": ["f32[1]"]}, {"pid": 2}, {"op": "bmm"}, {"device": "cuda:1"}, {"from_cache": "memory"}]
    for other in [*others, {"times": {"mm": 0.5, "triton_a": 0.1, "triton_b": 0.2}}, {"stage": "coordinate_descent"}]:
        assert found("tuning_repeated", *tuning("1", **again), *tuning("2", **{**again, **other})) == []
    unknown = {"inputs": None}
    assert found("tuning_repeated", *tuning("1", **unknown), *tuning("2", **unknown)) == []


def test_a_run_in_which_everything_failed_is_reported_first():
    rows = tuning("1", {"triton_mm_1": NO_ROOM, "triton_mm_2": NO_ROOM})
    (got,) = found("tuning_all_failed", *rows)
    assert got.severity == "high"
    assert got.title == f"tuning mm [bf16[64, 64], bf16[64, 64]]: all 2 choices failed: {NO_ROOM}"
    assert "NoValidChoicesError" in got.suggestion
    (own,) = found("tuning_all_failed", *tuning("1", {"triton_a": "x"}, tuner="triton_autotune"))
    assert "NoValidChoicesError" not in own.suggestion


def test_choices_that_fail_for_one_reason_are_one_finding():
    some = {"mm": 0.5, "triton_mm_1": 0.1, "triton_mm_2": NO_ROOM, "triton_mm_3": NO_ROOM.replace("294912", "300000")}
    rows = [*tuning("1", some), *tuning("2", some, op="addmm")]
    (got,) = found("choices_failed", *rows)
    assert (
        got.title
        == "4 of 8 choices of mm and addmm failed: they need more shared memory or registers than the device has"
    )
    assert (got.severity, got.count, got.seconds_lost) == ("low", 4, 0.0)
    assert found("choices_failed", *tuning("1", some)) == [], "two are too few to speak of"


def test_each_other_reason_is_reported_unchanged():
    some = {"mm": 0.5, **{f"triton_mm_{n}": "CompilationError: no such dot" for n in range(3)}}
    (got,) = found("choices_failed", *tuning("1", some))
    assert got.title == "3 of 4 choices of mm failed: CompilationError: no such dot"


def test_times_that_are_no_numbers_are_failures():
    got = run(*tuning("1", {"mm": 0.1, "triton_mm_1": float("inf")}))
    assert (got.timed, got.winner, got.next_choice) == (1, "mm", None)


def test_places_are_named_only_where_there_is_one():
    (got,) = found("tuning_small_gain", *tuning("1"), *tuning("2", function="g", inputs=["x"]))
    assert (got.function, got.file) == (None, None)
    (got,) = found("tuning_small_gain", *tuning("1"))
    assert {n: getattr(got, n) for n in FORWARD} == FORWARD
