"""Which cases of a test `make test` runs; `make test-all` runs all of them."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], chosen: Collection[object], why: str) -> list[Any]:
    """The cases of a `parametrize`, of which those that are not in `chosen` are marked long.

    A case is chosen by itself or, where it is a tuple of arguments, by its first one.
    """
    named = [(case, case[0] if isinstance(case, tuple) else case) for case in cases]
    missing = [choice for choice in chosen if choice not in [key for pair in named for key in pair]]
    assert not missing, f"no case is {missing}"
    return [case if key in chosen or case in chosen else _mark(case, why) for case, key in named]


def _mark(case: object, why: str) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long(why))
