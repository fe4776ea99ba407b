"""The worked examples that come with the package: found by rule, printed by the command, named by the summary."""

import json
from pathlib import Path

import pytest

import compilediag
from tests.inside import main
from tests.unit.session_builder import page_of, saved
from tests.unit.tables_builder import compiled, sizes

#: Rule -> its example, as the package has them.
EXAMPLES = json.loads((Path(compilediag.__file__).parent / "diagnosis" / "examples.json").read_text())


def test_an_example_is_printed(capsys):
    assert main(["example", "size_changes"]) == 0
    shown = capsys.readouterr().out
    example = EXAMPLES["size_changes"]
    parts = *(example[name] for name in ("symptom", "program", "printed")), example["changes"][0]["diff"]
    assert all(part in shown for part in parts)


def test_without_a_rule_all_are_listed(capsys):
    assert main(["example"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXAMPLES)


@pytest.mark.parametrize(
    ("rule", "answer"),
    [("size_chnges", "did you mean 'size_changes'?"), ("x", "`compilediag example` lists the rules that have one")],
)
def test_an_unknown_rule_is_one_line(capsys, rule, answer):
    assert main(["example", rule]) == 2
    assert capsys.readouterr().err == f"compilediag: no example of {rule!r}; {answer}\n"


@pytest.mark.parametrize("redact", [False, True])
def test_a_page_has_the_examples_of_its_findings_only(tmp_path, redact):
    session = saved(tmp_path, compiled(), *sizes("4", "6", "9"))
    assert list(page_of(session, redact=redact)["examples"]) == ["size_changes"]


def test_the_summary_names_the_example_of_its_first_finding(tmp_path):
    session = saved(tmp_path, compiled(), *sizes("4", "6", "9"))
    assert session.summary().splitlines()[-2] == "A worked example: compilediag example size_changes"
