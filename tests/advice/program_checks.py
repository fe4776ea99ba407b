"""The checks of all programs as parameters of tests, in parts: pytest-xdist gives each file to one worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .judgements import JUDGES
from .known_programs import NOT_RUN, load_failures, load_programs

PARTS = 3


def list_checks(part: int) -> Iterator[Any]:
    """Every check of every third program; what does not work yet has to fail, so that it is noticed when it works."""
    for program in load_programs()[part::PARTS]:
        for name, judge in JUDGES.items():
            reason = load_failures().get(name, {}).get(program.name)
            marks = [pytest.mark.xfail(reason=reason, strict=reason != NOT_RUN)] if reason else []
            yield pytest.param(program, judge, id=f"{program.name}-{name}", marks=marks)
