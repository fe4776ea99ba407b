"""A change that an advice proposes: configuration of torch, and edits of the user's own source, as values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ..formatting import format_function

#: Settings outside torch._dynamo.config.
_MODULES = {
    "dynamic_sources": "torch.compiler.config",
    "unbacked_sources": "torch.compiler.config",
    "autograd_cache_allow_custom_autograd_functions": "torch._functorch.config",
    "use_duck_shape": "torch.fx.experimental._config",
}


def find_config_module(key: str) -> str:
    """Return the configuration module of a setting."""
    return _MODULES.get(key, "torch._dynamo.config")


#: Settings that hide a cause, or that allow a cache to answer for code that it can't tell apart.
_UNSAFE = (
    "recompile_limit",
    "accumulated_recompile_limit",
    "autograd_cache_allow_custom_autograd_functions",
)
_REPEATED_GROUP = re.compile(r"\)[*+{?]")
#: A pattern for names of values has no more of `*` and the like.
MAX_REPEATS = 3
_DIM = re.compile(r"(.+):(\d{1,3})$")
#: Configuration: name of a setting -> its value, as `Finding.fix` has it.
Settings = dict[str, str | int | bool]

#: The kind of an edit that assigns settings in a thread.
BEGIN: Final = "begin_function"
#: Lists of torch's names of values, as one text. A value in both is dynamic in torch 2.15, and unbacked before.
SOURCE_LISTS = ("dynamic_sources", "unbacked_sources")


def fix_code(fix: Settings | None) -> str | None:
    """Write the statements that apply `fix`, as one line of Python; None if there is none."""
    statements = (f"{find_config_module(key)}.{key} = {value!r}" for key, value in (fix or {}).items())
    return "; ".join(statements) or None


def format_settings(settings: Settings) -> str:
    """The settings as Python, one assignment per line; "" without any."""
    return "\n".join(fix_code({key: value}) or "" for key, value in settings.items())


@dataclass(frozen=True)
class SettingsBlock:
    """The merged settings, and one sentence for each setting of which two values were wanted."""

    settings: Settings
    conflicts: tuple[str, ...] = ()


def merge_settings(parts: Iterable[Settings | None]) -> SettingsBlock:
    """The settings of several changes as one: lists of names are joined, and the largest of several numbers wins,
    because it allows what the others do. Of two other values, the first one stays.
    """
    merged: Settings = {}
    conflicts: list[str] = []
    for key, value in (pair for part in parts for pair in (part or {}).items()):
        known = merged.setdefault(key, value)
        if key in SOURCE_LISTS:
            merged[key] = ",".join(dict.fromkeys(f"{known},{value}".split(",")))
        elif type(known) is int and type(value) is int:
            merged[key] = max(known, value)
        elif known != value:
            conflicts.append(f"`{key}` is wanted as {known!r} and as {value!r}; the plan keeps {known!r}.")
    return SettingsBlock(_separate_lists(merged), tuple(dict.fromkeys(conflicts)))


def merge_fixes(fixes: Iterable[Settings | None]) -> Settings:
    """One fix that does what all of these do."""
    return merge_settings(fixes).settings


def _separate_lists(settings: Settings) -> Settings:
    """A value that is unbacked is dynamic: it is named in one list only. If both name it, torch 2.15 uses the first."""
    dynamic, unbacked = (str(settings.get(key) or "").split(",") for key in SOURCE_LISTS)
    left = [name for name in dynamic if name not in unbacked]
    if len(left) == len(dynamic) or unbacked == [""]:
        return settings
    rest = {key: value for key, value in settings.items() if key != SOURCE_LISTS[0]}
    return {SOURCE_LISTS[0]: ",".join(left), **rest} if left else rest


def find_listed(setting: str, name: str, dim: int | None) -> str | None:
    """Find the entry of `dynamic_sources` or `static_sources` that names a value, as torch does; None without one.

    An entry is torch's name or a pattern that the name begins with; `:1` after it restricts it to one dimension.
    """
    for entry in filter(None, setting.replace(" ", "").split(",")):
        path, dims = (found[1], found[2]) if (found := _DIM.match(entry)) else (entry, None)
        if (dims is None or dim is None or int(dims) == dim) and (path == name or _begins_with(path, name)):
            return entry
    return None


def _begins_with(pattern: str, name: str) -> bool:
    # A repeated group can take exponential time, and the pattern may come from somebody else.
    if _REPEATED_GROUP.search(pattern) or sum(map(pattern.count, "*+{?")) > MAX_REPEATS:
        return False
    try:
        return re.match(pattern, name) is not None
    except re.error:
        return False


# Changes of the program


@dataclass(frozen=True)
class CallSite:
    """The user's line that calls into compiled code.

    `file` is `Cell In[3]` for a notebook cell. `function` is the user's function around the line; None or "<module>" at
    the top level. `code` is the text of the line, `call` the text of the whole call.
    """

    file: str
    line: int
    function: str | None = None
    code: str | None = None
    call: str | None = None


@dataclass(frozen=True)
class Edit:
    """One edit of the user's source, at the statement that contains `line` of `file`.

    "insert_before" puts the lines of `new` before that statement, with its indentation. "replace" replaces the argument
    `old` of the call `call` by `new`; without a call, `old` is a decorator or call that compiles, which gets or loses
    an option, or a setting, which gets another value. "begin_function" assigns the settings `new` at the beginning of
    the function `old` around the line. `code` is the text of the whole line, as recorded or read: a file
    that has another line there is not edited. `file` and `line` are as recorded; `Cell In[3]` is a
    notebook cell. `imports` is an import statement that `new` needs; it is put below the imports of the file. `new` and
    `imports` have one of the forms of `source_edits`, which is checked when the edit is made and when it is applied.
    """

    file: str
    line: int
    kind: Literal["insert_before", "replace", "begin_function"]
    old: str
    new: str
    imports: str = ""
    code: str = ""
    call: str = ""


@dataclass(frozen=True)
class CodeChange:
    """One way to follow an advice. `settings` are as in `Finding.fix`; None if no setting is needed.

    A change with neither settings nor edits cannot be applied by a program: `text` says what to do. `is_default`: torch
    then makes sizes and numbers dynamic by itself, after their first change.
    """

    settings: Settings | None = None
    edits: tuple[Edit, ...] = ()
    text: str = ""
    is_default: bool = False

    @property
    def can_be_applied(self) -> bool:
        """True if a program can make this change."""
        return bool(self.settings or self.edits)

    @property
    def is_unsafe(self) -> bool:
        """True if it hides the cause, or can change what the program computes."""
        return any(name in _UNSAFE for name in self.settings or ())

    @property
    def code(self) -> str:
        """What to paste: imports, the new code of the edits, then the settings; `text` if there is neither."""
        imports = dict.fromkeys(edit.imports for edit in self.edits)
        settings = (fix_code(self.settings) or "").split("; ")
        lines = [*imports, *(edit.new for edit in self.edits if edit.kind != BEGIN), *settings]
        # Its thread can have run other lines of a function.
        begun = {(edit.file, edit.old, edit.new): edit for edit in reversed(self.edits) if edit.kind == BEGIN}
        for edit in reversed(begun.values()):
            lines += [f"# At the beginning of {format_function(edit.old, edit.file, edit.line)}:", edit.new]
        return "\n".join(dict.fromkeys(filter(None, lines))) or self.text


def place_settings(change: CodeChange, threads: Sequence[CallSite | None]) -> CodeChange:
    """The change with its settings where they are in force: settings belong to a thread, so each of these threads
    assigns them at the beginning of its function; None is the main thread. Only a person can change a thread that runs
    no function of the user's: its `CallSite` has no code.
    """
    if not change.settings or not any(threads):
        return change
    new = format_settings(change.settings)
    sites = [site for site in threads if site is not None]
    if not all(site.code and site.function for site in sites):
        return CodeChange(text=f"In each thread that calls it, before its first call: {fix_code(change.settings)}.")
    edits = [Edit(one.file, one.line, BEGIN, one.function or "", new, code=one.code or "") for one in sites]
    return replace(change, settings=change.settings if None in threads else None, edits=(*change.edits, *edits))
