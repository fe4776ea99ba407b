"""The outcome of a trial that a session has, in its plan."""

import pytest

from .tables_builder import sizes

HOLDS = {
    "recompiles_before": 7,
    "recompiles_after": 0,
    "exit_codes": [0, 0],
    "same_output": True,
    "holds": True,
    "compile_seconds_before": 199.0,
    "compile_seconds_after": 76.0,
    "wall_seconds_before": 230.0,
    "wall_seconds_after": 100.0,
}


@pytest.fixture
def plan_of(session_of):
    """`plan_of(outcome)`: the plan of a session with this outcome."""
    return lambda outcome: session_of(*sizes("4", "6"), tried=outcome).plan()


def test_an_outcome_is_one_line_behind_the_headline(plan_of):
    plan = plan_of({**HOLDS, "unknown_to_this_version": 1})
    text = plan.to_dict()["tried"]["text"]
    assert text == (
        "Tried, the plan holds: 7 recompiles -> 0, 3 min 19 s -> 1 min 16 s compiling, 3 min 50 s -> 1 min 40 s in "
        "all, exit code 0, same output."
    )
    assert " ".join(str(plan).splitlines()[1:]).startswith(text)
    assert text.replace(">", "&gt;") in plan._repr_html_()


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (
            {"recompiles_before": 1, "recompiles_after": 1, "exit_codes": [0, 3], "same_output": False, "note": "why"},
            "Tried, the plan does not hold: 1 recompile -> 1, exit code 0 -> 3, other output. Why.",
        ),
        (
            {**HOLDS, "backend": "eager", "exit_codes": [None, None], "same_output": None},
            "Tried, the plan holds: 7 recompiles -> 0, with the backend 'eager', so times were not compared.",
        ),
        ({}, "Tried, the plan does not hold."),
    ],
)
def test_what_is_not_known_or_of_no_interest_is_left_out(plan_of, outcome, text):
    tried = plan_of(outcome).to_dict()["tried"]
    assert tried["text"] == text
