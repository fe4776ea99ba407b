"""Limits and what breaks them."""

import gzip
import json
import tomllib
from dataclasses import replace

import pytest

from compilediag.events import Compile, CudaGraphAction, GraphBreak, WarmupEnd
from tests.inside import main

from .log_builder import GOLDEN, artifact, compile_
from .session_builder import saved, stored
from .tables_builder import ALL_ACTIVE, FORWARD, SECOND, called, recompile


@pytest.fixture
def session(session_of):
    """`session(*events)`: the file of a session in which every source but `off` was active."""

    def make(*events, off=()):
        failed = {"status": "failed", "reason": "it broke"}
        states = [replace(state, **failed) if state.name in off else state for state in ALL_ACTIVE]
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
    assert title == "1 cause not in the baseline:" and "k was int, then float" in causes[0] and len(causes) == 2


@pytest.fixture
def accepted(session, tmp_path, capsys):
    """`accepted(*events)`: the path of a text baseline that was written for a session of these events."""

    def write(*events, code=0):
        assert main(["check", session(*events), "--baseline", tmp_path / "base.toml", "--update"]) == code
        capsys.readouterr()
        return tmp_path / "base.toml"

    return write


END = WarmupEnd(time_ns=SECOND, on_compile="count", ended_by="end_warmup")
N, K = recompile("n", "value", "1", "2"), recompile("k", "type", "int", "float")
BREAK = GraphBreak(time_ns=SECOND, reason="why", user_file="/home/ada/model.py", user_line=3, user_code="print(x)")


def read_entries(file):
    return {entry["cause"]: entry for entry in tomllib.loads(file.read_text())["accepted"]}


def test_a_text_baseline_is_sorted_has_no_values_and_stays_the_same(accepted, check, session):
    file = accepted(compiled(), N, K, N, BREAK)
    first = file.read_text()
    entries = read_entries(file)
    assert {name: entry["count"] for name, entry in entries.items()} == {"k (type)": 1, "n (value)": 2, "print(x)": 1}
    assert {entry["function"] for entry in entries.values()} == {"forward (model.py)", "model.py"}
    assert {entry["reason"] for entry in entries.values()} == {""}
    assert len({entry["fingerprint"] for entry in entries.values()}) == 3
    moved = [replace(event, line=999) for event in (K, N, N)]
    assert accepted(compiled(line=999), replace(BREAK, user_line=88), *moved).read_text() == first
    assert check(session(compiled(), N, K, N, BREAK), "--baseline", file)[1] == {}


def test_new_worse_and_fixed_causes_are_named(accepted, session, capsys):
    file = accepted(compiled(), N, BREAK)
    known = read_entries(file)
    assert main(["check", session(compiled(), N, N, K), "--baseline", file]) == 1
    shown = capsys.readouterr().out
    new, rest = shown.split("1 cause occurs more often than the baseline accepts:")
    worse, fixed = rest.split("1 cause of the baseline did not occur:")
    assert "1 cause not in the baseline:" in new and "k was int, then float" in new
    assert known["n (value)"]["fingerprint"] in worse and "1 accepted, 2 found" in worse
    assert fixed.split() == [f"{known['print(x)']['fingerprint']}:", "graph_break", "model.py", "print(x)"]
    assert main(["check", session(compiled(), N), "--baseline", file]) == 0, "what is fixed does not fail"
    assert "1 cause of the baseline did not occur:" in capsys.readouterr().out


def test_a_cause_that_another_rule_explains_is_the_same(accepted, check, session):
    """One number more makes `n` a counter: that is worse, and not new."""
    file = accepted(compiled(), recompile("n", "value", "0", "1", 1))
    more = session(compiled(), recompile("n", "value", "0", "1", 1), recompile("n", "value", "1", "2", 2))
    ((title, causes),) = check(more, "--baseline", file)[1].items()
    assert title == "1 cause occurs more often than the baseline accepts:" and causes[-1] == "1 accepted, 2 found"
    before = read_entries(file)["n (value)"]
    text = file.read_text()
    file.write_text(text.replace('reason = ""', 'reason = "known"'))
    assert main(["check", more, "--baseline", file, "--update"]) == 0
    after = read_entries(file)["n (value)"]
    assert (after["reason"], after["count"]) == ("known", 2) and after["rule"] != before["rule"]


def test_an_update_keeps_reasons_and_entries_without_a_count(accepted, session):
    file = accepted(compiled(), N, K)
    names = {cause: entry["fingerprint"] for cause, entry in read_entries(file).items()}
    reason = 'two "modes": C:\\new\tand\n\u007f\u0001 \u00fc\U0001f600'
    entry = f'[[accepted]]\nfingerprint = "{names["n (value)"]}"\nreason = {json.dumps(reason, ensure_ascii=False)}\n'
    file.write_text('format = "compilediag.baseline/1"\n' + entry.replace("\x7f", "\\u007F"))
    assert main(["check", session(compiled(), N, N, N), "--baseline", file]) == 0, "any number is accepted"
    entries = read_entries(accepted(compiled(), N, N, K))
    assert entries["n (value)"]["reason"] == reason and "count" not in entries["n (value)"]
    assert entries["k (type)"]["reason"] == "" and entries["k (type)"]["count"] == 1
    assert [*read_entries(accepted(compiled(), K))] == ["k (type)"], "what is fixed is removed"


