"""Fixtures that many of the unit tests share."""

import pytest

from .log_builder import read_log
from .session_builder import stored
from .tables_builder import add_keys


@pytest.fixture
def session_of(tmp_path_factory):
    """`session_of(*events)`: the session of a file with just these rows; keyword arguments are its facts."""
    return lambda *events, **facts: stored(tmp_path_factory.mktemp("session"), *map(add_keys, events), **facts)


@pytest.fixture
def session_of_log(tmp_path_factory):
    """`session_of_log(*texts)`: the session of a log of these records; keyword arguments are those of `cd.ingest`."""
    return lambda *texts, **options: read_log(tmp_path_factory.mktemp("log"), "".join(texts), **options)
