"""Words for torch's names of phases, and for the codes of the tables."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

#: The words of phases are those of the page.
_FILE = Path(__file__).parent / "views" / "static" / "core" / "words.js"
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Caches and outcomes whose words are not their codes with spaces.
_WORDS = {
    "fx_graph": "FX graph",
    "aot_autograd": "AOTAutograd",
    "dynamo_code": "Dynamo code",
    "py_code": "Python code",
    "cpp_code": "C++ code",
    "cuda_code": "CUDA code",
    "triton_code": "Triton code",
    "triton_bundle": "Triton bundle",
    "triton_template": "Triton template",
    "pgo": "PGO",
    "saved": "stored",
    "written": "file written",
}


def describe_code(code: str | None) -> str:
    """A code of the tables in words: `guard_miss` is `guard miss`."""
    return _WORDS.get(code or "") or (code or "unknown").replace("_", " ")


@functools.cache
def load_words() -> dict[str, Any]:
    """`phases`: name -> words; `patterns`: (pattern of names, words), of which the first that matches counts."""
    text = _FILE.read_text(encoding="utf-8")
    words: dict[str, Any] = json.loads(text[text.index("= {") + 2 : text.rindex("}") + 1])
    return words


def format_phase(name: str) -> str:
    """A phase in words. Of a name without known words, its last part: `Scheduler.fuse_nodes` is `fuse nodes`."""
    words = load_words()
    families = (text for pattern, text in words["patterns"] if re.search(pattern, name))
    last = _CAPITALS.sub(" ", name.rsplit(".", 1)[-1].strip("_")).replace("_", " ")
    return words["phases"].get(name) or next(families, None) or last or name
