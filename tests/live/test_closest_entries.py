"""Functions with many entries: the closest are analyzed completely, the others counted, and the cause is the same."""

import contextlib
import itertools
from typing import NamedTuple

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import compilediag as cd
from compilediag.events import GuardFailure
from tests.inside import read_page
from tests.live import programs

MANY = {"recompile_limit": 512, "accumulated_recompile_limit": 512, "automatic_dynamic_shapes": False}
#: Of more entries than this, only the closest are analyzed.
MAX_ANALYZED = 8


class Pad:
    """An object whose parts are guarded."""


class Labelled(torch.nn.Module):
    label = None

    def forward(self, x):
        return x.sin() if self.label == "a" else x.cos()


def scale(x, pad, n, names):
    if pad.mask is not None:
        x = x * pad.mask
    return x.sin() * n + len(names) + (1 if pad.name == "a" else 2)


class Call(NamedTuple):
    """In what the calls of `scale` differ."""

    size: int
    dtype: torch.dtype
    mask: int | None
    name: str
    n: float
    rank: int
    length: int
    has_gradients: bool

    def make(self, function):
        pad = Pad()
        pad.mask, pad.name = (None if self.mask is None else torch.ones(1, dtype=self.dtype)), self.name
        with contextlib.nullcontext() if self.has_gradients else torch.no_grad():
            function(torch.ones(*([self.size] * self.rank), dtype=self.dtype), pad, self.n, ["x"] * self.length)


def list_calls():
    """Calls that differ in one or several ways."""
    kinds = itertools.product([3, 4], [torch.float32, torch.float64], [None, 1], ["a", "b"], [1, 2.5], [1, 2])
    return [Call(*kind, n % 2 + 1, n % 4 != 0) for n, kind in enumerate(kinds) if n % 3 == 0]


def count_differences(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


def test_the_closest_entry_is_analyzed_and_each_value_is_that_of_its_call():
    calls, function = list_calls(), programs.compiled(scale)
    with torch._dynamo.config.patch(MANY), cd.watch() as session:
        for call in calls:
            call.make(function)
    by_id = {f"0/{number}": call for number, call in enumerate(calls)}
    assert session.compiles["compile_id"].tolist() == list(by_id)
    found = session.recompiles.set_index("compile_id")["closest_compile_id"].to_dict()
    # How many guards fail is not exactly in how many ways calls differ.
    more = [
        count_differences(by_id[new], by_id[closest])
        - min(count_differences(by_id[new], by_id[f"0/{n}"]) for n in range(list(by_id).index(new)))
        for new, closest in found.items()
    ]
    assert max(more) <= 1 and more.count(0) >= 0.8 * len(more)
    values = {"n": lambda call: call.n, "len(names)": lambda call: call.length, "pad.name": lambda call: call.name}
    rows = [row for row in session.data.rows(GuardFailure) if row.guard_source in values]
    rows = [row for row in rows if row.guard_kind in ("value", "length")]
    for row in rows:
        read = values[row.guard_source]
        assert (row.expected, row.actual) == (
            repr(read(by_id[row.entry_compile_id])),
            repr(read(by_id[row.compile_id])),
        )
    assert {row.guard_source for row in rows} == set(values) and len(rows) > 50


def attend(x, past):
    return x.sin() if past is None else x + sum(part.sum() for part in past)


def test_an_entry_of_the_same_structure_is_closer_than_one_of_another_that_guards_less():
    function = programs.compiled(attend)
    with torch._dynamo.config.patch(MANY), cd.watch() as session:
        for past in (None, *([torch.ones(size) for _ in range(4)] for size in (4, 5))):
            function(torch.ones(2), past)
    assert session.recompiles["closest_compile_id"].tolist() == ["0/0", "0/1"]
    failed = session.guard_failures.query("compile_id == '0/2'").groupby("entry_compile_id").size()
    assert failed["0/1"] > failed["0/0"]


LABELS = (1, 2, 2.5, 1e-7, "a", "it's", 'a "b" == c', "x  # y.py:3 in z", "\\", True, -3, 10**30)


def test_labels_of_any_kind_are_shown_as_they_are():
    model = Labelled()
    function = torch.compile(model, backend=CompileCounter())
    with torch._dynamo.config.patch(MANY), cd.watch() as session:
        for label in LABELS:
            model.label = label
            function(torch.ones(4))
    rows = [
        row for row in session.data.rows(GuardFailure) if (row.guard_kind, row.guard_source) == ("value", "self.label")
    ]
    labels = {f"0/{number}": repr(label) for number, label in enumerate(LABELS)}
    assert len(rows) > len(LABELS)
    assert [(row.expected, row.actual) for row in rows] == [
        (labels[row.entry_compile_id], labels[row.compile_id]) for row in rows
    ]


def run_storm(detail, count, of_more=MAX_ANALYZED):
    """A new step at every call; two calls, far apart, have float64. Gives the session."""
    model = programs.Counter()
    function = torch.compile(model, backend=CompileCounter())
    with torch._dynamo.config.patch(MANY), cd.watch(detail=detail) as session:
        for step in range(count):
            model.step = step
            function(torch.ones(4, dtype=torch.float64 if step in (3, count - 1) else torch.float32))
    rows = session.recompiles
    assert rows["entries_checked"].tolist() == list(range(1, count))
    assert rows["entries_analyzed"].tolist() == [n if n <= MAX_ANALYZED else of_more for n in range(1, count)]
    listed = session.guard_failures.groupby("compile_key")["entry_compile_key"].nunique()
    assert listed.max() == MAX_ANALYZED
    return session


@pytest.mark.long("60 entries of one function, in full")
def test_in_full_a_rare_second_cause_is_found_among_many_entries_and_the_report_stays_small(tmp_path):
    session = run_storm("full", 60)
    last, first = session.recompiles.iloc[-1], session.recompiles.query("compile_id == '0/3'").iloc[0]
    # The only other entry for float64 is 56 recompiles old.
    assert last["closest_compile_id"] == "0/3" and last["guard_source"] == "self.step"
    assert (last["expected"], last["actual"]) == ("3", "59")
    closest = session.guard_failures.query("compile_id == '0/59' and entry_compile_id == '0/3'")
    assert closest["guard_source"].tolist() == ["self.step"]
    kinds = session.guard_failures.query("compile_id == '0/3'")["guard_kind"]
    assert first["entries_analyzed"] == 3 and "tensor_dtype" in set(kinds)
    found = {(finding.kind, finding.source): finding.count for finding in session.findings()}
    assert found[("tensor_dtype", "x.dtype")] <= 2 and found[("value", "self.step")] >= 57
    # A recompile with many entries has as many events as one with eight, so a report grows by 5 kB for each.
    failures = session.guard_failures.groupby("compile_key", sort=False).size()
    assert failures.iloc[-2] == failures.iloc[MAX_ANALYZED + 1] <= 2 * MAX_ANALYZED
    with cd.watch() as empty:
        pass
    size, base = (len(read_page(each.report(tmp_path / "report.html"))) for each in (session, empty))
    assert size - base < 59 * 5_000


def test_in_lean_of_many_entries_only_the_latest_is_analyzed():
    session = run_storm("lean", 20, of_more=1)
    found = session.guard_failures.groupby("compile_id")["entry_compile_id"].agg(set)
    assert found["0/8"] == {f"0/{n}" for n in range(8)} and found["0/9"] == {"0/8"}
    assert session.recompiles["closest_compile_id"].tolist() == [f"0/{n}" for n in range(19)]
