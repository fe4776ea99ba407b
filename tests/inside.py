"""What is inside of compilediag: what is at work in this process, the recorder, what a page is sent, and the commands.
Tests look inside of the package here only.
"""

# ruff: noqa: F401  (tests import the names from here)

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from compilediag import sources
from compilediag.decode.cache_keys import read_keys
from compilediag.decode.call_stacks import OwnCode
from compilediag.diagnosis.source_edits import EditError, apply_edits, has_argument, insert_before, replace_argument
from compilediag.events.words import GUARD_KIND_MEANINGS, PHASE_KINDS, PHASES, find_phase_kind, format_phase
from compilediag.logs import dask
from compilediag.recording import active_recording
from compilediag.recording import recorder as recorder_module
from compilediag.recording.recorder import Recorder, WriterStatus
from compilediag.sources.hooks import patches
from compilediag.sources.hooks.torch_names import NothingToWatch, TorchName, Unavailable
from compilediag.storage import session_writer
from compilediag.storage.recorded_data import RecordedData
from compilediag.storage.store import Store
from compilediag.views import esm
from compilediag.views.model import ViewModel, dumps
from compilediag.views.patches import QUIET_S, Pump, split_patch
from compilediag.views.report import render_report

#: Torch's functions that are patched now, as `module.name`.
list_hooks = sources.list_hooks
#: The rank of this process in a job, or None.
read_rank = sources.rank
#: (name, status, reason) of each source, if a watch began now.
probe_all = sources.probe_all
#: The modules whose import is waited for.
list_late_imports = patches.list_waiting
#: Called with what a hook swallows: (name of the source, exception).
error_listeners = sources.own_errors.listeners
#: What a page is sent, as the text that is sent.
to_page_json = dumps
#: Ends every watch, whatever has begun it.
end_recordings = active_recording.end_all
#: The data in the file of a report or a comparison.
_ISLAND = re.compile(r'(?<=id="cdiag-data">)[^<]*')


def read_page_data(path: str | os.PathLike[str]) -> Any:
    """The data in the file of a report or a comparison."""
    found = _ISLAND.search(Path(path).read_text())
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[0])))


def read_page(path: str | os.PathLike[str]) -> str:
    """The file of a report or a comparison, with its data as JSON that can be searched."""
    return _ISLAND.sub(lambda _: dumps(read_page_data(path)), Path(path).read_text())


def main(arguments: Collection[str]) -> int:
    """Run `compilediag ARGUMENTS` in this process; its exit code."""
    from compilediag.cli import main

    return main([str(argument) for argument in arguments])


def keep(session: Any) -> Path:
    """Keep a session for `compilediag last`, as `compilediag run` does; its file."""
    from compilediag.session import keep

    return keep(session)


def list_commands() -> list[Any]:
    """All commands, each with its name, its help and the arguments that it takes."""
    from compilediag.cli import COMMANDS

    return list(COMMANDS)


def make_record(session: Any) -> dict[str, str]:
    """What a saved notebook keeps of a session, by its type."""
    from compilediag.views.widget import make_dashboard_texts

    return make_dashboard_texts(session.data).make_record("record")


def format_status(states: list[dict[str, Any]]) -> str:
    """What `%compilewatch status` prints of the states of the sources."""
    from compilediag.views.summary import format_status

    return format_status(states)


def answer_export(session: Any, **message: Any) -> dict[str, Any]:
    """What a page gets that asks the kernel to write something."""
    from compilediag.views.widget import answer_export

    return answer_export(session.data, {"type": "export", **message})


def list_sources() -> list[str]:
    """The names of all sources that there are."""
    return [name for name, *_ in probe_all()]


def list_watching() -> list[Any]:
    """The sources that are attached now."""
    return list(sources._attached)


def find_source(name: str) -> Any:
    return next(source for source in sources._attached if source.name == name)


def list_places(but: Collection[str] = ()) -> list[tuple[Any, str]]:
    """(owner, name) of everything that is patched now, but for the hooks of some sources."""
    left_out = {patch for source in sources._attached if source.name in but for patch in source._patches}
    return list(dict.fromkeys((p.owner, p.name) for p in patches._installed if p not in left_out))


def list_recordings() -> list[Any]:
    """The recording that runs now, or None, and those that have ended and are still read."""
    return [active_recording._current, *active_recording._ended]


def find_recorder() -> Any:
    """What takes the events of the watch that runs now."""
    return active_recording.find_current().recorder


def list_locks() -> list[Any]:
    return [active_recording._lock]


def attach(names: Collection[str] | None = None) -> Any:
    """Attach these sources, or all, to a recorder that writes nothing; returns the function that detaches them."""
    recorder = active_recording.Recorder("unused", {})
    if names is None:
        sources.attach(recorder, "full")
    for cls in sources._source_classes() if names is not None else ():
        if cls.name in names:
            source = cls(recorder, "full")
            sources._attached.append(source)
            source.begin()
    return sources.detach
