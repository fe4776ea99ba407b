"""The guest contract, line by line, against the real compiler. See docs/guest_contract.md."""

import collections
import importlib
import logging
import re
import sys
import threading

import pytest
import torch

import compilediag as cd
from compilediag.diagnosis import FEEDS, explain_gaps
from tests import inside
from tests.inside import find_source as source
from tests.live import programs
from tests.live.entered import entered
from tests.unit.session_builder import page_of

NAMES = [
    *("compiles", "phases", "recompiles", "graph_breaks", "fx_graph_cache", "aot_autograd_cache", "remote_cache"),
    *("keys", "dynamo_cache", "code_caches", "pgo", "cudagraph_skips", "dynamic", "trace"),
]


#: A source is switched off after so many errors.
MAX_ERRORS = 5
#: Sources whose hooks need programs of their own: see `parity/test_autotune.py`.
TUNING = ("select_algorithm", "triton_heuristics", "triton_autotune")


def places(but=()):
    """(owner, name) of everything that a watch patches, but for the hooks of some sources."""
    with cd.watch():
        return inside.list_places(but)


def states(session):
    return {row["name"]: row for row in session.status()}


def recompiling(calls=3, **options):
    """A compiled function that recompiles at each call; what the calls gave."""
    function = programs.compiled(programs.renamed(lambda x, name: x + len(name), "recompiling"), **options)
    return [function(torch.ones(2), "n" * n) for n in range(calls)]


# 1. The host's call happens exactly once, its result and its exception pass through unchanged


def counting(inner, calls, key):
    binding = type(inner) if isinstance(inner, (staticmethod, classmethod)) else None
    function = inner.__func__ if binding else inner

    def counted(*args, **kwargs):
        calls[key] += 1
        return function(*args, **kwargs)

    return binding(counted) if binding else counted


#: Called where something goes wrong, is cleared or reset, comes from disk, from a server or is built for a GPU: in
#: tests/live/parity/ and tests/gpu/, result for result.
SELDOM = {
    *("invalidate", "reset_code", "load", "load_cache_entry", "write", "get_local_code_state", "write_local_impl"),
    *("compile", "get", "triton", "cpp", "_add_triton_kernel_info", "collect", "read_and_emit", "load_autotuners"),
    *("put", "__init__", "clear", "prepare_key"),
    *("wrap_post_compile", "_handle_save_error", "_find_unpicklable_field", "write_to_disk"),
    "check_build",  # once in a process
    "_fullgraph_capture_frame",  # ahead of time: tests/live/test_refused_calls.py
    "_compile",  # of torch.compiler.precompile: tests/live/test_sources.py
}
if torch.backends.cuda.is_built():
    SELDOM |= {"run_eager", "record_function", "cudagraphify_impl", "capture_begin", "capture_end", "_do_compile"}
    SELDOM |= {"dealloc_current_path_weakrefs", "check_warn_on_unable_to_start_executing"}


def test_each_of_the_hosts_calls_happens_exactly_once(monkeypatch, fresh_inductor_cache):
    importlib.import_module("torch._dynamo.backends.cudagraphs")
    below, above = collections.Counter(), collections.Counter()
    found = places(but=TUNING)
    for owner, name in found:
        monkeypatch.setattr(owner, name, counting(vars(owner)[name], below, name))
    session = cd.start()
    originals = {(owner, name): vars(owner)[name] for owner, name in found}
    for owner, name in found:
        setattr(owner, name, counting(vars(owner)[name], above, name))
    programs.graph_breaks()
    programs.sizes()
    inductor = torch.compile(lambda x: x * 2, backend="inductor")
    inductor(torch.ones(2))
    torch.compiler.load_cache_artifacts(torch.compiler.save_cache_artifacts()[0])
    torch.compile(lambda x: x * 3, backend="cudagraphs")(torch.ones(2))
    torch.compiler.set_stance("default")
    for (owner, name), ours in originals.items():
        setattr(owner, name, ours)
    cd.stop()
    assert above == below
    assert {name for _, name in found} - set(above) <= SELDOM, "every other place was called"
    assert len(session.recompiles) and len(session.cache_lookups)


