"""The view model: its numbers are those of the tables, and patches in order give what a snapshot gives."""

import base64
import json
import random
import zlib

import pytest

from compilediag.events import (
    BY_TABLE,
    Artifact,
    CacheLookup,
    Compile,
    GraphBreak,
    GuardFailure,
    Phase,
    Recompile,
    SourceStatus,
)
from tests.inside import ViewModel, to_page_json
from tests.unit.session_builder import SECOND, page_of, page_text, put, recording, saved
from tests.unit.tables_builder import FORWARD, add_keys, graph, kernel, lookup, refused, tuning


def list_names(columns, table):
    """The names of the columns of a table of a page."""
    return [column["name"] for column in columns[table]]


class Page:
    """What a browser keeps: the patch format, applied as simply as can be."""

    def __init__(self):
        self.parts, self.rows, self.texts, self.columns, self.seq = {}, {}, {}, {}, 0

    def apply(self, patch):
        patch = json.loads(to_page_json(patch))
        if patch["reset"]:
            self.__init__()
        elif patch["seq"] <= self.seq:
            return
        self.seq = patch["seq"]
        self.columns = patch.get("columns", self.columns)
        for part in ("meta", "totals", "observed", "now", "findings", "plan"):
            self.parts[part] = patch.get(part, self.parts.get(part))
        for table, rows in patch.get("rows", {}).items():
            self.rows.setdefault(table, {}).update({row[0]: row for row in rows})
        self.texts.update(patch.get("texts", {}))


def state(name, status="active", **more):
    return SourceStatus(time_ns=SECOND, name=name, status=status, **more)


def frame(number, recompiled=True):
    """The events of one compile of f, the `number`-th, as a recording has them: the compile comes last."""
    at, compile_id = (number + 1) * SECOND, f"0/{number}"
    events = [Phase(time_ns=at, compile_id=compile_id, name="backend_compile", duration_s=0.1)]
    if recompiled:
        details = {"guard_source": "x.size()[0]", "guard_kind": "tensor_size", "expected": str(number), "actual": "9"}
        events.append(Recompile(time_ns=at, compile_id=compile_id, function="f", file="/m.py", line=3, **details))
        events.append(GuardFailure(time_ns=at, compile_id=compile_id, is_first=True, **details))
    compiled = Compile(
        time_ns=at, compile_id=compile_id, function="f", file="/m.py", line=3, trigger="dynamo",
        duration_s=0.5, is_recompile=recompiled, outcome="ok", restart_reasons=["why"],
    )  # fmt: skip
    text = (add_keys(Artifact(time_ns=at, compile_id=compile_id, name="graph")), f"graph {number}\n" * 50)
    return [*map(add_keys, events), text, add_keys(compiled)]


EVENTS = [
    state("compiles"), state("recompiles"), state("fx_graph_cache"), state("keys"),
    *frame(0, recompiled=False), *frame(1), *frame(2),
    CacheLookup(time_ns=SECOND, cache="fx_graph", outcome="hit", saved_s=2.0, compile_id="0/0"),
    CacheLookup(time_ns=SECOND, cache="aot_autograd", outcome="hit", saved_s=3.0, compile_id="0/0"),
    CacheLookup(time_ns=SECOND, cache="fx_graph", outcome="miss", compile_id="0/1"),
    CacheLookup(time_ns=SECOND, cache="fx_graph", outcome="guard_miss", compile_id="0/2"),
    CacheLookup(time_ns=SECOND, cache="fx_graph", outcome="saved", compile_id="0/2", key_diff=["a: 1 -> 2"]),
    GraphBreak(time_ns=SECOND, reason="r", hints=["h"]),
    Compile(time_ns=9 * SECOND, compile_id="1/0", function="g", outcome="skipped", limit="recompile_limit"),
    *tuning("1"), *tuning("2", {"mm": 0.2, "triton_mm_1": "out of resource: shared memory"}),
    graph("warmup"), graph("record", 2), graph("rerecord", 3, mismatch="x"), graph("replays", 4, count=7),
    graph("skip", 5, function="g", reason="cpu device"), kernel("triton_poi_0"),
    refused(actual="6"), refused(actual="7"), refused(actual="6", count=40), refused(actual="6", count=2),
    refused(compile_key="0.stance", refused_by="skip_guard_eval_unsafe", ran="unchecked", count=None),
]  # fmt: skip


