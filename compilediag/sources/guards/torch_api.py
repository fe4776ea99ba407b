"""Private names of torch's guards. Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from ...decode.guards.path import Path
from ...system.interrupts import pass_on
from ..hooks.torch_names import TorchName, fields

CPP_GUARDS = "torch._C._dynamo.guards"
GLOBAL_STATE = TorchName(CPP_GUARDS, "GlobalStateGuard")
OVERLAPPING = TorchName(CPP_GUARDS, "compute_overlapping_tensors")
FUNCTION_MODES = TorchName("torch.overrides", "_get_current_function_mode_stack")
FUNCTION_OFF = TorchName("torch._C", "DisableTorchFunction")
FUNCTION_ON = TorchName("torch._C", "_EnableTorchFunction")
DISPATCH_KEYS = TorchName("torch._C", "_dispatch_keys")
KEYS_INCLUDED = TorchName("torch._C", "_dispatch_tls_local_include_set")
KEYS_EXCLUDED = TorchName("torch._C", "_dispatch_tls_local_exclude_set")
TENSOR_BASE = TorchName("torch._C", "TensorBase")
#: What checking guards needs.
FOR_GUARDS = (
    *(GLOBAL_STATE, OVERLAPPING, FUNCTION_MODES, FUNCTION_OFF, FUNCTION_ON),
    *(DISPATCH_KEYS, KEYS_INCLUDED, KEYS_EXCLUDED, TENSOR_BASE),
)

_READ = (
    *fields(CPP_GUARDS, "GuardManager", "get_source", "get_leaf_guards", "get_child_managers", "get_accessors"),
    *fields(CPP_GUARDS, "GuardManager", "fail_count", "has_no_accessors", "get_type_of_guarded_value"),
    *fields(CPP_GUARDS, "RootGuardManager", "check_verbose", "clone_manager", "get_epilogue_lambda_guards"),
    *fields(CPP_GUARDS, "DictGuardManager", "get_key_value_managers"),
    *fields("torch._dynamo.guards", "GuardManagerWrapper", "root", "code_parts", "closure_vars", "global_scope"),
    *fields("torch._dynamo.guards", "GuardManagerWrapper", "cache_entry", "no_tensor_aliasing_sources"),
    *fields("torch._dynamo.guards", "DeletedGuardManagerWrapper", "invalidation_reason"),
)
#: Where guards find the current forward-AD level and device, in the scope in which torch evaluates them.
FORWARD_AD_LEVEL = Path("torch").then("attr", "autograd").then("attr", "forward_ad").then("attr", "_current_level")
CURRENT_DEVICE = Path("utils_device").then("attr", "CURRENT_DEVICE")
#: Dynamo's own check of the function modes; its closure holds the modes of compile time.
MODE_STACK_CHECK = "___check_torch_function_mode_stack"


def source_name(source: Any) -> str:
    """The name of the source of a guard or a symbol: a property since torch 2.10, before that a method."""
    name = source.name
    return str(name() if callable(name) else name)


def unaliased_sources(guard_manager: Any) -> list[str] | None:
    """The expressions of the tensors that an entry needs to be different objects; None if torch does not list them.

    torch 2.15 keeps the sources as objects, earlier versions as texts.
    """
    sources = getattr(guard_manager, "no_tensor_aliasing_sources", None)
    return sources and [source if isinstance(source, str) else source_name(source) for source in sources]


def without_torch_function() -> contextlib.AbstractContextManager[None]:
    """In the block, torch functions of modes and subclasses are off, as where C++ checks guards."""
    block: contextlib.AbstractContextManager[None] = torch._C.DisableTorchFunction()
    return block


def with_torch_function() -> contextlib.AbstractContextManager[None]:
    """In the block, torch functions are on again."""
    block: contextlib.AbstractContextManager[None] = torch._C._EnableTorchFunction()
    return block


def dispatch_keys(tensor: torch.Tensor) -> str:
    """The dispatch keys of a tensor as this thread sees them: `CPU, ADInplaceOrView`."""
    keys = torch._C._dispatch_keys(tensor) | torch._C._dispatch_tls_local_include_set()
    text = str(keys - torch._C._dispatch_tls_local_exclude_set())
    return text.removeprefix("DispatchKeySet(").removesuffix(")")


def tensor_metadata(tensor: Any) -> tuple[str, str, str]:
    """(dtype, shape, device) of a tensor, without its subclass's code; reads no data."""
    base = torch._C.TensorBase
    with without_torch_function():
        dtype = str(base.dtype.__get__(tensor)).removeprefix("torch.")
        try:
            shape = str(list(base.size(tensor)))
        except RuntimeError as error:  # Nested tensors have no size.
            pass_on(error)
            shape = "[?]"
        return dtype, shape, str(base.device.__get__(tensor))


def read_geometry(tensor: Any, method: str) -> Any:
    """What `size`, `stride`, `storage_offset` or `dim` of a tensor returns. TypeError if it has none."""
    try:
        return getattr(torch._C.TensorBase, method)(tensor)
    except RuntimeError as error:  # Sparse layouts have no strides, and nested tensors no size.
        pass_on(error)
        raise TypeError(method) from None
