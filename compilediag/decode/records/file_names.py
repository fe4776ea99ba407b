"""Names of files in a log: torch writes each once and a number from then on; guards shorten their paths."""

from __future__ import annotations

#: Names that are remembered.
MAX_NAMES = 200_000


class FileNames(dict[int, str]):
    """The names of files by the numbers that torch writes instead of them."""

    def __init__(self) -> None:
        super().__init__()
        self._completed: dict[str, str] = {}

    def add(self, text: object, number: object) -> None:
        """Remember a name as torch logs it."""
        if isinstance(text, str) and isinstance(number, int) and len(self) < MAX_NAMES:
            self[number] = text
            self._completed.clear()

    def complete(self, path: str | None) -> str | None:
        """Return the whole path of a file whose name a guard shortens.

        torch removes the folders that a path shares with its own, and one more character for the slash: where they
        share none, that is the first letter.
        """
        if path is None:
            return None
        if path not in self._completed:
            whole = (name for name in self.values() if name.endswith(f"/{path}") or name[2:] == path)
            self._completed[path] = path if path.startswith("/") else next(whole, path)
        return self._completed[path]