@pytest.mark.parametrize("detail", ["lean", "full"])
@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.__name__)
def test_results_and_counts_are_the_same_watched_or_not(program, detail):
    plain = observed_by_torch(program)
    with cd.watch(detail=detail) as session:
        watched = observed_by_torch(program)
    assert len(plain.results) == len(watched.results) > 0
    for one, other in zip(plain.results, watched.results, strict=True):
        assert one.dtype == other.dtype and one.stride() == other.stride()
        assert one.detach().numpy().tobytes() == other.detach().numpy().tobytes()
    assert watched.counters == plain.counters
    assert watched.metrics == plain.metrics
    assert len(session.compiles) == len(plain.metrics) > 1


Observed = collections.namedtuple("Observed", "results counters metrics")


def observed_by_torch(program):
    """What a program computes, and what torch itself counts of its compiles."""
    from torch._dynamo import utils

    torch._dynamo.reset()
    utils.counters.clear()
    utils.clear_compilation_metrics()
    results = program()
    metrics = [
        (
            m.compile_id,
            m.co_name,
            m.guard_count,
            m.graph_op_count,
            m.cache_size,
            m.fail_type,
            steady(m.recompile_reason),
        )
        for m in utils.get_compilation_metrics()
    ]
    return Observed(results, {k: dict(v) for k, v in utils.counters.items()}, metrics)


def steady(text):
    """A text of torch's without the addresses in it."""
    return text and re.sub(r"\d{6,}", "N", text)


class Boom(Exception):
    pass


def raising_backend(graph, inputs):
    raise Boom("no backend today")


def error_on_recompile():
    with torch._dynamo.config.patch(error_on_recompile=True):
        recompiling()


def fail_on_recompile():
    function = programs.compiled(lambda x: x + 1)
    function(torch.ones(2))
    with torch.compiler.set_stance("fail_on_recompile"):
        function(torch.ones(3, dtype=torch.int32))


def failing_backend():
    recompiling(backend=raising_backend)


def raising_function():
    def function(x):
        y = x + 1
        raise Boom(f"after {y.shape}")

    programs.compiled(function)(torch.ones(2))


def unsupported():
    def function(x):
        torch._dynamo.graph_break()
        return x

    torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2))


def limit_reached():
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        recompiling()


FAILING = [error_on_recompile, fail_on_recompile, failing_backend, raising_function, unsupported, limit_reached]


@pytest.mark.parametrize("failing", FAILING, ids=lambda f: f.__name__)
def test_the_hosts_exceptions_pass_through_unchanged(failing):
    with pytest.raises(Exception) as plain:
        failing()
    torch._dynamo.reset()
    with cd.watch() as session, pytest.raises(Exception) as watched:
        failing()
    assert watched.type is plain.type
    details = [re.sub(r"0x[0-9a-f]+|line \d+|\d{6,}", "N", str(e.value)) for e in (plain, watched)]
    assert details[0] == details[1]
    at_work = programs.at_work(session).values()
    assert all(state["status"] == "active" and not state["reason"] for state in at_work)


def test_a_recompile_that_torch_forbids_is_recorded_all_the_same():
    with cd.watch() as session, pytest.raises(torch._dynamo.exc.RecompileError):
        error_on_recompile()
    assert session.recompiles["guard_kind"].tolist() == ["value"]


# 2. Whatever our code raises is caught, counted and shown; after repeated failure the source switches itself off


@pytest.mark.swallows
@pytest.mark.parametrize("name", ["compiles", "phases", "recompiles", "graph_breaks", "dynamic", "trace", "tracing"])
def test_what_a_hook_of_ours_raises_is_shown_and_switches_that_source_off(name):
    expected = [r.tolist() for r in recompiling(3)]
    torch._dynamo.reset()

    def broken(*args):
        raise Boom("our own fault")

    with cd.watch(tracing=True) as session:
        source(name).emit = broken
        assert [r.tolist() for r in recompiling(3)] == expected
        for _ in range(MAX_ERRORS):
            torch._dynamo.reset()
            programs.graph_breaks()
            programs.sizes()
            if source(name).errors >= MAX_ERRORS:
                break
        handlers = list(logging.getLogger("torch.__trace").handlers)
    state = states(session)[name]
    assert state["status"] == "failed"
    assert state["reason"] == f"switched off after {MAX_ERRORS} errors, the last Boom: our own fault"
    others = [s for n, s in programs.at_work(session).items() if n != name]
    assert {s["status"] for s in others} == {"active"} and sum(s["events"] for s in others) > 50
    assert not any(handler._source.name == name for handler in handlers if hasattr(handler, "_source"))


