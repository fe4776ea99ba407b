"""Cache look-ups as torch announces them."""

import pytest

from compilediag.decode.records.cache_records import (
    LOCAL_OFF,
    CacheStore,
    Fetch,
    LookUp,
    Trouble,
    describe_failing_guards,
    make_fetch_row,
    make_lookup_rows,
    make_store_row,
    make_write_row,
    name_remote_cache,
    parse_cache_event,
)
from compilediag.events import CACHE_OUTCOMES


@pytest.mark.parametrize(
    ("name", "cache", "outcome"),
    [
        ("fx_graph_cache_hit", "fx_graph", "hit"),
        ("fx_graph_cache_miss", "fx_graph", "miss"),
        ("fx_graph_cache_bypass", "fx_graph", "bypass"),
        ("fx_graph_cache_disabled", "fx_graph", "disabled"),
        ("autograd_cache_hit", "aot_autograd", "hit"),
        ("autograd_cache_miss", "aot_autograd", "miss"),
        ("autograd_cache_bypass", "aot_autograd", "bypass"),
        ("aotautograd_cache_hit", "aot_autograd", "hit"),
    ],
)
def test_names_of_the_announcements(name, cache, outcome):
    found = parse_cache_event(name, {"compile_id": "0/1", "key": "fabc"}, 7)
    assert (found.cache, found.outcome, found.tier) == (cache, outcome, "local")
    assert (found.compile_id, found.key, found.time_ns) == ("0/1", "fabc", 7)


@pytest.mark.parametrize("name", ["automatic_dynamic", "fx_graph_cache_hits", "my_fx_graph_cache_hit", "triton"])
def test_other_announcements_are_none(name):
    assert parse_cache_event(name, {}, 1) is None


def test_seconds_are_read_from_either_unit_and_missing_is_missing():
    assert parse_cache_event("fx_graph_cache_hit", {"time_saved_ns": 2_500_000_000}, 1).saved_s == 2.5
    assert parse_cache_event("autograd_cache_hit", {"time_saved_ms": 1500}, 1).saved_s == 1.5
    found = parse_cache_event("fx_graph_cache_miss", {"time_taken_ns": 500_000_000, "compile_id": "None"}, 1)
    assert (found.taken_s, found.saved_s, found.compile_id, found.key) == (0.5, None, None, None)


def test_a_guard_miss_and_a_bypass_say_so():
    assert parse_cache_event("fx_graph_cache_miss", {"cache_status_detailed": "guard_miss"}, 1).outcome == "guard_miss"
    assert parse_cache_event("fx_graph_cache_hit", {"cache_status_detailed": "guard_miss"}, 1).outcome == "hit"
    found = parse_cache_event("autograd_cache_bypass", {"cache_bypass_reason": "Unsupported call_method"}, 1)
    assert found.reason == "Unsupported call_method"


