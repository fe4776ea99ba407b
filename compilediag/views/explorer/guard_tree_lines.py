"""Guard trees for the page: the entries of one function share most lines, so each line is sent once."""

from __future__ import annotations

from ...decode.guards.guard_tree_text import ObjectNames, TreeLine, parse_tree_line, split_tree


class SharedTreeLines:
    """The lines of the guard trees of one frame, numbered; a tree is runs of these lines."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names = ObjectNames()

    def add_tree(self, text: str) -> tuple[list[TreeLine], list[list[int]]]:
        """The lines that are new with this tree, and the tree as runs: [first line, number of lines]."""
        fresh: list[TreeLine] = []
        runs: list[list[int]] = []
        for line in split_tree(text):
            number = self._numbers.get(line)
            if number is None:
                number = self._numbers[line] = len(self._numbers)
                fresh.append(parse_tree_line(line, self._names))
            if runs and sum(runs[-1]) == number:
                runs[-1][1] += 1
            else:
                runs.append([number, 1])
        return fresh, runs