@pytest.mark.swallows
def test_a_few_failures_are_counted_and_the_source_goes_on():
    with cd.watch() as session:
        recompiles = source("recompiles")
        genuine = recompiles._check_entry
        recompiles._check_entry = lambda *args: 1 / 0
        recompiling(2)
        recompiles._check_entry = genuine
        recompiling(3)
    state = states(session)["recompiles"]
    assert (state["status"], len(session.recompiles)) == ("active", 2)
    assert state["reason"] == "1 errors so far, the last ZeroDivisionError: division by zero"


@pytest.mark.swallows
def test_what_fails_in_the_writers_thread_is_counted_at_its_source():
    def broken():
        raise Boom("later")

    with cd.watch() as session:
        for _ in range(MAX_ERRORS):
            inside.find_recorder().put(source("dynamic"), broken)
        assert states(session)["dynamic"]["status"] == "failed"
        assert len(inside.list_hooks()) > 0
        recompiling(2)
    assert len(session.recompiles) == 1


class Hostile(type):
    """A class about which nothing can be asked."""

    def __repr__(cls):
        raise Boom("repr of the class")


class Touchy(metaclass=Hostile):
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        raise Boom("repr")

    __str__ = __repr__

    def __eq__(self, other):
        raise Boom("eq")

    def __hash__(self):
        raise Boom("hash")

    def __len__(self):
        raise Boom("len")


@pytest.mark.since_torch("2.13", "the compile itself fails on a class whose repr raises")
def test_objects_that_answer_nothing_do_not_disturb_us():
    function = programs.compiled(lambda x, thing: x + thing.number)
    with cd.watch() as session:
        results = [function(torch.ones(2), Touchy(n)).tolist() for n in (1, 2.5, 3)]
    assert results == [[2.0, 2.0], [3.5, 3.5], [4.0, 4.0]]
    assert len(session.recompiles) >= 1
    assert session.recompiles["guard_source"].str.contains("thing").all()
    assert states(session)["trace"]["dropped"] > 0, "torch's own text of the guards fails on such a class"


# 3. stop() puts back every attribute, handler and callback


def test_stop_puts_back_every_attribute_and_handler():
    recompiling()  # torch's own handler takes itself out at the first record
    found = places()
    before = {(owner, name): vars(owner)[name] for owner, name in found}
    loggers = {name: list(logging.getLogger(name).handlers) for name in ("torch.__trace", "torch", "torch._dynamo", "")}
    filters = list(logging.getLogger("torch.__trace").filters)
    profile, trace = sys.getprofile(), sys.gettrace()
    with cd.watch():
        assert all(vars(owner)[name] is not original for (owner, name), original in before.items())
        assert len(logging.getLogger("torch.__trace").handlers) == len(loggers["torch.__trace"]) + 1
        recompiling()
    assert {place: vars(place[0])[place[1]] for place in found} == before
    assert all(vars(owner)[name] is original for (owner, name), original in before.items())
    assert {name: logging.getLogger(name).handlers for name in loggers} == loggers
    assert logging.getLogger("torch.__trace").filters == filters
    assert (sys.getprofile(), sys.gettrace(), inside.list_hooks()) == (profile, trace, [])
    assert not [t for t in threading.enumerate() if t.name == "compilediag-writer"]