def test_totals_are_what_the_tables_say(tmp_path):
    session = saved(tmp_path, *EVENTS)
    found = page_of(session)["totals"]
    assert found["compiles"] == len(session.compiles) == 4
    assert found["recompiles"] == len(session.recompiles) == 2
    assert found["graph_breaks"] == len(session.graph_breaks) == 1
    assert found["compile_s"] == pytest.approx(session.compiles["duration_s"].sum()) == pytest.approx(1.5)
    assert found["lost_s"] == pytest.approx(session.recompiles["lost_s"].sum()) == pytest.approx(1.0)
    assert found["limit_hits"] == session.compiles["limit"].notna().sum() == 1
    assert (session.cache_lookups["outcome"] == "hit").sum() == 2
    assert found["cache_hits"] == 1, "one graph came from a cache: AOTAutograd's hit holds FxGraphCache's"
    assert found["cache_misses"] == session.cache_lookups["outcome"].isin(["miss", "guard_miss"]).sum() == 2
    assert found["cache_saved_s"] == 3.0, "AOTAutograd's hit holds FxGraphCache's"
    assert found["by_cache"] == {
        "fx_graph": {"hits": 1, "misses": 2, "saved_s": 2.0},
        "aot_autograd": {"hits": 1, "misses": 0, "saved_s": 3.0},
    }
    assert found["kernels"] == len(session.kernels) == 1
    assert (found["tuning_runs"], found["tuning_choices"], found["tuning_failed"]) == (2, 5, 1)
    assert found["tuning_s"] == pytest.approx(2 * 0.8), "of each run once"
    assert (found["graph_records"], found["graph_rerecords"], found["graph_skips"]) == (1, 1, 1)
    assert found["graph_replays"] == 7
    assert found["refused_calls"] == session.refused_calls["count"].sum() == 44
    rows = {table: len(session.table(table)) for table in BY_TABLE}
    assert found["events"] == sum(rows.values()) - rows["sources"] and sum(rows.values()) == len(EVENTS)
    assert found["own_s"] == pytest.approx(session.sources["overhead_s"].sum())
    assert found["own_share"] == pytest.approx(found["own_s"] / found["compile_s"])


def lookups(*items):
    """Lookups, each given by its cache, tier, outcome and compile id."""
    names = ("cache", "tier", "outcome", "compile_id")
    return [add_keys(lookup(**dict(zip(names, item, strict=True)))) for item in items]


@pytest.mark.parametrize(
    ("items", "hits", "misses"),
    [
        # A cold compile with a backward, then a warm one.
        ([("aot_autograd", "local", "miss", "0/0"), *2 * [("fx_graph", "local", "miss", "0/0")]], 0, 2),
        ([("aot_autograd", "local", "hit", "0/0"), *2 * [("fx_graph", "local", "hit", "0/0")]], 2, 0),
        # Another program around the same graph.
        ([("aot_autograd", "local", "miss", "0/0"), ("fx_graph", "local", "hit", "0/0")], 1, 0),
        # AOTAutogradCache with the graphs inside of its entries looks up no others.
        ([("aot_autograd", "local", "hit", "0/0"), ("aot_autograd", "local", "hit", "1/0")], 2, 0),
        # The machine's disk lacks it: the server has it, or lacks it too.
        ([("fx_graph", "local", "miss", "0/0"), ("fx_graph", "remote", "hit", "0/0")], 1, 0),
        ([("fx_graph", "local", "miss", "0/0"), ("fx_graph", "remote", "miss", "0/0")], 0, 1),
        # Parts of a graph are no graphs.
        ([("py_code", "memory", "hit", "0/0"), ("dynamo_code", "memory", "miss", "0/0")], 0, 0),
    ],
)
def test_a_hit_is_a_graph_that_needed_no_compile(tmp_path, items, hits, misses):
    found = page_of(saved(tmp_path, *lookups(*items)))["totals"]
    assert (found["cache_hits"], found["cache_misses"]) == (hits, misses)


