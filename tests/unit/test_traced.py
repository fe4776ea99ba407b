"""What logs of real runs tell of call stacks, failures, symbolic shapes, exports, provenance and collectives."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

import compilediag as cd

from .log_builder import compile_, metrics, record, start, string

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module", params=["2.13", "2.15"])
def session(request):
    """`session(NAME)`: the session of a golden log of one version of torch."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = cd.ingest(GOLDEN / f"torch-{request.param}-{name}.log.gz", strict=True)
        return made[name]

    of.version = request.param
    return of


def frames(*places):
    """A stack as torch logs it: (file, line, function) of each frame; the names of files are in records before it."""
    files = [*dict.fromkeys(file for file, _, _ in places)]
    names = "".join(string(file, number) for number, file in enumerate(files))
    return names, [{"filename": files.index(file), "line": line, "name": name} for file, line, name in places]


# Call stacks


def test_a_compile_has_the_stack_that_it_was_called_from(session):
    compiles = session("shapes").compiles
    first, again, other = compiles["stack"]
    assert first == again != other and compiles["stack"].notna().all()
    *callers, own = session("shapes").stack(first)
    assert callers[-1].startswith("/home/user/project/tests/live/recorded.py:") and callers[-1].endswith(" <module>")
    assert own.startswith("/home/user/project/tests/live/recorded.py:") and own.endswith(" branch")


def test_frames_that_stacks_share_are_stored_once(session):
    stacks = session("shapes").stacks
    assert stacks["stack"].is_unique and set(stacks["caller"].dropna()) <= set(stacks["stack"])
    assert not stacks[["caller", "file", "line", "function"]].duplicated().any() and len(stacks) > 100


def read_stacks(session_of_log, *places):
    names, stack = frames(*places)
    session = session_of_log(names, record("create_symbol", {"symbol": "s0", "stack": stack}), strict=True)
    return session.symbolic_shapes["torch_stack"].iloc[0], session.stacks


def test_a_stack_has_the_same_key_in_every_session(session_of_log):
    places = [("/a.py", 1, "<module>"), ("/a.py", 7, "f")]
    key, stacks = read_stacks(session_of_log, *places)
    caller, own = stacks.to_dict("records")
    assert own["stack"] == key == read_stacks(session_of_log, *places)[0] and own["caller"] == caller["stack"]
    assert (own["file"], own["line"], own["function"]) == ("/a.py", 7, "f")
    assert read_stacks(session_of_log, places[0])[0] == caller["stack"]


def test_a_stack_that_never_ends_is_cut_and_no_stack_has_no_key(session_of_log):
    key, stacks = read_stacks(session_of_log, *(("/a.py", number, "f") for number in range(4_000)))
    assert len(stacks) == 400 and stacks["line"].max() == 3_999
    assert key == stacks.set_index("line").loc[3_999, "stack"]
    key, stacks = read_stacks(session_of_log)
    assert pd.isna(key) and stacks.empty


def test_a_stack_that_is_not_there_is_a_key_error(session):
    with pytest.raises(KeyError):
        session("shapes").stack("nothing")


def test_what_is_written_outside_of_any_compile_has_its_own_stack(session):
    artifacts = session("rank0").artifacts.set_index("name")
    key = artifacts.loc["graph_execution", "stack"]
    assert "log_graph_execution" in " ".join(session("rank0").stack(key))
    assert artifacts.drop("graph_execution")["stack"].isna().all()


@pytest.mark.parametrize("stack", [None, 5, "x", [None], [{"line": "a", "name": 3, "filename": {}}], [[]]])
def test_stacks_that_make_no_sense_are_survived(session_of_log, stack):
    symbol = record("create_symbol", {"symbol": "s0", "user_stack": stack, "stack": stack})
    assert session_of_log(string(), symbol, strict=True).symbolic_shapes["symbol"].tolist() == ["s0"]


# Failures


def test_a_failure_has_the_users_line(session):
    compiles = session("failures").compiles.set_index("function")
    assert compiles["outcome"].tolist() == ["failed"] * 3
    assert compiles.loc["breaks", "user_file"].endswith("/tests/live/recorded.py")
    assert compiles.loc["breaks", "user_line"] == compiles.loc["breaks", "line"] + 2
    assert compiles.loc["<lambda>", "fail_type"] == "BackendCompilerFailed"


# Symbolic shapes


def test_symbols_have_their_source_range_and_the_users_line(session):
    shapes = session("shapes").symbolic_shapes
    size = shapes.iloc[0]
    assert size[["action", "symbol", "source", "value", "range"]].tolist() == [
        "created",
        "s77",
        "L['x'].size()[0]",
        "6",
        "[2, int_oo]",
    ]
    assert size["user_code"] == "if x.shape[0] > 3:" and size["user_file"].endswith("recorded.py")
    frames = session("shapes").stack(size["torch_stack"])
    assert "symbolic_shapes.py" in frames[-1] and not frames[-1].endswith("trace_structured")
    assert session("shapes").stack(size["user_stack"])[-1].endswith(f"recorded.py:{size['user_line']} branch")


