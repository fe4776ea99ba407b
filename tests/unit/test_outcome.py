"""The outcome of a trial as text and as JSON."""

import json

from compilediag.diagnosis.plan import Plan
from compilediag.diagnosis.plan.plan import META_KEY, Outcome, read_outcome

HOLDS = Outcome(7, 0, 199.0, 76.0, 230.0, 100.0, (0, 0), True, holds=True, code="x = 1", runs=2)


def test_an_outcome_is_one_line():
    assert str(HOLDS) == (
        "Tried, the plan holds: 7 recompiles -> 0, 3 min 19 s -> 1 min 16 s compiling, 3 min 50 s -> 1 min 40 s in "
        "all, exit code 0, same output."
    )


def test_why_it_does_not_hold_is_a_sentence():
    text = str(Outcome(1, 1, exit_codes=(0, 3), same_output=False, note="the output differs in line 2"))
    assert text == (
        "Tried, the plan does not hold: 1 recompile -> 1, exit code 0 -> 3, other output. The output differs in line 2."
    )
    assert str(Outcome()) == "Tried, the plan does not hold."


def test_times_of_another_backend_are_not_shown():
    text = str(Outcome(7, 0, 0.5, 0.2, 3.0, 2.0, backend="eager", holds=True))
    assert text == "Tried, the plan holds: 7 recompiles -> 0, with the backend 'eager', so times were not compared."


def test_an_outcome_survives_json_and_later_versions():
    stored = json.loads(json.dumps({META_KEY: {**HOLDS.to_dict(), "unknown": 1}}))
    assert stored[META_KEY]["text"] == str(HOLDS)
    assert read_outcome(stored) == HOLDS
    assert read_outcome({}) is None


def test_a_plan_shows_its_outcome_after_the_headline():
    plan = Plan(recompiles=7, recompiles_saved=7, tried=HOLDS.to_dict())
    assert " ".join(str(plan).splitlines()[1:]) == str(HOLDS)
    assert str(HOLDS).replace(">", "&gt;") in plan._repr_html_()
    assert "Tried" not in str(Plan())
