"""Programs of users of real libraries: programs/NAME.py, and beside it what is known of each, as in tests/advice.

The .toml file has one more key: `packages`, what has to be installed.
"""

from __future__ import annotations

import functools
import importlib.util
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.advice.known_programs import Program, read_values

HERE = Path(__file__).parent
FAILURES = HERE / "known_failures.toml"


@dataclass(frozen=True, eq=False)
class LibraryProgram(Program):
    """A program that uses a library. It runs in a worker of its own, so that no library is imported into the others."""

    packages: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return HERE / "programs" / f"{self.name}.py"

    @property
    def worker(self) -> str:
        return "tests.libraries.library_worker"

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


@functools.cache
def load_library_programs() -> tuple[LibraryProgram, ...]:
    """All programs, by name."""
    files = sorted((HERE / "programs").glob("*.toml"))
    return tuple(LibraryProgram(name=file.stem, **read_values(file)) for file in files)


@functools.cache
def load_library_failures() -> dict[str, dict[str, str]]:
    """Check -> program -> why it does not work yet."""
    return tomllib.loads(FAILURES.read_text()) if FAILURES.exists() else {}
