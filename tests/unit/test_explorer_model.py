"""The explorer's documents: entries, recompiles against them, guards, and what fixing one would have prevented."""

import json
from dataclasses import replace

import pytest

from compilediag.events import Artifact, Calls, Compile, GuardFailure, Recompile, SourceStatus
from tests.unit.session_builder import SECOND, page_of, saved, unpack_document
from tests.unit.tables_builder import add_keys

PLACE = {"function": "f", "file": "/m.py", "line": 3}
K = {"guard_source": "k", "guard_kind": "value"}
SIZE = {"guard_source": "x.size()[0]", "guard_kind": "tensor_size"}


def at(seconds, **columns):
    return {"time_ns": int(seconds * SECOND), **columns}


def compiled(number, seconds=0.5, when=None, **more):
    begin = (number + 1) * 10 if when is None else when
    columns = {"outcome": "ok", "trigger": "dynamo", "duration_s": seconds, "is_recompile": number > 0, **PLACE, **more}
    return Compile(**at(begin, compile_id=f"0/{number}"), **columns)


def recompiled(number, failed, when=None, **more):
    """A recompile whose `failed` is entry -> [(guard, expected, actual)], in the order of the look-up."""
    begin = (number + 1) * 10 if when is None else when
    same = at(begin, compile_id=f"0/{number}")
    closest = min(failed, key=lambda entry: len(failed[entry]))
    guard, expected, actual = failed[closest][0]
    columns = {"closest_compile_id": closest, "entries_checked": len(failed), **PLACE, **more}
    yield Recompile(**same, **guard, expected=expected, actual=actual, **columns)
    for entry, guards in failed.items():
        for position, (guard, expected, actual) in enumerate(guards):
            more = {"entry_compile_id": entry, "is_first": position == 0, "fail_count": number if position == 0 else 0}
            yield GuardFailure(**same, **guard, expected=expected, actual=actual, **more)
    yield compiled(number, when=when)


def keyed(folder, *items):
    """A session whose events have a key for each compile id."""
    return saved(
        folder, *((add_keys(item[0]), item[1]) if isinstance(item, tuple) else add_keys(item) for item in items)
    )


def document(folder, *items):
    return document_and_text(folder, *items)[0]


def document_and_text(folder, *items):
    """The document of the only function, and the text form with single spaces."""
    session = keyed(folder, *items)
    ((_, found),) = page_of(session)["rows"]["functions"]
    return unpack_document(found), " ".join(repr(session.explore()).split())


def names(found, guards):
    return [found["guards"][guard]["name"] for guard in guards]


def test_a_recompile_is_a_line_with_the_guards_that_failed_in_each_entry(tmp_path):
    first = recompiled(1, {"0/0": [(K, "1", "2")]})
    second = recompiled(2, {"0/1": [(K, "2", "3")], "0/0": [(K, "1", "3"), (SIZE, "4", "6")]})
    found = document(tmp_path, compiled(0), *first, *second)
    assert (found["function"], found["compiles"], found["recompiles"], found["lost_s"]) == ("f", 3, 2, 1.0)
    one, two = found["rows"]
    assert (one["expected"], one["now"], one["lost_s"], one["made"], one["closest"]) == ("1", "2", 0.5, 1, 0)
    assert [(entry, names(found, [f[0] for f in failed])) for entry, failed in two["cells"]] == [
        (1, ["k"]),
        (0, ["k", "x.shape[0]"]),
    ]
    assert two["closest"] == 1 and names(found, [two["guard"]]) == ["k"]


