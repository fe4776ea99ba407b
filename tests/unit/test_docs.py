"""The documents say what the code does."""

import re
from pathlib import Path

import pytest

from compilediag import Session, events
from tests.tiers import quick
from tests.unit.session_builder import read_documented

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


#: Page -> its generator and the arguments. In pages that people write, it generates what commands print.
GENERATED = {
    **{f"docs/{page}.md": [f"make_{page}.py"] for page in ("api", "glossary", "schemas", "tables")},
    **{str(file.relative_to(ROOT)): ["make_schemas.py", file] for file in (ROOT / "compilediag" / "schemas").iterdir()},
    **{
        str(page.relative_to(ROOT)): ["make_outputs.py", page]
        for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
        if "\n```text\n" in page.read_text()
    },
}

#: Pages whose programs take long.
RUN_LONG = {f"docs/{page}.md" for page in ("agents", "fix", "jobs", "logs", "plan", "scale", "try")}


@pytest.mark.parametrize("page", quick(GENERATED, [*GENERATED.keys() - RUN_LONG], why="runs the programs of a page"))
def test_a_page_is_what_its_generator_writes(python, page):
    generator, *arguments = GENERATED[page]
    done = python(DOCS / generator, *arguments, cwd=ROOT)
    assert done.stdout == (ROOT / page).read_text(), "run make docs: " + done.stderr


@pytest.mark.parametrize(
    ("output", "holds"),
    [
        ("took 1.3 s, one line\nand another\n", True),
        ("...\nand another\n", True),
        ("took 1.3 s, one line\n", False),
        ("took 1.3 s, two lines\n...\n", False),
    ],
)
def test_an_output_that_does_not_hold_is_replaced(python, tmp_path, output, holds):
    page = "```\necho took 1.3 s, one line; echo and another\n```\n\n```text\n{}```\n\nMore\n"
    (tmp_path / "page.md").write_text(page.format(output))
    done = python(DOCS / "make_outputs.py", tmp_path / "page.md")
    assert done.stdout == page.format(output if holds else "took 1.3 s, one line\nand another\n"), done.stderr


def test_every_table_and_only_tables_have_a_section():
    assert set(read_documented()) == {"events", "incidents", *events.BY_TABLE}


def test_every_line_of_the_guest_contract_names_a_test_that_exists():
    contract = (DOCS / "guest_contract.md").read_text()
    lines = re.findall(r"^\d+\. .*?(?=^\d+\. |\Z)", contract, flags=re.M | re.S)
    assert len(lines) == 12
    for line in lines:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert named, line
        for file, test in named:
            assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(), flags=re.M), f"{file}::{test}"


def test_torch_knows_the_logs_that_are_named(python):
    named = re.findall(r"TORCH_LOGS=([\w,]+)", (DOCS / "from_torch_logs.md").read_text())
    done = python("-c", "import torch", env={"TORCH_LOGS": ",".join(named)})
    assert len(named) > 5 and done.returncode == 0, done.stderr


def test_every_picture_is_shown_by_a_page():
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    shown = {Path(name).name for page in pages for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())}
    assert {path.name for path in (DOCS / "img").rglob("*.*")} == shown


def test_the_site_builds_without_a_warning(python, tmp_path):
    pytest.importorskip("material", reason="mkdocs-material is not installed; make test installs it")
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    site = tmp_path / "site"
    done = python("-m", "mkdocs", "build", "--strict", "--site-dir", site, cwd=ROOT, env=quiet)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = re.findall(r"^- \[[^]]+\]\((\S+)\): \S", (site / "llms.txt").read_text(), re.MULTILINE)
    pages = {str(page.relative_to(site)) for page in site.rglob("*.html")} - {"404.html"}
    assert {name.removesuffix(".md").removesuffix("/index") for name in listed} == {
        page.removesuffix("/index.html").removesuffix(".html") for page in pages
    }
    assert listed[0] == "index.md" and all((site / name).read_text().strip() for name in listed)
    assert (site / "plan.md").read_text() == (DOCS / "plan.md").read_text()


PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "notebooks/README.md")), *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_a_page_names_exists(page):
    """Links of pages that are read outside of the site; its own links and anchors are checked where it is built."""
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text) if page.parent != DOCS else []
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
    named = re.findall(r"`(?:print\()?session\.(\w+)", text)
    assert [name for name in named if not hasattr(Session, name)] == []
    folders = "compilediag|tests|docs|notebooks|benchmarks|sources|storage|views|logs|decode|diagnosis|trials|events"
    named = re.findall(rf"`((?:{folders})/[\w/.-]+\.(?:py|js|md|ipynb|gz))`", text)
    assert [file for file in named if not (ROOT / file).exists() and not (ROOT / "compilediag" / file).exists()] == []
