"""The types of the browser code, and its formatter; both need node, which is for development only."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.inside import esm

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "format_cases.json"
TSC = ROOT / "node_modules" / ".bin" / "tsc"
#: Prints what the formatter makes of each value of the table, in the table's own order.
FORMAT = """
import * as format from "file://{module}";
import {{ readFileSync }} from "node:fs";
const formatters = {{
  seconds: format.formatSeconds,
  milliseconds: format.formatMilliseconds,
  count: format.formatCount,
  amount: (parts) => format.formatAmount(...parts),
  times: format.formatTimes,
  bytes: format.formatBytes,
  share: format.formatShare,
  signed_share: (value) => format.formatShare(value, true),
  place: (parts) => format.formatPlace(...parts),
  function: format.formatFunction,
}};
const numbers = {{ NaN, Infinity, "-Infinity": -Infinity }};
const cases = Object.entries(JSON.parse(readFileSync("{cases}")));
const known = cases.filter(([kind]) => kind in formatters);
const made = known.map(([kind, list]) => [kind, list.map(([value]) => formatters[kind](numbers[value] ?? value))]);
console.log(JSON.stringify(Object.fromEntries(made)));
"""


@pytest.fixture
def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed; tests/browser checks the formatter in Chromium")
    return found


def test_the_types_are_right(node):
    if not TSC.exists():
        pytest.skip("TypeScript is not installed: npm install")
    checked = subprocess.run([TSC, "-p", ROOT], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_numbers_are_formatted_as_in_python(node, tmp_path):
    expected = {kind: [text for _, text in cases] for kind, cases in json.loads(CASES.read_text()).items()}
    script = tmp_path / "format.mjs"
    script.write_text(FORMAT.format(module=esm.STATIC / "core" / "format.js", cases=CASES))
    ran = subprocess.run([node, "--no-warnings", str(script)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    made = json.loads(ran.stdout)
    assert made == expected


def test_the_types_of_what_a_page_gets_are_those_of_python(python):
    written = python(ROOT / "docs" / "make_page_types.py")
    assert written.stdout == (esm.STATIC / "core" / "page-types.d.ts").read_text(), "run make docs: " + written.stderr


def test_the_words_of_the_page_are_those_of_python(python):
    written = python(ROOT / "docs" / "make_words.py")
    assert written.stdout == (esm.STATIC / "core" / "words.js").read_text(), "run make docs: " + written.stderr


def test_only_the_formatter_formats_numbers():
    """Elsewhere toFixed is for coordinates and lengths of the style sheet, not for texts that people read."""
    for path in sorted(esm.STATIC.rglob("*.js")):
        lines = [] if path.name == "format.js" else path.read_text().splitlines()
        assert [line for line in lines if "NumberFormat" in line or "toLocale" in line] == [], path.name
        assert [line for line in lines if "toFixed(" in line and not re.search(r"width|scale\.y", line)] == [], (
            path.name
        )
