"""What is found does not depend on the names of the folders in which torch and the user's code lie."""

import dataclasses
import json
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.decode.call_stacks import find_torch_path, is_torch_file
from compilediag.diagnosis import diagnose
from compilediag.diagnosis.plan.make_plan import make_plan
from compilediag.events import BY_TABLE, RowList

GOLDEN = Path(__file__).parents[1] / "golden/schema-8.cdiag"
PACKAGES, PROJECT = "/home/user/compilediag/.venv/lib/python3.11/site-packages", "/home/user/compilediag/tests/golden"
#: Where torch is, and where the user's code is.
FOLDERS = [
    ("/opt/torch/.venv/lib/python3.12/site-packages", "/opt/torch/examples"),
    ("/srv/pytorch", "/srv/pytorch-experiments"),
    ("/usr/lib/python3/dist-packages", "/home/torch/optim/torch"),
    ("C:\\torch\\Lib\\site-packages", "C:\\Users\\Ada\\torch\\nn"),
]


def move(value, packages, project):
    """The value with other folders, with the separators of those folders."""
    if not isinstance(value, str) or not value.startswith((PACKAGES, PROJECT)):
        return value
    for old, new in ((PACKAGES, packages), (PROJECT, project)):
        if value.startswith(old):
            rest = value.removeprefix(old)
            return new + (rest.replace("/", "\\") if "\\" in new else rest)
    return value


def find(rows, folders):
    """Findings and plan in JSON, with the user's folder of the recording."""
    moved = RowList(
        dataclasses.replace(row, **{
            field.name: move(getattr(row, field.name), *folders) for field in dataclasses.fields(row) if field.init
        })
        for row in rows
    )  # fmt: skip
    found = [dataclasses.asdict(finding) for finding in diagnose(moved)], make_plan(moved).to_dict()
    return json.dumps(found, default=str).replace(json.dumps(folders[1])[1:-1], PROJECT).replace("\\\\", "/")


@pytest.fixture(scope="module")
def rows():
    session = cd.load(GOLDEN)
    return [row for kind in BY_TABLE.values() for row in session.data.rows(kind)]


@pytest.mark.parametrize("folders", FOLDERS, ids=lambda folders: folders[0])
def test_findings_and_plan_do_not_depend_on_folders(rows, folders):
    assert find(rows, folders) == find(rows, (PACKAGES, PROJECT))


@pytest.mark.parametrize("packages", [packages for packages, _ in FOLDERS])
def test_the_path_in_torch(packages):
    separator = "\\" if "\\" in packages else "/"
    path = separator.join([packages, "torch", "nn", "modules", "module.py"])
    assert is_torch_file(path) and find_torch_path(path) == "nn/modules/module.py"


def test_a_file_in_no_folder_named_torch():
    assert find_torch_path("/home/ada/train.py") is None
