"""Two sessions compared with each other."""

import gzip

import pytest

import compilediag as cd
from compilediag.events import AutotuneChoice, CacheLookup, Compile, GraphBreak, Phase
from tests.inside import main, read_page

from .log_builder import compile_, golden, metrics, reasons, start, string
from .tables_builder import ALL_ACTIVE, FORWARD, SECOND, recompile, refused


@pytest.fixture
def compare(session_of):
    """`compare(before, after)`: [(kind, change, before, after, worse)] of two lists of events, all collected."""

    def run(before, after):
        found = cd.diff(session_of(*before, *ALL_ACTIVE), session_of(*after, *ALL_ACTIVE))
        return [(c.kind, c.change, c.before, c.after, c.worse) for c in found.changes]

    return run


def compiled(duration_s=1.0, **more):
    return Compile(time_ns=SECOND, duration_s=duration_s, **{**FORWARD, "outcome": "ok", **more})


def test_compiles_that_are_new_gone_more_or_slower(compare):
    other = {"function": "g", "line": 50}
    assert compare([], [compiled()]) == [("compile", "new", "0", "1", True)]
    assert compare([compiled()], []) == [("compile", "gone", "1", "0", False)]
    assert compare([compiled()], [compiled(), compiled()]) == [("compile", "more", "1", "2", True)]
    assert compare([compiled(1.0)], [compiled(3.0)]) == [("compile", "slower", "1", "1", True)]
    assert compare([compiled(1.0)], [compiled(1.1)]) == []  # Noise.
    assert compare([compiled(), compiled(**other)], [compiled(), compiled(0.2, **other)])[0][1] == "faster"


def test_functions_are_the_same_in_another_checkout_and_after_an_edit(compare):
    moved = {"file": "/ci/build/ada/model.py", "line": 34}
    assert compare([compiled()], [compiled(**moved)]) == []
    lambdas = [compiled(function="<lambda>", line=line) for line in (3, 7)]
    shifted = [compiled(function="<lambda>", line=line) for line in (5, 9)]
    assert compare(lambdas, shifted) == []
    assert compare(lambdas, lambdas[1:]) == [("compile", "gone", "1", "0", False)]


def test_recompiles_are_compared_by_cause(compare, session_of):
    before = [recompile("x.size()[0]", "tensor_size", "3", "4"), recompile("n", "value", "1", "2")]
    after = [recompile("n", "value", "1", "2"), recompile("n", "value", "2", "3"), recompile("k", "type")]
    assert compare(before, after) == [
        ("recompile", "new", "0", "1", True),
        ("recompile", "more", "1", "2", True),
        ("recompile", "gone", "1", "0", False),
    ]
    sessions = session_of(*before, *ALL_ACTIVE), session_of(*after, *ALL_ACTIVE)
    (_, first, _) = cd.diff(*sessions).changes
    assert "forward (model.py:30) for n (value): 1 -> 2, +1.0 s" in first.title
    assert sessions[1].recompiles.set_index("event_id").loc[[*first.evidence_after], "actual"].tolist() == ["2", "3"]


def test_refused_calls_are_compared_by_cause(compare):
    before = [compiled(), refused(count=2), refused(guard_source="n", guard_kind="value", compile_key="k", count=1)]
    after = [compiled(line=34), refused(count=7, line=34), refused(count=1, line=34, compile_key="j")]
    assert compare(before, after) == [
        ("refused_call", "more", "2", "8", True),
        ("refused_call", "gone", "1", "0", False),
    ]
    assert compare(before, [compiled(), refused(ran="unchecked", count=9)])[0][:2] == ("refused_call", "gone")


def test_a_change_names_its_cause_as_the_findings_do(session_of):
    broken = GraphBreak(time_ns=SECOND, break_id="GB0025", reason="a break", user_file="m.py", user_line=3)
    failed = compiled(outcome="failed", fail_reason="no")
    causes = [recompile("n", "value", "1", "2"), broken, refused(), failed]
    known, new = session_of(compiled(), *ALL_ACTIVE), session_of(compiled(), *causes, *ALL_ACTIVE)
    names = {finding.fingerprint for finding in new.findings()}
    for one, other in ((known, new), (new, known)):
        frame = cd.diff(one, other).frame.set_index("kind")["fingerprint"]
        assert {*frame[["failure", "recompile", "refused_call", "graph_break"]]} == names and len(names) == 4
        assert frame[["compile"]].isna().all()


