"""A recipe: what a library offers against a kind of recompile, and how to recognize that it applies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """One way of a library to avoid recompiles. Recipes are data: adding one needs no code.

    It applies if a function in a folder of `packages` recompiled, the advice has one of `rules`, and the regular
    expressions `source` (the guarded value) and `call` (the user's own call) match. `action` is what to do, and `why`
    replaces the explanation, if it is another one. `follows` matches the guarded values that change with `source`, as a
    part of the same change. With `is_partial` it removes some of the recompiles, and a plan claims none; with
    `removes_expected` it removes those that are expected without it. `program` names the program in tests/libraries
    whose test follows it.
    """

    name: str
    packages: tuple[str, ...]
    rules: tuple[str, ...]
    action: str
    program: str
    source: str = ""
    call: str = ""
    why: str = ""
    follows: str = ""
    is_partial: bool = False
    removes_expected: bool = False

    def is_of(self, file: str | None) -> bool:
        """True if a file is in a folder of its packages."""
        path = (file or "").replace("\\", "/")
        return any(f"/{package}/" in path for package in self.packages)

    def fits(self, rule: str, source: str, call: str | None, files: tuple[str, ...]) -> bool:
        """True if it applies to a cause: the rule of its advice, its value, the user's call, and the files it is in."""
        return (
            rule in self.rules
            and self.is_about(source, files)
            and (not self.call or re.search(self.call, call or "", re.DOTALL) is not None)
        )

    def is_about(self, source: str, files: Iterable[str | None]) -> bool:
        """True if it is about a guarded value of functions in these files."""
        return any(map(self.is_of, files)) and re.search(self.source, source) is not None
