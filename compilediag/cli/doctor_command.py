"""`compilediag doctor`: whether compilediag works here, what is missing and how to install it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

from .command import Command, add_json_argument, print_document

#: What compilediag records with each torch, as listed in docs/torch_versions.md. `docs/make_torch_versions.py --run`
#: writes it.
FOUND = Path(__file__).with_name("torch_versions.json")
WIDTH = 100
PACKAGES = ("compilediag", "torch", "triton", "pandas", "anywidget", "plotly", "IPython", "jupyterlab", "ipykernel")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: System -> how a C++ compiler is installed.
COMPILERS = {
    "Linux": "apt-get install g++, or dnf install gcc-c++, or conda install -c conda-forge cxx-compiler",
    "Darwin": "xcode-select --install",
    "Windows": "the Build Tools for Visual Studio, with the workload for C++",
}
#: What a user can add: modules, what they are for, and the extra that installs them.
OPTIONAL = (
    (("anywidget", "ipykernel"), "the live dashboard in notebooks", "lab"),
    (("rich",), "the screen of `compilediag live`", "live"),
)


class DoctorCommand(Command):
    """Report whether compilediag works here, what is missing, and how to install that.

    Exit code 0 if recording works, 1 if it does not.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--verbose", action="store_true", help="also list versions, sources and features")
        add_json_argument(parser, "doctor/1")

    def run(self, args: argparse.Namespace) -> int:
        sources, problem = _probe_sources()
        available = sum(status == "available" for _, status, _ in sources)
        missing = list(_find_missing())
        if args.json:
            from compilediag.views.json_documents import DoctorDocument, MissingPart, SourceProbe

            document = DoctorDocument(
                works=bool(available),
                problem=None if available else problem,
                python=platform.python_version(),
                packages={package: _find_version(package) for package in PACKAGES},
                sources=tuple(starmap(SourceProbe, sources)),
                missing=tuple(starmap(MissingPart, missing)),
            )
            print_document(document, args.budget)
            return 0 if available else 1
        verdict = f"works: torch {_find_version('torch')}, {available} of {len(sources)} sources"
        print(f"compilediag {verdict if available else f'does not work: {problem}'}")
        for what, how in missing:
            print(f"missing: {what}\n  {how}")
        if available and not missing:
            print("nothing is missing")
        if args.verbose:
            _print_details(sources, _find_version("torch") or "" if available else "")
        elif available:
            print("details: compilediag doctor --verbose")
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


def _find_missing() -> Iterator[tuple[str, str]]:
    """Yield what is not installed and what for, with how to install it."""
    if _find_version("torch") is None:
        yield "torch", "pip install torch"
    if not _find_compiler():
        system = platform.system()
        yield "a C++ compiler, which torch.compile needs on a CPU", COMPILERS.get(system, COMPILERS["Linux"])
    for modules, what, extra in OPTIONAL:
        if names := [name for name in modules if importlib.util.find_spec(name) is None]:
            yield f"{' and '.join(names)}, for {what}", f"pip install 'compilediag[{extra}]'"
    if sys.version_info < (3, 12):
        yield "Python 3.12 or later, to count calls (`compilediag run --calls`)", "an environment with a newer Python"


def _find_compiler() -> str | None:
    """The C++ compiler that torch uses: that of CXX, or the one that is usual on this system."""
    usual = {"Darwin": "clang++", "Windows": "cl"}.get(platform.system(), "g++")
    return shutil.which((os.environ.get("CXX", "").split() or [usual])[0])


def _print_details(sources: Sequence[tuple[str, str, str | None]], torch_version: str) -> None:
    print(f"\n{'python':<12} {platform.python_version()}  {platform.platform()}")
    for package in PACKAGES:
        print(f"{package:<12} {_find_version(package) or 'not installed'}")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    print(f"{'C++ compiler':<12} {_find_compiler() or 'not installed'}")
    print(f"{'chromium':<12} {browser or 'not installed'} (only the tests of compilediag need it)\n")
    width = max((len(name) for name, _, _ in sources), default=0)
    for name, status, reason in sources:
        print(f"source {name:<{width}} {status}{f': {reason}' if reason else ''}")
    for line in describe_support(torch_version) if torch_version else ():
        print(line)


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
