"""Call stacks: those in torch's messages, which are text, and those in its records, which are lists of frames.

`CallStacks` stores each frame once, as a row with the key of the frame around it. A stack is the key of its innermost
frame. A key is a digest of the whole path, so the same stack has the same key in every process and session.

`OwnCode` decides which files are the user's: not torch, not Python's standard library, not installed packages. Only
paths are compared: a session or a log can come from another machine, with another operating system.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..events import StackFrame

#: Frames whose keys are remembered; a forgotten frame is written again under the same key.
MAX_KNOWN = 100_000
#: Frames kept of one stack: the innermost ones.
MAX_DEPTH = 400
#: Prefix of files that are frozen into Python itself, such as the one of os.environ.
FROZEN = "<frozen "
_TORCH_FILE = re.compile(r"(?:(?:site|dist)-packages|pytorch)[/\\]torch[/\\]")
#: The last folder named `torch`: torch can be installed below another one, such as /opt/torch/.venv.
_IN_TORCH = re.compile(r".*[/\\]torch[/\\](.*)$", re.S)
#: A hook of ours, on any machine.
_OWN_HOOK = re.compile(r"[/\\]compilediag[/\\]sources[/\\]")
_FRAME = re.compile(
    r'^[^\S\n]*File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9}), in (?P<function>[^\n]*)'
    r"(?:\n    (?! )(?P<code>[^\n]*))?",
    re.M,
)


@functools.lru_cache(10_000)
def is_torch_file(path: str) -> bool:
    """Return True for a file of an installed torch. Only the path is checked: a log comes from another machine."""
    return _TORCH_FILE.search(path) is not None


@functools.lru_cache(10_000)
def is_called_code(path: str) -> bool:
    """Return True for a file of torch or of Python's standard library: what its lines do is up to who calls them."""
    is_standard = path.startswith(FROZEN) or (_STANDARD.search(path) and not _INSTALLED.search(path))
    return bool(is_standard) or is_torch_file(path)


def find_torch_path(path: str) -> str | None:
    """The path below the folder `torch`, with `/`: `_dynamo/eval_frame.py`. None for a file in no such folder."""
    found = _IN_TORCH.match(path)
    return found[1].replace("\\", "/") if found else None


# Stacks in messages


def find_user_line(stack: str) -> tuple[str, int, str | None] | None:
    """Return file, line and code of the innermost frame outside torch and Python's library; None without any frame.

    Frames further in are called code, such as nn.Linear.forward. If there is no other, the innermost one counts.
    """
    frames = list(_FRAME.finditer(stack))
    if not frames:
        return None
    frame = next((f for f in reversed(frames) if not is_called_code(f["file"])), frames[-1])
    return frame["file"], int(frame["line"]), (frame["code"] or "").strip() or None


def find_code(stack: str, file: str, line: int) -> str | None:
    """Return the code of a line as a stack shows it; None if the line is not in the stack."""
    frames = (f for f in _FRAME.finditer(stack) if f["file"] == file and int(f["line"]) == line)
    return next(((f["code"] or "").strip() or None for f in frames), None)


def cut_stack(stack: str, function: str, file: str) -> str:
    """Return a stack from the innermost frame of a function on; "" if it is not in the stack."""
    begins = [f.start() for f in _FRAME.finditer(stack) if (f["function"], f["file"]) == (function, file)]
    return stack[begins[-1] :] if begins else ""


# Stacks in records


class Frame(NamedTuple):
    """One frame of a stack. `call`, `parameters` and `assigned` are those of the table of stacks; logs have none."""

    file: str | None
    line: int | None
    function: str | None
    code: str | None = None
    call: str | None = None
    parameters: tuple[str, ...] | None = None
    assigned: tuple[str, ...] | None = None


class CallStacks:
    """Gives stacks their keys and returns the frames that are new as events."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], str] = {}
        #: What a source knows a whole stack by -> its key, and what has to stay alive for that.
        self.places: dict[tuple[object, ...], tuple[object, ...]] = {}

    def add(self, frames: Iterable[Frame], time_ns: int) -> tuple[str | None, list[StackFrame]]:
        """Return the key of a stack, outermost frame first, and its new frames. The key of an empty stack is None."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        key: str | None = None
        fresh = []
        for frame in list(frames)[-MAX_DEPTH:]:
            caller = key
            path: tuple[object, ...] = (caller, frame.file, frame.line, frame.function)
            if frame.call is not None:  # Two calls on one line are two frames; logs have no calls.
                path += (frame.call,)
            known = self._known.get(path)
            key = known or hashlib.md5(repr(path).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]
            if known is None:
                self._known[path] = key
                # The code of torch's own lines is left out.
                code = None if frame.file is None or is_torch_file(frame.file) else frame.code
                fresh.append(
                    StackFrame(
                        time_ns=time_ns,
                        stack=key,
                        caller=caller,
                        file=frame.file,
                        line=frame.line,
                        function=frame.function,
                        code=code,
                        call=frame.call,
                        parameters=None if frame.parameters is None else list(frame.parameters),
                        assigned=None if frame.assigned is None else list(frame.assigned),
                    )
                )
        return key, fresh


def parse_logged_frames(stack: object, names: Mapping[int, str]) -> list[Frame]:
    """Parse a stack as torch logs it, outermost frame first; `names` maps torch's numbers to files. Frames of our own
    hooks, which it has if the program is watched too, are left out.
    """
    frames = []
    for logged in stack if isinstance(stack, list) else ():
        if isinstance(logged, dict):
            file, line = logged.get("filename"), logged.get("line")
            file = names.get(file) if isinstance(file, int) else _as_text(file)
            line = line if isinstance(line, int) and not isinstance(line, bool) else None
            if file is None or not _OWN_HOOK.search(file):
                frames.append(Frame(file, line, _as_text(logged.get("name")), _as_text(logged.get("loc"))))
    return frames


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def find_user_frame(*stacks: list[Frame]) -> Frame | None:
    """Return the innermost frame outside torch and Python's library, from the first stack that has one."""
    for frames in stacks:
        for frame in reversed(frames):
            if frame.file is not None and not is_called_code(frame.file):
                return frame
    return None


# Whose code it is

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
        return not (_INSTALLED.search(file) or _STANDARD.search(file) or _normalize(file).startswith(self._libraries))


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
