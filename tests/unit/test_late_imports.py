"""Hooks for modules that are imported later."""

import importlib
import sys
import threading

import pytest

from compilediag.sources.hooks.patches import Patch
from compilediag.sources.hooks.source import Source
from tests.inside import Recorder, Unavailable, list_late_imports


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "late_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("import threading\nthread = threading.get_ident()\n")
    (folder / "broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "late_package"
    for name in [name for name in sys.modules if name.startswith("late_package")]:
        del sys.modules[name]


class Waiting(Source):
    """A source that notes the imports of modules, with the thread."""

    name = "waiting"

    def __init__(self, modules, calls):
        super().__init__(Recorder("unused", {}), "full")
        self.modules, self.calls = modules, calls

    @classmethod
    def probe(cls):
        pass

    def late_patches(self):
        return {name: lambda name=name: self.calls.append((name, threading.get_ident())) or [] for name in self.modules}


@pytest.fixture
def watching():
    calls, sources = [], []

    def watch(*names):
        sources.append(Waiting(names, calls))
        sources[-1].begin()
        return calls, sources[-1]

    yield watch
    for source in sources:
        source.end()


def test_the_callback_runs_once_after_the_import_in_the_importing_thread(package, watching):
    calls, _ = watching(f"{package}.inner")
    importlib.import_module(package)
    assert calls == []
    thread = threading.Thread(target=importlib.import_module, args=(f"{package}.inner",))
    thread.start()
    thread.join()
    importlib.import_module(f"{package}.inner")
    assert calls == [(f"{package}.inner", sys.modules[f"{package}.inner"].thread)]


def test_the_module_has_its_own_loader(package, watching):
    watching(f"{package}.inner")
    module = importlib.import_module(f"{package}.inner")
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__.loader is module.__loader__


def test_a_module_that_fails_to_import_fails_as_it_would(package, watching):
    calls, _ = watching(f"{package}.broken", f"{package}.absent")
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(f"{package}.broken")
    with pytest.raises(ModuleNotFoundError, match="absent"):
        importlib.import_module(f"{package}.absent")
    assert calls == []


def test_two_callbacks_for_one_module_both_run(package, watching):
    calls, _ = watching(f"{package}.inner")
    watching(f"{package}.inner")
    importlib.import_module(f"{package}.inner")
    assert len(calls) == 2


def test_taken_out_it_is_gone(package, watching):
    before = list(sys.meta_path)
    calls, source = watching(f"{package}.inner")
    assert list_late_imports() == [f"import of {package}.inner"]
    source.end()
    importlib.import_module(f"{package}.inner")
    assert (calls, sys.meta_path, list_late_imports()) == ([], before, [])


class Late(Source):
    """A source that hooks `inner.shout`, and `inner.whisper` if `needs_whisper` is set."""

    name = "late"
    needs_whisper = False

    @classmethod
    def probe(cls):
        pass

    def late_patches(self):
        return {"late_package.inner": self._in_inner}

    def _in_inner(self):
        inner = sys.modules["late_package.inner"]
        if self.needs_whisper and not hasattr(inner, "whisper"):
            raise Unavailable("there is no whisper")
        return [Patch(inner, "shout", self.heard, self.run_shielded, self.escaped.append, self.handle_escaped)]

    def heard(self, args, kwargs, result, error):
        self.events += 1


@pytest.fixture
def late(package):
    source = Late(Recorder("unused", {}), "full")
    yield source
    source.end()


@pytest.fixture
def shouting(package, tmp_path):
    (tmp_path / package / "inner.py").write_text("def shout(text):\n    return text.upper()\n")
    return lambda: importlib.import_module(f"{package}.inner")


@pytest.mark.parametrize("first", ["import", "begin"])
def test_a_source_hooks_a_module_that_is_there_or_comes_later(late, shouting, first):
    if first == "import":
        shouting()
    late.begin()
    inner = shouting()
    assert (inner.shout("a"), late.events) == ("A", 1)
    late.end()
    assert (inner.shout("b"), late.events, list_late_imports()) == ("B", 1, [])


def test_a_module_that_comes_after_the_end_is_left_alone(late, shouting):
    late.begin()
    late.end()
    assert not hasattr(shouting().shout, "__wrapped__")


def test_a_missing_attribute_of_a_later_module_disables_the_source_and_is_reported(late, shouting):
    late.needs_whisper = True
    late.begin()
    assert late.status().status == "active"
    inner = shouting()
    status = late.status()
    assert (status.status, status.reason, list_late_imports()) == ("unavailable", "there is no whisper", [])
    assert inner.shout("a") == "A" and late.events == 0