def test_replays_that_nobody_counted_are_unknown(tmp_path):
    found = page_of(saved(tmp_path, graph("record")))["totals"]
    assert (found["graph_records"], found["graph_replays"]) == (1, None)


def test_totals_of_nothing_are_zero_and_a_share_of_nothing_is_missing(tmp_path):
    found = page_of(saved(tmp_path))["totals"]
    assert (found["compiles"], found["compile_s"], found["lost_s"], found["own_share"]) == (0, 0.0, 0, None)


def test_rows_are_the_tables_with_times_in_ms(tmp_path):
    session = saved(tmp_path, *EVENTS)
    snapshot = page_of(session)
    for table, rows in snapshot["rows"].items():
        if table not in BY_TABLE:  # groups of rows, and what the explorer alone reads
            continue
        table_frame = getattr(session, table)
        if table == "refused_calls":  # The page adds further calls of a kind to its row.
            table_frame = table_frame.drop_duplicates("compile_key", keep="first")
        names = list_names(snapshot["columns"], table)
        assert sorted({*names} - {"part_of", "explained"}) == sorted(table_frame.columns)
        shown = sorted(row[names.index("time")] for row in rows)
        assert shown == pytest.approx(sorted(t.value / 1e6 for t in table_frame["time"])), table
        if table != "sources":
            assert [row[0] for row in rows] == table_frame["event_id"].tolist()
    found = snapshot["rows"]["cache_lookups"]
    assert found[-1][list_names(snapshot["columns"], "cache_lookups").index("key_diff")] == ["a: 1 -> 2"]
    names = list_names(snapshot["columns"], "compiles")
    compiles = [dict(zip(names, row, strict=True)) for row in snapshot["rows"]["compiles"]]
    assert [c["is_recompile"] for c in compiles] == [False, True, True, None]
    assert compiles[0]["triton_s"] is None


def test_a_size_has_one_spelling_and_a_key_that_looks_like_one_keeps_its_own(tmp_path):
    spelled = {
        "x.size()[0]": "x.shape[0]",
        "L['x'].size()[1]": "L['x'].shape[1]",
        "s27 = L['x'].size()[1], s86 = G['n']": "s27 = L['x'].shape[1], s86 = G['n']",
        "d['.size()[0]']": "d['.size()[0]']",
        "L['self']._modules['a'].weight": "L['self']._modules['a'].weight",
    }
    found = (GuardFailure(time_ns=SECOND, compile_id="0/1", guard_source=source) for source in spelled)
    snapshot = page_of(saved(tmp_path, *found))
    at = list_names(snapshot["columns"], "guard_failures").index("guard_source")
    assert [row[at] for row in snapshot["rows"]["guard_failures"]] == [*spelled.values()]


def test_the_plan_is_there_and_each_finding_names_its_step(tmp_path):
    session = saved(tmp_path, *EVENTS)
    snapshot = page_of(session)
    plan = session.plan().to_dict()
    steps = [{key: value for key, value in step.items() if key != "proof"} for step in snapshot["plan"]["steps"]]
    assert {**{key: snapshot["plan"][key] for key in plan}, "steps": steps} == plan
    (step,) = snapshot["plan"]["steps"]
    steps = {finding["rule"]: finding["step"] for finding in snapshot["findings"]}
    assert steps.pop(step["rule"]) == 1
    assert set(steps.values()) <= {None}


def test_recompiles_that_were_not_collected_are_not_called_none(tmp_path):
    off = state("recompiles", "unavailable", reason="torch 9.9 has no guard failures", reason_code="error")
    assert page_of(saved(tmp_path, off))["plan"]["headline"] == "Recompiles were not collected"
    (tmp_path / "some").mkdir()
    plan = page_of(saved(tmp_path / "some", *EVENTS, off))["plan"]
    assert plan["headline"].startswith("1 change removes")
    assert any("not collected all the time" in note for note in plan["notes"])


