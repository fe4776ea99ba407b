"""What is found does not depend on the names of the folders in which torch and the user's code lie."""

import dataclasses
import json
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.events import BY_TABLE

from .session_builder import page_text
from .tables_builder import compiled

GOLDEN = Path(__file__).parents[1] / "golden/schema-11.cdiag"
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


def find(session_of, rows, folders):
    """Findings and plan in JSON, with the user's folder of the recording."""
    moved = [
        dataclasses.replace(row, **{
            field.name: move(getattr(row, field.name), *folders) for field in dataclasses.fields(row) if field.init
        })
        for row in rows
    ]  # fmt: skip
    session = session_of(*moved)
    found = [dataclasses.asdict(finding) for finding in session.findings()], session.plan().to_dict()
    return json.dumps(found, default=str).replace(json.dumps(folders[1])[1:-1], PROJECT).replace("\\\\", "/")


@pytest.fixture(scope="module")
def rows():
    session = cd.load(GOLDEN)
    return [row for kind in BY_TABLE.values() for row in session.data.rows(kind)]


@pytest.mark.parametrize("folders", FOLDERS, ids=lambda folders: folders[0])
def test_findings_and_plan_do_not_depend_on_folders(session_of, rows, folders):
    found = find(session_of, rows, folders)
    assert found == find(session_of, rows, (PACKAGES, PROJECT)) and len(found) > 10_000


@pytest.mark.parametrize("packages", [packages for packages, _ in FOLDERS])
def test_a_redacted_page_has_the_path_in_torch(session_of, packages):
    separator = "\\" if "\\" in packages else "/"
    path = separator.join([packages, "torch", "nn", "modules", "module.py"])
    text = page_text(session_of(compiled(file=path)), redact=True)
    assert '"site-packages/torch/nn/modules/module.py"' in text and packages.replace("\\", "\\\\") not in text


def test_a_redacted_page_has_no_file_in_no_folder_named_torch(session_of):
    text = page_text(session_of(compiled(file="/home/ada/train.py")), redact=True)
    assert "site-packages/torch" not in text and "/home/ada" not in text
