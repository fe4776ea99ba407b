"""The types of the browser code, which need node, and the files that are generated from Python."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.inside import esm

ROOT = Path(__file__).resolve().parents[2]
TSC = ROOT / "node_modules" / ".bin" / "tsc"


def test_the_types_are_right():
    if shutil.which("node") is None or not TSC.exists():
        pytest.skip("node or TypeScript is not installed: npm install")
    checked = subprocess.run([TSC, "-p", ROOT], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_types_of_what_a_page_gets_are_those_of_python(python):
    written = python(ROOT / "docs" / "make_page_types.py")
    assert written.stdout == (esm.STATIC / "core" / "page-types.d.ts").read_text(), "run make docs: " + written.stderr


def test_only_the_formatter_formats_numbers():
    """Elsewhere toFixed is for coordinates and lengths of the style sheet, not for texts that people read."""
    for path in sorted(esm.STATIC.rglob("*.js")):
        lines = [] if path.name == "format.js" else path.read_text().splitlines()
        assert [line for line in lines if "NumberFormat" in line or "toLocale" in line] == [], path.name
        assert [line for line in lines if "toFixed(" in line and not re.search(r"width|scale\.y", line)] == [], (
            path.name
        )
