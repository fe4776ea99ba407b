"""What was observed: a table is known only if all that feeds it was active, or had nothing to watch."""

import pytest

from compilediag.diagnosis import explain_gaps, find_gaps
from compilediag.diagnosis.rules import coverage
from compilediag.events import BY_TABLE
from tests.unit.tables_builder import source, tables

ALL, PARTS = dict(coverage.FEEDS), dict(coverage.PARTS)
NO_TRITON = "nothing to watch: triton is not installed"


@pytest.fixture(autouse=True)
def two_feeds(monkeypatch):
    monkeypatch.setattr(coverage, "FEEDS", {"autotune": ("one", "two"), "cudagraphs": ()})
    monkeypatch.setattr(coverage, "PARTS", {"compile_caches": ("three",)})


def seen(**states):
    return coverage.map_collected(source(name, *state) for name, state in states.items())


@pytest.mark.parametrize(
    ("one", "two", "known"),
    [
        (("active", None), ("active", None), True),
        (("active", None), ("off", NO_TRITON, "nothing_to_watch"), True),
        (("active", None), ("off", "detail is lean", "detail_level"), False),
        (("active", None), ("unavailable", "this torch has no x"), False),
        (("failed", "switched off after 5 errors"), ("active", None), False),
        (("off", NO_TRITON, "nothing_to_watch"), ("off", NO_TRITON, "nothing_to_watch"), False),
    ],
)
def test_a_table_is_observed_if_all_that_feeds_it_was(one, two, known):
    assert seen(one=one, two=two)["autotune"] is known


def test_a_source_that_the_session_does_not_know_was_not_active():
    assert seen(one=("active", None)) == {"autotune": False, "cudagraphs": False, "compile_caches": False}


def test_a_part_of_a_table_needs_its_own_sources_alone():
    assert seen(three=("active", None)) == {"autotune": False, "cudagraphs": False, "compile_caches": True}
    assert find_gaps(tables(source("three", "failed", "why"))) == {"compile_caches"}


def test_a_source_with_nothing_to_watch_is_no_gap():
    assert explain_gaps(tables(source("triton_autotune", "off", NO_TRITON, "nothing_to_watch"))) == {}
    off = tables(source("triton_autotune", "off", "somebody switched it off"))
    assert set(explain_gaps(off)) == {"autotuning of triton kernels by triton.autotune"}


def test_a_gap_blinds_the_tables_that_it_feeds():
    assert find_gaps(tables(source("one", "active"), source("two", "failed", "why"))) == {"autotune"}
    assert (
        find_gaps(tables(source("one", "active"), source("two", "off", NO_TRITON, "nothing_to_watch"))) == frozenset()
    )


def test_every_table_of_the_page_says_what_feeds_it():
    assert set(ALL) == set(BY_TABLE) - {"sources"}
    assert {*PARTS["compile_caches"]} < {*ALL["cache_lookups"]}
