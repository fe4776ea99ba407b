"""Parsers of command lines and magics that suggest a name for one that they do not know."""

from __future__ import annotations

import argparse
import difflib
import itertools
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def find_closest(name: str, names: Iterable[str]) -> str | None:
    """The name that a wrong one was probably meant to be."""
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)), None)


def suggest(name: str, names: Iterable[str]) -> str:
    """What to do about a wrong name: use the closest one, or one of the list."""
    listed = list(names)
    closest = find_closest(name, listed)
    return f"did you mean {closest!r}?" if closest else f"choose one of: {', '.join(listed)}"


class SuggestingParser(argparse.ArgumentParser):
    """A wrong name of an option, a command or a choice is an error of the parser that has the right ones, so the usage
    that is printed with it is that of the command.
    """

    def list_options(self) -> list[str]:
        """All options, in order, each by its longest name."""
        return [max(action.option_strings, key=len) for action in self._actions if action.option_strings]

    def parse_known_args(  # type: ignore[override]  # its overloads differ in the namespace alone
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = sys.argv[1:] if args is None else list(args)
        # argparse reports a missing argument first, and it often is missing because of a wrong option.
        known = [option for action in self._actions for option in action.option_strings]
        for word in itertools.takewhile(lambda word: word.startswith("--") and word != "--", words):
            name = word.partition("=")[0]
            if not any(option == name or (self.allow_abbrev and option.startswith(name)) for option in known):
                self._refuse(word)
        found, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self._refuse(unknown[0])
        return found, unknown

    def _refuse(self, word: str) -> None:
        if not word.startswith("-"):
            self.error(f"unknown argument {word!r}")
        name = word.partition("=")[0]
        self.error(f"unknown option {name!r}; {suggest(name, self.list_options())}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """What argparse calls for an argument that has choices."""
        if action.choices is not None and value not in action.choices:
            named = action if action.option_strings else None
            kind = "value" if named else str(action.metavar or "value").lower()
            raise argparse.ArgumentError(named, f"unknown {kind} {value!r}; {suggest(str(value), action.choices)}")
