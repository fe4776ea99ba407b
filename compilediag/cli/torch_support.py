"""What compilediag records with the installed torch, as listed in docs/torch_versions.md."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Written by `docs/make_torch_versions.py --run`.
FOUND = Path(__file__).with_name("torch_versions.json")
WIDTH = 100


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
