"""The watch of a training without a trainer: its numbers, several ranks, and that it never raises.

tests/libraries/test_callbacks.py has the callbacks in real trainings.
"""

import logging

import pytest
import torch

import compilediag as cd
from compilediag.integrations import read_metrics
from compilediag.integrations.training_watch import TrainingWatch


def compile_sizes(*sizes):
    function = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    for size in sizes:
        function(torch.ones(size))


def test_importing_it_needs_no_library_and_using_one_that_is_missing_says_so(python_without):
    missing = {"transformers", "lightning", "pytorch_lightning", "torch", "pandas"}
    code = """
import compilediag as cd
integrations = cd.integrations
loaded = set(sys.modules) & {"transformers", "lightning", "torch"}
print(sorted(loaded), set(integrations.__all__) <= set(dir(integrations)))
for name in ("TransformersCallback", "LightningCallback", "Other"):
    try:
        getattr(integrations, name)
    except (ImportError, AttributeError) as error:
        print(error)
"""
    done = python_without(missing, code)
    assert done.stdout.splitlines() == [
        "[] True",
        "this callback needs transformers: pip install transformers",
        "this callback needs lightning: pip install lightning",
        "module 'compilediag.integrations' has no attribute 'Other'",
    ], done.stderr


def test_the_numbers_are_those_of_the_session(tmp_path, capsys):
    watch = TrainingWatch(tmp_path / "new" / "run.cdiag", tmp_path / "reports" / "run.html", "full", True)
    assert watch.read_metrics() == {}
    watch.begin(ranks=1, is_first=True)
    compile_sizes(2, 3, 4)
    metrics = watch.read_metrics()
    watch.end()
    watch.end()
    session = cd.load(tmp_path / "new" / "run.cdiag")
    assert metrics == read_metrics(session) == read_metrics(watch.session)
    assert (metrics["compilediag/compiles"], metrics["compilediag/recompiles"]) == (3, 2)
    assert metrics["compilediag/lost_s"] == pytest.approx(session.recompiles["lost_s"].sum())
    assert (tmp_path / "reports" / "run.html").exists()
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("compilediag: 3 compiles, 2 recompiles, ") == 1
    assert captured.err.startswith(str(session.plan()).splitlines()[0])


def test_other_ranks_record_and_print_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    watch = TrainingWatch(str(tmp_path / "run.cdiag"), tmp_path / "run.html", "full", True)
    watch.begin(ranks=2, is_first=False)
    compile_sizes(2, 3)
    assert watch.read_metrics() == {}
    watch.end()
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["rank-1.cdiag"]
    assert not (tmp_path / "run.html").exists() and capsys.readouterr() == ("", "")


def test_a_watch_around_the_training_goes_on(tmp_path, capsys):
    with cd.watch(tmp_path / "outer.cdiag") as outer:
        watch = TrainingWatch(tmp_path / "run.cdiag", None, "full", True)
        watch.begin(ranks=1, is_first=True)
        compile_sizes(2, 3)
        watch.end()
        assert watch.session is outer and outer.state == "watching"
    assert "the session was not kept" in capsys.readouterr().err and not (tmp_path / "run.cdiag").exists()


def test_what_fails_is_logged_and_the_training_goes_on(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING, "compilediag"):
        watch = TrainingWatch(tmp_path / "file" / "run.cdiag", None, "full", True)
        watch.begin(ranks=1, is_first=True)
        assert watch.session is None and watch.read_metrics() == {}
        watch.end()
        other = TrainingWatch(None, tmp_path / "file" / "run.html", "full", True)
        other.begin(ranks=1, is_first=True)
        other.end()
    assert cd.current() is None and other.session.state == "stopped"
    first, second = caplog.messages
    assert first.startswith("compilediag: begin failed, the training goes on: ")
    assert second.startswith("compilediag: end failed, the training goes on: ")
