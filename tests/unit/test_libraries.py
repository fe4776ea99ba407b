"""C++ libraries: who asked for one is known in one thread, what a worker did for it in another, in any order."""

import dataclasses

import pytest

from compilediag.events import CacheLookup
from compilediag.sources.caches import code_caches

IDS, NO_IDS = {"compile_id": "0/1", "compile_key": "ab.1"}, {"compile_id": None, "compile_key": None}
OWNER = {**IDS, "function": "f", "file": "/a.py", "line": 3}


def looked(key="k", outcome="miss", **columns):
    return CacheLookup(time_ns=1, cache="cpp_code", outcome=outcome, key=key, **columns)


def built(duration_s=2.0, fail_reason=None, where="thread"):
    return code_caches.Build(7, where, duration_s, fail_reason)


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_lookup_is_recorded_once_with_its_owner(asked_first):
    libraries, row = code_caches.LibraryLookUps(), looked(taken_s=2.0)
    steps = [lambda: libraries.ask("k", OWNER), lambda: libraries.answer(row)]
    details = [event for step in (steps if asked_first else steps[::-1]) for event in step()]
    assert details == [dataclasses.replace(row, **OWNER)]
    assert (details[0].compile_id, details[0].function, details[0].line) == ("0/1", "f", 3)
    assert list(libraries.answer(looked(outcome="hit"))) == [], "it is looked for once more when it is loaded"


def test_a_library_that_is_requested_again_is_recorded_again():
    libraries = code_caches.LibraryLookUps()
    libraries.ask("k", OWNER)
    libraries.answer(looked())
    libraries.ask("k", {**OWNER, "compile_id": "1/0"})
    [again] = libraries.answer(looked(outcome="hit"))
    assert (again.outcome, again.compile_id) == ("hit", "1/0")


def test_a_kernel_has_its_build():
    builds = code_caches.LibraryBuilds()
    assert list(builds.finish("k", built())) == []
    assert list(builds.finish("k", built(duration_s=None))) == [], "its file is there when it is loaded"
    [kernel] = builds.claim("cpp_fused_add_0", "k", IDS)
    assert (kernel.name, kernel.language, kernel.where, kernel.outcome) == (
        "cpp_fused_add_0",
        "cpp",
        "thread",
        "compiled",
    )
    assert (kernel.duration_s, kernel.time_ns, kernel.compile_id, kernel.compile_key) == (2.0, 7, "0/1", "ab.1")


def test_a_build_that_failed():
    builds = code_caches.LibraryBuilds()
    builds.finish("k", built(fail_reason="no space left"))
    [kernel] = builds.claim("cpp_fused_add_0", "k", IDS)
    assert (kernel.outcome, kernel.fail_reason) == ("failed", "no space left")
    [here] = builds.fail("k2", 9, "killed", IDS)
    assert (here.name, here.outcome, here.fail_reason, here.where) == ("k2", "failed", "killed", "process")


@pytest.mark.parametrize("claimed_first", [True, False])
def test_a_cpp_wrapper_is_recorded_when_it_is_built(claimed_first):
    builds = code_caches.LibraryBuilds()
    steps = [lambda: builds.claim(code_caches.WRAPPER, "k", IDS), lambda: builds.finish("k", built())]
    [kernel] = [event for step in (steps if claimed_first else steps[::-1]) for event in step()]
    assert (kernel.name, kernel.compile_id, kernel.duration_s) == (code_caches.WRAPPER, "0/1", 2.0)


def test_what_nobody_waits_for_is_forgotten(monkeypatch):
    monkeypatch.setattr(code_caches, "MAX_REMEMBERED", 2)
    builds, libraries = code_caches.LibraryBuilds(), code_caches.LibraryLookUps()
    for key in "abc":
        builds.finish(key, built())
        libraries.answer(looked(key))
    assert [len(list(libraries.ask(key, OWNER))) for key in "ac"] == [0, 1]
    [forgotten], [known] = (list(builds.claim(key, key, NO_IDS)) for key in "ac")
    assert (forgotten.outcome, known.outcome) == ("cached", "compiled")
