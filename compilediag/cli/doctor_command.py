"""`compilediag doctor`: which versions are installed, and what works with them."""

from __future__ import annotations

import argparse
import platform
import shutil

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
        from .torch_support import describe_support

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
