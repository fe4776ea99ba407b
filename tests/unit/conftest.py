"""Fixtures that many of the unit tests share."""

import pytest

from .session_builder import stored
from .tables_builder import add_keys


@pytest.fixture
def session_of(tmp_path_factory):
    """`session_of(*events)`: the session of a file with just these rows; keyword arguments are its facts."""
    return lambda *events, **facts: stored(tmp_path_factory.mktemp("session"), *map(add_keys, events), **facts)
