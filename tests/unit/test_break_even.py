"""What entries cost and what their calls have won: the rules, on small tables."""

from dataclasses import replace

import pandas as pd
import pytest

from compilediag.diagnosis import break_even, diagnose, sum_calls
from compilediag.events import Artifact, Calls, Compile, RowList
from tests.unit.session_builder import saved
from tests.unit.tables_builder import SECOND, add_keys, called, compiled, source, tables

COUNTING = source("calls", "active")


def entry(number, **more):
    return compiled(**{"time_ns": number * SECOND, "compile_id": f"0/{number}", **more})


def frame(*events):
    return break_even(tables(*events, COUNTING)).set_index("compile_id")


def calls(count, **times):
    return replace(called("compiled", 0), count=count, **times)


def test_a_mean_leaves_out_the_first_call_which_sets_up_what_the_others_find():
    first = calls(2, timed=2, total_s=1.2, min_s=0.2, first_s=1.0)
    columns = ["calls", "first_s", "mean_s"]
    assert frame(entry(1), first).loc["0/1", columns].tolist() == [2, 1.0, pytest.approx(0.2)]
    both = frame(entry(1), first, calls(2, timed=1, total_s=0.1, min_s=0.1))
    assert both.loc["0/1", columns].tolist() == [4, 1.0, pytest.approx(0.15)]
    once = frame(entry(1), calls(1, timed=1, total_s=1.0, min_s=1.0, first_s=1.0))
    assert once.loc["0/1", columns].tolist() == [1, 1.0, 1.0]


def test_calls_that_raised_are_counted_and_not_timed():
    found = frame(entry(1), calls(3, timed=0)).loc["0/1"]
    assert found["calls"] == 3 and found[["first_s", "mean_s"]].isna().all()


@pytest.mark.parametrize(
    ("paid", "mean", "eager", "won", "pays_off"),
    [
        (2.0, 0.01, 0.03, 0.2, 100),
        (2.11, 0.01, 0.03, 0.2, 106),
        (2.0, 0.03, 0.01, -0.2, None),
        (2.0, 0.01, 0.01, 0.0, None),
        (None, 0.01, 0.03, 0.2, None),
        (2.0, 0.01, None, None, None),
        (2.0, None, 0.03, None, None),
    ],
)
def test_what_an_entry_has_won_and_when_that_has_paid(paid, mean, eager, won, pays_off):
    timed = {} if mean is None else {"timed": 10, "total_s": 10 * mean, "min_s": mean}
    events = [entry(1, duration_s=paid), calls(10, **timed)]
    events += [] if eager is None else [called("eager", 10, 2, each=eager)]
    found = frame(*events).loc["0/1"]
    assert (None if pd.isna(found["won_s"]) else found["won_s"]) == (None if won is None else pytest.approx(won))
    assert (None if pd.isna(found["break_even"]) else found["break_even"]) == pays_off


def test_each_entry_has_its_cost_and_its_calls():
    backward = compiled(time_ns=2 * SECOND + 9, compile_id="0/2", trigger="lazy_backward", duration_s=0.5)
    calls = [called("compiled", 10, 1), called("compiled", 1, 2, each=0.3), called("eager", 20, 3, each=0.02)]
    found = frame(entry(1), entry(2), backward, *calls, entry(3, outcome="skipped", limit="recompile_limit"))
    assert found.index.tolist() == ["0/1", "0/2"], "what was given up is no entry"
    assert found["paid_s"].tolist() == [2.0, 2.5]
    assert found["calls"].tolist() == [10, 1] and found["once"].tolist() == [False, True]
    assert found["mean_s"].tolist() == pytest.approx([0.01, 3.0])
    assert found["eager_s"].tolist() == pytest.approx([0.02, 0.02])
    assert found["won_s"].tolist() == pytest.approx([0.1, -2.98])
    assert found["break_even"].iloc[0] == 200 and found["break_even"].isna().tolist() == [False, True]


def test_two_threads_with_one_compile_id_have_their_own_calls():
    entries = [entry(1, time_ns=at, compile_key=key) for at, key in ((SECOND, "k.1"), (SECOND + 1, "k.2"))]
    calls = [called("compiled", count, 1, compile_key=key) for key, count in (("k.2", 5), ("k.1", 2))]
    assert frame(*entries, *calls).set_index("compile_key")["calls"].to_dict() == {"k.1": 2, "k.2": 5}


def test_an_entry_without_a_key_is_joined_with_nothing():
    alone = Compile(time_ns=1, function="f", duration_s=2.0, outcome="ok")
    found = break_even(RowList([alone, Calls(time_ns=2, function="f", ran="compiled", count=3), COUNTING]))
    assert found["paid_s"].tolist() == [2.0] and found["calls"].isna().all()


def test_what_nobody_counted_is_unknown_and_never_0():
    found = break_even(tables(entry(1), source("calls", "unavailable", "counting calls needs Python 3.12")))
    assert found["paid_s"].tolist() == [2.0]
    unknown = ["calls", "first_s", "mean_s", "eager_s", "won_s", "break_even", "once"]
    assert found[unknown].isna().all(axis=None)
    assert set(vars(sum_calls(tables(entry(1)))).values()) == {None}


