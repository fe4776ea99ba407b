"""Fixtures of the scenarios that need more than a compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.redis_server import RedisServer, missing


@pytest.fixture
def settings_put_back() -> Iterator[None]:
    """For threads that compile at once: torch 2.11 has one configuration for all of them, and what one thread sets for
    the time of a call another can leave behind for good.
    """
    from torch._dynamo import config as dynamo
    from torch._functorch import config as functorch
    from torch._inductor import config as inductor

    kept = [(module, module.get_config_copy()) for module in (dynamo, functorch, inductor)]
    yield
    for module, settings in kept:
        for name, value in settings.items():
            if getattr(module, name) != value:
                setattr(module, name, value)


@pytest.fixture
def redis_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """An empty Redis where torch looks for one. Without it a test is skipped, and fails where CI=true."""
    why = missing()
    if why is not None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why)
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache

    server = RedisServer(tmp_path)
    server.start()
    monkeypatch.setenv("TORCHINDUCTOR_REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("TORCHINDUCTOR_REDIS_PORT", str(server.port))
    # torch keeps the connection of this cache for good.
    AOTAutogradCache.get_remote_cache.cache_clear()
    yield server
    server.stop()
    AOTAutogradCache.get_remote_cache.cache_clear()
