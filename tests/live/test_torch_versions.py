"""docs/torch_versions.md is what its generator writes, and what it says of the installed torch is true."""

import json
import platform
from pathlib import Path

import pytest
import torch

from compilediag.cli.doctor_command import FOUND, describe_support
from tests.inside import main, probe_all
from tests.loading import load_script
from tests.version_scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
KNOWN = json.loads(FOUND.read_text())
VERSION = ".".join(torch.__version__.split(".")[:2])


@pytest.fixture
def generator():
    return load_script(ROOT / "docs" / "make_torch_versions.py")


def test_the_page_is_what_its_generator_writes(generator, capsys):
    generator.main()
    assert capsys.readouterr().out == (ROOT / "docs" / "torch_versions.md").read_text(), "run make docs"


def test_every_source_has_a_row_and_every_row_an_answer_in_each_version():
    assert {name for name, *_ in probe_all()} <= {row["source"] for row in KNOWN["rows"]}
    records = [scenario.records for scenario in SCENARIOS]
    assert len(set(records)) == len(records) and records == [row["records"] for row in KNOWN["rows"]]
    for version, found in KNOWN["versions"].items():
        assert list(found["answers"]) == records, version
        assert "no" not in found["answers"].values(), version


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if not s.needs], ids=lambda s: s.records)
def test_what_it_says_of_the_installed_torch_is_true(generator, scenario, fresh_inductor_cache):
    answer = generator.find_answer(scenario, VERSION, None)
    assert answer in ("yes", "not in torch")
    if VERSION in KNOWN["versions"]:
        assert KNOWN["versions"][VERSION]["answers"][scenario.records] == answer


def test_doctor_reports_it_for_the_installed_torch(capsys):
    main(["doctor", "--verbose"])
    out = capsys.readouterr().out
    if VERSION in KNOWN["versions"]:
        yes = sum(answer == "yes" for answer in KNOWN["versions"][VERSION]["answers"].values())
        assert f"{yes} of {len(SCENARIOS)} features were tested with torch {VERSION} and are recorded" in out
    assert max(map(len, out.replace(platform.platform(), "").splitlines())) <= 120


def test_doctor_says_what_a_version_lacks_and_which_are_not_tested():
    lines = list(describe_support("2.13.0+cpu"))
    assert any(line.startswith("not in torch 2.13: captures of torch.compiler.precompile;") for line in lines)
    assert list(describe_support("9.1.0")) == ["not tested with torch 9.1; tested with torch 2.11, 2.13, 2.15"]