def test_a_guard_says_what_its_symbols_stand_for(session):
    shapes = session("shapes").symbolic_shapes.query("action == 'guarded'")
    details = dict(zip(shapes["expression"], shapes["source"], strict=True))
    assert details["s77 > 3"] == "s77 = L['x'].size()[0]" and details["s77 <= 3"] == details["s77 > 3"]
    assert details["(s86 >= 0) & (s86 <= s77)"] == "s86 = L['n'], s77 = L['x'].size()[0]"
    symbols = dict(zip(shapes["expression"], shapes["symbols"], strict=True))
    assert symbols["(s86 >= 0) & (s86 <= s77)"] == {"s86": "L['n']", "s77": "L['x'].size()[0]"}


def count_guards(session, **fields):
    """The verbose records of guards in the log itself."""
    text = gzip.decompress((GOLDEN / f"torch-{session.version}-shapes.log.gz").read_bytes()).decode()
    records = [json.loads(line.partition("] ")[2]) for line in text.splitlines() if '] {"guard_added": ' in line]
    return sum(fields.items() <= record["guard_added"].items() for record in records)


def test_a_guard_that_torch_logs_twice_is_recorded_once(session, session_of_log):
    """torch logs each guard as guard_added and as guard_added_fast where it is asked for all."""
    shapes = session("shapes").symbolic_shapes
    assert shapes["action"].isin(["guarded", "suppressed"]).sum() == count_guards(session) >= 13
    twice = record("guard_added_fast", {"expr": "s0 > 3"})
    assert len(session_of_log(twice, twice, strict=True).symbolic_shapes) == 2
    both = record("guard_added", {"expr": "s0 > 3", "prefix": "eval"}) + twice
    assert len(session_of_log(both, twice, strict=True).symbolic_shapes) == 2


def test_a_specialization_says_what_fixed_it(session):
    (fixed,) = session("shapes").symbolic_shapes.query("action == 'specialized'").to_dict("records")
    assert (fixed["symbol"], fixed["value"], fixed["source"]) == ("s77", "5", "L['x'].size()[0]")
    assert fixed["reason"] == "range_refined_to_singleton" and fixed["user_code"] == "return x + torch.ones(5)"


def test_a_guard_that_torch_suppressed_is_none(session):
    """By the prefix of torch's verbose record: `eval [guard suppressed]`."""
    shapes = session("shapes").symbolic_shapes
    suppressed = count_guards(session, prefix="eval [guard suppressed]")
    assert (shapes["action"] == "suppressed").sum() == suppressed >= 8
    assert "Ne(s86, 0)" not in set(shapes.query("action == 'guarded'")["expression"])


EVALUATING = ("/venv/site-packages/torch/fx/experimental/symbolic_shapes.py", 8523, "_evaluate_expr")


@pytest.mark.parametrize(
    ("function", "file", "action"),
    [
        ("_aot_stage2b_bw_compile", "_functorch/_aot_autograd/graph_compile.py", "suppressed"),
        ("need_use_acc_helper", "_inductor/codegen/cpp.py", "guarded"),
    ],
)
def test_a_condition_that_torch_makes_no_guard_of_is_not_a_guard(session_of_log, function, file, action):
    """torch logs `eval` and `eval [guard suppressed]` alike; the backward's strides are compared in this way."""
    around = ("/venv/site-packages/torch/_inductor/compile_fx.py", 3061, "_compile_fx_main")
    names, stack = frames(around, (f"/venv/site-packages/torch/{file}", 1, function), EVALUATING)
    guard = record("guard_added_fast", {"expr": "Eq(s27, 24)", "stack": stack}, compile_id="0/3")
    (row,) = session_of_log(names, guard, strict=True).symbolic_shapes.itertuples()
    assert (row.action, row.expression) == (action, "Eq(s27, 24)")


def test_a_value_that_depends_on_data(session):
    shapes = session("failures").symbolic_shapes
    assert shapes["action"].tolist() == ["unbacked", "guarded", "undecided"]
    assert shapes["expression"].tolist()[1:] == ["u0 > 1", "u0 > 2"]
    # If only torch's stack was recorded, the user's line is unknown and the row names the call of the whole function.
    assert shapes["user_code"].isna().tolist() == [False, False, True]


# Exports


def test_a_setting_that_keeps_sizes_static_is_read_from_a_log(tmp_path):
    config = json.dumps({"dynamic_sources": "", "static_sources": "L['x']"})
    text = string() + start() + metrics(compiler_config=config) + start(compile_id="1/0", at=2) + metrics(3, "1/0")
    (tmp_path / "one.log").write_text(text)
    assert cd.ingest(tmp_path / "one.log", strict=True).meta["static_sources"] == "L['x']"
    assert "static_sources" not in cd.ingest(GOLDEN / "torch-2.15-shapes.log.gz").meta


def test_problems_of_an_export(session):
    problems = session("export").export_problems.set_index("problem")
    assert problems.loc["missing_fake_kernel", "op"] == "cdiag.plain.default"
    assert problems.loc["mismatched_fake_kernel", "reason"].startswith("mismatch between fake value 4 and real value 2")
    data = problems.loc["data_dependent"]
    assert (data["expression"], data["result"], data["user_code"]) == ("u4 > 2", "True", "if c.item() > 2:")
    assert list(data["values"]) == ["c"] and data["derivation"][0].startswith("u4 > 2 = gt(u4, 2) at /home/user/")


