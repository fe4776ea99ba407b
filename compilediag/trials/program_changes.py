"""Changes of a program in its own process, made before it starts: settings, edited files, another backend."""

from __future__ import annotations

import importlib.machinery
import os
import types
from collections.abc import Callable, Mapping
from typing import Any

from ..diagnosis.settings import Settings
from ..diagnosis.source_edits import EditedSource
from ..errors import CompilediagError
from ..sources.hooks.torch_names import Unavailable
from . import torch_api

#: Settings that are lists of sources: the new names are added to what the user has set.
_JOINED = ("dynamic_sources", "unbacked_sources")


def apply_settings(settings: Settings) -> None:
    """Assign settings, as the user's code would. CompilediagError if this torch lacks one."""
    for key, value in settings.items():
        try:
            owner = torch_api.find_config(key)
        except Unavailable as why:
            raise CompilediagError(f"this plan cannot be tried here: {why}") from None
        now = getattr(owner, key)
        setattr(owner, key, f"{now},{value}" if key in _JOINED and now else value)


def use_eager_backend() -> None:
    """Let every `torch.compile` with a backend of torch's own use the backend "eager". CompilediagError if it can't."""
    try:
        torch_api.replace_backends()
    except Unavailable as why:
        raise CompilediagError(f"--fast does not work here: {why}") from None


def import_edited(files: Mapping[str, EditedSource]) -> None:
    """Let imports of these files run the edited code, under the name of the file and with its line numbers."""
    loader: Any = importlib.machinery.SourceFileLoader
    get_code: Callable[[Any, str], types.CodeType | None] = loader.get_code

    def get_edited_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> types.CodeType | None:
        file = self.get_filename(fullname)
        edited = find_edited(files, file)
        return get_code(self, fullname) if edited is None else edited.compile(file)

    if files:
        loader.get_code = get_edited_code


def find_edited(files: Mapping[str, EditedSource], file: str) -> EditedSource | None:
    """The edited text of a file; None if it is not edited."""
    return files.get(file) or files.get(os.path.realpath(file))
