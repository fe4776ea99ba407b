"""The components of cache keys, in `full`, to compare a miss with the nearest earlier key.

The components of FxGraphCache's keys come with its announcements, and those of AOTAutogradCache on torch 2.11; on 2.13
the latter are only written where their logger is at DEBUG, so they are read here, from the object that is hashed. What
torch's texts leave out, the values of a graph's constants and of AOTAutograd's configuration, is read here too.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from ...decode.cache_keys.nearest_key import KeyHistory
from ...events import SourceStatus
from ..compile_context import CompileContext
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import Source
from ..hooks.torch_names import call_argument
from . import torch_api
from .key_history import StoredKeys


def shared_history(context: CompileContext) -> KeyHistory:
    """The key history of a recording, which all of its sources share."""
    if context.key_history is None:
        version = str(sys.modules["torch"].__version__)
        context.key_history = KeyHistory(StoredKeys.of_user(version), version)
    return context.key_history


class CacheKeys(Source):
    name = "keys"
    needs = (
        *(torch_api.FX_KEY_HASHED, torch_api.AOT_KEY_HASHED),
        *(torch_api.TENSOR_METADATA, torch_api.SAVE_CONFIG),
    )
    details = ("full",)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._history = shared_history(self.context)
        self._settings = torch_api.SettingTexts()

    def close(self) -> None:
        """The last that is handed over: all look-ups are compared before."""
        self.emit(self._save)

    def _save(self) -> Made:
        self._history.save()
        return ()

    def patches(self) -> list[Patch]:
        if torch_api.AOT_KEY_LINES.exists():
            autograd = self.watch(torch_api.AOT_KEY_LINES, self._autograd_details)
        else:
            autograd = self.watch(torch_api.AOT_KEY_HASHED, self._autograd_key)
        return [self.watch(torch_api.FX_KEY_HASHED, self._graph_key), autograd]

    def _graph_key(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._note(result[0], torch_api.graph_constants(call_argument(args, kwargs, 0, "gm")), {})

    def _autograd_key(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._note(result[0], {}, self._settings.read(torch_api.autograd_config()))

    def _autograd_details(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        pickler, details, key = (call_argument(args, kwargs, *at) for at in enumerate(("pickler", "details", "key")))
        settings = self._settings.read(torch_api.autograd_settings(details))
        self._note(key, torch_api.autograd_components(pickler, details), settings)

    def _note(self, key: str, texts: dict[str, str], settings: dict[str, str]) -> None:
        if texts or settings:
            self.emit(self._note_parts, key, texts, settings)

    def _note_parts(self, key: str, texts: dict[str, str], settings: dict[str, str]) -> Made:
        self._history.note(key, texts, settings)
        return ()

    def status(self) -> SourceStatus:
        status, problem = super().status(), self._history.problem
        if status.status == "active" and status.reason is None and problem is not None:
            return dataclasses.replace(status, reason=f"keys of earlier sessions are not known: {problem}")
        return status
