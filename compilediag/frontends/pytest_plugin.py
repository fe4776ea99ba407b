"""The pytest plugin: a marker that limits what a test may compile.

    @pytest.mark.compilediag(max_recompiles=0, max_graph_breaks=0)
    def test_step(): ...

The limits are those of `compilediag check`. The fixture `compile_session` is the session of a test, with or without
the marker. Other tests are not recorded.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from compilediag.diagnosis.gate import Limits
    from compilediag.session import Session

MARKER = "compilediag"
#: The totals that the plugin reports.
REPORTED = ("compiles", "recompiles", "graph_breaks", "compile_s")
_SESSION: pytest.StashKey[Any] = pytest.StashKey()
_RECORDED: pytest.StashKey[list[dict[str, float]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(max_recompiles, max_compile_s, max_cold_seconds, max_graph_breaks, max_after_warmup, "
        "min_cudagraph_coverage, no_silent_eager, baseline): fail the test, and show the causes, if it compiles more "
        "than that",
    )
    config.stash[_RECORDED] = []


@pytest.fixture
def compile_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The session of a watch from here to the end of the test."""
    import compilediag as cd

    with cd.watch() as session:
        request.node.stash[_SESSION] = session
        yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record a marked test, and check its limits if it passed."""
    marker = item.get_closest_marker(MARKER)
    session = item.stash.get(_SESSION, None)
    if marker is None and session is None:
        return (yield)
    limits = None if marker is None else _parse_limits(marker)
    if session is not None:
        result = yield
    else:
        import compilediag as cd

        counts_replays = limits is not None and limits.min_cudagraph_coverage is not None
        with cd.watch(calls=limits is not None and limits.no_silent_eager, replays=counts_replays) as session:
            result = yield
    from compilediag.diagnosis.gate import check
    from compilediag.views.totals import compute_totals

    # What the test compiled is in its properties in JUnit's XML, and in the sums of the last line.
    totals = compute_totals(session.data)
    found: dict[str, float] = {name: totals[name] for name in REPORTED}  # type: ignore[literal-required]
    item.user_properties.extend((f"compilediag_{name}", round(value, 3)) for name, value in found.items())
    item.config.stash[_RECORDED].append(found)
    # A function that an earlier test compiled is not compiled again: compiling nothing is fine.
    if limits is not None and (broken := check(session.data, limits, must_compile=False)):
        pytest.fail("compilediag: " + "\n".join(map(str, broken)), pytrace=False)
    return result


def _parse_limits(marker: pytest.Mark) -> Limits:
    from compilediag.comparison import read_baseline
    from compilediag.diagnosis.gate import Limits

    allowed = inspect.signature(Limits).parameters
    if marker.args or not marker.kwargs or not {*marker.kwargs} <= {*allowed}:
        raise pytest.UsageError(f"@pytest.mark.{MARKER} takes keyword arguments only: {', '.join(allowed)}")
    values = dict(marker.kwargs)
    if values.get("baseline") is not None:
        values["baseline"] = read_baseline(values["baseline"])
    return Limits(**values)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    recorded = config.stash.get(_RECORDED, [])
    if recorded:
        from compilediag.formatting import format_amount, format_seconds

        sums = {name: sum(found[name] for found in recorded) for name in REPORTED}
        terminalreporter.write_line(
            f"compilediag: {format_amount(len(recorded), 'test')} recorded:"
            f" {format_amount(sums['compiles'], 'compile')}, {format_amount(sums['recompiles'], 'recompile')},"
            f" {format_amount(sums['graph_breaks'], 'graph break')}, {format_seconds(sums['compile_s'])} compiling"
        )
