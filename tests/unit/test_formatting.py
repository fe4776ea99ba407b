"""Numbers as text: the shared table of cases, which the JavaScript tests read too."""

import json
from pathlib import Path

import pytest

from compilediag import formatting

CASES = json.loads((Path(__file__).parents[1] / "format_cases.json").read_text())
FORMATTERS = {
    "seconds": formatting.format_seconds,
    "milliseconds": formatting.format_milliseconds,
    "count": formatting.format_count,
    "amount": lambda arguments: formatting.format_amount(*arguments),
    "times": formatting.format_times,
    "bytes": formatting.format_bytes,
    "share": formatting.format_share,
    "signed_share": lambda value: formatting.format_share(value, signed=True),
    "place": lambda arguments: formatting.format_place(*arguments),
    "function": formatting.format_function_name,
}


def test_every_formatter_has_cases():
    assert CASES.keys() == FORMATTERS.keys()


@pytest.mark.parametrize(
    ("kind", "value", "text"), [(kind, *case) for kind, cases in CASES.items() for case in cases], ids=str
)
def test_shared_case(kind, value, text):
    value = float(value) if value in ("NaN", "Infinity", "-Infinity") else value
    assert FORMATTERS[kind](value) == text


def test_numbers_of_numpy_and_pandas_are_formatted():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"s": [1.25, None], "n": pd.array([3, None], dtype="Int64")})
    assert [formatting.format_seconds(value) for value in frame["s"]] == ["1.3 s", "–"]
    assert formatting.format_count(frame["n"][0]) == "3"


def test_many_values_are_shown_as_their_range():
    assert formatting.format_change([str(n) for n in range(17, 29)]) == "was 12 values between 17 and 28"
    assert formatting.format_change(["16", "32", "48", "64", "80", "96", "100"]).endswith(", mostly multiples of 16")
    assert formatting.format_change(["'a'", *"bcdefgh"]) == "was 'a', then b, c and 5 more"
    assert formatting.format_change([]) == "changed"


def test_a_text_of_the_users_program_stays_on_one_line():
    assert formatting.format_line("a\nb\tc\x1b[31m") == "a b c [31m"
    assert formatting.format_line("x" * 200, 10) == "x" * 7 + "..."
    assert formatting.format_first_line("\n first \n second") == "first"


def test_functions_are_shown_as_the_user_knows_them():
    assert formatting.format_function("forward", "/home/ada/model.py", 30) == "forward (model.py:30)"
    assert formatting.format_function(None, None, None) == "unknown function"
    resumed = formatting.format_function("torch_dynamo_resume_in_forward_at_33", "/home/ada/model.py", 30)
    assert resumed == "forward, after the graph break at line 33 (model.py:30)"
    wrapper = formatting.format_function("inner", "/lib/torch/_dynamo/external_utils.py", 40)
    assert wrapper == "a compiled module of torch.nn"


def test_what_a_terminal_would_obey_is_escaped():
    assert formatting.escape_controls("a\n\x1b[2J\x9b\u202eb\ud800") == r"a\n\x1b[2J\x9b\u202eb\ud800"
    assert formatting.escape_lines("a\n\tb\r\x07\xa0\u3000é") == "a\n\tb\\r\\x07\xa0\u3000é"
