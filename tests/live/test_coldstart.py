"""`compilediag coldstart`: two starts of a program, with caches that serve it and with caches that do not."""

import json
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from tests import inside

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
#: A setting and a number in the code can differ from the start that filled the caches.
SERVE = """
import sys
import torch
import torch._inductor.config

torch._inductor.config.epilogue_fusion = "--other-setting" not in sys.argv
torch._inductor.config.fx_graph_remote_cache = False
torch.compiler.config.job_id = next((word[6:] for word in sys.argv if word.startswith("--job=")), None)
if "--load" in sys.argv:
    torch.compiler.load_cache_artifacts(open("artifacts", "rb").read())

@torch.compile
def forward(x, w):
    return torch.relu(x @ w) + (2 if "--other-code" in sys.argv else 1)

@torch.compile
def score(x):
    return x.softmax(-1).sum()

score(forward(torch.ones(3, 8), torch.ones(8, 8)))
if "--more" in sys.argv:
    score(torch.ones(3, 8, dtype=torch.float64))
    torch.compile(lambda x: x.sin(), fullgraph=True)(torch.ones(2))
if "--save" in sys.argv:
    open("artifacts", "wb").write(torch.compiler.save_cache_artifacts()[0])
    torch.compiler.load_cache_artifacts(b"not whole")
"""


@pytest.fixture(scope="module")
def starts(program_server, tmp_path_factory):
    """Sessions by name, and the folder of the caches that the first one filled."""
    folder = tmp_path_factory.mktemp("coldstart")
    (folder / "serve.py").write_text(SERVE)

    def start(name, caches, *args):
        env = {"TORCHINDUCTOR_CACHE_DIR": str(folder / caches)}
        command = ("-m", "compilediag", "run", "--quiet", "--save", f"{name}.cdiag", "serve.py", *args)
        done = program_server.run(*command, cwd=folder, env=env)
        assert done.returncode == 0, done.stderr
        return cd.load(folder / f"{name}.cdiag")

    found = {
        "filled": start("filled", "caches", "--save", "--job=a"),
        "warm": start("warm", "caches", "--more"),
        "changed": start("changed", "caches", "--other-setting", "--other-code"),
        "elsewhere": start("elsewhere", "nothing"),
        "loaded": start("loaded", "others", "--load", "--more", "--job=a"),
        "unused": start("unused", "yet-others", "--load", "--other-setting", "--job=b"),
    }
    return found, folder / "caches"


def describe(report):
    return {cause.factor.code: cause for cause in report.causes}


def test_a_setting_is_the_first_difference_and_code_that_differs_as_well_follows(starts):
    found, _ = starts
    causes = describe(cd.coldstart(found["filled"], found["changed"]))
    assert list(causes) == ["setting"]
    cause = causes["setting"]
    assert cause.changes == ("inductor_config[epilogue_fusion]: True -> False",)
    assert {row.function for row in cause.compiles} == {"forward", "score"}
    assert cause.seconds == pytest.approx(sum(row.duration_s for row in cause.compiles)) and cause.seconds > 0
    assert any(name.startswith("gm") for name in cause.others)
    assert cause.follows["py_code"] >= 2


def test_what_the_good_start_did_not_compile_is_told_from_what_differs(starts):
    found, _ = starts
    causes = describe(cd.coldstart(found["filled"], found["warm"]))
    assert {code: sorted(row.function for row in cause.compiles) for code, cause in causes.items()} == {
        "inputs": ["score"],
        "new": ["<lambda>"],
    }
    assert any("float32 -> float64" in text for text in causes["inputs"].changes)


def test_the_same_key_in_another_folder_is_an_entry_that_is_not_there(starts):
    found, caches = starts
    for good in (found["filled"], caches):
        causes = describe(cd.coldstart(good, found["elsewhere"]))
        assert {code: cause.graphs for code, cause in causes.items()} == {"absent": 2}


# Artifacts of `torch.compiler.load_cache_artifacts`


def count_artifacts(session):
    """How many were loaded and how many of them were not used, by cache."""
    found = cd.coldstart(session, session).found.artifacts
    return {each.cache: (len(each.loaded), len(each.unused)) for each in found}


def list_rules(session):
    return [finding.rule for finding in session.findings() if finding.rule in ("artifacts_unused", "cache_failed")]


def test_artifacts_serve_the_graphs_that_they_have(starts):
    found, _ = starts
    assert count_artifacts(found["loaded"]) == {"fx_graph": (2, 0), "aot_autograd": (2, 0), "pgo": (1, 0)}
    rows = found["loaded"].cache_lookups.query("action == 'load'")
    assert rows["outcome"].unique().tolist() == ["loaded"] and rows["bytes"].gt(0).all()
    stored = found["filled"].cache_lookups.query("action == 'store' and cache in ['fx_graph', 'aot_autograd']")
    assert set(stored["key"]) == set(rows.query("cache != 'pgo'")["key"])
    causes = describe(cd.coldstart(found["warm"], found["loaded"]))
    assert {code: cause.graphs for code, cause in causes.items()} == {"not_saved": 2}
    assert list_rules(found["loaded"]) == []