def test_a_miss_is_explained_as_explain_miss_does_and_a_redacted_one_is_not(tmp_path):
    misses = [
        lookup("miss", key="k1", nearest_key="k0", key_diff=["cpp_runtime_thread_count: 2 -> 1"], **FORWARD),
        lookup("guard_miss", key="k0", guard="s0 <= 8", **FORWARD),
        lookup("hit", key="k0", **FORWARD),
    ]
    session = saved(tmp_path, *misses, state("keys"))
    shown = [row[-2] for row in page_of(session)["rows"]["cache_lookups"]]
    assert shown[2] is None
    ids = session.cache_lookups["event_id"].tolist()
    assert ["\n".join(lines) for lines in shown[:2]] == [session.explain_miss(i).partition("\n")[2] for i in ids[:2]]
    assert "  cpp_runtime_thread_count: 2 -> 1" in shown[0]
    redacted = page_of(session, redact=True)["rows"]["cache_lookups"]
    assert [row[-2] for row in redacted] == [None, None, None]


def derived(snapshot, table):
    names = list_names(snapshot["columns"], table)
    return [dict(zip(names, row, strict=True)) for row in snapshot["rows"].get(table, [])]


def test_look_ups_are_grouped_by_cache_and_function(tmp_path):
    items = [
        lookup("miss", **FORWARD),
        lookup("miss", **FORWARD, key_diff=["inductor_config[epilogue_fusion]: True -> False"]),
        lookup("hit", **FORWARD, saved_s=2.0),
        lookup("saved", **FORWARD, taken_s=1.5),
        lookup("hit", **FORWARD, tier="remote"),
        lookup("bypass", function="g", reason="Unsupported op"),
        lookup("cleared", function="g", reason="the cache was cleared"),
    ]
    session = saved(tmp_path, *items)
    one, remote, g = derived(page_of(session), "cache_groups")
    assert (one["function"], one["hits"], one["misses"], one["stored"], one["last"]) == ("forward", 1, 2, 1, "saved")
    assert (one["saved_s"], one["taken_s"]) == (2.0, 1.5)
    assert one["why"] == "inductor_config[epilogue_fusion]: True -> False", "what kept the latest miss from being a hit"
    assert (remote["tier"], remote["hits"], remote["why"]) == ("remote", 1, None)
    assert (g["bypassed"], g["other"], g["why"], g["saved_s"]) == (1, 1, "Unsupported op", None)
    assert (one["reasons"], g["reasons"]) == ([f"1x {one['why']}"], ["1x Unsupported op"])
    parts = [row[-1] for row in page_of(session)["rows"]["cache_lookups"]]
    assert parts == [*4 * [one["event_id"]], remote["event_id"], *2 * [g["event_id"]]]


def test_what_is_a_list_and_what_is_a_dict_reach_the_page_as_such(tmp_path):
    (choice, *_) = tuning("1", {"triton_mm_1": 0.1}, parameters={"BLOCK_M": 64, "num_warps": 4})
    (cells,) = derived(page_of(saved(tmp_path, choice)), "autotune")
    assert cells["parameters"] == {"BLOCK_M": 64, "num_warps": 4}
    assert cells["inputs"] == ["bf16[64, 64]", "bf16[64, 64]"]


def test_a_tuning_is_one_row_that_grows_with_its_choices(tmp_path):
    session, recorder, _ = recording(tmp_path)
    model, page = ViewModel(session.data), Page()
    page.apply(model.snapshot())
    *early, late = tuning("1", {"mm": 0.102, "triton_mm_2": 0.125, "triton_mm_1": 0.1})
    put(recorder, *early)
    page.apply(model.patch())
    (row,) = page.rows["tunings"].values()
    assert row[list_names(page.columns, "tunings").index("winner")] is None
    put(recorder, late)
    page.apply(model.patch())
    recorder.close()
    (found,) = derived({"columns": page.columns, "rows": {"tunings": list(page.rows["tunings"].values())}}, "tunings")
    assert (found["winner"], found["next_choice"], found["choices"], found["failed"]) == ("triton_mm_1", "mm", 3, 0)
    assert found["margin_extern"] == pytest.approx(0.02)
    assert (found["spent_s"], found["break_even"]) == (pytest.approx(0.8), pytest.approx(400_000, abs=1))
    parts = {row[-1] for row in page.rows["autotune"].values()}
    assert parts == {found["event_id"]}, "its choices are part of it"