def test_entries_know_why_they_were_made_what_they_cost_and_their_turn(tmp_path):
    backward = Compile(**at(11, compile_id="0/0"), trigger="lazy_backward", duration_s=0.25, outcome="ok")
    tree = (Artifact(**at(10.1, compile_id="0/0"), name="dynamo_cpp_guards_str"), "+- RootGuardManager")
    first = recompiled(1, {"0/0": [(K, "1", "2")]})
    second = recompiled(2, {"0/0": [(K, "1", "3")], "0/1": [(K, "2", "3")]})
    found = document(tmp_path, compiled(0, guard_check_us=3.5), backward, tree, *first, *second)
    entries = found["entries"]
    assert [entry["made_at"] for entry in entries] == [None, 0, 1]
    assert [entry["seconds"] for entry in entries] == [0.75, 0.5, 0.5]
    assert [entry["order"] for entry in entries] == [2, 3, 1], "the newest first, then as they were looked at"
    assert entries[0]["guard_check_us"] == 3.5 and entries[1]["guard_check_us"] is None
    assert entries[0]["tree"] is not None and entries[1]["tree"] is None
    assert entries[0]["failed"] == [(0, 2, 2, "1")], "guard, recompiles, torch's last count, what it needs"
    assert entries[2]["failed"] == []


COUNTING = SourceStatus(**at(1), name="calls", status="active")


def called(ran, number, count, when=None, each=0.01):
    columns = {"ran": ran, "count": count, "timed": count, "total_s": count * each, "min_s": each, "first_s": each}
    return Calls(**at(when or (number + 1) * 10 + 1, compile_id=f"0/{number}"), **columns, **PLACE)


def test_entries_know_how_often_they_were_called_where_that_was_counted(tmp_path):
    first = recompiled(1, {"0/0": [(K, "1", "2")]})
    calls = [called("compiled", 0, 5), called("compiled", 0, 2, when=13), called("eager", 2, 4, each=0.02)]
    found, text = document_and_text(tmp_path, COUNTING, compiled(0), *first, *calls)
    one, two = found["entries"]
    assert (one["calls"], one["mean_s"], one["won_s"]) == (7, pytest.approx(0.01), pytest.approx(0.07))
    assert one["break_even"] == 50
    assert (two["calls"], two["mean_s"], two["break_even"]) == (0, None, None)
    assert found["eager"] == {"calls": 4, "total_s": pytest.approx(0.08), "mean_s": pytest.approx(0.02)}
    assert found["once"] == {"count": 0, "seconds": 0}
    assert "7 calls, pays off after 50" in text and "4 calls ran eagerly, 80 ms" in text


def test_what_nobody_counted_is_not_0(tmp_path):
    found, text = document_and_text(tmp_path, compiled(0), *recompiled(1, {"0/0": [(K, "1", "2")]}))
    assert found["eager"] is None and found["once"] is None and {entry["calls"] for entry in found["entries"]} == {None}
    assert "(calls were not counted)" in text


def test_an_entry_from_before_the_watch_is_known_by_its_calls_too(tmp_path):
    again = [compiled(1, when=30), called("compiled", 1, 2, when=31)]
    before = replace(called("compiled", 1, 6, when=5), compile_key="before")
    found = document(tmp_path, COUNTING, before, *again)
    assert {entry["event"] is None: entry["calls"] for entry in found["entries"]} == {False: 2, True: 6}


def test_entries_that_were_called_once_are_reported_with_their_cost(tmp_path):
    calls = [called("compiled", 0, 1), called("compiled", 1, 1)]
    recompile = recompiled(1, {"0/0": [(K, "1", "2")]})
    found, text = document_and_text(tmp_path, COUNTING, compiled(0), *recompile, *calls)
    assert found["once"] == {"count": 2, "seconds": 1.0}
    assert "2 entries called once, 1.0 s" in text


def test_an_entry_from_before_the_watch_is_known_by_its_failing(tmp_path):
    found = document(tmp_path, *recompiled(4, {"0/3": [(K, "3", "4")]}))
    assert [entry["compile_id"] for entry in found["entries"]] == ["0/4", "0/3"]
    before = found["entries"][1]
    assert (before["event"], before["time"], before["seconds"], before["made_at"]) == (None, None, None, None)
    assert found["rows"][0]["cells"][0][0] == 1
    assert found["guards"][0]["points"][0] == (0, 0, False)


def keys_of(event):
    """(name, key) of each compile key that an event has."""
    found = add_keys(event)
    names = ("compile_key", "closest_compile_key", "entry_compile_key")
    return [(name, getattr(found, name)) for name in names if getattr(found, name, None) is not None]