def test_artifacts_of_another_setting_are_loaded_and_not_used(starts, capsys):
    found, _ = starts
    assert count_artifacts(found["unused"]) == {"fx_graph": (2, 2), "aot_autograd": (2, 2), "pgo": (1, 1)}
    assert list(describe(cd.coldstart(found["filled"], found["unused"]))) == ["setting"]
    (finding,) = (each for each in found["unused"].findings() if each.rule == "artifacts_unused")
    assert finding.count == 4 and finding.seconds_lost > 0 and "coldstart" in finding.suggestion
    assert inside.main(["coldstart", found["filled"].path, found["unused"].path, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["artifacts"]
    assert {each["cache"]: (each["loaded"], len(each["unused"]), each["missed"]) for each in rows} == {
        "fx_graph": (2, 2, 2),
        "aot_autograd": (2, 2, 2),
        "pgo": (1, 1, 1),
    }


def test_artifacts_that_cannot_be_read_have_failed(starts):
    found, _ = starts
    assert count_artifacts(found["filled"]) == {}
    assert found["filled"].cache_lookups.query("action == 'load'")["outcome"].tolist() == ["failed"]
    assert list_rules(found["filled"]) == ["cache_failed"]


def test_the_command_prints_the_same(starts, capsys):
    found, caches = starts
    assert inside.main(["coldstart", str(found["filled"].path), str(found["changed"].path)]) == 0
    assert capsys.readouterr().out == cd.coldstart(found["filled"], found["changed"]).summary()
    assert inside.main(["coldstart", str(found["filled"].path), str(caches)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_logs_have_the_parts_of_keys_too():
    logs = [GOLDEN / f"lookups-{version}.log.gz" for version in ("2.13.0", "2.15.0")]
    causes = cd.coldstart(*logs).causes
    assert {cause.factor.code for cause in causes} == {"setting", "bypassed"}
    same = cd.coldstart(logs[0], logs[0]).causes
    assert {cause.factor.code for cause in same} == {"absent", "bypassed"}


def test_a_text_that_is_no_key_is_left_out():
    good = json.dumps({"key": "k", "settings": "", "components": {"gm": ["1", ""]}})
    wrong = ("[]", "{", '{"key": 1}', "[" * 100_000, '{"key": [], "components": {"a": 1}}')
    rows = [(name, text) for text in wrong for name in ("cache_key", "fx_graph_cache_miss")]
    assert list(inside.read_keys([*rows, ("cache_key", good)])) == ["k"]


def write_factors(folder, name, **factors):
    """A cache of vLLM, as its `backends.py` writes it: the newest counts."""
    file = folder / name / "rank_0_0" / "backbone" / "cache_key_factors.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(factors))
    return folder


def test_factors_of_vllms_caches_are_compared(tmp_path, capsys):
    known = {"config": ["a1", "b2"], "config_hash": "c1", "code_hash": "k1", "compiler": {"torch": "2.13.0"}}
    good = write_factors(tmp_path / "good", "aa", env={"VLLM_USE_DEEP_GEMM": False, "VLLM_X": 1}, **known)
    bad = write_factors(tmp_path / "bad", "bb", env={"VLLM_USE_DEEP_GEMM": True}, **{**known, "code_hash": "k2"})
    expected = (
        'vLLM\'s code_hash: "k1" -> "k2"',
        "vLLM's env.VLLM_USE_DEEP_GEMM: false -> true",
        "vLLM's env.VLLM_X: 1 -> none",
    )
    found = cd.coldstart(good, bad)
    assert found.found.environment == expected and found.seconds == (None, None) and found.causes == ()
    assert inside.main(["coldstart", str(good), str(bad)]) == 0
    printed = capsys.readouterr().out
    assert "3 factors of vLLM's caches differ" in printed and all(text in printed for text in expected)
    assert cd.coldstart(good, good).found.environment == ()


def test_a_damaged_file_of_factors_is_no_factor(tmp_path):
    good = write_factors(tmp_path / "good", "aa", env={"VLLM_X": 1})
    for name, text in (("list", "[1]"), ("cut", '{"env": {'), ("deep", "[" * 100_000)):
        file = tmp_path / name / "cache_key_factors.json"
        file.parent.mkdir()
        file.write_text(text)
        with pytest.raises(CompilediagError):
            cd.coldstart(good, file.parent)
