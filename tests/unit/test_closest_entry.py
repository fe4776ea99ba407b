"""Which earlier entry a recompile is compared with, and which of its guards is reported."""

import pytest

from compilediag.decode.guards.failed_guards import FailedEntry, FailingGuard, make_recompile_events
from compilediag.decode.guards.guard_text import parse_guard
from compilediag.decode.guards.path import format_source

WRAPPER = ("inner", "/site-packages/torch/_dynamo/external_utils.py", 67)


def guard(source, kind, expected, actual, **more):
    return FailingGuard(f"{source} == {expected}", source, kind, expected, actual, **more)


def entry(number, *guards, reason=None):
    return FailedEntry(f"0/{number}", (True, number), list(guards), reason)


SIZES = [guard(f"past[{n}].size()[1]", "tensor_size", "4", "5") for n in range(4)]


@pytest.mark.parametrize(
    "other",
    [
        guard("past", "value", "None", "((Tensor float32[1], ...)"),
        guard("past", "type", "tuple", "list"),
        guard("len(past)", "length", "0", "4"),
        guard("x.dim()", "tensor_rank", "3", "2"),
    ],
    ids=lambda other: other.kind,
)
def test_an_entry_of_the_same_structure_is_closer_than_one_of_another_that_guards_less(other):
    assert min(entry(0, other), entry(1, *SIZES), key=lambda e: e.distance).compile_id == "0/1"


def test_among_entries_of_one_structure_the_fewest_failing_guards_decide_then_the_latest():
    assert min(entry(0, SIZES[0]), entry(1, *SIZES), key=lambda e: e.distance).compile_id == "0/0"
    assert min(entry(0, SIZES[0]), entry(1, SIZES[1]), key=lambda e: e.distance).compile_id == "0/1"


def test_a_number_for_none_is_another_structure_and_an_unknown_value_is_not():
    unknown = entry(0, guard("n", "value", "None", None))
    number = entry(1, guard("n", "value", "None", "3"))
    assert unknown.distance < number.distance


def make_recompile(closest, where):
    return next(make_recompile_events(1, "0/2", where, [closest], closest, lambda file: "/torch/" in file))


def test_another_module_of_torch_is_reported_before_what_follows_from_it():
    both = entry(0, guard("args[0].dim()", "tensor_rank", "2", "3"), guard("fn", "type", "Linear", "Conv1d"))
    assert make_recompile(both, WRAPPER).guard_source == "fn"
    assert make_recompile(both, ("forward", "model.py", 3)).guard_source == "args[0].dim()"


def test_parameters_of_a_module_of_another_width_are_reported_before_its_inputs():
    text = "tensor 'self._modules['lin']._parameters['weight']' size mismatch at index 0. expected 8, actual 16"
    weight = FailingGuard(text, "self.lin.weight.size()[0]", "tensor_size", "8", "16")
    size, counter = guard("x.size()[1]", "tensor_size", "4", "8"), guard("self.n", "value", "1", "2")
    forward = ("forward", "model.py", 3)
    assert make_recompile(entry(0, size, weight), forward).guard_source == "self.lin.weight.size()[0]"
    assert make_recompile(entry(0, counter, size, weight), forward).guard_source == "self.n"


def test_a_guard_made_in_pythons_own_code_is_reported_with_the_users_line():
    reason = (
        "0/0: G['os'].environ._data[b'FLAG'] == b'0'  #   # <frozen os>:761 in decode\n"
        'User stack trace:\n  File "/home/ada/model.py", line 7, in f\n    if os.environ["FLAG"]:\n'
        '  File "<frozen os>", line 761, in decode'
    )
    parsed = parse_guard(reason)
    assert (parsed.source, parsed.kind, parsed.expected) == ("os.environ['FLAG']", "value", "b'0'")
    made = guard(parsed.source, parsed.kind, parsed.expected, "b'1'", user_file="<frozen os>", user_line=761)
    row = make_recompile(entry(0, made, reason=reason), ("f", "/home/ada/model.py", 6))
    assert (row.user_file, row.user_line, row.user_code) == ("/home/ada/model.py", 7, 'if os.environ["FLAG"]:')
    assert make_recompile(entry(0, made), ("f", "/home/ada/model.py", 6)).user_file is None


def test_keys_of_bytes_are_read_in_any_source():
    assert format_source("L['d'][b'k']") == "d[b'k']"
    assert parse_guard("L['d'][b'k'] == 3").source == "d[b'k']"


def test_the_comment_of_the_closest_entry_is_not_repeated_for_others_that_have_the_same():
    comment = "                  # return x * self.n  # model.py:7 in forward (HINT: type int)"
    entries = []
    for number, ending in enumerate([comment, comment, "  # return self.n  # model.py:9 in forward"]):
        parsed = parse_guard(f"L['self'].n == {number}{ending}")
        entries.append(entry(number, FailingGuard(parsed.text, "self.n", "value", str(number), "3")))
    where = ("forward", "model.py", 3)
    _, *failures = make_recompile_events(1, "0/3", where, entries, entries[1], lambda file: False)
    assert [failure.guard for failure in failures] == [
        "L['self'].n == 0",
        f"L['self'].n == 1{comment}",
        "L['self'].n == 2  # return self.n  # model.py:9 in forward",
    ]
