"""The joined modules: nothing defined twice, nothing left out, nothing that could end a script element."""

import re
from collections import Counter

import pytest

from compilediag.views import esm

ENTRIES = ("widget.js", "report.js", "diff.js")


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_name_is_defined_twice(entry):
    names = Counter(esm.TOP_LEVEL_NAME.findall(esm.module(entry)))
    assert len(names) > 50
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_import_is_there_and_comes_first(entry):
    order = esm.in_order(entry)
    for position, name in enumerate(order):
        source = (esm.STATIC / name).read_text()
        for names, file in re.findall(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";', source, re.MULTILINE):
            assert order.index(file) < position
            exported = set(
                re.findall(
                    r"^export (?:async )?(?:function|class|const|let) (\w+)",
                    (esm.STATIC / file).read_text(),
                    re.MULTILINE,
                )
            )
            assert {n.strip() for n in names.split(",")} <= exported, f"{name} takes from {file} what it has not"


@pytest.mark.parametrize("entry", ENTRIES)
def test_joining_leaves_no_import_and_no_named_export(entry):
    assert re.findall(r"^(?:import\b|export (?!default)).*", esm.module(entry), re.MULTILINE) == []


def test_every_file_is_used():
    used = {name for entry in ENTRIES for name in esm.in_order(entry)} | set(esm.STYLES)
    assert {path.name for path in esm.STATIC.iterdir()} == used


@pytest.mark.parametrize("text", [esm.module("report.js"), esm.style()], ids=["script", "style"])
def test_nothing_ends_the_element_or_asks_for_another_file(text):
    assert re.findall(r"</s|<!--|https?://|//cdn|@import|url\(", text) == []


def test_every_rule_is_about_the_dashboard_alone():
    bare = re.sub(r"/\*.*?\*/", "", esm.style(), flags=re.DOTALL)
    inner = re.sub(r"@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}", "", bare)
    selectors = [s.strip() for group in re.findall(r"([^{}]+)\{", inner) for s in group.split(",")]
    stray = [s for s in selectors if not s.startswith((".cdiag", "@media", "@container"))]
    assert len(selectors) > 100 and stray == []


def test_no_text_is_ever_parsed_as_html():
    for path in esm.STATIC.glob("*.js"):
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
        )
        assert found == [], path.name
