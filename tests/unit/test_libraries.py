"""C++ libraries: who asked for one is known in one thread, what a worker did for it in another, in any order."""

import dataclasses

import pytest

from compilediag.events import CacheLookup
from compilediag.sources.caches import code_caches, workers
from compilediag.sources.caches.code_caches import Libraries
from compilediag.sources.caches.workers import WRAPPER, Build, Builds

OWNER = {"compile_id": "0/1", "function": "f", "file": "/a.py", "line": 3}


def looked(key="k", outcome="miss", **columns):
    return CacheLookup(time_ns=1, cache="cpp_code", outcome=outcome, key=key, **columns)


def built(duration_s=2.0, fail_reason=None, where="thread"):
    return Build(7, where, duration_s, fail_reason)


@pytest.mark.parametrize("asked_first", [True, False])
def test_a_look_up_is_told_once_with_its_owner(asked_first):
    libraries, row = Libraries(), looked(taken_s=2.0)
    steps = [lambda: libraries.asked("k", OWNER), lambda: libraries.done(row)]
    told = [event for step in (steps if asked_first else steps[::-1]) for event in step()]
    assert told == [dataclasses.replace(row, **OWNER)]
    assert (told[0].compile_id, told[0].function, told[0].line) == ("0/1", "f", 3)
    assert list(libraries.done(looked(outcome="hit"))) == [], "it is looked for once more when it is loaded"


def test_a_library_that_is_asked_for_again_is_told_again():
    libraries = Libraries()
    libraries.asked("k", OWNER)
    libraries.done(looked())
    libraries.asked("k", {**OWNER, "compile_id": "1/0"})
    [again] = libraries.done(looked(outcome="hit"))
    assert (again.outcome, again.compile_id) == ("hit", "1/0")


def test_libraries_that_nobody_tells_of_are_forgotten(monkeypatch):
    monkeypatch.setattr(code_caches, "REMEMBERED", 2)
    libraries = Libraries()
    for key in "abc":
        libraries.done(looked(key))
    assert list(libraries.asked("a", OWNER)) == [] and len(list(libraries.asked("c", OWNER))) == 1


def test_a_kernel_has_its_build():
    builds = Builds()
    assert list(builds.done("k", built())) == []
    assert list(builds.done("k", built(duration_s=None))) == [], "its file is there when it is loaded"
    [kernel] = builds.claim("cpp_fused_add_0", "k", "0/1")
    assert (kernel.name, kernel.language, kernel.where, kernel.outcome) == (
        "cpp_fused_add_0",
        "cpp",
        "thread",
        "compiled",
    )
    assert (kernel.duration_s, kernel.time_ns, kernel.compile_id) == (2.0, 7, "0/1")


def test_a_kernel_without_a_build_was_in_memory_or_on_disk():
    builds = Builds()
    builds.done("k", built(duration_s=None))
    kernels = [*builds.claim("on_disk", "k", None), *builds.claim("in_memory", "k", None)]
    assert [(k.name, k.outcome, k.duration_s) for k in kernels] == [
        ("on_disk", "cached", None),
        ("in_memory", "cached", None),
    ]


def test_a_build_that_failed():
    builds = Builds()
    builds.done("k", built(fail_reason="no space left"))
    [kernel] = builds.claim("cpp_fused_add_0", "k", "0/1")
    assert (kernel.outcome, kernel.fail_reason) == ("failed", "no space left")
    [here] = builds.failed("k2", 9, "killed", "0/1")
    assert (here.name, here.outcome, here.fail_reason, here.where) == ("k2", "failed", "killed", "process")


@pytest.mark.parametrize("claimed_first", [True, False])
def test_a_cpp_wrapper_is_told_when_it_is_built(claimed_first):
    builds = Builds()
    steps = [lambda: builds.claim(WRAPPER, "k", "0/1"), lambda: builds.done("k", built())]
    [kernel] = [event for step in (steps if claimed_first else steps[::-1]) for event in step()]
    assert (kernel.name, kernel.compile_id, kernel.duration_s) == (WRAPPER, "0/1", 2.0)


def test_builds_that_nobody_waits_for_are_forgotten(monkeypatch):
    monkeypatch.setattr(workers, "REMEMBERED", 2)
    builds = Builds()
    for key in "abc":
        builds.done(key, built())
    [forgotten], [known] = (list(builds.claim(key, key, None)) for key in "ac")
    assert (forgotten.outcome, known.outcome) == ("cached", "compiled")
