"""Pages of the site that are files of the repository: the README, the tutorial, the contributing guide, the changelog.

They stay where GitHub and PyPI look for them. The site reads them from there, with their links changed to the site's.
"""

from __future__ import annotations

import json
import re
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


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of `PAGES`."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text()
        shown = "\n\n".join(write_cells(json.loads(text))) if source.endswith(".ipynb") else text
        files.append(File.generated(config, page, content=site_links(shown)))
    return files


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
