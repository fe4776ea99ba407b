"""`compilediag doctor`: which versions are installed, and what works with them."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: What compilediag records with each torch, as listed in docs/torch_versions.md. `docs/make_torch_versions.py --run`
#: writes it.
FOUND = Path(__file__).with_name("torch_versions.json")
WIDTH = 100
PACKAGES = ("compilediag", "torch", "triton", "pandas", "anywidget", "plotly", "IPython", "jupyterlab", "ipykernel")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class DoctorCommand:
    """Show which versions are installed, and what works with them.

    Exit code 0 if recording works, 1 if it does not.
    """

    name = "doctor"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take no arguments."""

    def run(self, args: argparse.Namespace) -> int:
        print(f"{'python':<12} {platform.python_version()}  {platform.platform()}")
        for package in PACKAGES:
            print(f"{package:<12} {_find_version(package) or 'not installed'}")
        print()
        sources, problem = _probe_sources()
        width = max((len(name) for name, _, _ in sources), default=0)
        for name, status, reason in sources:
            print(f"source {name:<{width}} {status}{f': {reason}' if reason else ''}")
        available = sum(status == "available" for _, status, _ in sources)
        works = f"works, with {available} of {len(sources)} sources" if available else f"does not work: {problem}"
        print(f"recording        {works}")
        for number, line in enumerate(describe_support(_find_version("torch") or "") if available else ()):
            print(f"{'' if number else 'this torch':<17}{line}")
        print(f"live dashboard   {_check_dashboard()}")
        print(f"browser tests    {_find_browser()}")
        return 0 if available else 1


def _find_version(package: str) -> str | None:
    import importlib.metadata  # Slow to import: other commands go without it.

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _probe_sources() -> tuple[list[tuple[str, str, str | None]], str]:
    """Return every source with its status, and why recording does not work if it does not."""
    from compilediag import sources
    from compilediag.errors import CompilediagError

    try:
        sources.require_torch()
        return sources.probe_all(), "no source is available with this version of torch"
    except CompilediagError as error:
        return [], str(error)
    except Exception as error:
        # A damaged installation of torch can raise anything, and this command exists to report it.
        return [], f"torch can't be imported: {type(error).__name__}: {error}"


def _check_dashboard() -> str:
    missing = [package for package in ("anywidget", "ipykernel") if _find_version(package) is None]
    return f"does not work: {' and '.join(missing)} not installed" if missing else "works in Jupyter"


def _find_browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or "no Chromium (only the tests of this project need one)"


def describe_support(torch_version: str) -> Iterator[str]:
    """Yield lines about what compilediag records with this torch, and what it does not."""
    versions: dict[str, Any] = json.loads(FOUND.read_text(encoding="utf-8"))["versions"]
    name = ".".join(torch_version.split("+", maxsplit=1)[0].split(".")[:2])
    if name not in versions:
        yield f"not tested with torch {name}; tested with torch {', '.join(versions)}"
        return
    answers: dict[str, str] = versions[name]["answers"]
    recorded = sum(answer == "yes" for answer in answers.values())
    yield f"{recorded} of {len(answers)} features were tested with torch {name} and are recorded"
    for answer in sorted(set(answers.values()) - {"yes"}):
        records = "; ".join(feature for feature, given in answers.items() if given == answer)
        label = "not recorded" if answer == "no" else f"{answer} {name}" if answer == "not in torch" else answer
        yield from textwrap.wrap(f"{label}: {records}".replace("`", ""), WIDTH, break_on_hyphens=False)
