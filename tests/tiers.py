"""Which cases of a test `make test` runs; `make test-all` runs all of them."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], chosen: Collection[object], why: str) -> list[Any]:
    """The cases of a `parametrize`, of which those that are not in `chosen` are marked long.

    A case is chosen by itself or, where it is a tuple of arguments, by its first one.
    """
    keyed = [(case[0], case) if isinstance(case, tuple) else (case, (case,)) for case in cases]
    missing = [choice for choice in chosen if choice not in [key for key, _ in keyed]]
    assert not missing, f"no case is {missing}"
    long = pytest.mark.long(why)
    return [pytest.param(*arguments, marks=() if key in chosen else long) for key, arguments in keyed]