def test_a_check_that_fails_updates_nothing(accepted, session, capsys, tmp_path):
    file = accepted(compiled(), N)
    before = file.read_bytes()
    assert main(["check", session(compiled(), K), "--baseline", file, "--update", "--max-recompiles", 0]) == 1
    accepted(code=1)
    assert main(["check", session(compiled(), off={"recompiles"}), "--baseline", file, "--update"]) == 1
    assert file.read_bytes() == before
    for wrong in (session(compiled()), tmp_path / "absent" / "base.toml", tmp_path):
        assert main(["check", session(compiled()), "--baseline", wrong, "--update"]) == 2
    assert main(["check", session(compiled()), "--update"]) == 2
    assert "--update needs the file to write: --baseline .compilediag.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[tool.ruff]\nline-length = 120\n",
        'format = "compilediag.baseline/2"\n',
        "<<<<<<< HEAD\n",
        'format = "compilediag.baseline/1"\naccepted = 3\n',
        'format = "compilediag.baseline/1"\n[[acepted]]\nfingerprint = "f-0"\n',
        'format = "compilediag.baseline/1"\n[[accepted]]\nreason = "why"\n',
        'format = "compilediag.baseline/1"\n[[accepted]]\nfingerprint = "f-0"\ncuont = 3\n',
        'format = "compilediag.baseline/1"\n[[accepted]]\nfingerprint = "f-0"\ncount = -1\n',
        'format = "compilediag.baseline/1"\n[[accepted]]\nfingerprint = "f-0"\ncount = true\n',
        'format = "compilediag.baseline/1"\n[[accepted]]\nfingerprint = "f-0"\ncount = "3"\n',
        'format = "compilediag.baseline/1"\n' + 2 * '[[accepted]]\nfingerprint = "f-0"\n',
    ],
)
def test_a_wrong_baseline_is_one_line_and_stays_as_it_is(text, session, capsys, tmp_path):
    (tmp_path / "base.toml").write_text(text)
    for more in ([], ["--update"]):
        assert main(["check", session(compiled()), "--baseline", tmp_path / "base.toml", *more]) == 2
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("\n")) == ("", 1) and str(tmp_path / "base.toml") in shown.err
    assert (tmp_path / "base.toml").read_text() == text


def test_the_cold_start_ends_with_the_warm_up(session, check):
    early, late = replace(compiled(), time_ns=SECOND - 1), compiled()
    assert check(session(early, END, late), "--max-cold-seconds", 2)[1] == {}
    assert check(session(early, END, late), "--max-cold-seconds", 1.5)[1] == {
        "2.0 s compiling in the cold start, at most 1.5 s allowed:": ["forward (model.py:30): 2.0 s in 1 compile"]
    }
    assert [*check(session(early, late), "--max-cold-seconds", 3)[1]], "a warm-up that never ended is the whole run"


def test_the_cold_start_is_that_of_the_slowest_rank(session, check):
    ranks = [compiled(rank=0), compiled(rank=1), compiled(rank=1)]
    assert check(session(*ranks), "--max-cold-seconds", 4)[1] == {}
    (title,) = check(session(*ranks), "--max-cold-seconds", 3)[1]
    assert title.startswith("4.0 s compiling in the cold start of rank 1")


def graphed(action, count=None, **more):
    return CudaGraphAction(time_ns=SECOND, **{**FORWARD, "action": action, "count": count, **more})


def test_too_few_replays_break_the_limit_of_coverage(session, check):
    limit = ("--min-cudagraph-coverage", 0.9)
    good = [graphed("warmup"), graphed("record"), graphed("replays", 18)]
    skipped = graphed("skip", function="other", reason="mutated inputs")
    assert check(session(compiled(), *good), *limit)[1] == {}
    _, found = check(session(compiled(), *good, graphed("eager", 20), skipped), *limit)
    assert found == {
        "CUDA graph replays answer too few calls of 2 functions, at least 90 % required:": [
            "forward (model.py:30): 45 % of 40 calls",
            "other (model.py:30): 0 %: mutated inputs",
        ]
    }
    (uncounted,) = check(session(compiled(), graphed("record")), *limit)[1]
    (unused,) = check(session(compiled()), *limit)[1]
    (blind,) = check(session(compiled(), off={"cudagraphs"}), *limit)[1]
    assert "replays were not counted" in uncounted and "no function uses" in unused and "not collected" in blind


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
