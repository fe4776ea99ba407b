"""Decoders, rules and panels of another package, found by its entry points; what fails costs itself alone."""

import subprocess
import sys

import pytest

import compilediag
from compilediag.diagnosis import diagnose
from compilediag.system import plugins
from tests.inside import read_page
from tests.unit.sample_plugin import on_the_path
from tests.unit.session_builder import page_of, saved
from tests.unit.tables_builder import changes, compiled, tables

LOG = (
    'V0101 10:00:00.000000 77 torch/x.py:1] {"sample_record": {"by": "us"}, "frame_id": 0, "frame_compile_id": 0, '
    '"has_payload": "5d41402abc4b2a76b9719d911017c592"}\n\thello\n'
    'V0101 10:00:00.000001 77 torch/x.py:1] {"other_record": {}}\n'
)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    with on_the_path(tmp_path / "site", monkeypatch) as folder:
        yield folder


def test_a_rule_about_guards_is_one_row_and_is_tried_before_ours(installed, tmp_path):
    session = saved(tmp_path, *changes("x.device", "tensor_device", "cpu", "odd"))
    (found,) = session.findings()
    action, why = "Move x away from the odd device.", "Its device was cpu, then odd."
    assert (found.rule, found.suggestion) == ("odd_device", f"{action} {why}")
    (step,) = session.plan().steps
    assert (step.rule, step.change, step.why) == ("odd_device", action, why)
    others = diagnose(tables(*changes("x.device", "tensor_device", "cpu", "cuda")))
    assert {one.rule for one in others} == {"device_changes"}


def test_a_rule_about_guards_that_fails_leaves_the_cause_to_ours(installed):
    found = diagnose(tables(*changes("x.dtype", "tensor_dtype", "torch.float32", "torch.float64")))
    assert {one.rule for one in found} == {"dtype_changes"}
    failed = {plugin.name: plugin.reason for plugin in plugins.list_failed()}
    assert failed["broken_rule"] == "KeyError: 'no_such_fact'"


def test_nothing_is_imported_before_it_is_used(installed):
    assert [plugin.name for plugin in plugins.list_plugins("panels")] == ["broken_panel", "by_function"]
    assert "sample_plugin" not in sys.modules


def test_a_failing_plugin_is_reported_once_counted_and_disabled_after_five_errors(installed, tmp_path):
    session = saved(tmp_path, compiled())
    for _ in range(9):
        assert [f.rule for f in session.findings()] == ["many_compiles"]
    failed = {plugin.name: (plugin.failures, plugin.reason) for plugin in plugins.list_failed()}
    assert failed == {
        "broken": (5, "ValueError: no such table"),
        "missing": (5, "ModuleNotFoundError: No module named 'sample_plugin_that_is_not_there'"),
        "wrong": (5, "TypeError: a rule has to return compilediag.diagnosis.Finding objects"),
    }
    assert len(sys.modules["sample_plugin"].asked) == plugins.MAX_ERRORS
    assert (
        plugins.explain_failures()["rule broken of sample-plugin, a plug-in"]
        == "it failed 5x: ValueError: no such table"
    )


def test_panels_are_tables_and_one_that_fails_says_why(installed, tmp_path):
    session = saved(tmp_path, compiled(), compiled(duration_s=0.5), compiled(function=None))
    broken, sums = page_of(session)["panels"]
    assert (broken["rows"], broken["note"]) == ([], "panel broken_panel of sample-plugin: ValueError: no such table")
    assert (sums["name"], sums["label"], sums["note"]) == ("panel:by_function", "by function", None)
    assert sums["columns"] == ["function", "compiles", "seconds"]
    assert sums["rows"] == [["forward", 2, 2.5], [None, 1, 2.0]]


@pytest.mark.parametrize(
    ("panel", "rows", "note"),
    [
        ({"columns": ["a", "b"], "rows": ([n, {"n": n}, "more"] for n in range(9_000))}, [0, "{'n': 0}"], "the first "),
        ({"columns": ["a", "b"], "rows": [[float("inf")]]}, [None, None], ""),
        ({"columns": "ab", "rows": []}, None, "panel by_function of sample-plugin: ValueError: "),
    ],
)
def test_panels_are_cut_and_hold_nothing_but_plain_cells(installed, tmp_path, monkeypatch, panel, rows, note):
    import sample_plugin

    monkeypatch.setattr(sample_plugin, "by_function", lambda tables: panel)
    _, made = page_of(saved(tmp_path, compiled()))["panels"]
    assert (made["note"] or "").startswith(note) and len(made["rows"]) < 9_000
    assert made["rows"][:1] == ([] if rows is None else [rows])


def test_a_record_that_only_a_plugin_knows_is_decoded_and_one_that_nobody_knows_is_counted(installed, tmp_path):
    log = tmp_path / "dedicated_log_torch_trace_rank_0.log"
    log.write_text(LOG)
    session = compilediag.ingest(log)
    (row,) = session.graph_breaks.to_dict("records")
    assert (row["reason"], row["user_line"], row["compile_id"]) == ("recorded by us", 7, "0/0")
    texts = session.artifacts.set_index("name")["event_id"]
    assert session.artifact(texts["sample_text"]) == "the text was 'hello'"
    details = " ".join(str(row["reason"]) for row in session.status())
    assert "other_record" in details and "sample_record" not in details


SCRIPT = """
import compilediag
session = compilediag.ingest({log!r})
print(session.summary())
print([row for row in session.status() if row["status"] == "failed"])
session.report({report!r})
"""


@pytest.mark.slow
def test_a_process_with_the_package_on_its_path_says_what_failed_and_shows_the_panel(installed, tmp_path):
    log, report = tmp_path / "a.log", tmp_path / "r.html"
    log.write_text(LOG)
    script = f"import sys; sys.path.insert(0, {str(installed)!r})" + SCRIPT.format(log=str(log), report=str(report))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    text = " ".join(run.stdout.split())
    assert "Not collected: rule broken of sample-plugin, a plug-in: it failed" in text
    assert "{'name': 'rule missing of sample-plugin', 'status': 'failed', 'reason': \"ModuleNotFoundError" in text
    assert '"panel:by_function"' in read_page(report)