def test_cuda_graphs_are_counted_by_function(tmp_path):
    actions = [
        graph("warmup"),
        graph("record", 2, duration_ms=3.0, pool_bytes=1000),
        graph("replays", 3, count=40),
        graph("rerecord", 4, duration_ms=2.0, mismatch="StaticInputIdxMismatch", input="2 (weight)", reason="changed"),
        graph("skip", 5, function="g", reason="skipping cudagraphs due to cpu device"),
    ]
    forward, g = derived(page_of(saved(tmp_path, *actions)), "graph_functions")
    assert [forward[n] for n in ("warmups", "captured", "rerecorded", "skipped", "replays")] == [1, 2, 1, 0, 40]
    assert [forward[n] for n in ("state", "mismatch", "input")] == ["captured", "StaticInputIdxMismatch", "2 (weight)"]
    assert (forward["capture_ms"], forward["pool_bytes"]) == (5.0, 1000)
    assert [g[n] for n in ("state", "captured", "skipped", "replays")] == ["skipped", 0, 1, None]


def test_every_column_of_every_table_is_described(tmp_path):
    columns = page_of(saved(tmp_path))["columns"]
    assert set(BY_TABLE) < set(columns)
    types = {c["type"] for spec in columns.values() for c in spec}
    numbers = {"s", "ms", "us", "int", "share", "bytes"}
    assert types <= {"id", "ids", "time", "text", "code", "path", "bool", "list"} | numbers
    assert all(c["doc"] and c["label"] for spec in columns.values() for c in spec)


@pytest.mark.parametrize("seed", range(4))
def test_patches_in_order_give_what_the_snapshot_gives(tmp_path, seed):
    session, recorder, _ = recording(tmp_path)
    model, page, rng = ViewModel(session.data), Page(), random.Random(seed)
    model._diagnosed._pace.due = float("inf") if seed % 2 else 0.0  # findings only at the end, or as soon as may be
    page.apply(model.snapshot())
    left = list(EVENTS)
    while left:
        count = rng.randint(1, 5)
        put(recorder, *left[:count])
        del left[:count]
        if patch := model.patch():
            page.apply(patch)
            page.apply(patch)  # a patch that comes twice changes nothing
    recorder.close()
    session.data.end_recording()
    page.apply(model.patch())
    assert model.patch() is None
    fresh = Page()
    fresh.apply(model.snapshot())
    assert by_state(page.rows) == by_state(fresh.rows)
    assert page.parts == fresh.parts
    assert page.texts == fresh.texts
    assert fresh.seq == page.seq == model.seq


def by_state(rows):
    """Rows by table; a source is known by its process and name, its row keeps the id that it was first given."""
    sources = {(r[3], r[5]): r[1:] for r in rows["sources"].values()}
    return {**rows, "sources": sources}


def test_refused_calls_are_one_row_that_grows_with_their_count(tmp_path):
    session, recorder, _ = recording(tmp_path)
    model, page = ViewModel(session.data), Page()
    page.apply(model.snapshot())
    unchecked = refused(compile_key="0.stance", refused_by="skip_guard_eval_unsafe", ran="unchecked", count=None)
    put(recorder, refused(actual="6"), refused(actual="7"), unchecked)
    page.apply(model.patch())
    put(recorder, refused(actual="6", count=40, time_ns=2 * SECOND), refused(actual="6", count=2, time_ns=3 * SECOND))
    patch = model.patch()
    page.apply(patch)
    recorder.close()
    assert len(patch["rows"]["refused_calls"]) == 1
    time, count = (list_names(page.columns, "refused_calls").index(name) for name in ("time", "count"))
    rows = list(page.rows["refused_calls"].values())
    assert [(row[count], row[time]) for row in rows] == [(43, 3000), (1, 1000), (None, 1000)]
    ids = {finding["rule"]: finding["evidence"] for finding in page_of(session)["findings"]}
    assert {rows[0][0], rows[1][0]} == set(ids["refused_calls"]), "its evidence are rows of the page"
    assert [rows[2][0]] == ids["unchecked_guards"]


