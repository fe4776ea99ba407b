"""Limits and what breaks them."""

import gzip
from dataclasses import replace

import pytest

from compilediag.diagnosis import FEEDS
from compilediag.events import Compile, GraphBreak, SourceStatus, WarmupEnd
from tests.inside import main

from .log_builder import GOLDEN, artifact, compile_
from .session_builder import saved, stored
from .tables_builder import FORWARD, SECOND, called, recompile

NAMES = sorted({name for names in FEEDS.values() for name in names})


@pytest.fixture
def session(session_of):
    """`session(*events)`: the file of a session in which every source but `off` was active."""

    def make(*events, off=()):
        states = [
            SourceStatus(time_ns=SECOND, name=n, status="failed" if n in off else "active", reason="it broke")
            for n in NAMES
        ]
        return session_of(*events, *states).path

    return make


@pytest.fixture
def check(capsys):
    """`check(file, *options)`: the totals, and {what is broken: its causes}."""

    def run(file, *options):
        code = main(["check", file, *options])
        head, *lines = capsys.readouterr().out.splitlines()
        state, _, totals = head.removeprefix("compilediag check: ").partition(": ")
        broken = {}
        for line in lines:
            if line.startswith("  "):
                broken[[*broken][-1]].append(line.strip())
            else:
                broken[line] = []
        assert (code, state) == ((1, "FAILED") if broken else (0, "passed"))
        return totals, broken

    return run


def compiled(**more):
    return Compile(time_ns=SECOND, duration_s=2.0, **{**FORWARD, "outcome": "ok", **more})


ALL = ("--max-recompiles", 1, "--max-compile-s", 2.0, "--max-graph-breaks", 0, "--no-silent-eager")


def test_a_session_within_its_limits_passes(session, check):
    file = session(compiled(), recompile("n", "value", "1", "2"))
    assert check(file, *ALL) == ("1 compile, 1 recompile, 0 graph breaks, 2.0 s compiling", {})


def test_each_limit_is_broken_with_its_causes(session, check):
    broken = GraphBreak(time_ns=SECOND, reason="why", user_file="/m.py", user_line=3, user_code="print(x)")
    events = [compiled(), compiled(limit="recompile_limit", outcome="skipped"), broken]
    events += [recompile("n", "value", str(n), str(n + 1), n) for n in range(1, 4)]
    limits = ("--max-recompiles", 2, "--max-compile-s", 3.5, "--max-graph-breaks", 0, "--no-silent-eager")
    _, found = check(session(*events), *limits)
    recompiled, slow, breaks, eager = found
    assert recompiled == "3 recompiles, at most 2 allowed:" and "n was 1, then 2, 3, 4" in found[recompiled][0]
    assert slow == "4.0 s compiling, at most 3.5 s allowed:"
    assert found[slow] == ["forward (model.py:30): 4.0 s in 2 compiles"]
    assert found[breaks] == ["m.py:3: print(x) (why)"]
    hit = "forward (model.py:30): it hit recompile_limit"
    assert found[eager] == [f"{hit}: no call ran eagerly since"]
    assert check(session(*events, off={"calls"}), "--no-silent-eager")[1] == {eager: [hit]}, "nobody counted"
    _, counted = check(session(*events, called("eager", 11)), "--no-silent-eager")
    assert counted == {eager: [f"{hit}: 11 calls ran eagerly since, 200 ms"]}


def test_a_function_that_fell_back_to_eager_before_the_watch_does_not_pass(session, check):
    eager = called("eager", 2, compile_id=None, function="before")
    assert check(session(compiled(), called("compiled", 5), eager), "--no-silent-eager")[1] == {
        "1 function runs eagerly since before this session began:": [
            "before (model.py:30): 2 calls ran eagerly since, 110 ms"
        ]
    }


def test_nothing_collected_does_not_pass(session, check):
    nothing = "nothing was compiled, so the limits cannot be checked"
    assert check(session(), "--max-recompiles", 0)[1] == {nothing: []}
    blind = session(compiled(), off={"recompiles"})
    ((title, causes),) = check(blind, "--max-recompiles", 0)[1].items()
    assert title.startswith("recompiles were not collected") and "it broke" in causes[0]
    assert check(blind, "--max-compile-s", 9)[1] == {}


def test_a_baseline_allows_the_causes_that_it_has(session, check):
    known, new = recompile("n", "value", "1", "2"), recompile("k", "type", "int", "float")
    baseline = ("--baseline", session(compiled(), known))
    assert check(session(compiled(), known, known), *baseline)[1] == {}
    ((title, causes),) = check(session(compiled(), known, new), *baseline)[1].items()
    assert title == "1 cause not in the baseline:" and "for k (type)" in causes[0]


def test_many_causes_are_a_few_lines(session, check):
    compiles = [compiled(function=f"f{number}") for number in range(9)]
    (causes,) = check(session(*compiles), "--max-compile-s", 1)[1].values()
    assert len(causes) == 6 and causes[5] == "... and 4 more"


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "a.log").write_bytes(gzip.decompress(GOLDEN.read_bytes()))
    return tmp_path / "a.log"


@pytest.mark.slow
def test_the_command_on_logs(check, logs, tmp_path):
    _, broken = check(logs, "--max-recompiles", 3, "--report", tmp_path / "r.html")
    (causes,) = broken.values()
    assert any("x.shape[0] was 3, then 4, 1" in cause for cause in causes) and len(causes) < 20
    assert (tmp_path / "r.html").exists()
    assert check(logs, "--max-recompiles", 100, "--baseline", logs)[1] == {}


def test_a_run_that_compiles_nothing_fails(check, tmp_path):
    """As a log and a session (tests/live has the script): the file is right, but no limit was tested."""
    (tmp_path / "a.log").write_text(artifact("torch_version", {}))
    for file in (tmp_path / "a.log", saved(tmp_path).path):
        assert [*check(file, "--max-recompiles", 0)[1]] == ["nothing was compiled, so the limits cannot be checked"]


def test_a_check_of_nothing_is_refused(capsys, tmp_path):
    (tmp_path / "a.log").write_text(compile_())
    assert main(["check", tmp_path / "a.log"]) == 2
    assert "no limit given; pass --max-recompiles" in capsys.readouterr().err


END = WarmupEnd(time_ns=SECOND, on_compile="count", ended_by="end_warmup")


def test_what_compiled_after_the_warm_up_breaks_its_limit(session, check):
    early, late = replace(compiled(), time_ns=SECOND - 1), compiled(step=25)
    assert check(session(early, END), "--max-after-warmup", 0)[1] == {}
    assert check(session(early, END, late), "--max-after-warmup", 1)[1] == {}
    _, found = check(session(early, END, late, compiled()), "--max-after-warmup", 1)
    assert found == {
        "2 incidents after the warm-up, at most 1 allowed:": [
            "compile of forward (model.py:30) at step 25, 2.0 s: it was not compiled before",
            "compile of forward (model.py:30), 2.0 s: it was not compiled before",
        ]
    }


@pytest.mark.parametrize(
    ("events", "whose"),
    [
        ([compiled()], "the warm-up never ended"),
        ([compiled(rank=0), compiled(rank=1), replace(END, rank=0)], "the warm-up of rank 1 never ended"),
    ],
)
def test_a_warm_up_that_never_ended_is_no_pass_but_a_wrong_session(tmp_path, capsys, events, whose):
    file = str(stored(tmp_path, *events).path)
    assert main(["check", file, "--max-after-warmup", "0"]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.count("\n") == 1 and whose in error and file in error
