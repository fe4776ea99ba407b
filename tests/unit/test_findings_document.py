"""The findings as a document for other programs: its fields, its verdict, what a budget leaves out, and its schema."""

import json
import re

import jsonschema
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from tests.inside import main
from tests.loading import read_schema

from .log_builder import GOLDEN
from .session_builder import SECOND, saved, stored
from .tables_builder import compiled, graph_break, sizes, source

SCHEMA = read_schema("compilediag.findings/1")
#: A session that recorded all that a clean bill needs, and ended by itself.
WHOLE = [source(name, "active") for name in ("compiles", "recompiles", "graph_breaks")]
ENDED = {"stopped_ns": 9 * SECOND, "device": "cpu"}


@pytest.fixture(scope="module")
def golden():
    return cd.ingest(GOLDEN)


def read(session, **options):
    document = session.findings_document(**options)
    values = json.loads(document.to_json())
    jsonschema.validate(values, SCHEMA)
    assert values == json.loads(json.dumps(document.to_dict()))
    return values


def test_every_finding_of_the_program_is_in_the_document(golden):
    found = [finding for finding in golden.findings() if finding.rule != "not_observed"]
    rows = read(golden)["findings"]
    assert [(row["fingerprint"], row["rule"]) for row in rows] == [(one.fingerprint, one.rule) for one in found]
    assert len({row["fingerprint"] for row in rows}) == len(rows) == 10
    keys = set(golden.compiles["compile_key"])
    assert all(keys.issuperset(row["evidence"]) and row["evidence"] for row in rows)


def test_a_step_of_the_plan_names_the_findings_that_it_resolves(golden):
    found, plan = golden.findings(), golden.plan()
    assert [name for step in plan.to_dict()["steps"] for name in step["fingerprints"]] == [
        finding.fingerprint for step in plan.steps for finding in found if finding.what_changed in step.causes
    ]
    assert all(step.fingerprints for step in plan.steps)


def test_a_document_fits_its_budget_and_the_rest_follows(golden):
    whole = read(golden)
    for budget in (3000, 5000):
        after, seen = None, []
        while True:
            text = golden.findings_document(budget, after).to_json()
            page = json.loads(text)
            assert len(text) <= budget and page["findings"]
            seen += page["findings"]
            assert len(seen) + page["omitted"]["findings"] == len(whole["findings"])
            if not page["omitted"]["findings"]:
                break
            after = page["findings"][-1]["fingerprint"]
            assert page["next"][0].endswith(f"--after {after}")
        assert seen == whole["findings"]
    assert read(golden, budget=10**6) == whole


def test_a_budget_that_is_too_small_names_one_that_is_not(golden):
    page = read(golden, budget=100)
    assert page["findings"] == [] and page["omitted"] == {"findings": 10} and page["verdict"] == "costs"
    budget = int(re.search(r"--budget (\d+)$", page["next"][0])[1])
    assert len(read(golden, budget=budget)["findings"]) >= 1


def test_one_finding_can_be_asked_for(golden):
    whole = read(golden)
    name = whole["findings"][3]["fingerprint"]
    assert read(golden, only=name)["findings"] == [whole["findings"][3]]
    for option in ("only", "after"):
        with pytest.raises(CompilediagError, match=f"'{name}0'; did you mean '{name}'"):
            golden.findings_document(**{option: f"{name}0"})


def test_a_session_without_findings_is_clean(tmp_path):
    found = read(stored(tmp_path, compiled(), *WHOLE, **ENDED))
    assert found["verdict"] == "clean" and found["incomplete"] == [] and found["findings"] == []
    assert (found["session"]["compiles"], found["session"]["recompiles"], found["session"]["lost_s"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        ([], ENDED),
        ([compiled()], {"stopped_ns": None}),
        ([compiled(), source("recompiles", "unavailable", "this torch has no x")], ENDED),
        ([compiled(), source("graph_breaks", "failed", "switched off after 5 errors")], ENDED),
        ([compiled(), source("compiles", "active", dropped=3)], ENDED),
    ],
)
def test_a_session_that_lacks_something_is_incomplete(rows, facts, tmp_path):
    given = {row.name for row in rows if hasattr(row, "name")}
    found = read(stored(tmp_path, *rows, *(row for row in WHOLE if row.name not in given), **facts))
    assert (found["verdict"], len(found["incomplete"])) == ("incomplete", 1)


def test_what_was_not_collected_is_null_and_named(tmp_path):
    found = read(stored(tmp_path, source("compiles", "active"), source("recompiles", "unavailable", "no x")))["session"]
    missing = {name for name, value in found.items() if value is None}
    assert missing == {"device", "wall_s", "lost_s", "recompiles", "after_warmup"} and found["compiles"] == 0
    assert missing <= set(found["not_collected"])


def test_times_that_were_not_taken_are_null(tmp_path):
    rows = sizes("4", "6", "9", lost_s=None)
    found = read(stored(tmp_path, compiled(duration_s=None), *rows, *WHOLE, **ENDED))
    assert (found["session"]["compile_s"], found["session"]["lost_s"]) == (None, None)
    assert [row["seconds"] for row in found["findings"]] == [None]


def test_a_finding_has_its_change_and_its_proof(tmp_path):
    file = tmp_path / "model.py"
    file.write_text("import torch\n\n\nstep(batch)\n")
    rows = sizes("4", "6", "9", file=str(file), user_file=str(file), user_line=4, user_code="step(batch)", step=7)
    session = saved(tmp_path, compiled(), *rows, *WHOLE)
    (row,) = read(session)["findings"]
    assert (row["proof"], row["first_step"], row["count"], row["values"]) == ("predicted", 7, 2, ["4", "6", "9"])
    assert (row["fix"]["kind"], row["fix"]["unsafe"]) == ("setting", False)
    for holds, proof in ((True, "tried"), (False, "failed")):
        session.data.set_meta(tried={"holds": holds, "text": "Tried"})
        assert read(session)["findings"][0]["proof"] == proof


def test_a_higher_limit_is_unsafe(tmp_path):
    limit = compiled(compile_id="0/9", limit="recompile_limit", limit_value=8, outcome="skipped")
    found = read(saved(tmp_path, compiled(), limit, graph_break()))
    unsafe = {row["rule"]: row["fix"]["unsafe"] for row in found["findings"]}
    assert unsafe == {"recompile_limit": True, "graph_break": False}


def test_the_command_prints_the_document_and_nothing_else(golden, tmp_path, capsys):
    path = golden.save(tmp_path / "run.cdiag")
    assert main(["findings", str(path), "--json"]) == 0
    shown = capsys.readouterr()
    values = json.loads(shown.out)
    jsonschema.validate(values, SCHEMA)
    assert shown.err == "" and len(shown.out) <= 8_001 and values["session"]["path"] == str(path)
    assert main(["findings", str(path)]) == 0
    text = capsys.readouterr().out
    assert all(one.fingerprint in text for one in golden.findings() if one.rule != "not_observed")
    name = values["findings"][2]["fingerprint"]
    assert main(["findings", str(path), "--json", "--only", name]) == 0
    assert [row["fingerprint"] for row in json.loads(capsys.readouterr().out)["findings"]] == [name]
    assert main(["findings", str(path), "--only", "f-0"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("compilediag: no finding has the fingerprint 'f-0'")
