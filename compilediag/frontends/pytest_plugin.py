"""The pytest plugin: limits on what a test compiles, as a marker.

    @pytest.mark.compilediag(max_recompiles=0, max_graph_breaks=0)
    def test_step(): ...

The limits are those of `compilediag check`. The fixture `compile_session` is the session of the test, marked or not.
Nothing is watched in other tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compilediag.session import Session

MARKER = "compilediag"
_SESSION: pytest.StashKey[Any] = pytest.StashKey()
_WATCHED: pytest.StashKey[list[dict[str, float]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(max_recompiles, max_compile_s, max_graph_breaks, no_silent_eager, baseline): "
        "the test fails, with the causes, if it compiles more than that",
    )
    config.stash[_WATCHED] = []


@pytest.fixture
def compile_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The session of a watch from here to the end of the test."""
    import compilediag as cd

    with cd.watch() as session:
        request.node.stash[_SESSION] = session
        yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watch a marked test, and hold it to its limits if it passed."""
    marker = item.get_closest_marker(MARKER)
    session = item.stash.get(_SESSION, None)
    if marker is None and session is None:
        return (yield)
    limits = None if marker is None else _limits(marker)
    if session is not None:
        result = yield
    else:
        import compilediag as cd

        with cd.watch(calls=limits.no_silent_eager) as session:
            result = yield
    _note(item, session)
    _hold(session, limits)
    return result


def _limits(marker: pytest.Mark) -> Any:
    from compilediag.diagnosis.gate import Limits
    from compilediag.logs import opened

    allowed = inspect.signature(Limits).parameters
    if marker.args or not marker.kwargs or not {*marker.kwargs} <= {*allowed}:
        raise pytest.UsageError(f"@pytest.mark.{MARKER} takes, by name: {', '.join(allowed)}")
    told = dict(marker.kwargs)
    if told.get("baseline") is not None:
        told["baseline"] = opened(told["baseline"])
    return Limits(**told)


def _note(item: pytest.Item, session: Session) -> None:
    """What the test compiled: properties of its case in JUnit's XML, and part of the last line."""
    from compilediag.diagnosis.diff import counts

    found = {name: counts(session)[name] for name in ("compiles", "recompiles", "graph_breaks", "compile_s")}
    item.user_properties.extend((f"compilediag_{name}", round(value, 3)) for name, value in found.items())
    item.config.stash[_WATCHED].append(found)


def _hold(session: Session, limits: Any) -> None:
    from compilediag.diagnosis.gate import check

    if limits is not None:
        # What an earlier test compiled is not compiled again: that is no fault of this one.
        broken = check(session, limits, must_compile=False)
        if broken:
            pytest.fail("compilediag: " + "\n".join(map(str, broken)), pytrace=False)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    watched = config.stash.get(_WATCHED, [])
    if watched:
        sums = {name: sum(found[name] for found in watched) for name in watched[0]}
        terminalreporter.write_line(
            f"compilediag: {len(watched)} tests watched: {sums['compiles']:.0f} compiles,"
            f" {sums['recompiles']:.0f} recompiles, {sums['graph_breaks']:.0f} graph breaks,"
            f" {sums['compile_s']:.1f} s compiling"
        )