def test_ids_that_begin_again_are_other_entries(tmp_path):
    again = [compiled(0, when=100), *recompiled(1, {"0/0": [(K, "7", "8")]}, when=110)]
    again = [replace(event, **{name: f"again.{key}" for name, key in keys_of(event)}) for event in again]
    found = document(tmp_path, compiled(0), *recompiled(1, {"0/0": [(K, "1", "2")]}), *again)
    assert [entry["compile_id"] for entry in found["entries"]] == ["0/0", "0/1", "0/0", "0/1"]
    assert [row["closest"] for row in found["rows"]] == [0, 2]
    assert [row["made"] for row in found["rows"]] == [1, 3]
    assert [entry["failed"][0][3] for entry in found["entries"] if entry["failed"]] == ["1", "7"]


def test_a_recompile_that_made_no_entry_is_a_line_all_the_same(tmp_path):
    details, failure, _ = recompiled(1, {"0/0": [(K, "1", "2")]})
    limit = compiled(1, outcome="skipped", limit="recompile_limit")
    found = document(tmp_path, compiled(0), details, failure, limit)
    assert found["rows"][0]["made"] is None and len(found["entries"]) == 1


def test_an_entry_without_a_graph_was_made_by_the_watch_too(tmp_path):
    """A function that begins with a graph break has guards, and an entry, but nothing in its first graph."""
    empty = {"outcome": "empty", "guard_count": 24}
    events = recompiled(1, {"0/0": [(K, "1", "2")]})
    details, failure, made = events
    session = keyed(tmp_path, compiled(0, **empty), details, failure, replace(made, **empty))
    text = repr(session.explore())
    assert "0/0  first compile" in text and "0/1  k: 1 -> 2" in text and "before the watch" not in text