def test_failures_breaks_and_look_ups(compare):
    miss, hit = (CacheLookup(time_ns=SECOND, cache="fx_graph", tier="local", outcome=o) for o in ("miss", "hit"))
    broken = GraphBreak(time_ns=SECOND, break_id="GB0025", reason="a break", user_file="m.py", user_line=3)
    assert compare([compiled()], [compiled(outcome="failed")]) == [("failure", "new", "0", "1", True)]
    assert compare([compiled(limit="recompile_limit")], [compiled()]) == [("failure", "gone", "1", "0", False)]
    assert compare([], [broken]) == [("graph_break", "new", "0", "1", True)]
    assert compare([hit], [miss]) == [("cache", "gone", "1", "0", True), ("cache", "new", "0", "1", True)]


def test_winners_and_phases(compare):
    def tuned(choice, time_ms):
        row = {"op": "mm", "inputs": ["f32[8, 8]"], "choice": choice, "time_ms": time_ms, "is_winner": True}
        return AutotuneChoice(time_ns=SECOND, run_id="1", **row)

    def phase(seconds):
        return Phase(time_ns=SECOND, duration_s=seconds, name="code_gen")

    assert compare([tuned("triton_1", 0.2)], [tuned("mm", 0.1)]) == [("autotune", "other", "triton_1", "mm", None)]
    assert compare([tuned("triton_1", 0.1)], [tuned("mm", 0.2)])[0][-1] is True
    assert compare([phase(1.0)], [phase(1.0), phase(2.0)]) == [("phase", "slower", "1.0 s", "3.0 s", True)]


def test_a_table_that_one_session_did_not_collect_is_not_compared(session_of):
    some = [state for state in ALL_ACTIVE if state.name != "recompiles"]
    found = cd.diff(session_of(*ALL_ACTIVE), session_of(*some, recompile("n", "value")))
    assert found.changes == [] and found.uncompared["recompiles"] == "not collected after"


@pytest.fixture
def logs(tmp_path):
    one, other = tmp_path / "before.log", tmp_path / "after.log.gz"
    one.write_text(compile_())
    other.write_bytes(gzip.compress(
        (compile_() + reasons("0/0: L['n'] == 1", at=2) + start(2, compile_id="0/1") + metrics(9, "0/1")).encode()
    ))  # fmt: skip
    return one, other


def test_the_diff_of_logs_as_frame_text_and_page(logs, tmp_path):
    found = cd.diff(*logs)
    assert found.frame["kind"].tolist() == ["recompile", "compile"] and found.frame["worse"].all()
    assert [*found.frame["evidence_after"].map(len)] == [1, 2]
    assert "compiles 1 -> 2, recompiles 0 -> 1" in found.summary() and "for n (value): 0 -> 1" in found.summary()
    page = read_page(found.report(tmp_path / "diff.html"))
    assert "default-src 'none'" in page and '"label":"Recompiles by cause"' in page
    assert "for n (value): 0 -&gt; 1" in page, "it is there as text where no script runs"


def test_the_same_session_has_no_differences(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(golden())
    session = cd.ingest(log, tmp_path / "a.cdiag")
    found = cd.diff(session, tmp_path / "a.cdiag")
    assert found.changes == [] and "No differences." in found.summary() and found.frame.empty


def test_names_of_functions_are_text_on_the_page(tmp_path):
    log = tmp_path / "a.log"
    log.write_text(metrics(co_name="<script>alert(1)</script>"))
    (tmp_path / "b.log").write_text(string())
    page = read_page(cd.diff(tmp_path / "b.log", log).report(tmp_path / "d.html"))
    assert "<script>" not in page and page.count("<script") == 2
    assert "&lt;script&gt;alert(1)" in page and "\\u003cscript\\u003ealert(1)" in page


def test_the_command(capsys, logs, tmp_path):
    assert main(["diff", *logs, "--report", tmp_path / "d.html"]) == 0
    assert "Worse:" in capsys.readouterr().out and (tmp_path / "d.html").exists()
    assert main(["diff", logs[0], tmp_path / "none"]) == 2
