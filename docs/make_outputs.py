"""Runs the commands of a page of the documentation and prints the page with what they print.

    python docs/make_outputs.py PAGE             the page, on the standard output
    python docs/make_outputs.py --write PAGE...  the pages are written

An output is a block `text` right below a block of commands without a language. `<!-- run: COMMANDS -->` above that one
prepares it. The commands of a page run in order, in one folder with docs/programs, notebooks and tests. In an output, a
line `...` is what is left out. Times, sizes, shares, dates and numbers of processes may be others, and so may line
breaks; an output that still holds stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PREPARATION = re.compile(r"<!-- run: (.*?) -->", re.DOTALL)
#: What differs from run to run, and what it is compared as.
VARYING = (
    (re.compile(r"\b\d+ (?:h|min)(?: [\d.]+ (?:min|s))?\b|\b[\d.,]+ (?:s|ms|µs)\b"), "TIME"),
    (re.compile(r"\b[\d.,]+ (?:B|kB|MB|GB)\b"), "SIZE"),
    (re.compile(r"\b[\d.]+ %"), "SHARE"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d)?\b"), "TIME"),
    (re.compile(r"\bprocess \d+\b"), "process N"),
)
#: The commands of the documentation run this checkout. `make` installs nothing, and uses this interpreter.
SHELL = f"""
compilediag() {{ {sys.executable} -m compilediag "$@"; }}
python() {{ {sys.executable} "$@"; }}
make() {{ command make --silent -f {ROOT}/Makefile READY= PY={sys.executable} "$@"; }}
"""


def make_page(path: Path) -> str:
    """The page with the output of a new run in the place of each one that does not hold any more."""
    page = path.read_text(encoding="utf-8")
    parts, end = [], 0
    with tempfile.TemporaryDirectory(prefix="compilediag-docs-") as name:
        folder = Path(name)
        shutil.copytree(ROOT / "docs" / "programs", folder, dirs_exist_ok=True)
        for linked in ("notebooks", "tests"):
            (folder / linked).symlink_to(ROOT / linked)
        for commands, output in find_outputs(page):
            printed = run(commands, folder)
            if not holds(output["text"], printed):
                print(f"{path.name}: changed: {commands.splitlines()[-1]}", file=sys.stderr)
                parts += [page[end : output.start("text")], printed]
                end = output.end("text")
    return "".join([*parts, page[end:]])


def find_outputs(page: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The commands of each output, and its block. ValueError for an output without commands."""
    fences = [*FENCE.finditer(page)]
    for at, fence in enumerate(fences):
        if fence["language"] != "text":
            continue
        above = fences[at - 1] if at else None
        if above is None or above["language"] or page[above.end() : fence.start()].strip():
            raise ValueError(f"no block of commands is right above the output {fence['text'].splitlines()[0]!r}")
        between = page[fences[at - 2].end() if at > 1 else 0 : above.start()]
        prepare = "".join(f"{{ {commands}\n}} > /dev/null 2>&1\n" for commands in PREPARATION.findall(between))
        yield prepare + above["text"], fence


def run(commands: str, folder: Path) -> str:
    """What commands print, the standard error included."""
    environment = {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        **os.environ,
        "COMPILEDIAG_HISTORY": str(folder / "history.sqlite"),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(["bash", "-c", SHELL + commands], cwd=folder, env=environment, text=True, **streams).stdout


def holds(output: str, printed: str) -> bool:
    """True if an output, of which lines `...` leave something out, is that of a run."""
    parts = re.split(r"^ *\.\.\.$", output, flags=re.MULTILINE)
    pattern = r"(?:.*\s)?".join(re.escape(normalize(part) + " " * bool(part.strip())) for part in parts)
    return re.fullmatch(pattern, f"{normalize(printed)} ", re.DOTALL) is not None


def normalize(text: str) -> str:
    """A text without what differs from run to run."""
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return " ".join(text.split())


def main(arguments: list[str]) -> None:
    """Write the pages, or print one."""
    if arguments[0] != "--write":
        print(make_page(Path(arguments[0])), end="")
        return
    for name in arguments[1:]:
        Path(name).write_text(make_page(Path(name)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
