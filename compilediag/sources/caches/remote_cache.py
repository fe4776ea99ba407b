"""Remote caches: what was asked of a server, what it answered, and how long that took."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from ...decode.records.cache_records import Fetch, LookUp, Trouble, make_fetch_row, name_remote_cache
from ...recording import Made
from .. import _compat
from .._compat import caches as places
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made
from .guarded_cache import trouble, underway


@dataclass(slots=True)
class Transfer:
    """A get or put that runs, with the connection that it began with."""

    fetch: Fetch
    client: Any = None


class RemoteCache(Source):
    """The answer to a look-up of FxGraphCache or AOTAutogradCache is handed to the record of that look-up, which
    alone knows whether the entry could be used; all others are told here.
    """

    name = "remote_cache"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._transfers: dict[int, Transfer] = {}
        self._underway = underway(self.recorder)

    @classmethod
    def probe(cls) -> None:
        places.remote_cache()
        places.remote_backend()
        places.redis_cache()

    def patches(self) -> list[Patch]:
        cache, backend = places.remote_cache(), places.remote_backend()
        return [
            Patch(cache, "get", self._got, self.guarded, before=self._gets),
            Patch(cache, "put", self._put, self.guarded, before=self._puts),
            Patch(backend, "get", self._received, self.guarded, before=self._connects),
            Patch(backend, "put", self._sent, self.guarded, before=self._connects),
            Patch(places.redis_cache(), "__init__", self._made, self.guarded),
        ]

    def _gets(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(args, kwargs, is_put=False)

    def _puts(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(args, kwargs, is_put=True)

    def _begin(self, args: Args, kwargs: Kwargs, is_put: bool) -> None:
        if places.is_remote(args[0]):
            fetch = self._fetch(args[0], is_put, _compat.argument(args, kwargs, 1, "key"))
            self._transfers[get_ident()] = Transfer(fetch)

    def _fetch(self, cache: Any, is_put: bool, key: str | None) -> Fetch:
        compile_id = _compat.current_compile_id()
        frame = self.recorder.frames.get(compile_id or "", {})
        return Fetch(name_remote_cache(type(cache).__name__), is_put, key, time.time_ns(), compile_id, frame=frame)

    # Bytes

    def _connects(self, args: Args, kwargs: Kwargs) -> None:
        transfer = self._transfers.get(get_ident())
        if transfer is not None and places.is_redis(args[0]):
            transfer.client = places.connection(args[0])
            transfer.fetch.is_given_up = transfer.client is None

    def _received(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._moved(args[0], result)

    def _sent(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._moved(args[0], _compat.argument(args, kwargs, 2, "data"))

    def _moved(self, backend: Any, data: Any) -> None:
        transfer = self._transfers.get(get_ident())
        if transfer is None or transfer.fetch.is_given_up:
            return
        if transfer.client is not None and places.connection(backend) is None:
            told = f"no connection to Redis at {places.address(transfer.client)}: torch goes on without it"
            transfer.fetch.trouble = Trouble("ConnectionError", told)
        elif isinstance(data, (bytes, str)):
            transfer.fetch.bytes = len(data)

    # Outcomes

    def _got(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        fetch = self._end(error)
        if fetch is None:
            return
        running = self._underway.get(get_ident())
        look = running[-1] if running else None
        is_its = isinstance(look, LookUp) and look.cache == fetch.cache
        if is_its and error is None:
            look.fetch = fetch
            return
        if is_its:
            look.troubles["remote"] = fetch.trouble
        self.emit(_fetched, fetch)

    def _put(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        fetch = self._end(error)
        if fetch is None:
            return
        value = _compat.argument(args, kwargs, 2, "value")
        taken_ms = value.get("time_taken_ms") if isinstance(value, dict) else None
        fetch.taken_s = taken_ms / 1e3 if isinstance(taken_ms, (int, float)) else None
        self.emit(_fetched, fetch)

    def _end(self, error: Raised) -> Fetch | None:
        transfer = self._transfers.pop(get_ident(), None)
        if transfer is None:
            return None
        fetch = transfer.fetch
        fetch.duration_s = (time.time_ns() - fetch.time_ns) / 1e9
        if error is not None:
            fetch.trouble, fetch.is_raised = trouble(error), True
        return fetch

    def _made(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch logs that a cache could not be made (no package redis), and goes on without its remote tier."""
        if error is not None:
            fetch = self._fetch(args[0], False, None)
            fetch.trouble = trouble(error)
            self.emit(_fetched, fetch)


def _fetched(fetch: Fetch) -> Made:
    return made(make_fetch_row(fetch))
