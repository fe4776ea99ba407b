"""Pages of the site that are files of the repository: the README, the contributing guide and the changelog.

They stay where GitHub and PyPI look for them. The site reads them from there, with their links changed to the site's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
#: Page of the site -> file of the repository.
PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of `PAGES`."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=site_links((ROOT / source).read_text())))
    return files


def site_links(text: str) -> str:
    """`text` with links into docs/ and to the repository's own pages as the site has them."""
    for page, source in PAGES.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text.replace("](docs/", "](")
