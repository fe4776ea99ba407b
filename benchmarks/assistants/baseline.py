"""An assistant without judgement: it applies the first change that is printed, and again, until nothing new is printed.

It knows three forms: a unified diff, `torch....config.name = value`, and torch's variable for dynamic sources. Where
the findings name the command `compilediag fix`, it runs that first. A change after which the program fails is undone.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from measure import apply_patch

MOST_CHANGES = 6
SETTING = re.compile(
    r"torch\.(?:_dynamo|_inductor|_functorch|compiler)\.config\.(\w+(?:\.\w+)*) ?= ?(True|False|\d+)\b"
)
SOURCES = re.compile(r'TORCH_COMPILE_DYNAMIC_SOURCES="([^"]+)"')
EXIT_CODE = re.compile(r"\[exit code (-?\d+),")


def main() -> None:
    """Work in the current folder until nothing new is printed."""
    seen: set[str] = set()
    before: dict[Path, str] = {}
    for _ in range(MOST_CHANGES + 1):
        printed = diagnose()
        if (code := EXIT_CODE.search(printed)) and code[1] != "0":
            for path, text in before.items():
                path.write_text(text)
            printed = diagnose()
        before = {path: path.read_text() for path in Path().rglob("*.py")}
        new = (change for change in find_changes(printed) if change not in seen)
        change = next((change for change in new if apply(change)), None)
        if change is None or len(seen) == MOST_CHANGES:
            return
        seen.add(change)


def diagnose(*arguments: str) -> str:
    """What `./diagnose` prints."""
    return subprocess.run(["./diagnose", *arguments], capture_output=True, text=True).stdout


def find_changes(printed: str) -> Iterator[str]:
    """The changes in a text, in its order: the patches of findings, or lines of code."""
    if (start := printed.find('{\n"schema": "compilediag.findings')) >= 0:
        document = json.loads(printed[start:])
        if any(command.startswith("compilediag fix ") for command in document["next"]):
            yield from filter(None, [json.loads(diagnose("fix")).get("patch")])
        for fix in (finding["fix"] for finding in document["findings"] if finding["fix"]):
            if fix["diff"] and not fix["unsafe"]:
                yield fix["diff"]
            elif fix["kind"] == "setting" and not fix["unsafe"]:
                yield f"{fix['text']}\n"
        return
    for found in SETTING.finditer(printed):
        yield f"{found[0]}\n"
    for found in SOURCES.finditer(printed):
        yield f'torch.compiler.config.dynamic_sources = "{found[1]}"\n'
    for name in re.findall(r"^\S*dynamic_whitelist\S*|^\S*frame_dynamic\S*", printed, re.MULTILINE):
        yield from find_changes(diagnose("show", name))


def apply(change: str) -> bool:
    """Apply a diff, or write a setting below the imports of program.py; False for anything else: it needs judgement."""
    if change.startswith("--- "):
        return apply_patch(change, Path())
    if change.startswith("torch."):
        program = Path("program.py")
        lines = program.read_text().splitlines(keepends=True)
        place = next(number for number, line in enumerate(lines) if line.startswith("import torch")) + 1
        program.write_text("".join([*lines[:place], change, *lines[place:]]))
        return True
    return False


if __name__ == "__main__":
    main()
