"""The types of the browser code, which need node, and the files that are generated from Python."""

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
