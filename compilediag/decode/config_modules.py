"""The configuration modules of torch that hold the settings in `Finding.fix`."""

from __future__ import annotations

#: Settings outside torch._dynamo.config.
_MODULES = {
    "dynamic_sources": "torch.compiler.config",
    "unbacked_sources": "torch.compiler.config",
    "autograd_cache_allow_custom_autograd_functions": "torch._functorch.config",
    "use_duck_shape": "torch.fx.experimental._config",
}


def find_config_module(key: str) -> str:
    """Return the configuration module of a setting."""
    return _MODULES.get(key, "torch._dynamo.config")