@pytest.fixture
def problems_of(session_of_log):
    """`problems_of(*records)`: the problems of an export that a log has."""
    return lambda *records: session_of_log(*records, strict=True).export_problems


def test_a_guard_of_an_export_on_what_was_asked_to_be_dynamic(problems_of):
    body = {"expr": "s0 > 3", "prefix": "eval", "symbol_to_sources": {"s0": "L['x'].size()[0]"}}
    (problem,) = problems_of(record("guard_added", body, compile_id=None)).itertuples()
    assert (problem.problem, problem.symbols) == ("constraint", {"s0": "L['x'].size()[0]"})
    assert len(problems_of(record("guard_added", body))) == 1, "since torch 2.15 an export has an id"
    for compile_id in ("0/0", "!0/0/0"):  # A compile may guard.
        compiling = start(compile_id=compile_id) if compile_id == "0/0" else ""
        assert problems_of(compiling, record("guard_added", body, compile_id=compile_id)).empty
    checked = {**body, "prefix": "runtime_assert"}
    assert problems_of(record("guard_added", checked, compile_id=None)).empty


def test_how_an_expression_came_about(problems_of):
    def step(number, result, *arguments):
        details = {"method": "add", "result": result, "result_id": number, "argument_ids": list(arguments)}
        return record("expression_created", {**details, "arguments": list(map(str, arguments))}, compile_id=None)

    problem = {"expr": "c", "result": "True", "expr_node_id": 3}
    log = step(1, "a") + step(2, "b", 1, 99) + step(3, "c", 2, 1, 3)
    made = problems_of(log, record("propagate_real_tensors_provenance", problem, compile_id=None))
    assert made["derivation"].tolist() == [["a = add()", "b = add(1, 99)", "c = add(2, 1, 3)"]]


def test_findings_of_an_export_say_what_to_change(session):
    found = {f.rule: f for f in session("export").findings() if f.rule.startswith("export_")}
    assert len(found) == 3
    assert '@torch.library.register_fake("cdiag::plain")' in found["export_missing_fake_kernel"].suggestion
    assert "opcheck(torch.ops.cdiag.cut.default" in found["export_mismatched_fake_kernel"].suggestion
    data = found["export_data_dependent"]
    assert "u4 > 2" in data.title and "torch._check(" in data.suggestion and data.user_code == "if c.item() > 2:"
    assert "Export: " in session("export").summary()


# Provenance, links


def test_provenance_is_kept_beside_the_graphs_and_the_code(session):
    artifacts = session("provenance").artifacts
    names = set(artifacts["name"])
    assert {"inductor_post_grad_graph", "inductor_output_code", "before_pre_grad_graph"} <= names
    mapping = artifacts[artifacts["name"] == "inductor_provenance_tracking_node_mappings"]
    details = json.loads(session("provenance").artifact(mapping["event_id"].iloc[0]))
    assert details["preToPost"]["matmul"] == ["mm"] and any("relu" in kernel for kernel in details["cppCodeToPost"])


def test_a_link_is_kept_with_its_address(session_of_log):
    session = session_of_log(compile_(), record("link", {"name": "profile", "url": "https://example.org/p?a=1"}))
    (link,) = session.artifacts.query("name == 'link: profile'")["event_id"]
    assert session.artifact(link) == "https://example.org/p?a=1"


# Collectives


def test_collectives_stand_in_the_order_in_which_they_run(session):
    ranks = [session(f"rank{rank}").collectives for rank in (0, 1)]
    for rank, collectives in enumerate(ranks):
        assert set(collectives["rank"]) == {rank} and set(collectives["compile_id"]) == {"0/0"}
        assert collectives["position"].tolist() == [0, 1, 2, 3]
        short = [op.split(".")[3] for op in collectives["op"]]
        assert short == ["all_reduce_", "wait_tensor", "all_gather_into_tensor", "wait_tensor"]
    assert ranks[0]["op"].tolist() == ranks[1]["op"].tolist()


def test_outputs_and_estimates_come_with_the_collective_that_they_are_of(session):
    collectives = session("rank0").collectives
    assert collectives["outputs"].tolist()[2] == ["float32 8 strides 1"] and collectives["outputs"].tolist()[1] is None
    assert collectives["estimate_us"].notna().tolist() == [True, False, True, False]


@pytest.mark.parametrize("text", ["{", "{}", "3", '{"ops": 3}', '{"ops": [3, {"type": "collective", "outputs": [1]}]}'])
@pytest.mark.parametrize("name", ["inductor_collective_schedule", "inductor_runtime_and_tensor_meta"])
def test_a_schedule_that_makes_no_sense_is_kept_as_a_text(session_of_log, name, text):
    session = session_of_log(record("artifact", {"name": name, "encoding": "json"}, text), strict=True)
    assert session.artifacts["name"].tolist() == [name] and session.collectives.empty