def test_a_source_that_failed_later_was_active_before_and_keeps_its_row(tmp_path):
    session, recorder, _ = recording(tmp_path, state("fx_graph_cache"))
    model, page = ViewModel(session.data), Page()
    page.apply(model.snapshot())
    put(recorder, state("fx_graph_cache", "failed", reason="switched off after 5 errors", dropped=2))
    page.apply(model.patch())
    names = list_names(page.columns, "sources")
    rows = [dict(zip(names, row, strict=True)) for row in page.rows["sources"].values()]
    assert [(r["status"], r["reason"]) for r in rows if r["name"] == "fx_graph_cache"] == [
        ("failed", "switched off after 5 errors")
    ]
    assert not page.parts["observed"]["cache_lookups"]
    assert page.parts["totals"]["dropped"] == 2
    recorder.close()


def test_what_runs_now_is_shown_with_what_the_last_time_took(tmp_path):
    class Running:
        def state(self):
            who = {"function": "f", "file": "/m.py", "line": 3, "trigger": "dynamo"}
            return {
                **who,
                "compile_id": "0/3",
                "phases": ["entire_frame_compile", "code_gen"],
                "started_ns": 7 * SECOND,
            }

    session, recorder, _ = recording(tmp_path, *frame(0, recompiled=False))
    recorder.progress[1] = Running()
    model = ViewModel(session.data)
    assert model.patch()["now"] == [
        {
            "compile_id": "0/3", "compile_key": None, "function": "f", "file": "/m.py", "line": 3, "trigger": "dynamo",
            "phase": "code_gen", "phases": ["entire_frame_compile", "code_gen"], "started_ms": 7000.0, "before_s": 0.5,
        }
    ]  # fmt: skip
    recorder.progress.clear()
    assert model.patch()["now"] == []
    recorder.close()


def text_of(entry):
    return zlib.decompress(base64.b64decode(entry["z"])).decode()


def test_beyond_the_budget_texts_are_cut_and_say_so(tmp_path):
    noise = random.Random(0)
    items = [(Artifact(time_ns=1, name="code"), noise.randbytes(20_000).hex()) for _ in range(4)]
    texts = page_of(saved(tmp_path, *items), text_budget=60_000)["texts"]
    assert [entry["cut"] for entry in texts.values()] == [False, True, True, True]
    assert all(len(text_of(entry)) == 4_000 for entry in texts.values() if entry["cut"])


def test_a_snapshot_survives_hostile_text_and_is_ascii_without_tags(tmp_path):
    hostile = "</script>\u2028\ud800\0\x85&amp;<!--" + "x" * 1000
    items = [GraphBreak(time_ns=1, reason=hostile, hints=[hostile]), (Artifact(time_ns=1, name=hostile), hostile)]
    text = page_text(saved(tmp_path, *items))
    assert text.isascii() and not set("<>&") & set(text)
    shown = json.loads(text)["rows"]["graph_breaks"][0]
    assert shown[-4] == [hostile] or [hostile] in shown


def test_times_that_are_infinite_or_no_number_become_null(tmp_path):
    items = [Compile(time_ns=1, duration_s=float("inf")), Compile(time_ns=2, duration_s=float("nan"))]
    text = page_text(saved(tmp_path, *items))
    assert "Infinity" not in text and "NaN" not in text


def test_a_text_that_many_ranks_have_is_there_once(tmp_path):
    items = [(Artifact(time_ns=n, name="code"), ("long " * 2_000) if n % 2 else "short") for n in range(6)]
    texts = page_of(saved(tmp_path, *items))["texts"]
    whole = {number: entry for number, entry in texts.items() if "z" in entry}
    assert sorted(text_of(entry)[:5] for entry in whole.values()) == ["long ", "short"] and len(texts) == 6
    assert {entry["same"] for entry in texts.values() if "same" in entry} == set(map(int, whole))
    assert all(entry["same"] < int(number) for number, entry in texts.items() if "same" in entry)


def test_far_beyond_the_budget_texts_are_left_out(tmp_path):
    noise = random.Random(0)
    items = [(Artifact(time_ns=n, name="code"), f"{noise.getrandbits(80_000):x}") for n in range(40)]
    texts = page_of(saved(tmp_path, *items), text_budget=40_000)["texts"]
    assert 2 < len(texts) < 30 and sum(len(entry["z"]) for entry in texts.values()) < 90_000
