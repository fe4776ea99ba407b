"""What cache keys are made of, in `full`: so that a miss can be told against the nearest earlier key.

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
from ...recording import Made, Recorder
from .. import _compat
from .._compat import keys as places
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from .key_history import History


def history_of(recorder: Recorder) -> KeyHistory:
    """The key history that all sources of a recorder share."""
    found = recorder.shared.get("keys")
    if found is None:
        version = str(sys.modules["torch"].__version__)
        found = recorder.shared["keys"] = KeyHistory(History.of_user(version), version)
    return found


class Keys(Source):
    name = "keys"
    details = ("full",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._history = history_of(self.recorder)
        self._settings = places.Settings()

    @classmethod
    def probe(cls) -> None:
        places.graph_hash_module()
        places.autograd_key_module()

    def patches(self) -> list[Patch]:
        module, name = places.autograd_key_module()
        observe = self._autograd_key if name == "autograd_cache_key" else self._autograd_details
        return [
            Patch(places.graph_hash_module(), "compiled_fx_graph_hash", self._graph_key, self.guarded),
            Patch(module, name, observe, self.guarded),
        ]

    def _graph_key(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._note(result[0], places.graph_constants(_compat.argument(args, kwargs, 0, "gm")), {})

    def _autograd_key(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._note(result[0], {}, self._settings.read(places.autograd_config()))

    def _autograd_details(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        pickler, details, key = (_compat.argument(args, kwargs, *at) for at in enumerate(("pickler", "details", "key")))
        settings = self._settings.read(places.autograd_settings(details))
        self._note(key, places.autograd_components(pickler, details), settings)

    def _note(self, key: str, texts: dict[str, str], settings: dict[str, str]) -> None:
        if texts or settings:
            self.emit(self._noted, key, texts, settings)

    def _noted(self, key: str, texts: dict[str, str], settings: dict[str, str]) -> Made:
        self._history.note(key, texts, settings)
        return ()

    def status(self) -> SourceStatus:
        status, problem = super().status(), self._history.problem
        if status.status == "active" and status.reason is None and problem:
            return dataclasses.replace(status, reason=f"keys of earlier sessions are not known: {problem}")
        return status
