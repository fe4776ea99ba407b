"""The explorer over what the real compiler recorded: values, the user's lines, guard trees."""

import re

import pytest
import torch

import compilediag as cd
from tests.unit.session_builder import page_of, unpack_document


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(8, 8)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.lin(x) * self.step


def apply(x, act, options):
    return act(x) * len(options)


@pytest.fixture(scope="module")
def rows():
    """The explorer's rows after sizes, a counter, fresh lambdas and a growing list."""
    counting = torch.compile(Counting(), backend="eager", dynamic=False)
    applied = torch.compile(apply, backend="eager")
    with cd.watch() as session:
        for size in (4, 6, 9):
            counting(torch.randn(size, 8))
        for n, act in enumerate((lambda x: x.sin(), lambda x: x.cos(), lambda x: x + 1)):
            applied(torch.randn(3), act, ["a"] * (1 + n // 2))
    yield {**page_of(session)["rows"], "text": repr(session.explore())}
    torch._dynamo.reset()


def document(rows, function):
    (found,) = [unpack_document(found) for _, found in rows["functions"] if found["function"] == function]
    return found, {guard["name"]: guard for guard in found["guards"]}


def test_values_over_time_and_what_failed_together(rows):
    found, guards = document(rows, "forward")
    assert [text for text, _ in guards["x.shape[0]"]["values"]] == ["4", "6", "9"]
    assert [number for _, number in guards["self.step"]["values"]] == [0.0, 1.0, 2.0]
    assert guards["x.shape[0]"]["verdict"] == (
        "Fixing this guard alone would not have helped: self.step also failed in every entry that it failed in."
    )
    assert [entry["order"] for entry in found["entries"]] == [3, 2, 1]
    assert all(entry["seconds"] > 0 for entry in found["entries"])
    assert [row["made"] for row in found["rows"]] == [1, 2]


def test_the_users_code_is_there_and_torchs_is_not_taken_for_it(rows):
    _, guards = document(rows, "forward")
    around = guards["self.step"]["around"]
    assert [text for number, text in around if number == guards["self.step"]["user_line"]] == ["        self.step += 1"]
    assert guards["x.shape[0]"]["around"] is None and "linear.py" in guards["x.shape[0]"]["framework"]


def test_objects_are_named_and_never_by_an_address(rows):
    _, guards = document(rows, "apply")
    seen = [text for text, _ in guards["act"]["values"]]
    assert len(seen) == len(set(seen)) == 3 and all("<lambda> at test_explorer.py" in text for text in seen)
    details = [guards["act"]["texts"], [line for row in rows["trees"] for line in row[2]], rows["text"]]
    assert re.findall(r"\b\d{12,}\b|0x[0-9a-f]{6,}", repr(details)) == []


def test_every_line_of_a_guard_tree_is_of_a_known_form(rows):
    lines = [line for row in rows["trees"] for line in row[2]]
    assert len(rows["trees"]) == 6 and len(lines) > 50
    assert [text for _, what, text, *_ in lines if not what and not text.startswith("KeyValueManager")] == []
    assert max(depth for depth, *_ in lines) >= 3
    shared = sum(len(row[2]) for row in rows["trees"][1:3])
    assert shared < len(rows["trees"][0][2]) / 2, "entries of one function share most lines"
