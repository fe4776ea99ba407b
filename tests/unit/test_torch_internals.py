"""docs/torch_internals.md is what its generator writes, and what it says of the installed torch is true."""

import importlib.metadata
import importlib.util
import json
from pathlib import Path

import pytest

from tests.loading import load_script

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOUND = json.loads((DOCS / "torch_internals.json").read_text())["versions"]


@pytest.fixture(scope="module")
def generator():
    return load_script(DOCS / "make_torch_internals.py")


def test_the_page_is_what_its_generator_writes(generator, capsys):
    generator.main()
    assert capsys.readouterr().out == (DOCS / "torch_internals.md").read_text(), "run make docs"


@pytest.mark.parametrize("version", FOUND)
def test_every_name_was_looked_up_and_what_is_required_is_there(generator, version):
    names = generator.all_names()
    assert len(names) > 200 and set(FOUND[version]) == {str(name) for name in names}, "run --read"
    assert [str(name) for name in names if name.required and FOUND[version][str(name)] is False] == []


def test_the_installed_torch_has_what_the_page_says(generator):
    version = ".".join(importlib.metadata.version("torch").split(".")[:2])
    if version not in FOUND:
        pytest.skip(f"the page has no torch {version}")
    folder = Path(importlib.util.find_spec("torch").origin).parent.parent
    found = generator.look_up([generator.Sources(folder)])
    of_torch = {name: there for name, there in FOUND[version].items() if name.startswith("torch.")}
    assert {name: found[name] for name in of_torch} == of_torch


def test_every_hook_point_of_the_installed_torch_can_be_hooked(generator):
    """What the syntax trees show is what the imported modules have."""
    points = [name for name in generator.all_names() if isinstance(name, generator.HookPoint) and name.required]
    watched = [point for point in points if point.module.startswith("torch.") and point.exists()]
    missing = {str(point) for point in points if point.module.startswith("torch.")} - {str(p) for p in watched}
    assert missing == set() and len(watched) > 80
