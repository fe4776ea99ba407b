"""The plain-text summary: what it says, and that it prints anywhere."""

import pytest

from compilediag.diagnosis import diagnose, explain_gaps, find_gaps
from compilediag.diagnosis.plan import Plan, make_plan
from compilediag.diagnosis.rules import coverage
from compilediag.document import WIDTH, escape_unprintable, to_text
from compilediag.views.summary import SessionResults, describe_summary
from tests.unit.tables_builder import changes, compiled, graph_break, sizes, source, tables

TOTALS = {
    "compiles": 14,
    "recompiles": 6,
    "compile_s": 21.4,
    "lost_s": 12.6,
    "cache_hits": 3,
    "cache_misses": 11,
    "cache_saved_s": 9.8,
    "refused_calls": 0,
    "graph_breaks": 1,
    "limit_hits": 0,
    "own_s": 0.06,
    "own_share": 0.003,
    "events": 99,
    "dropped": 0,
    "tuning_runs": 0,
    "tuning_s": 0.0,
    "tuning_failed": 0,
    "graph_records": 0,
    "graph_rerecords": 0,
    "graph_skips": 0,
    "graph_replays": None,
    "compiled_calls": None,
    "eager_calls": None,
    "eager_s": None,
    "used_once": None,
    "used_once_s": None,
    "ranks": None,
    "ranks_read": None,
    "vllm_compiles": 0,
    "vllm_s": 0.0,
}


def text_of(*events, plan=None, **changed):
    made = tables(*events)
    findings = [finding for finding in diagnose(made) if finding.rule != "not_observed"]
    results = SessionResults({**TOTALS, **changed}, findings, plan or Plan(), explain_gaps(made), find_gaps(made))
    return to_text(describe_summary(results)) + "\n"


def test_the_header_has_the_totals():
    lines = text_of().splitlines()
    assert lines[0] == "compilediag: 14 compiles took 21.4 s; 6 recompiles cost 12.6 s"
    assert lines[1] == "3 cache hits saved 9.8 s, 11 misses; 1 graph break; compilediag overhead 60 ms (0.3 %)"


def test_a_healthy_session():
    lines = text_of(compiled(), compiles=1, recompiles=0, lost_s=0.0, cache_hits=0, own_share=None).splitlines()
    assert lines[0] == "compilediag: 1 compile took 21.4 s; 0 recompiles"
    assert lines[1] == "0 cache hits, 11 misses; 1 graph break; compilediag overhead 60 ms"
    assert "Nothing to fix." in lines


def test_findings_stand_ranked_with_what_to_do():
    rows = [
        *sizes("4", "6", "7", "9", "12", lost_s=1.525),
        *changes("flag", "value", "True", "False", user_file="/a/m.py", user_line=7, user_code="if flag:"),
    ]
    text = text_of(*rows)
    flat = " ".join(text.split())
    assert "1. forward (model.py:30) recompiled 4x, 6.1 s lost: x.size(0) was 4, then 6, 7, 9, 12" in flat
    assert "Mark it dynamic before the call: torch._dynamo.maybe_mark_dynamic(x, 0)." in flat
    assert "To try it without editing code: torch.compiler.config.dynamic_sources = \"L['x']\"" in flat
    assert "2. forward (model.py:30) recompiled once, 1.0 s lost: flag was True, then False at m.py:7: if flag:" in flat
    assert flat.index("1. forward") < flat.index("2. forward")
    assert text.splitlines()[-1].startswith("More: session.dashboard()")


def test_what_the_plan_says_is_not_said_again():
    rows = [*sizes("4", "6", "9"), *changes("mode", "value", "'a'", "'b'")]
    text = text_of(compiled(), *rows, plan=make_plan(tables(compiled(), *rows)))
    plan, findings = text.split("compilediag: ")
    assert "dynamic_sources" in plan
    assert "x.size(0) was 4, then 6, 9\n   Step 1 of the plan.\n" in findings and "dynamic_sources" not in findings
    assert "few values" in " ".join(findings.split()), "what no step resolves keeps its advice"


