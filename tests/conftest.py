"""What every test stands under: nothing swallowed, no hook left behind, a compiler that forgot the test before."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.chromium import find_chromium
from tests.program_server import COMMANDS, SOCKET, ProgramServer

ROOT = Path(__file__).resolve().parent.parent

# Where the tests run on GitHub, `compilediag check` must not write to the summary of their step.
for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
    os.environ.pop(name, None)

#: jsonschema, which nbformat imports, compiles a grammar of 5 s with this package, for a format that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

#: Put before a program: the given packages are not there for it.
WITHOUT = """
import sys

class Without:
    finders = list(sys.meta_path)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages!r}:
            return None
        specs = (finder.find_spec(name, path, target) for finder in self.finders)
        return next((spec for spec in specs if spec is not None), None)

    def find_distributions(self, context):
        if context.name in {packages!r}:
            return []
        finders = (f for f in self.finders if hasattr(f, "find_distributions"))
        return [found for finder in finders for found in finder.find_distributions(context)]

sys.meta_path[:] = [Without()]
"""

#: Files that take long, the longest first.
SLOW_FIRST = [
    *("test_programs_1.py", "test_programs_2.py", "test_programs_3.py", "test_try.py", "test_notebooks.py"),
    *(
        "test_lab.py",
        "test_hosts.py",
        "test_cli.py",
        "test_page.py",
        "test_warmup.py",
        "test_guest_contract.py",
        "test_collection.py",
    ),
    *("test_autotune.py", "test_check.py", "test_libraries.py", "test_processes.py", "test_ranks.py"),
    *("test_explain_miss.py", "test_ingest.py", "test_ingest_bad.py", "test_explorer.py", "test_panels.py"),
    *("test_store.py", "test_crash.py", "test_calls.py", "test_cudagraph_skips.py", "test_remote_cache.py"),
    *("test_sources.py", "test_javascript.py", "test_magics.py", "test_traced.py", "test_project.py"),
    "test_advice.py",  # after the programs: it reads what these files ran
]

#: The folders whose tests run the compiler.
COMPILING = {"live", "gpu"}


#: Fixtures that start an interpreter, or build the package.
STARTS_PROCESS = {"python", "python_without", "program_server", "built"}

#: The environment of every test and of every program that a test starts.
ENVIRONMENT = {
    # No test reads or writes the key history of the user who runs it.
    "COMPILEDIAG_HISTORY": "off",
    # Kernels without vector instructions. No test is about them, and Inductor then skips its checks of what the
    # processor supports: 8 s in each new process.
    "TORCHINDUCTOR_VEC_ISA_OK": "0",
    # Each Python that is started imports this checkout and runs tests/startup/sitecustomize.py.
    "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "startup"))),
    # Where the variable is set, each of them would compile 300 modules of compilediag again.
    "PYTHONDONTWRITEBYTECODE": "",
    # Each worker has one core; more threads only wait for each other.
    "OMP_NUM_THREADS": "1",
}
#: The variable that names a folder for results which all workers of a test run share.
RUN_FOLDER = "COMPILEDIAG_TEST_RUN"
_CACHES: pytest.StashKey[tempfile.TemporaryDirectory[str]] = pytest.StashKey()
_SHARED: pytest.StashKey[tempfile.TemporaryDirectory[str] | None] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked long")


def pytest_configure(config: pytest.Config) -> None:
    """Each worker has Inductor caches of its own, which are empty at first. Precompiled headers are shared: torch keeps
    them outside of that folder, one for each set of compiler flags.

    A background job ignores interrupts, and so would every program that a test starts and interrupts.
    """
    os.environ.update(ENVIRONMENT)
    config.stash[_CACHES] = caches = tempfile.TemporaryDirectory(
        prefix="compilediag-tests-", ignore_cleanup_errors=True
    )
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = caches.name
    # No run that a test starts is kept where `compilediag last` of the user who runs the tests finds it.
    os.environ["XDG_STATE_HOME"] = os.path.join(caches.name, "state")
    config.stash[_SHARED] = _make_run_folder()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _make_run_folder() -> tempfile.TemporaryDirectory[str] | None:
    """The folder that all workers share; None in a worker, which has it from the process that starts the workers."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return None
    folder = tempfile.TemporaryDirectory(prefix="compilediag-run-", ignore_cleanup_errors=True)
    os.environ[RUN_FOLDER] = folder.name
    return folder


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_CACHES].cleanup()
    if (shared := config.stash[_SHARED]) is not None:
        shared.cleanup()
        os.environ.pop(RUN_FOLDER, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests in gpu/ where there is no GPU, tests marked `since_torch` on an older torch, and those marked `long`
    without --long.

    Files that take long come first, so that no worker is left with one at the end.
    """
    items.sort(key=lambda item: SLOW_FIRST.index(item.path.name) if item.path.name in SLOW_FIRST else len(SLOW_FIRST))
    for item in items:
        for marker in item.iter_markers("since_torch"):
            version, why = marker.args
            item.add_marker(pytest.mark.skipif(not _torch_is(version), reason=f"before torch {version}: {why}"))
        for marker in item.iter_markers("long"):
            reason = f"long, see `make test-all`: {marker.args[0]}"
            item.add_marker(pytest.mark.skipif(not config.getoption("--long"), reason=reason))
        if STARTS_PROCESS.intersection(item.fixturenames):
            item.add_marker(pytest.mark.slow)
    on_gpu = [item for item in items if "gpu" in _folders(item)]
    if on_gpu and not _has_cuda():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What is collected stays, and torch with it: no search for garbage looks at that, now or later."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """pytest listens to torch's structured trace, and torch builds all of it for pytest: not while a test runs."""
    trace = logging.getLogger("torch.__trace")
    for handler in [h for h in trace.handlers if type(h).__module__.startswith("_pytest")]:
        trace.removeHandler(handler)
    return (yield)


def _folders(item: pytest.Item) -> tuple[str, ...]:
    return item.path.relative_to(ROOT).parts


def _torch_is(version: str) -> bool:
    """True if torch is installed in this version or a later one."""
    installed = importlib.metadata.version("torch").split("+")[0].split(".")[:2]
    return tuple(map(int, installed)) >= tuple(map(int, version.split(".")))


def _has_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


@pytest.fixture(autouse=True)
def nothing_swallowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Production swallows what compilediag raises inside a hook; a test fails of it, unless marked `swallows`."""
    from tests import inside

    caught: list[tuple[str, BaseException]] = []

    def listener(name: str, error: BaseException) -> None:
        caught.append((name, error))

    inside.error_listeners.append(listener)
    yield
    inside.error_listeners.remove(listener)
    if caught and request.node.get_closest_marker("swallows") is None:
        name, error = caught[0]
        raise AssertionError(f"source {name} raised and production would have swallowed it ({len(caught)}x)") from error


@pytest.fixture(autouse=True)
def history_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """No test reads or writes the key history of the user who runs it; gives the file of this test's own."""
    name = hashlib.blake2b(request.node.nodeid.encode(), digest_size=8).hexdigest()
    path = tmp_path_factory.getbasetemp() / "history" / f"{name}.sqlite"
    monkeypatch.setenv("COMPILEDIAG_HISTORY", str(path))
    return path


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No watch and no hook outlives its test."""
    yield
    from tests import inside

    if "compilediag.watch" in sys.modules:
        forgotten = sys.modules["compilediag.watch"].stop_all()
        assert forgotten is None, f"the test left a watch running: {forgotten}"
    assert inside.list_hooks() == []


class CheckedConnection(sqlite3.Connection):
    """A connection that notices, in every version of Python, what Python 3.13 warns of: that nobody closed it."""

    #: Where those were opened that were still open when the last reference to them was gone.
    forgotten: ClassVar[list[str]] = []

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._opened = "".join(traceback.format_stack(limit=7)[:-2])

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.ProgrammingError):
            self.total_changes  # noqa: B018  (raises if the connection is closed)
            self.forgotten.append(self._opened)
            self.close()


@functools.cache
def _add_check(cls: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
    return type(cls.__name__, (CheckedConnection, cls) if cls is not sqlite3.Connection else (CheckedConnection,), {})


@pytest.fixture(autouse=True)
def every_connection_closed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """No connection to SQLite is left to the search for garbage, but by an interrupt before anything holds it."""
    if request.node.path.name == "test_interrupts.py":
        yield
        return
    connect = sqlite3.connect

    def connect_checked(*args: Any, factory: type[sqlite3.Connection] = sqlite3.Connection, **kwargs: Any) -> Any:
        return connect(*args, factory=_add_check(factory), **kwargs)

    monkeypatch.setattr(sqlite3, "connect", connect_checked)
    yield
    forgotten = CheckedConnection.forgotten[:]
    CheckedConnection.forgotten.clear()
    assert not forgotten, f"{len(forgotten)} connections were not closed; the first was opened at\n{forgotten[0]}"


@pytest.fixture(scope="module", autouse=True)
def main_module_restored() -> Iterator[None]:
    """IPython's shell takes the place of `__main__`, from which processes are spawned, and empties it at its end."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True)
def compiler_reset(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that compiles starts with no compiled code, and leaves none."""
    if not COMPILING.intersection(_folders(request.node)):
        yield
        return
    import torch

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def fresh_inductor_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Inductor's caches are empty, here and in processes that the test starts; gives their folder."""
    from torch._inductor.utils import clear_caches

    folder = tmp_path / "inductor_cache"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    clear_caches()
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium; without one the test is skipped, and fails where CI=true."""
    found = find_chromium()
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no Chromium here; apt-get install chromium")
    return found


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`python("-m", "compilediag", ...)`: runs this interpreter in a process of its own, at most 600 s."""

    def run(*args: str | Path, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        command, env = [sys.executable, *map(str, args)], {**os.environ, **(env or {})}
        return subprocess.run(command, capture_output=True, text=True, timeout=600, env=env, **options)

    return run


@pytest.fixture(scope="session")
def program_server() -> Iterator[ProgramServer]:
    """`program_server.run(...)`: as `python(...)`, but in a fork of a process that has imported torch.

    Interpreters that compilediag starts for trials are forks as well, unless the test asks for `fresh_interpreters`.
    """
    server = ProgramServer()
    server.begin()
    yield server
    server.stop()


@pytest.fixture
def forked_commands(program_server: ProgramServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts and modules are forks too where a program that the test runs starts them."""
    monkeypatch.setenv(COMMANDS, "1")


@pytest.fixture
def fresh_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each interpreter that compilediag starts imports torch itself."""
    monkeypatch.delenv(SOCKET, raising=False)


@pytest.fixture
def python_without(python: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., object]:
    """`python_without({"torch"}, code)`: runs code where these packages are not installed."""

    def run(packages: set[str], code: str) -> subprocess.CompletedProcess[str]:
        return python("-c", WITHOUT.format(packages=sorted(packages)) + code)

    return run