def test_another_tools_patch_on_top_of_ours_survives_and_ours_goes_inert(monkeypatch):
    from torch._dynamo import convert_frame

    hook = "get_and_maybe_log_recompilation_reasons"
    calls = []
    monkeypatch.setattr(convert_frame, hook, getattr(convert_frame, hook))  # put back after the test
    with cd.watch() as session:
        ours = getattr(convert_frame, hook)

        def theirs(*args, **kwargs):
            calls.append(args)
            return ours(*args, **kwargs)

        setattr(convert_frame, hook, theirs)
        recompiling(2)
    assert getattr(convert_frame, hook) is theirs
    recompiling(2)
    assert (len(calls), len(session.recompiles)) == (2, 1)
    with cd.watch() as later:
        recompiling(2)
    assert getattr(convert_frame, hook) is theirs
    assert (len(calls), len(session.recompiles), len(later.recompiles)) == (3, 1, 1)


def test_watches_nest_and_stop_without_start_is_nothing():
    assert cd.stop() is None and cd.current() is None
    outer = cd.start()
    assert cd.start() is outer is cd.current()
    with cd.watch(detail="lean") as inner:
        assert inner is outer
    recompiling(2)
    assert cd.stop() is outer
    assert inside.list_hooks() and cd.current() is outer
    recompiling(2)
    assert cd.stop() is outer
    assert cd.current() is None and inside.list_hooks() == []
    assert len(outer.recompiles) == 2
    assert cd.stop() is None


def test_watch_after_watch_records_each_for_itself():
    sessions = []
    for _ in range(3):
        with cd.watch() as session:
            recompiling(2)
        sessions.append(session)
    assert [len(s.recompiles) for s in sessions] == [1, 1, 1]
    assert len({s.path for s in sessions}) == 3


def test_an_exception_in_the_block_ends_the_watch_and_is_the_users():
    with pytest.raises(Boom), cd.watch() as session:
        recompiling(2)
        raise Boom
    assert inside.list_hooks() == [] and len(session.recompiles) == 1


# 4. A missing or changed private API gives `unavailable` with a reason


MISSING = {
    "compiles": ("torch._dynamo.utils", "add_compilation_metrics_to_chromium"),
    "phases": ("torch._dynamo.utils.ChromiumEventLogger", "log_event_start"),
    "recompiles": ("torch._dynamo.convert_frame", "get_and_maybe_log_recompilation_reasons"),
    "graph_breaks": ("torch._dynamo.output_graph.GraphCompileReason", "__post_init__"),
    "fx_graph_cache": ("torch._inductor.codecache.FxGraphCache", "_save_graph"),
    "aot_autograd_cache": ("torch._functorch._aot_autograd.autograd_cache.AOTAutogradCache", "try_load"),
    "remote_cache": ("torch._inductor.remote_cache.RemoteCacheBackend", "get"),
    "keys": ("torch._inductor.codecache", "compiled_fx_graph_hash"),
    "dynamo_cache": ("torch._dynamo.convert_frame", "exceeds_recompile_limit"),
    "code_caches": ("torch._inductor.codecache.PyCodeCache", "load_by_key_path"),
    "pgo": ("torch._dynamo.pgo", "write_local_impl"),
    "cudagraph_skips": ("torch._inductor.output_code.CompiledFxGraph", "post_compile"),
    "dynamic": ("torch._dynamo.utils.ChromiumEventLogger", "log_instant_event"),
    "trace": ("torch._logging._internal", "trace_log"),
}
#: What else rests on the same thing.
ALSO = {
    "dynamic": {"fx_graph_cache"},
    "keys": {"fx_graph_cache"},
    "compiles": {"dynamo_cache"},
}
TOLD = {
    "compiles": "compiles not collected",
    "recompiles": "recompiles not collected",
    "graph_breaks": "graph breaks not collected",
    "fx_graph_cache": "cache lookups not collected",
    "aot_autograd_cache": "cache lookups not collected",
    "remote_cache": "cache lookups not collected",
}