def test_a_guard_miss_that_is_only_announced_names_all_guards_of_the_entry():
    details = {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": "4 <= L['t0']"}
    assert parse_cache_event("fx_graph_cache_miss", details, 1).guard == "4 <= L['t0']"
    assert parse_cache_event("fx_graph_cache_hit", details, 1).guard is None


# Records of hooks as rows

FRAME = {"function": "f", "file": "/m.py", "line": 3, "backend": "inductor"}


def look_up(**known):
    return LookUp("fx_graph", 5, compile_id="0/1", frame=FRAME, key="fkey", duration_s=0.5, **known)


def get(**known):
    return Fetch("fx_graph", False, "fkey", 6, "0/1", FRAME, duration_s=0.2, **known)


def select(rows, *names):
    return [tuple(getattr(row, name) for name in names) for row in rows]


def test_a_hit_has_what_is_known_of_the_entry():
    (row,) = make_lookup_rows(look_up(found="local", bytes=7, outcome="hit", entry={"kernels": 2, "saved_s": 1.5}))
    assert (row.tier, row.action, row.outcome, row.bytes, row.kernels, row.saved_s) == (
        *("local", "look_up", "hit", 7, 2, 1.5),
    )
    assert (row.function, row.file, row.line, row.compile_id, row.key) == ("f", "/m.py", 3, "0/1", "fkey")
    assert (row.time_ns, row.duration_s) == (5, 0.5)


def test_a_miss_has_no_bytes_and_no_seconds():
    (row,) = make_lookup_rows(look_up())
    assert (row.outcome, row.bytes, row.saved_s, row.reason) == ("miss", None, None, None)


def test_what_only_the_server_had_is_a_miss_here_and_a_hit_there():
    look = look_up(found="remote", bytes=7, outcome="hit", entry={"kernels": 2}, fetch=get(bytes=11))
    assert select(make_lookup_rows(look), "tier", "outcome", "bytes", "kernels") == [
        ("local", "miss", None, None),
        ("remote", "hit", 11, 2),
    ]


def test_a_local_tier_that_is_off_says_so():
    look = look_up(is_local=False, found="remote", outcome="hit", fetch=get(bytes=11))
    assert select(make_lookup_rows(look), "outcome", "reason") == [("disabled", LOCAL_OFF), ("hit", None)]
    look = look_up(is_local=False, fetch=get())
    assert select(make_lookup_rows(look), "outcome", "reason") == [("miss", LOCAL_OFF), ("miss", None)]


def test_a_guard_miss_of_the_servers_entry_is_one_of_both():
    look = look_up(outcome="guard_miss", guard="4 <= L['t0']", fetch=get(bytes=11))
    assert select(make_lookup_rows(look), "outcome", "guard") == [("guard_miss", "4 <= L['t0']")] * 2
    look = look_up(outcome="guard_miss", guard="4 <= L['t0']", fetch=get())
    assert select(make_lookup_rows(look), "outcome", "guard") == [("guard_miss", "4 <= L['t0']"), ("miss", None)]


def test_entries_that_could_not_be_loaded_are_recorded_with_their_tier():
    broken = Trouble("UnpicklingError", "UnpicklingError: truncated")
    (row,) = make_lookup_rows(look_up(troubles={"local": broken}))
    assert (row.outcome, row.exception_type) == ("miss", "UnpicklingError")
    assert row.reason == "an entry could not be loaded: UnpicklingError: truncated"
    local, remote = make_lookup_rows(look_up(troubles={"remote": broken}, fetch=get(bytes=3)))
    assert (local.outcome, local.reason) == ("miss", None)
    assert (remote.outcome, remote.reason) == ("failed", "the entry could not be loaded: UnpicklingError: truncated")
    assert make_lookup_rows(look_up(fetch=get(bytes=3)))[1].outcome == "failed"


def test_an_entry_of_the_server_that_could_not_be_used_is_a_miss():
    look = look_up(found="remote", bytes=7, outcome="miss", reason="a graph is gone", fetch=get(bytes=11))
    assert select(make_lookup_rows(look), "outcome", "reason") == [
        ("miss", "a graph is gone"),
        ("failed", "a graph is gone"),
    ]


def test_gets_and_puts_by_what_became_of_them():
    def put(**known):
        return Fetch("pgo", True, "k", 1, **known)

    down = Trouble("ConnectionError", "no connection to Redis at h:1: torch goes on without it")
    full = Trouble("OutOfMemoryError", "OutOfMemoryError: full")
    rows = [
        *(make_fetch_row(f) for f in (get(bytes=3), get(), get(trouble=down), get(is_given_up=True))),
        *(make_fetch_row(f) for f in (put(bytes=3, taken_s=2.0), put(trouble=full, is_raised=True))),
    ]
    assert select(rows, "tier", "action", "outcome") == [
        *[("remote", "look_up", outcome) for outcome in ("hit", "miss", "failed", "disabled")],
        *[("remote", "store", outcome) for outcome in ("saved", "failed")],
    ]
    assert rows[2].reason == down.text and rows[5].reason == "the put raised OutOfMemoryError: full"
    assert rows[4].taken_s == 2.0 and {row.outcome for row in rows} <= set(CACHE_OUTCOMES)


def test_stores_by_what_became_of_them():
    def store(**known):
        return make_store_row(
            CacheStore("aot_autograd", 1, key="k", entry={"forward_key": "f", "taken_s": 2.0}, **known)
        )

    saved = store(bytes=9)
    assert (saved.outcome, saved.bytes, saved.forward_key, saved.taken_s, saved.action) == (
        *("saved", 9, "f", 2.0, "store"),
    )
    failed = store(trouble=Trouble("TypeError", "not pickled: TypeError: no"))
    assert (failed.outcome, failed.exception_type, failed.bytes) == ("failed", "TypeError", None)
    assert store(trouble=Trouble("B", "no"), is_bypass=True).outcome == "bypass"
    assert store(trouble=Trouble("B", "no"), is_local=False).tier == "remote"


def test_a_written_file_is_no_look_up():
    row = make_write_row(CacheStore("fx_graph", 1, key="k", bytes=9))
    assert (row.action, row.outcome, row.bytes) == ("write", "written", 9)
    assert make_write_row(CacheStore("fx_graph", 1, trouble=Trouble("OSError", "OSError: full"))).outcome == "failed"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("RemoteFxGraphCache", "fx_graph"),
        ("FbRemoteAOTAutogradCache", "aot_autograd"),
        ("RemoteBundledAutotuneCache", "autotune"),
        ("RemoteDynamoPGOCache", "pgo"),
        ("RemoteOfTomorrow", "RemoteOfTomorrow"),
    ],
)
def test_kinds_of_remote_caches(name, kind):
    assert name_remote_cache(name) == kind


# Guards


def evaluated(values):
    return lambda text: eval(text, {"L": values})


@pytest.mark.parametrize(
    ("expression", "details"),
    [
        ("4 <= L['t0']", "4 <= L['t0'] (L['t0'] is 3)"),
        ("2 <= L['t0'] and 4 <= L['t0'] and L['t1'] == 7", "4 <= L['t0'] (L['t0'] is 3)"),
        ("4 <= L['t0'] and L['t1'] == 8", "4 <= L['t0'] and L['t1'] == 8 (L['t0'] is 3, L['t1'] is 7)"),
        ("(L['t0'] == 3 and L['t1'] == 8)", "L['t1'] == 8 (L['t1'] is 7)"),
        ("L['t0'] == 3 and Unknown(L['t1'])", "L['t0'] == 3 and Unknown(L['t1']) (L['t0'] is 3, L['t1'] is 7)"),
        ("no expression at all", "no expression at all"),
    ],
)
def test_only_guards_that_did_not_hold_are_named(expression, details):
    values = {"t0": 3, "t1": 7}
    names = {f"L['{name}']": value for name, value in values.items()}
    assert describe_failing_guards(expression, evaluated(values), names) == details