def test_an_entry_that_was_counted_and_not_called_has_0_calls():
    found = frame(entry(1))
    assert found["calls"].tolist() == [0] and found["once"].tolist() == [False]


def test_a_session_without_compiles_is_an_empty_frame():
    found = break_even(tables())
    assert len(found) == 0 and isinstance(found["calls"].dtype, pd.Int64Dtype)


def test_totals_of_calls():
    events = [entry(1), entry(2), called("compiled", 5, 1), called("compiled", 1, 2), called("eager", 4, 3)]
    found = sum_calls(tables(*events, COUNTING))
    assert (found.compiled_calls, found.eager_calls, found.used_once, found.used_once_s) == (6, 4, 1, 2.0)
    assert found.eager_s == pytest.approx(0.13)


def manager(indent, source, cls):
    return f"{indent}+- GuardManager: source={source}, accessed_by=A(), type=<class '{cls}'>, tag_safe=(True, False)"


TREE = "\n".join(
    [
        "TREE_GUARD_MANAGER:",
        "+- RootGuardManager",
        "| +- GLOBAL_STATE: ___check_global_state()",
        manager("| ", "L['self']", "m.Net"),
        "| | +- TYPE_MATCH: ___check_type_id(L['self'], 94)",
        manager("| | ", "L['self'].head", "m.Head"),
        "| | | +- EQUALS_MATCH: L['self'].head.k == 2",
        manager("| | ", "L['self'].body", "m.Body"),
        manager("| | | ", "L['self'].body.a", "int"),
        "| | | | +- EQUALS_MATCH: L['self'].body.a == 2",
        "| | | +- EQUALS_MATCH: L['self'].body.b == 2",
    ]
)


@pytest.fixture
def guard_costs(session_of):
    """Finds what guards cost: an entry is called 100 times, each for `each` s, with a check of `check_us`."""

    def find(check_us, each, **versions):
        made, calls = entry(1, guard_check_us=check_us, guard_count=939), called("compiled", 100, each=each)
        facts = {"torch_version": "2.13.0", "python_version": "3.12.1", **versions}
        return [found for found in session_of(made, calls, COUNTING, **facts).findings() if found.rule == "guard_cost"]

    return find


def test_guards_that_are_a_good_part_of_each_call_are_a_finding(guard_costs):
    (found,) = guard_costs(100.0, 0.0004)
    assert found.title == "forward (model.py:30): checking its 939 guards takes 100 µs of each call, 20 % of it"
    assert (found.severity, found.seconds_lost) == ("low", 0.0)
    assert [change.settings for change in found.changes] == [{"use_recursive_dict_tags_for_guards": True}]


@pytest.mark.parametrize(("check_us", "each"), [(100.0, 0.004), (9.0, 0.0001), (None, 0.0001)])
def test_guards_that_take_little_are_none(guard_costs, check_us, each):
    assert guard_costs(check_us, each) == []


@pytest.mark.parametrize("versions", [{"python_version": "3.11.7"}, {"torch_version": "2.11.0"}])
def test_no_setting_is_proposed_where_it_is_unsafe_or_the_default(guard_costs, versions):
    (found,) = guard_costs(100.0, 0.0004, **versions)
    assert found.changes == ()


def test_the_values_with_most_guards_are_named(tmp_path):
    made, calls = entry(1, guard_check_us=100.0, guard_count=939), called("compiled", 100, each=0.0004)
    tree = (Artifact(time_ns=SECOND, compile_id="0/1", name="dynamo_cpp_guards_str"), TREE)
    session = saved(tmp_path, made, calls, (add_keys(tree[0]), tree[1]), COUNTING)
    (found,) = [found for found in session.findings() if found.rule == "guard_cost"]
    assert [detail.partition(" and ")[0] for detail in found.details] == [
        "40 % of the guards are on self.body",
        "20 % of the guards are on self.head",
    ]


def once(*events):
    return [found for found in diagnose(tables(*events, COUNTING)) if found.rule == "used_once"]


def test_entries_that_were_called_once_and_left_are_a_finding():
    calls = [called("compiled", 1, n) for n in (1, 2)]
    (found,) = once(entry(1), entry(2), entry(3), *calls, called("compiled", 9, 3))
    assert found.title == "forward (model.py:30) spent 4.0 s on 2 entries that were called once"
    assert (found.severity, found.count, found.seconds_lost, found.evidence) == ("medium", 2, 0.0, (1, 2))
    assert "eager_on_recompile" in found.suggestion and found.cost


def test_the_last_entry_of_a_function_may_yet_be_called():
    assert once(entry(1), called("compiled", 1, 1)) == []
    assert once(entry(1), called("compiled", 1, 1), called("eager", 5, 2)) != [], "it was left for eager calls"


def test_what_cost_little_or_was_not_counted_is_no_finding():
    cheap = [entry(n, duration_s=0.4) for n in (1, 2, 3)]
    assert once(*cheap, called("compiled", 1, 1), called("compiled", 1, 2)) == []
    assert diagnose(tables(entry(1), entry(2), called("compiled", 1, 1))) == []
