"""docs/torch_survey.md is what its generator writes, and what it says of the installed torch is true."""

import importlib.metadata
import json
from pathlib import Path

import pytest

from tests.loading import load_script

DOCS = Path(__file__).resolve().parents[2] / "docs"
KNOWN = json.loads((DOCS / "torch_survey.json").read_text())


@pytest.fixture(scope="module")
def generator():
    return load_script(DOCS / "make_torch_survey.py")


def test_the_page_is_what_its_generator_writes(generator, capsys):
    generator.main()
    assert capsys.readouterr().out == (DOCS / "torch_survey.md").read_text(), "run make docs"


def test_every_change_has_a_verdict_and_a_reason(generator):
    open_rows = [row["name"] for row in KNOWN["rows"] if row["verdict"] not in generator.VERDICTS or not row["why"]]
    assert not open_rows and len(KNOWN["rows"]) > 90


def test_the_installed_torch_is_as_it_says(generator):
    installed = importlib.metadata.version("torch").split("+")[0]
    if installed not in KNOWN["versions"]:
        pytest.skip(f"the survey does not read torch {installed}")
    absent = "new" if installed == KNOWN["versions"][0] else "removed"
    names = generator.read_names()
    for row in KNOWN["rows"]:
        is_there = row["name"] in names[row["subject"]]
        assert is_there is not row["change"].startswith(absent), row["name"]


def test_settings_that_it_calls_a_part_of_the_key_are(generator):
    from torch._inductor import config

    installed = importlib.metadata.version("torch").split("+")[0]
    if installed != KNOWN["versions"][1]:
        pytest.skip(f"the settings are those of torch {KNOWN['versions'][1]}")
    portable = config.save_config_portable()
    rows = [row for row in KNOWN["rows"] if "part of the key of Inductor's caches" in row["why"]]
    assert len(rows) > 30 and [row["name"] for row in rows if row["name"] not in portable] == []
