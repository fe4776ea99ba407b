"""A change that an advice proposes: configuration, and edits of the user's own source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .settings import Settings, fix_code


@dataclass(frozen=True)
class Edit:
    """One edit of the user's source, at the statement that contains `line` of `file`.

    "insert_before" puts the lines of `new` before that statement, with its indentation. "replace" replaces the argument
    `old` of the call `call` by `new`; without a call, `old` is a decorator. `code` is the recorded text of the whole
    line: a file that has another line there is not edited. `file` and `line` are as recorded; `Cell In[3]` is a
    notebook cell. `imports` is an import statement that `new` needs; it is put below the imports of the file. `new` and
    `imports` have one of the forms of `inserted_code`, which is checked when the edit is made and when it is applied.
    """

    file: str
    line: int
    kind: Literal["insert_before", "replace"]
    old: str
    new: str
    imports: str = ""
    code: str = ""
    call: str = ""


@dataclass(frozen=True)
class CodeChange:
    """One way to follow an advice. `settings` are as in `Finding.fix`; None if no setting is needed.

    A change with neither settings nor edits cannot be applied by a program: `text` says what to do.
    """

    settings: Settings | None = None
    edits: tuple[Edit, ...] = ()
    text: str = ""

    @property
    def can_be_applied(self) -> bool:
        """True if a program can make this change."""
        return bool(self.settings or self.edits)

    @property
    def code(self) -> str:
        """What to paste: imports, the new code of the edits, then the settings; `text` if there is neither."""
        imports = dict.fromkeys(edit.imports for edit in self.edits)
        lines = [*imports, *(edit.new for edit in self.edits), *((fix_code(self.settings) or "").split("; "))]
        return "\n".join(filter(None, lines)) or self.text