VERDICTS = {
    "alone": (
        [{"0/0": [(K, "1", "2")]}],
        "k",
        "Fixing this guard alone would have prevented the only recompile at which it failed.",
    ),
    "both": (
        [{"0/0": [(K, "1", "2")]}, {"0/1": [(K, "2", "3")], "0/0": [(K, "1", "3")]}],
        "k",
        "Fixing this guard alone would have prevented both recompiles at which it failed.",
    ),
    "never": (
        [{"0/0": [(K, "1", "2"), (SIZE, "4", "6")]}],
        "k",
        "Fixing this guard alone would not have helped: x.shape[0] also failed in every entry that it failed in.",
    ),
    "sometimes": (
        [{"0/0": [(K, "1", "2")]},
         {"0/1": [(K, "2", "3"), (SIZE, "4", "6")], "0/0": [(K, "1", "3"), (SIZE, "4", "6")]}],
        "k",
        "Fixing this guard alone would have prevented 1 of the 2 recompiles at which it failed; at the others, "
        "x.shape[0] also failed.",
    ),
    "in another entry than the closest": (
        [{"0/0": [(K, "1", "2")]}, {"0/1": [(SIZE, "4", "6")], "0/0": [(K, "1", "3"), (SIZE, "4", "6")]}],
        "x.shape[0]",
        "Fixing this guard alone would have prevented the only recompile at which it failed.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_what_fixing_one_guard_alone_would_have_prevented(tmp_path, name):
    failures, guard, verdict = VERDICTS[name]
    events = [e for number, failed in enumerate(failures, 1) for e in recompiled(number, failed)]
    found = document(tmp_path, compiled(0), *events)
    (details,) = [g for g in found["guards"] if g["name"] == guard]
    assert details["verdict"] == verdict


def test_values_in_order_with_numbers_where_they_are_numbers(tmp_path):
    sizes = [recompiled(n, {f"0/{n - 1}": [(SIZE, str(n), str(n + 1))]}) for n in (1, 2)]
    found = document(tmp_path, compiled(0), *(e for events in sizes for e in events))
    (guard,) = found["guards"]
    assert guard["values"] == [("1", 1.0), ("2", 2.0), ("3", 3.0)]
    assert guard["points"] == [(0, 0, False), (1, 1, True), (2, 2, True)]


def test_objects_that_look_alike_have_different_names(tmp_path):
    here, other = "<lambda> at m.py:9", "<lambda> at m.py:9 (another object)"
    act = {"guard_source": "act", "guard_kind": "identity", "lookalike": here}
    events = [
        *recompiled(1, {"0/0": [(act, here, other)]}),
        *recompiled(2, {"0/1": [(act, here, other)], "0/0": [(act, here, other)]}),
        *recompiled(3, {"0/2": [(act, here, other)], "0/1": [(K, "1", "2")], "0/0": [(act, here, other)]}),
    ]
    found = document(tmp_path, compiled(0), *events)
    assert [text for text, _ in found["guards"][0]["values"]] == [
        here,
        f"{here} #2",
        f"{here} #3",
        f"{here}, an earlier one",
    ]


def test_the_bound_of_a_dynamic_shape_is_no_value(tmp_path):
    bound = {"guard_source": "x.size()[0]", "guard_kind": "symbolic_shape"}
    found = document(tmp_path, compiled(0), *recompiled(1, {"0/0": [(bound, "x.size()[0] >= 2", "1")]}))
    assert found["guards"][0]["values"] == [("1", 1.0)]


def test_the_users_line_is_shown_with_those_around_it(tmp_path):
    module = tmp_path / "model.py"
    module.write_text("def f(x, k):\n    y = x * k\n    return y\n")
    details = {**K, "user_file": str(module), "user_line": 2}
    failed = {"0/0": [({**details, "guard": "L['k'] == 1  # y = x * k  # model.py:2 in f"}, "1", "2")]}
    main, failure, done = recompiled(1, {"0/0": [(details, "1", "2")]})
    failure = replace(failure, guard=failed["0/0"][0][0]["guard"])
    found = document(tmp_path, compiled(0), main, failure, done)
    assert found["guards"][0]["around"] == [(1, "def f(x, k):"), (2, "    y = x * k"), (3, "    return y")]
    assert found["guards"][0]["texts"] == ["k == 1"]


def test_a_line_of_torchs_own_is_not_the_users(tmp_path):
    main, failure, done = recompiled(1, {"0/0": [(SIZE, "4", "6")]})
    failure = replace(
        failure, guard="check_tensor(L['x'], ...)  # return F.linear(input)  # nn/modules/linear.py:134 in forward"
    )
    (guard,) = document(tmp_path, compiled(0), main, failure, done)["guards"]
    assert (guard["user_file"], guard["user_code"], guard["around"]) == (None, None, None)
    assert (guard["framework"], guard["framework_code"]) == ("nn/modules/linear.py:134", "return F.linear(input)")


def test_redacted_documents_have_no_value_code_or_path(tmp_path):
    secret = "SECRET_VALUE_9137"
    details = {**K, "user_file": f"/home/{secret}/m.py", "user_line": 2}
    main, failure, done = recompiled(
        1, {"0/0": [(details, secret, secret)]}, reason=f"0/0: k == {secret}", user_code=secret
    )
    failure = replace(failure, guard=f"L['k'] == {secret}")
    tree = (Artifact(**at(10.1, compile_id="0/0"), name="dynamo_cpp_guards_str"), f"+- RootGuardManager {secret}")
    session = keyed(tmp_path, compiled(0), main, failure, done, tree)
    snapshot = page_of(session, redact=True)
    assert secret not in json.dumps(snapshot)
    assert unpack_document(snapshot["rows"]["functions"][0][1])["guards"][0]["name"] == "k"


def test_a_document_holds_the_latest_and_counts_all(tmp_path):
    count = 320
    compiles = [compiled(n, when=10 * n + 1) for n in range(count)]
    details = [Recompile(**at(10 * n, compile_id=f"0/{n}"), **K, expected=str(n), actual=str(n + 1), **PLACE)
            for n in range(1, count)]  # fmt: skip
    found = document(tmp_path, *compiles, *details)
    assert (found["compiles"], found["recompiles"], len(found["rows"]), len(found["entries"])) == (
        count, count - 1, 255, 256,
    )  # fmt: skip
    assert found["rows"][-1]["expected"] == str(count - 1)
