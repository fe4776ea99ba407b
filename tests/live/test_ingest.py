"""A log of a run and a watch of the same run tell the same."""

import pandas as pd
import pytest

import compilediag as cd


@pytest.fixture(scope="module")
def both(program_server, tmp_path_factory):
    """(session of the watch, session of the log) of one run."""
    folder = tmp_path_factory.mktemp("traced")
    environment = {
        "TORCH_TRACE": str(folder / "logs"),
        "COMPILEDIAG_HISTORY": "off",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
    }
    done = program_server.run("-m", "tests.live.traced", folder / "live.cdiag", env=environment)
    assert done.returncode == 0, done.stderr
    return cd.load(folder / "live.cdiag"), cd.ingest(folder / "logs", folder / "log.cdiag", strict=True)


#: Each recording has its own first half of all its keys; the second half counts attempts, and is the same.
KEYS = ("compile_key", "closest_compile_key", "entry_compile_key")


def rows(frame, *names):
    frame = frame[list(names)].copy()
    for name in {*names} & {*KEYS}:
        frame[name] = frame[name].str.split(".").str[1]
    return [tuple(None if pd.isna(v) else v for v in row) for row in frame.itertuples(index=False)]


def test_compiles_are_the_same(both):
    live, log = (session.compiles for session in both)
    # Of the stack a log leaves out the innermost callers.
    unlogged = ["backend", "on_failure", "limit_argument", "region", "thread"]
    apart = ("event_id", "restart_reasons", "stack", "duration_s")
    names = [name for name in live.columns if name not in (*apart, *unlogged)]
    assert rows(log, *names) == rows(live, *names)
    # A watch measures with the monotonic clock; torch's log has the clock of the wall, which may be slewed meanwhile.
    assert log["duration_s"].tolist() == pytest.approx(live["duration_s"].tolist(), rel=1e-3)
    assert log["restart_reasons"].tolist() == live["restart_reasons"].tolist()
    assert log[unlogged].isna().all(axis=None) and len(log) > 45


def test_call_stacks_agree_where_the_log_has_them(both):
    live, log = both
    pairs = [row for row in zip(live.compiles["stack"], log.compiles["stack"], strict=True) if not pd.isna(row[1])]
    assert len(pairs) > 40
    for ours, logged in set(pairs):
        *callers, own = live.stack(ours)
        *details, same = log.stack(logged)
        assert same == own and callers[: len(details)] == details
        # The function that made the call, and what torch put around it.
        assert 0 < len(callers) - len(details) <= 6


def test_symbolic_shapes_are_the_same(both):
    live, log = (session.symbolic_shapes for session in both)
    names = [name for name in live.columns if name not in ("event_id", "time")]
    # torch's log leaves out which conditions it made no guard of.
    live = live.assign(action=live["action"].replace("suppressed", "guarded"))
    assert rows(log, *names) == rows(live, *names) and {"created", "guarded"} <= set(log["action"])


def test_recompiles_are_the_same(both):
    live, log = (session.recompiles for session in both)
    names = ["compile_id", "compile_key", "function", "file", "line", "entries_checked", "lost_s"]
    assert rows(log, *names) == rows(live, *names)
    assert len(log) > 25


def test_the_guards_that_torch_met_first_are_the_same(both):
    """A log has only these. A watch finds the others too, and by them the closest entry, where there are several."""
    live, log = (session.guard_failures.query("is_first") for session in both)
    names = ["compile_id", "entry_compile_id", "guard_source", "guard_kind", "expected", "user_file", "user_line"]
    names += ["compile_key", "entry_compile_key"]
    details = log["guard_kind"] != "global_state"  # Which part of the state it was, only a watch can tell.
    assert sorted(rows(log[details], *names)) == sorted(rows(live[live["guard_kind"] != "global_state"], *names))
    assert len(log) == len(live) == len(both[1].guard_failures) > 45


def test_values_are_those_that_a_watch_met(both):
    """Most are in what torch wrote; the others are missing, none is made up."""
    live, log = (session.guard_failures.query("is_first and guard_kind != 'global_state'") for session in both)
    by = ["compile_id", "entry_compile_id"]
    merged = log.merge(live, on=by, suffixes=("_log", "_live"))
    details = merged[merged["actual_log"].notna()]
    assert details["actual_log"].tolist() == details["actual_live"].tolist()
    assert len(details) > 0.8 * len(log)


def test_graph_breaks_are_the_same(both):
    live, log = (session.graph_breaks for session in both)
    names = ["compile_id", "compile_key", "user_file", "user_line", "user_code", "reason", "break_id", "explanation"]
    assert rows(log, *names) == rows(live, *names) and len(log) >= 4
    # Those inside torch and Python's library have the line that calls it.
    assert any("deepcopy(" in code for code in log["user_code"]) and any(
        "clip_grad" in code for code in log["user_code"]
    )
    assert log["hints"].tolist() == live["hints"].tolist()


def select_lookups(lookups):
    """The lookups of compiled graphs, also of those that an entry of AOTAutogradCache names."""
    found = lookups[(lookups["action"] == "look_up") & lookups["cache"].isin(["fx_graph", "aot_autograd"])]
    return found.sort_values(["compile_id", "cache", "key", "outcome"], ignore_index=True)


def test_cache_lookups_are_the_same(both):
    live, log = both
    live, log = select_lookups(live.cache_lookups), select_lookups(log.cache_lookups)
    names = ["compile_id", "compile_key", "function", "file", "line", "cache", "tier", "outcome", "key", "reason"]
    names.append("exception_type")
    assert rows(log, *names) == rows(live, *names) and {"hit", "miss"} <= set(log["outcome"])
    for name in ("saved_s", "forward_saved_s", "backward_saved_s"):
        # A log says whole milliseconds.
        assert log[name].tolist() == pytest.approx(live[name].tolist(), abs=0.002, nan_ok=True)
    # Of AOTAutogradCache's keys torch logs no components.
    live, log = (frame.query("cache == 'fx_graph'") for frame in (live, log))
    assert rows(log, "nearest_key") == rows(live, "nearest_key") and log["nearest_key"].notna().any()
    assert log["key_diff"].tolist() == live["key_diff"].tolist()


def test_phases_and_dynamic_decisions_are_the_same(both):
    live, log = both
    names = ["compile_id", "compile_key", "name", "parent", "depth"]
    # A thread of Inductor that builds a file belongs to no compile, and may end its phase while another ends one:
    # which of the two torch logs first is not defined. All phases of compiles end in one thread, so in one order.
    for is_missing in (False, True):
        logged, seen = (s.phases[s.phases["compile_id"].isna() == is_missing] for s in (log, live))
        assert rows(logged, *names) == rows(seen, *names) and len(logged) > 0
    names = ["compile_id", "compile_key", "source", "dim", "reason", "cached", "new"]
    assert rows(log.dynamic_decisions, *names) == rows(live.dynamic_decisions, *names)
