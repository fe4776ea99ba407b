"""The explorer over what the real compiler recorded: objects and guard trees."""

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


def test_objects_are_named_and_never_by_an_address(rows):
    (found,) = [unpack_document(found) for _, found in rows["functions"] if found["function"] == "apply"]
    (act,) = [guard for guard in found["guards"] if guard["name"] == "act"]
    seen = [text for text, _ in act["values"]]
    assert len(seen) == len(set(seen)) == 3 and all("<lambda> at test_explorer.py" in text for text in seen)
    details = [act["texts"], [line for row in rows["trees"] for line in row[2]], rows["text"]]
    assert re.findall(r"\b\d{12,}\b|0x[0-9a-f]{6,}", repr(details)) == []


def test_every_line_of_a_guard_tree_is_of_a_known_form(rows):
    lines = [line for row in rows["trees"] for line in row[2]]
    assert len(rows["trees"]) == 6 and len(lines) > 50
    assert [text for _, what, text, *_ in lines if not what and not text.startswith("KeyValueManager")] == []
    assert max(depth for depth, *_ in lines) >= 3
    shared = sum(len(row[2]) for row in rows["trees"][1:3])
    assert shared < len(rows["trees"][0][2]) / 2, "entries of one function share most lines"
