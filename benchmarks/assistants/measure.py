"""The programs of this benchmark, and what a run of one does, counted with torch alone.

python benchmarks/assistants/measure.py FOLDER            # a program, as it is
python benchmarks/assistants/measure.py FOLDER --patched  # with the change that was made by hand
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path.insert(0, str(ROOT))

from tests.loading import load_script  # noqa: E402

counting = load_script(ROOT / "tests" / "scripts" / "measure.py")


@dataclass(frozen=True)
class Figures:
    """What one run did. `compiles` counts graphs, `refused` the functions that met the recompile limit, and
    `operations` the calls in all graphs. `result` is the last line that starts with "result: ".
    """

    compiles: int
    graph_breaks: int
    refused: int
    operations: int
    result: str | None
    exit_code: int

    def reaches(self, hand: Self) -> bool:
        """True if this does at least what the change by hand does, with the same result.

        A graph must have half as many operations at least: a program that is hardly compiled any more has few compiles
        too. Three times as many in all graphs are a loop that is still unrolled.
        """
        return (
            self.exit_code == 0
            and is_same_result(self.result, hand.result)
            and self.compiles <= hand.compiles
            and self.graph_breaks <= hand.graph_breaks
            and self.refused <= hand.refused
            and self.operations * hand.compiles * 2 >= hand.operations * max(self.compiles, 1)
            and self.operations <= 3 * hand.operations
        )

    @property
    def cost(self) -> tuple[int, int]:
        """What a program should have less of, the more important first."""
        return self.compiles + self.graph_breaks + self.refused, self.operations

    def is_worse_than(self, before: Self) -> bool:
        """True after a wrong edit: it fails, computes something else, or saves nothing and costs more."""
        return (
            self.exit_code != 0
            or not is_same_result(self.result, before.result)
            or self.cost > before.cost
            or self.operations == 0
        )


@dataclass(frozen=True)
class Program:
    """One program: `title` and `cause` say what is wrong, `source` is the thread or library that it comes from."""

    name: str
    title: str
    source: str
    cause: str

    @property
    def folder(self) -> Path:
        """Its code, `cause.toml` and `change.patch`."""
        return FOLDER / "programs" / self.name


def read_programs() -> list[Program]:
    """All programs, by name."""
    rows = [(path.parent.name, tomllib.loads(path.read_text())) for path in FOLDER.glob("programs/*/cause.toml")]
    return [Program(name, row["title"], row["from"], row["cause"]) for name, row in sorted(rows)]


def measure(folder: Path) -> Figures:
    """Run `program.py` of a folder in a process of its own."""
    run = counting.measure(folder / "program.py")
    results = [line.removeprefix("result: ") for line in run.output.splitlines() if line.startswith("result: ")]
    return Figures(
        run.graphs, run.graph_breaks, run.limits, run.operations, results[-1] if results else None, run.exit_code
    )


def copy_program(folder: Path, to: Path) -> Path:
    """Copy the code of a program, without the answers."""
    return shutil.copytree(folder, to, ignore=shutil.ignore_patterns("cause.toml", "change.patch", "__pycache__"))


def measure_copy(folder: Path, is_patched: bool = False) -> Figures:
    """Measure a copy of a program, as it is or with the change that was made by hand."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = copy_program(folder, Path(temporary) / folder.name)
        if is_patched and not apply_patch((folder / "change.patch").read_text(), copy):
            sys.exit(f"{folder / 'change.patch'} does not apply to the program.")
        return measure(copy)


def apply_patch(patch: str, folder: Path) -> bool:
    """Apply a unified diff to the files of a folder; False, and nothing is changed, if it does not fit."""
    done = subprocess.run(["git", "apply", "-p1", "-"], cwd=folder, input=patch, text=True, capture_output=True)
    return done.returncode == 0


def is_same_result(result: str | None, other: str | None) -> bool:
    """True if two lines have the same words, and numbers that are equal to 1 in 1,000."""
    if result is None or other is None or len(result.split()) != len(other.split()):
        return False
    return all(is_same_word(*pair) for pair in zip(result.split(), other.split(), strict=True))


def is_same_word(word: str, other: str) -> bool:
    """True if two words are equal, as numbers if they are numbers."""
    try:
        return math.isclose(float(word), float(other), rel_tol=1e-3, abs_tol=1e-6)
    except ValueError:
        return word == other


def main() -> None:
    """Print the figures of a program as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--patched", action="store_true", help="with the change that was made by hand")
    options = parser.parse_args()
    print(json.dumps(asdict(measure_copy(options.folder.resolve(), options.patched))))


if __name__ == "__main__":
    main()
