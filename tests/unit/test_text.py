"""The plain-text summary: what it says, and that it prints anywhere."""

import dataclasses
import io

import pytest

from tests.unit.session_builder import saved
from tests.unit.tables_builder import (
    called,
    changes,
    compiled,
    graph,
    graph_break,
    lookup,
    refused,
    sizes,
    source,
    tuning,
)

OTHER = "no such hook"


@pytest.fixture
def summary_of(tmp_path):
    """The summary of a session that holds just these events."""
    return lambda *events, **options: saved(tmp_path, *events, **options).summary()


def list_totals(summary):
    """The lines of the totals: those of the block that begins with our name."""
    return summary[summary.index("compilediag: ") :].split("\n\n")[0].splitlines()


def test_the_totals_are_one_block(summary_of):
    recompiles = [compiled(compile_id=f"0/{k}", is_recompile=True) for k in (1, 2)]
    lookups = [lookup("hit", saved_s=9.8), *(lookup("miss", compile_id=f"0/{k}") for k in range(3))]
    first, second = list_totals(summary_of(compiled(), *recompiles, *sizes("4", "6", "9"), *lookups, graph_break()))
    assert first == "compilediag: 3 compiles took 6.0 s; 2 recompiles cost 2.0 s"
    assert second == "1 cache hit saved 9.8 s, 3 misses; 1 graph break; compilediag overhead 500 ms (8.3 %)"


def test_a_healthy_session(summary_of):
    text = summary_of(compiled())
    assert list_totals(text) == [
        "compilediag: 1 compile took 2.0 s; 0 recompiles",
        "0 cache hits, 0 misses; 0 graph breaks; compilediag overhead 500 ms (25 %)",
    ]
    assert "\n\nNothing to fix.\n\n" in text


def test_findings_stand_ranked_and_what_the_plan_says_is_not_said_again(summary_of):
    rows = [
        *sizes("4", "6", "7", "9", "12", lost_s=1.525),
        *changes("mode", "value", "'a'", "'b'", user_file="/a/m.py", user_line=7, user_code="if mode:"),
    ]
    text = summary_of(compiled(), *rows)
    plan, findings = text.split("compilediag: ")
    assert "torch.compiler.config.dynamic_sources = \"L['x']\"" in plan and "dynamic_sources" not in findings
    flat = " ".join(findings.split())
    first = "1. forward (model.py:30) recompiled 4x, 6.1 s lost: x.shape[0] was 4, then 6, 7, 9, 12 Step 1 of the plan."
    second = "2. forward (model.py:30) recompiled once, 1.0 s lost: mode was 'a', then 'b' at m.py:7: if mode:"
    assert flat.index(first) < flat.index(second)
    assert "few values" in flat, "what no step resolves keeps its advice"
    assert text.splitlines()[-1].startswith("More: session.dashboard()")


def test_what_was_not_collected_is_reported_instead_of_numbers(summary_of):
    names = ("compiles", "recompiles", "fx_graph_cache", "graph_breaks")
    text = summary_of(*(source(name, "unavailable", OTHER) for name in names), feed_name="phases")
    assert text.startswith("compilediag: compiles not collected; recompiles not collected\n")
    assert "cache lookups not collected; graph breaks not collected" in text
    assert "Nothing to fix in the collected data." in text and "0 recompiles" not in text
    missed = next(line for line in text.splitlines() if line.startswith("Not collected: "))
    assert missed == f"Not collected: compiles, recompiles, lookups in FxGraphCache, graph breaks: {OTHER}"


def test_tuning_and_cuda_graphs_have_a_line_where_there_were_any(summary_of):
    runs = [*tuning("1"), *tuning("2", {"mm": 0.1, "triton_mm_1": "out of resource"})]
    graphs = [graph("record"), graph("rerecord"), graph("rerecord"), graph("replays", count=1234)]
    line = "2 autotuning runs took 1.6 s, 1 choice failed; CUDA graphs: 1x captured, 2x re-recorded, 1,234x replayed"
    assert " ".join(list_totals(summary_of(compiled(), *runs, *graphs))[2:]) == line


def test_what_was_collected_in_part_is_a_lower_bound(summary_of):
    failed = [source(name, "failed", "why") for name in ("select_algorithm", "cudagraphs", "aot_autograd_cache")]
    totals = "; ".join(list_totals(summary_of(*failed, *tuning(), graph("skip"), lookup("miss"))))
    assert "cache lookups partly collected: 0 cache hits, 1 miss" in totals
    assert "at least 1 autotuning run took" in totals and "CUDA graphs: at least 1x skipped" in totals


def test_refused_calls_have_a_line_where_there_were_any(summary_of):
    assert "1,200 refused calls" in list_totals(summary_of(refused(count=1200)))


def test_eager_calls_have_a_line_where_calls_were_counted(summary_of):
    (line,) = list_totals(summary_of(source("calls", "active"), compiled(), called("eager", 3, 0, each=0.1)))[2:]
    assert line == "3 calls fell back to eager: 1.2 s"


def test_recompile_limits_are_among_the_totals(summary_of):
    assert "0 graph breaks, 1 recompile limit reached;" in summary_of(compiled(limit="recompile_limit"))


def test_only_so_many_findings_are_listed(summary_of):
    text = summary_of(*(graph_break(user_line=n, reason=f"reason {n}") for n in range(25)))
    assert "\n10. " in text and "\n11. " not in text
    assert "... and 15 more in session.findings()" in text


def test_no_line_is_wider_than_a_terminal(summary_of):
    names = [f"self.blocks.attention.projection.{'weight' * 3}.{n}" for n in range(9)]
    rows = [row for name in names for row in sizes("4", "6", "8", tensor=name)]
    text = summary_of(*rows, source("remote_cache", "failed", "word " * 60))
    assert max(len(line) for line in text.splitlines()) <= 100


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_it_prints_where_the_users_characters_do_not(encoding, summary_of, monkeypatch):
    rows = changes("größe", "value", "'☃'", "'b'", function="прямо", user_code="x = '☃\ud800'")
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    text = summary_of(*(dataclasses.replace(row, user_file="/a.py", user_line=1) for row in rows))
    assert text.encode(encoding)


def test_its_own_words_are_ascii(summary_of):
    rows = [*sizes("4", "6", "8"), *changes("k", "value", "None", "3"), compiled(limit="recompile_limit")]
    assert summary_of(*rows, graph_break(), source("remote_cache", "failed", "why")).isascii()