def find_place(name):
    """The owner and the attribute that a source rests on."""
    path, attribute = MISSING[name]
    module, _, cls = path.rpartition(".") if path[path.rfind(".") + 1].isupper() else (path, "", "")
    owner = importlib.import_module(module)
    return getattr(owner, cls) if cls else owner, attribute


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_private_api_costs_one_source_and_says_so(name, monkeypatch):
    owner, attribute = find_place(name)
    with monkeypatch.context() as patch:
        patch.delattr(owner, attribute)
        session = cd.start()
    recompiling(2)  # torch itself needs what was missing when the watch began
    cd.stop()
    gone = {name} | ALSO.get(name, set())
    found = states(session)
    for absent in gone:
        assert found[absent]["status"] == "unavailable"
    assert attribute in found[name]["reason"] and "this torch has no" in found[name]["reason"]
    assert {found[n]["status"] for n in set(NAMES) - gone} == {"active"}
    assert sum(found[n]["events"] for n in set(NAMES) - gone) > 0
    if name in TOLD:
        assert TOLD[name] in session.summary()
    observed = page_of(session)["observed"]
    blind = {table for table in FEEDS if not observed[table]} - {"calls", "trace_functions"}  # Nobody asked for these.
    assert blind == {table for table, feeds in FEEDS.items() if not feeds or gone & {*feeds}}


def no_parameters():
    """A function that torch would call otherwise than the one that it replaces."""


#: (source, what its place holds instead). Of a call of `try_load` no argument is read, so that any will do; `trace` has
#: no function.
INSTEAD = [
    (name, instead)
    for name in NAMES
    for instead in (None, 7, no_parameters)
    if name != "trace" and (name, instead) != ("aot_autograd_cache", no_parameters)
]


@pytest.mark.parametrize(("name", "instead"), INSTEAD, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_place_that_holds_something_else_costs_its_sources_and_is_named(name, instead, monkeypatch):
    owner, attribute = find_place(name)
    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, instead)
        with cd.watch() as session:
            pass
    found = states(session)
    assert found[name]["status"] == "unavailable" and f"{attribute} of this torch" in found[name]["reason"]
    gone = {name} | ALSO.get(name, set())
    assert {found[n]["status"] for n in set(NAMES) - gone} == {"active"}


def test_a_source_whose_subject_is_not_installed_is_off_and_no_gap(monkeypatch):
    with cd.watch():
        graph_breaks = type(source("graph_breaks"))

    def probe(cls):
        raise inside.NothingToWatch("there is no such thing here")

    monkeypatch.setattr(graph_breaks, "probe", classmethod(probe))
    with cd.watch() as session:
        pass
    state = states(session)["graph_breaks"]
    assert (state["status"], state["reason"]) == ("off", "nothing to watch: there is no such thing here")
    assert explain_gaps(session.data) == {}
    assert ("graph_breaks", "off", state["reason"]) in inside.probe_all()


@pytest.mark.swallows
@pytest.mark.parametrize(
    ("name", "module", "hook"),
    [
        ("recompiles", "convert_frame", "get_and_maybe_log_recompilation_reasons"),
        ("compiles", "utils", "add_compilation_metrics_to_chromium"),
    ],
)
def test_a_changed_signature_is_survived_and_shown(name, module, hook, monkeypatch):
    """torch calls a hook with arguments that we don't know: as if its next version had changed them."""
    owner = getattr(torch._dynamo, module)
    original = getattr(owner, hook)
    monkeypatch.setattr(owner, hook, lambda *any, packed: original(*packed))
    with cd.watch() as session:
        ours = getattr(owner, hook)
        setattr(owner, hook, lambda *args: ours(packed=args))
        results = recompiling(MAX_ERRORS + 2)
        setattr(owner, hook, ours)
    assert [r.tolist() for r in results] == [[1.0 + n] * 2 for n in range(MAX_ERRORS + 2)]
    state = states(session)[name]
    assert state["status"] == "failed" and str(MAX_ERRORS) in state["reason"]
    assert len(session.phases) > 0


# 5. Nothing on the path of a compiled call that hits


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_a_call_that_hits_enters_nothing_of_ours(detail):
    function = programs.compiled(lambda x, n: (x + n).relu())
    with cd.watch(detail=detail) as session:
        for n in (1, 2):
            function(torch.ones(2), n)

        def hit():
            for _ in range(1000):
                function(torch.ones(2), 2)

        assert entered(hit) == {}
        before = len(session.compiles)
        assert "watch_call" in entered(lambda: function(torch.ones(2, 2), 2)), "a recompile does enter"
        assert len(session.compiles) == before + 1


