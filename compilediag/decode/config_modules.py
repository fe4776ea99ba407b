"""Where a key of `Finding.fix` is a setting of torch."""

from __future__ import annotations

#: Those that are not of torch._dynamo.config.
_MODULES = {
    "dynamic_sources": "torch.compiler.config",
    "unbacked_sources": "torch.compiler.config",
    "use_duck_shape": "torch.fx.experimental._config",
}


def find_config_module(key: str) -> str:
    """The config module that has the setting."""
    return _MODULES.get(key, "torch._dynamo.config")
