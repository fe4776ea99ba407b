"""Remote caches: each request to a server, its answer, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...decode.records.cache_records import Fetch, LookUp, Trouble, make_fetch_row, name_remote_cache
from ...system import clock
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.sink import EventSink
from ..hooks.source import Source, hook
from ..hooks.threads import PerThread
from ..hooks.torch_names import call_argument
from . import torch_api
from .graph_caches import make_trouble


@dataclass(slots=True)
class Transfer:
    """A get or put that runs, with the connection that it began with."""

    fetch: Fetch
    client: Any = None


class RemoteCache(Source):
    """The answer to a look-up of FxGraphCache or AOTAutogradCache is added to the record of that look-up, which
    alone knows whether the entry could be used; all other answers are rows of this source.
    """

    name = "remote_cache"

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._transfer: PerThread[Transfer | None] = PerThread(lambda: None)
        self._open = self.context.cache_records

    def _before_get(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(args, kwargs, is_put=False)

    def _before_put(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(args, kwargs, is_put=True)

    def _begin(self, args: Args, kwargs: Kwargs, is_put: bool) -> None:
        if torch_api.is_remote(args[0]):
            fetch = self._make_fetch(args[0], is_put, call_argument(args, kwargs, 1, "key"))
            self._transfer.set(Transfer(fetch))

    def _make_fetch(self, cache: Any, is_put: bool, key: str | None) -> Fetch:
        compile_id, compile_key = self.context.keys.current()
        frame = self.context.frames.get(compile_key or "", {})
        name = name_remote_cache(type(cache).__name__)
        return Fetch(name, is_put, key, clock.now_ns(), compile_id, frame=frame, compile_key=compile_key)

    # Bytes

    def _before_transfer(self, args: Args, kwargs: Kwargs) -> None:
        transfer = self._transfer.get()
        if transfer is not None and torch_api.is_redis(args[0]):
            transfer.client = torch_api.redis_client(args[0])
            transfer.fetch.is_given_up = transfer.client is None

    @hook(torch_api.BACKEND_GET, before=_before_transfer)
    def _on_received(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        if error is None:
            self._count_bytes(args[0], result)

    @hook(torch_api.BACKEND_PUT, before=_before_transfer)
    def _on_sent(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        if error is None:
            self._count_bytes(args[0], call_argument(args, kwargs, 2, "data"))

    def _count_bytes(self, backend: Any, data: Any) -> None:
        transfer = self._transfer.get()
        if transfer is None or transfer.fetch.is_given_up:
            return
        if transfer.client is not None and torch_api.redis_client(backend) is None:
            text = f"no connection to Redis at {torch_api.redis_address(transfer.client)}: torch goes on without it"
            transfer.fetch.trouble = Trouble("ConnectionError", text)
        elif isinstance(data, (bytes, str)):
            transfer.fetch.bytes = len(data)

    # Outcomes

    @hook(torch_api.REMOTE_GET, before=_before_get)
    def _got(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        fetch = self._end(error)
        if fetch is None:
            return
        running = self._open.get()
        look = running[-1] if running else None
        if isinstance(look, LookUp) and look.cache == fetch.cache:
            if error is None:
                look.fetch = fetch
                return
            if fetch.trouble is not None:
                look.troubles["remote"] = fetch.trouble
        self.emit(make_fetch_row, fetch)

    @hook(torch_api.REMOTE_PUT, before=_before_put)
    def _put(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        fetch = self._end(error)
        if fetch is None:
            return
        value = call_argument(args, kwargs, 2, "value")
        taken_ms = value.get("time_taken_ms") if isinstance(value, dict) else None
        fetch.taken_s = taken_ms / 1e3 if isinstance(taken_ms, (int, float)) else None
        self.emit(make_fetch_row, fetch)

    def _end(self, error: Raised) -> Fetch | None:
        transfer = self._transfer.take()
        if transfer is None:
            return None
        fetch = transfer.fetch
        fetch.duration_s = (clock.now_ns() - fetch.time_ns) / 1e9
        if error is not None:
            fetch.trouble, fetch.is_raised = make_trouble(error), True
        return fetch

    @hook(torch_api.REDIS_CREATED)
    def _cache_created(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch logs that a cache could not be created (no package redis), and goes on without its remote tier."""
        if error is not None:
            fetch = self._make_fetch(args[0], False, None)
            fetch.trouble = make_trouble(error)
            self.emit(make_fetch_row, fetch)
