"""Pages of the site that are files of the repository: the README, the tutorial, the contributing guide, the changelog.

They stay where GitHub and PyPI look for them. The site reads them from there, with their links changed to the site's.

Each page is also on the site as Markdown, for programs that read: `plan.md` beside `plan/`. `llms.txt` lists them.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
#: Page of the site -> file of the repository.
PAGES = {
    "index.md": "README.md",
    "tutorial.md": "notebooks/00_tutorial.ipynb",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}

#: Page -> its Markdown, title and section of the navigation.
written: dict[str, tuple[str, str, str]] = {}
#: The pages of the navigation, in its order.
order: list[str] = []
#: The section of pages that are not in the navigation.
OTHERS = "Optional"
MAX_SUMMARY = 200


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of `PAGES`."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text()
        shown = "\n\n".join(write_cells(json.loads(text))) if source.endswith(".ipynb") else text
        files.append(File.generated(config, page, content=site_links(shown)))
    return files


def on_nav(nav: Any, config: Any, files: Files) -> None:
    """Keep the order of the pages."""
    order[:] = [page.file.src_uri for page in nav.pages]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> None:
    """Keep the Markdown of a page."""
    section = page.parent.title if page.parent is not None else OTHERS
    written[page.file.src_uri] = markdown, page.title or config.site_name, section


def on_post_build(config: Any) -> None:
    """Write the pages as Markdown, and their list."""
    site, sections = Path(config.site_dir), dict[str, list[str]]()
    for name in sorted(written, key=lambda name: (order.index(name) if name in order else len(order), name)):
        text, title, section = written[name]
        target = site / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        sections.setdefault(section, []).append(f"- [{title}]({name}): {summarize(text)}")
    parts = [f"## {section}\n\n" + "\n".join(pages) for section, pages in sections.items()]
    head = f"# {config.site_name}\n\n> {config.site_description}"
    (site / "llms.txt").write_text("\n\n".join([head, *parts]) + "\n")


def summarize(text: str) -> str:
    """The first sentence of a page, without its links."""
    prose = re.sub(r"^(?:---.*?^---|```.*?^```|<.*?>|[#|].*?)$", "", text, flags=re.MULTILINE | re.DOTALL)
    first = next((part for part in re.split(r"\n\s*\n", prose) if re.match(r"\s*\w", part)), "")
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return textwrap.shorten(re.split(r"(?<=\.)\s", plain)[0], MAX_SUMMARY, placeholder=" ...")


def site_links(text: str) -> str:
    """`text` with links into docs/ and to the repository's own pages as the site has them."""
    for page, source in PAGES.items():
        text = text.replace(f"]({source})", f"]({page})")
    return re.sub(r"\]\((?:\.\./)?docs/", "](", text)


def write_cells(notebook: dict[str, Any]) -> Iterator[str]:
    """The cells of a notebook as Markdown, with what they print. Records of the dashboard repeat other outputs."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        if printed := "".join(map(read_output, cell["outputs"])).strip("\n"):
            yield f"```text\n{printed}\n```"


def read_output(output: dict[str, Any]) -> str:
    """The text of an output."""
    data = output.get("data", {})
    if "cdiag-record" in "".join(data.get("text/html", "")):
        return ""
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return "" if text.startswith("<IPython") else text
