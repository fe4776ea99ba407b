"""`compilediag doctor`: what is here, and what of compilediag works with it."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import shutil

PACKAGES = ("compilediag", "torch", "triton", "pandas", "anywidget", "plotly", "IPython", "jupyterlab", "ipykernel")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Doctor:
    """Say which versions are here, and what of compilediag works with them.

    Exit code 0 if recording works here, 1 if it doesn't.
    """

    name = "doctor"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """It takes none."""

    def run(self, args: argparse.Namespace) -> int:
        print(f"{'python':<12} {platform.python_version()}  {platform.platform()}")
        for package in PACKAGES:
            print(f"{package:<12} {_version(package) or 'not installed'}")
        print()
        sources, why = _probe()
        for name, status, reason in sources:
            print(f"source {name:<16} {status}{f': {reason}' if reason else ''}")
        available = sum(status == "available" for _, status, _ in sources)
        print(f"recording        {f'works, with {available} of {len(sources)} sources' if available else f'no: {why}'}")
        print(f"live dashboard   {_dashboard()}")
        print(f"browser tests    {_browser()}")
        return 0 if available else 1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _probe() -> tuple[list[tuple[str, str, str | None]], str]:
    """Every source with its status here, and why recording can't work if it can't."""
    from compilediag import sources
    from compilediag.errors import CompilediagError

    try:
        sources.require_torch()
        return sources.probe_all(), "no source is available with this torch"
    except CompilediagError as error:
        return [], str(error)
    except Exception as error:
        # A torch that is there but broken raises whatever it likes; saying so is what this command is for.
        return [], f"torch can't be imported: {type(error).__name__}: {error}"


def _dashboard() -> str:
    missing = [package for package in ("anywidget", "ipykernel") if _version(package) is None]
    return f"no: {' and '.join(missing)} not installed" if missing else "works in Jupyter"


def _browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or "no Chromium (only the tests of this project need one)"