def test_what_was_not_collected_is_reported_instead_of_numbers():
    gone = [
        source(name, "unavailable", "no such hook")
        for name in ("compiles", "recompiles", "fx_graph_cache", "graph_breaks")
    ]
    text = text_of(*gone, compiles=0, recompiles=0, cache_hits=0, cache_misses=0)
    assert text.startswith("compilediag: compiles not collected; recompiles not collected\n")
    assert "cache lookups not collected; graph breaks not collected" in text
    assert "Nothing to fix in the collected data." in text
    missed = next(line for line in text.splitlines() if line.startswith("Not collected: "))
    assert missed == "Not collected: compiles, recompiles, lookups in FxGraphCache, graph breaks: no such hook"
    assert "0 recompiles" not in text


def test_tuning_and_cuda_graphs_have_a_line_where_there_were_any():
    tuned = {"tuning_runs": 8, "tuning_s": 29.94, "tuning_failed": 18}
    graphs = {"graph_records": 2, "graph_rerecords": 9, "graph_skips": 1, "graph_replays": 1234}
    line = "8 autotuning runs took 29.9 s, 18 choices failed; CUDA graphs: 2x captured, 9x re-recorded, 1x"
    assert text_of(**tuned, **graphs).splitlines()[2:4] == [line, "skipped, 1,234x replayed"]
    assert "tuning" not in text_of() and "CUDA" not in text_of()
    assert text_of(graph_skips=1).splitlines()[2] == "CUDA graphs: 1x skipped"


def test_refused_calls_have_a_line_where_there_were_any():
    assert text_of(refused_calls=1200).splitlines()[2] == "1,200 refused calls"
    assert text_of(source("refusals", "unavailable", "no such hook"), refused_calls=1).splitlines()[2] == (
        "at least 1 refused call"
    )
    assert "refused" not in text_of()


def test_entries_that_were_used_once_and_eager_calls_have_a_line_where_calls_were_counted():
    counts = {"used_once": 4, "used_once_s": 8.2, "eager_calls": 1, "eager_s": 0.3}
    lines = text_of(**counts).splitlines()
    assert lines[2] == "4 entries were compiled and called once: 8.2 s; 1 call fell back to eager: 300 ms"
    assert text_of(used_once=0, used_once_s=0.0, eager_calls=0, eager_s=0.0).splitlines()[2] == "", "all is well"
    assert text_of().splitlines()[2] == "", "nobody counted"


def test_what_was_collected_in_part_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(coverage, "FEEDS", {t: (t,) for t in ("autotune", "cudagraphs")})
    monkeypatch.setattr(coverage, "PARTS", {"compile_caches": ("compile_caches",)})
    gone = [source(name, "failed", "why") for name in (*coverage.FEEDS, *coverage.PARTS)]
    text = text_of(*gone, tuning_runs=1, tuning_s=2.0, graph_records=1)
    assert "cache lookups partly collected: 3 cache hits saved 9.8 s, 11 misses" in text
    assert "at least 1 autotuning run took 2.0 s; CUDA graphs: at least 1x captured" in text


def test_recompile_limits_are_in_the_header():
    assert "1 graph break, 2 recompile limits reached;" in text_of(limit_hits=2)


def test_only_so_many_findings_are_listed():
    breaks = [graph_break(user_line=n, reason=f"reason {n}") for n in range(25)]
    text = text_of(*breaks)
    assert "\n10. " in text
    assert "\n11. " not in text
    assert "... and 15 more in session.findings()" in text


def test_no_line_is_wider_than_a_terminal():
    names = [f"self.blocks.attention.projection.{'weight' * 3}.{n}" for n in range(9)]
    text = text_of(
        *[row for name in names for row in sizes("4", "6", "8", tensor=name)],
        *[source("remote_cache", "failed", "word " * 60)],
    )
    assert max(len(line) for line in text.splitlines()) <= WIDTH


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_it_prints_where_the_users_characters_do_not(encoding):
    rows = changes("größe", "value", "'☃'", "'\ud800'", function="прямо", user_code="x = '☃'")
    text = escape_unprintable(text_of(*rows), encoding)
    assert text.encode(encoding)
    assert "\\ud800" in text


def test_its_own_words_are_ascii():
    rows = [
        *sizes("4", "6", "8"),
        *changes("k", "value", "None", "3"),
        compiled(limit="recompile_limit"),
        graph_break(),
    ]
    text = text_of(*rows, source("remote_cache", "failed", "why"))
    assert text.isascii()
