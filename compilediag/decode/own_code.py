"""Which files are the user's own: not torch, not Python's standard library, not installed packages.

Only paths are compared: a session or a log can come from another machine, with another operating system.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from .call_stacks import FROZEN, is_torch_file

#: Folders of installed packages, of all operating systems and of bundles.
_INSTALLED = re.compile(
    r"(?:^|[/\\])(?:site|dist)-packages[/\\]|[/\\]\.(?:deps|pex)[/\\]|[/\\]installed_wheels[/\\]|\.egg[/\\]", re.I
)
#: The standard library: lib/python3.11, python311.zip, and Lib in the folder of a Python on Windows.
_STANDARD = re.compile(
    r"[/\\]lib(?:32|64)?[/\\](?:python|pypy)\d?(?:\.\d+)?t?[/\\]|[/\\]python\d+\.zip[/\\]"
    r"|[/\\](?:python[\d.]*t?|c?python-[^/\\]*|(?:ana|mini)conda\d?|mini(?:forge|mamba)\d?|mambaforge|envs[/\\][^/\\]+"
    r"|pythonsoftwarefoundation\.[^/\\]*)\\lib\\",
    re.I,
)
#: compilediag's own frames, which a recording from a checkout has.
_COMPILEDIAG = re.compile(
    r"[/\\]compilediag[/\\](?:(?:cli|diagnosis|frontends|recording|sources|storage|trials|views)[/\\]"
    r"|(?:__init__|__main__|session|watch)\.py$)"
)
#: Code without a file that users write: in a notebook, in a REPL, in a doctest.
_TYPED = re.compile(r"<(?:stdin|console|input|ipython-input-.*|python-input-.*|doctest .*|command-.*)>|Cell In\[\d+\]")
#: `python -c`, and what a program runs with exec; dataclasses and namedtuples use the same name for what they generate.
_TEXT_OF_A_COMMAND = "<string>"
_SPECIAL = re.compile(r"__\w+__")
#: Scripts that installers write: `pytest`, `torchrun`.
_LAUNCHER = re.compile(r"[/\\](?:bin|Scripts)[/\\][^/\\.]+(?:\.exe)?$|[/\\]Scripts[/\\][^/\\]+\.exe[/\\]", re.I)
_LAUNCHES = re.compile(r"\bsys\.exit\(|\bload_entry_point\(|\brunpy\.")


class OwnCode:
    """Decides whether a frame belongs to the user's own code.

    `my_code` has folders, files and names of modules. `libraries` has the folders in which the process that was
    recorded had its standard library and its installed packages.
    """

    def __init__(self, my_code: Sequence[str] = (), libraries: Sequence[str] = ()):
        self._named = [_make_pattern(name) for name in my_code if name]
        self._libraries = tuple(sorted({_normalize(folder) + "/" for folder in libraries if folder}))
        self.is_named = bool(self._named)
        self._is_own = functools.lru_cache(10_000)(self._check)

    def matches(self, file: str | None) -> bool:
        """True for a file that `my_code` names."""
        return file is not None and any(pattern.search(_normalize(file)) for pattern in self._named)

    def is_own(self, file: str | None, function: str | None = None, code: str | None = None) -> bool:
        """True for code that is not torch's, not Python's, not an installed package's."""
        if file is None or not self._is_own(file):
            return False
        if file == _TEXT_OF_A_COMMAND:
            return not _SPECIAL.fullmatch(function or "")
        return not (_LAUNCHER.search(file) and _LAUNCHES.search(code or ""))

    def _check(self, file: str) -> bool:
        if file.startswith(("<", "Cell In[")):
            return file == _TEXT_OF_A_COMMAND or _TYPED.fullmatch(file) is not None
        if file.startswith(FROZEN) or is_torch_file(file) or _COMPILEDIAG.search(file):
            return False
        return not (_INSTALLED.search(file) or _STANDARD.search(file) or self._is_in_library(file))

    def _is_in_library(self, file: str) -> bool:
        return _normalize(file).startswith(self._libraries) if self._libraries else False


def _normalize(path: str) -> str:
    return path.replace("\\", "/").rstrip("/")


def _make_pattern(name: str) -> re.Pattern[str]:
    """A pattern for the files of a folder, of a file or of a module: `train.py`, `/home/me/project`, `package.model`.

    A cell is a file named `Cell In[3]`.
    """
    path = _normalize(name)
    is_module = all(part.isidentifier() for part in path.split(".")) and not path.endswith(".py")
    if is_module:
        inner = re.escape(path.replace(".", "/"))
        return re.compile(rf"(?:^|/){inner}(?:\.pyw?$|/)")
    start = "^" if re.match(r"/|[A-Za-z]:/|Cell In|<", path) else "(?:^|/)"
    return re.compile(rf"{start}{re.escape(path.removeprefix('./'))}(?:$|/)")
