"""What the sources of tuning share: the compile that a tuning belongs to, and what is read of triton kernels while the
objects are alive: configurations, arguments and times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...decode.records.autotune_choices import TimedChoice, extract_reason, format_input
from ..cache_source import CacheSource
from ..compile_context import FunctionColumns, OwnerColumns


class CompileIds(NamedTuple):
    """The compile attempt that a tuning belongs to; both None outside of torch.compile."""

    compile_id: str | None
    compile_key: str | None


class Tuner(CacheSource):
    """A source of the table `autotune`, and of the look-ups in its caches."""

    def current_ids(self) -> CompileIds:
        return CompileIds(*self.context.keys.current())

    def frame(self, ids: CompileIds) -> FunctionColumns:
        """Function, file and line that are compiled, as far as known."""
        return self.context.function_columns(ids.compile_key)

    def owner(self, ids: CompileIds) -> OwnerColumns:
        """The compile attempt, and its function."""
        return {"compile_id": ids.compile_id, "compile_key": ids.compile_key, **self.frame(ids)}


#: Options of a configuration beside its own names.
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def read_parameters(config: Any) -> dict[str, Any]:
    """Names and values of a `triton.Config`, those of its options that are set included."""
    options = {name: getattr(config, name, None) for name in OPTIONS}
    options = {name: value for name, value in options.items() if value is not None}
    return {**(getattr(config, "kwargs", None) or {}), **options}


def describe_inputs(arguments: Iterable[Any]) -> list[str]:
    """The tensors among the arguments of a kernel."""
    tensors = [a for a in arguments if hasattr(a, "stride") and hasattr(a, "dtype") and hasattr(a, "shape")]
    return [format_input(str(t.dtype), t.shape, t.stride(), str(t.device)) for t in tensors]


def find_device(arguments: Iterable[Any]) -> str | None:
    """The device of the first tensor among the arguments."""
    return next((str(a.device) for a in arguments if hasattr(a, "stride") and hasattr(a, "device")), None)


def make_choice(parameters: Mapping[str, Any], time_ms: float | None, reason: str | None, **others: Any) -> TimedChoice:
    """A configuration as a choice, named by its parameters."""
    name = " ".join(f"{name}={value}" for name, value in parameters.items())
    why = None if reason is None else extract_reason(reason)
    return TimedChoice(name=name, kind="triton", parameters={**parameters}, time_ms=time_ms, fail_reason=why, **others)
