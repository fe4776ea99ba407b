"""Records of kinds that torch does not write, or not yet: a plug-in may know what they mean."""

from __future__ import annotations

from typing import Any

from .. import plugins
from ..decode.records.log_process import Item
from ..decode.records.trace_log import Record
from ..events import Artifact, Event

#: Items that one record may give.
MAX_ITEMS = 10_000


def plugged(kind: str, record: Record, compile_id: str | None, time_ns: int) -> list[Item] | None:
    """What the plug-in for records of this kind makes of one; None if there is none, or if it fails."""
    decoder = plugins.decoder(kind)
    if decoder is None:
        return None

    def accepted(told: Any) -> list[Item]:
        return [_item(item, compile_id, time_ns) for item in list(told or ())[:MAX_ITEMS]]

    text = None if record.payload is None else record.text
    return decoder.call(accepted, dict(record.metadata), text, compile_id, time_ns)


def _item(item: Any, compile_id: str | None, time_ns: int) -> Item:
    """An event as it is; a pair of strings, name and text, as an artifact."""
    if isinstance(item, Event):
        return item
    name, text = item
    if not (isinstance(name, str) and isinstance(text, str)):
        raise TypeError("a decoder gives events of compilediag.events, or pairs of name and text")
    return Artifact(time_ns=time_ns, compile_id=compile_id, name=name), text.encode("utf-8", "replace")