# 6. Works from threads (processes: test_processes.py)


def test_concurrent_compiles_of_two_threads_are_distinguished():
    def work(number):
        def function(x, name):
            return x * len(name) + number

        compiled = programs.compiled(programs.renamed(function, f"thread_{number}"))
        barrier.wait()
        for n in range(4):
            results[number].append(compiled(torch.ones(2), "n" * n).tolist())

    results = collections.defaultdict(list)
    barrier = threading.Barrier(2)
    with cd.watch() as session:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert dict(results) == {t: [[n + t] * 2 for n in range(4)] for t in range(2)}
    compiles = session.compiles
    assert sorted(compiles["function"]) == ["thread_0"] * 4 + ["thread_1"] * 4
    assert compiles["compile_id"].is_unique
    frames = compiles.groupby("function")["compile_id"].agg(lambda ids: {i.split("/")[0] for i in ids})
    assert all(len(frame) == 1 for frame in frames) and frames.iloc[0] != frames.iloc[1]
    by_id = dict(zip(compiles["compile_id"], compiles["function"], strict=True))
    recompiles = session.recompiles
    assert len(recompiles) == 6
    assert [by_id[i] for i in recompiles["compile_id"]] == recompiles["function"].tolist()
    assert recompiles["lost_s"].notna().all()
    whole = session.phases.query("name == 'entire_frame_compile'")
    assert sorted(whole["compile_id"]) == sorted(compiles["compile_id"])


# torch's own outputs, and what users do to torch in the meantime


def test_reset_and_set_logs_during_a_watch_change_nothing():
    with cd.watch() as session:
        recompiling(2)
        torch._dynamo.reset()
        torch._logging.set_logs(dynamo=logging.ERROR)
        recompiling(2)
        torch._logging.set_logs()
        torch._dynamo.reset()
        recompiling(2)
    assert session.compiles["compile_id"].tolist() == ["0/0", "0/1"] * 3
    assert session.recompiles["compile_id"].tolist() == ["0/1"] * 3
    assert session.recompiles["lost_s"].tolist() == session.compiles["duration_s"][1::2].tolist()
    per_compile = session.artifacts.query("name == 'dynamo_output_graph'")
    assert per_compile["compile_id"].tolist() == ["0/0", "0/1"] * 3
    assert {row["status"] for row in programs.at_work(session).values()} == {"active"}


SCRIPT = """
import contextlib, logging, sys, torch
if sys.argv[1] == "watched":
    import compilediag as cd
    cd.start(detail=sys.argv[2])
f = torch.compile(lambda x, name: x + len(name), backend="eager")
for n in range(3):
    f(torch.ones(2), "n" * n)
def g(x):
    torch._dynamo.graph_break()
    return x.sin()
torch.compile(g, backend="eager")(torch.ones(2))
"""


def test_torchs_own_trace_and_logs_are_the_same_watched_or_not(tmp_path, program_server):
    def outputs(*args):
        folder = tmp_path / "-".join(args)
        env = {"TORCH_TRACE": str(folder), "TORCH_LOGS": "recompiles,graph_breaks"}
        done = program_server.run("-c", SCRIPT, *args, env=env)
        assert done.returncode == 0, done.stderr
        [trace] = folder.iterdir()
        records = re.findall(r"^V\d+ .*?\] (\{.*)$", trace.read_text(), re.M)
        details = re.findall(r"\] (\[.*)$", done.stderr, re.M)
        return [steady(shape(r)) for r in records], [steady(line) for line in details]

    plain_records, plain_logs = outputs("plain", "full")
    records, logs = outputs("watched", "full")
    assert logs == plain_logs and any("Recompiling function" in line for line in logs)
    assert records == plain_records and len(records) > 30


def shape(record):
    """A record without its times, addresses and the stack, which has our frames in it."""
    import json

    fields = json.loads(record)
    kind = [key for key in fields if key not in ("stack", "has_payload")]
    return json.dumps({key: fields[key] if isinstance(fields[key], int) else None for key in kind})
