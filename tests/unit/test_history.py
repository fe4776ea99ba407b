"""The file of earlier sessions' keys: small, private, shared by processes, and never anybody's problem."""

import os
import random
import sqlite3
import stat
import sys
import zlib
from contextlib import closing

import pytest

from compilediag.decode.cache_keys import CacheKey, Component, KeyOwner
from compilediag.sources.caches import key_history as history

from ..fuzz.spoilt_files import spoil_bytes, spoil_cells

SETTINGS = {"inductor_config[x]": Component("d", "True")}


def owner(function="f", **more):
    return KeyOwner(
        **{"cache": "fx_graph", "file": "/model.py", "line": 3, "backward": False, **more}, function=function
    )


def key(name, text="1", settings=SETTINGS):
    return CacheKey(name, {"a": Component(None, text), "gm": Component("e", "def f():\n  é")}, settings)


def kept(path, *keys, who=None):
    """Keep keys as an earlier session would have."""
    session = history.StoredKeys(path, "2.13.0")
    for k in keys:
        session.remember([(who or owner(), k)])
    assert session.problem is None
    return path


def known(path, who=None):
    session = history.StoredKeys(path)
    found = session.earlier(who or owner())
    assert session.problem is None
    return [name for name, _, _ in found]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "compilediag" / "keys.sqlite"


def test_what_one_session_keeps_the_next_one_knows(path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/ada/train.py"])
    kept(path, key("k1", "1"), key("k2", "2"))
    [(name, components, seen), (second, _, _)] = history.StoredKeys(path).earlier(owner())
    assert (name, second) == ("k1", "k2")
    assert components == {**key("k1").own, **SETTINGS}
    assert seen.endswith("UTC, train.py, torch 2.13.0") and seen[:2] == "20"


def test_keys_are_of_their_owner_alone(path):
    kept(path, key("k1"))
    for other in (owner("g"), owner(line=4), owner(backward=True), owner(cache="aot_autograd"), owner(file=None)):
        assert known(path, other) == []


def test_a_session_does_not_find_its_own_keys(path):
    session = history.StoredKeys(path)
    session.remember([(owner(), key("k1"))])
    assert session.earlier(owner()) == [] and known(path) == ["k1"]


def test_a_key_that_is_seen_again_becomes_the_latest(path):
    kept(path, key("k1", "1"), key("k2"))
    kept(path, key("k1", "new"))
    found = history.StoredKeys(path).earlier(owner())
    assert [name for name, _, _ in found] == ["k2", "k1"] and found[1][1]["a"].text == "new"


def test_of_one_owner_and_of_all_the_oldest_give_way(path, monkeypatch):
    kept(path, *(key(f"k{n}") for n in range(history.MAX_OF_OWNER + 2)))
    assert known(path) == [f"k{n}" for n in range(2, history.MAX_OF_OWNER + 2)]
    monkeypatch.setattr(history, "MAX_KEYS", 3)
    kept(path, key("other"), who=owner("g"))
    assert known(path) == [f"k{n}" for n in range(history.MAX_OF_OWNER, history.MAX_OF_OWNER + 2)]
    monkeypatch.setattr(history, "MAX_BYTES", 150)
    kept(path, key("last"), who=owner("h"))
    assert known(path) == [] and known(path, owner("h")) == ["last"]


def test_configuration_is_stored_once_and_goes_with_its_last_key(path, monkeypatch):
    kept(path, key("k1"), key("k2"))
    other = {"inductor_config[x]": Component("e", "False")}
    kept(path, key("k3", settings=other))
    count = "SELECT count(*) FROM settings"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(count).fetchone() == (2,)
    monkeypatch.setattr(history, "MAX_OF_OWNER", 1)
    kept(path, key("k4", settings=other))
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(count).fetchone() == (1,)


def test_the_file_is_the_users_alone(path):
    kept(path, key("k1"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_several_processes_write_at_once(path, python):
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {os.getcwd()!r})
from tests.unit.test_history import *
history.PATIENCE_S = 600
who = owner(sys.argv[1])
session = history.StoredKeys(Path({str(path)!r}))
for n in range(40):
    session.remember([(who, key(f"k{{n}}"))])
assert session.problem is None
"""
    import threading

    done = []
    threads = [threading.Thread(target=lambda n=n: done.append(python("-c", program, f"f{n}"))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [d.returncode for d in done] == [0, 0, 0], [d.stderr for d in done]
    for n in range(3):
        assert known(path, owner(f"f{n}"))[-1] == "k39"


# What is wrong with the file costs the history and nothing else


def unusable(path, **options):
    session = history.StoredKeys(path, **options)
    assert session.earlier(owner()) == []
    session.remember([(owner(), key("k1"))])
    assert session.earlier(owner()) == []
    return session.problem


@pytest.mark.parametrize("content", [b"no database at all, but long enough" * 40, b"SQLite format 3\0" + b"\1" * 5000])
def test_a_damaged_file_is_left_alone_unless_it_is_ours(path, content):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert "DatabaseError" in unusable(path)
    assert path.read_bytes() == content
    assert "DatabaseError" in unusable(path, replaceable=True)
    assert not path.exists() and kept(path, key("k1"))


def test_a_file_of_another_shape_is_damage(path):
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE keys (name)")
    assert "another table than ours" in unusable(path)


def test_a_folder_that_cant_be_made_and_a_file_that_cant_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert "FileExistsError" in unusable(tmp_path / "file" / "keys.sqlite")
    assert "IsADirectoryError" in unusable(tmp_path)


def test_a_file_that_another_process_has_locked_is_waited_for_once(path, monkeypatch):
    """Each wait is on the path of a compile, or of the end of a watch."""
    monkeypatch.setattr(history, "PATIENCE_S", 0.01)
    kept(path, key("k1"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: opened.append(args) or connect(*args, **options))
    session = history.StoredKeys(path)
    for n in range(20):
        session.remember([(owner(), key(f"new {n}"))])
        session.earlier(owner())
    assert session.problem is None and len(opened) == 1
    other.close()


def test_a_file_that_another_process_has_locked_costs_one_key(path, monkeypatch):
    monkeypatch.setattr(history, "PATIENCE_S", 0.01)
    monkeypatch.setattr(history, "RETRY_S", 0)
    kept(path, key("k1"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    session = history.StoredKeys(path)
    session.remember([(owner(), key("k2"))])
    assert session.problem is None
    other.execute("ROLLBACK")
    other.close()
    session.remember([(owner(), key("k3"))])
    assert known(path) == ["k1", "k3"]


def test_surrogates_and_long_texts_are_kept(path):
    kept(path, key("k1", "\ud800" + "x" * 100_000))
    assert history.StoredKeys(path).earlier(owner())[0][1]["a"].text.startswith("\ud800x")


# Where it is


@pytest.mark.parametrize("said", ["off", "OFF", "0", "none"])
def test_it_can_be_switched_off(monkeypatch, tmp_path, said):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COMPILEDIAG_HISTORY", said)
    assert unusable(history.StoredKeys.of_user("2.13.0")._path) is None
    assert list(tmp_path.iterdir()) == []


def test_it_is_where_the_variable_says_or_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPILEDIAG_HISTORY", str(tmp_path / "mine.sqlite"))
    assert history.StoredKeys.of_user(None)._path == tmp_path / "mine.sqlite"
    monkeypatch.setenv("COMPILEDIAG_HISTORY", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert (
        history.StoredKeys.of_user(None)._path == history.default_path() == tmp_path / "compilediag" / "keys-1.sqlite"
    )
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    assert history.default_path() == tmp_path / "ada" / ".cache" / "compilediag" / "keys-1.sqlite"


@pytest.mark.parametrize(
    ("notebook", "name"), [(None, "my train.py"), ("/home/ada/notes.ipynb", "notes.ipynb")], ids=["script", "notebook"]
)
def test_the_program_is_the_notebook_or_the_script(path, monkeypatch, notebook, name):
    monkeypatch.setattr(sys, "argv", ["/home/ada/my train.py"])
    if notebook:
        monkeypatch.setenv("JPY_SESSION_NAME", notebook)
    kept(path, key("k1"))
    [(_, _, seen)] = history.StoredKeys(path).earlier(owner())
    assert f" UTC, {name}, torch " in seen


# Files that another user may have written


def test_a_link_is_not_followed(path, tmp_path):
    path.parent.mkdir(mode=0o700, parents=True)
    path.symlink_to(tmp_path / "outside")
    assert "OSError" in unusable(path, replaceable=True)
    assert not (tmp_path / "outside").exists() and path.is_symlink()


def test_a_pipe_does_not_stop_the_program(path):
    path.parent.mkdir(mode=0o700, parents=True)
    os.mkfifo(path)
    assert "not a regular file" in unusable(path)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_to_is_not_read(path, mode):
    kept(path, key("k1"))
    path.chmod(mode)
    assert "other users can write" in unusable(path, replaceable=True)
    assert path.exists()


def test_a_folder_that_others_can_write_to_is_not_used(path):
    kept(path, key("k1"))
    path.parent.chmod(0o777)
    assert "other users can write" in unusable(path)


def test_a_file_of_another_user_is_not_read(path, monkeypatch):
    kept(path, key("k1"))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "another user" in unusable(path)


def test_a_trigger_is_not_run(path):
    kept(path, key("k1"))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON keys BEGIN DELETE FROM keys; END")
    assert "another trigger than ours" in unusable(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM keys").fetchone() == (1,)


LARGE = (bytes(100 << 20), b"[" * 100_000, b"9" * 10_000)


@pytest.mark.parametrize(
    "body", [*(zlib.compress(text) for text in (b"{", b"[1]", b'{"a": 5}', *LARGE)), b"x", None, 7], ids=range(9)
)
def test_values_that_are_no_components_or_too_much_cost_the_history_alone(path, body):
    kept(path, key("k1"))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE keys SET own = ?", (body,))
    session = history.StoredKeys(path)
    assert session.earlier(owner()) == [] and session.problem


@pytest.mark.parametrize("seen", [2**63 - 1, -(2**63), "x", 1e300, None])
def test_times_that_are_none_cost_the_history_alone(path, seen):
    kept(path, key("k1"))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE keys SET seen_ns = ?, seen_in = x'1b5b33316d'", (seen,))
    assert history.StoredKeys(path).earlier(owner()) == []


def test_a_file_that_is_too_large_is_not_read(path, monkeypatch):
    kept(path, key("k1"))
    monkeypatch.setattr(history, "MAX_FILE", 100)
    assert "has more than" in unusable(path)


def test_what_is_kept_of_a_key_is_bounded(path):
    """As many keys of one owner as a session keeps, whatever the file has."""
    kept(path, *(key(f"k{n}") for n in range(3)))
    with closing(sqlite3.connect(path)) as db, db:
        for n in range(50):
            db.execute(
                "INSERT INTO keys SELECT NULL, owner, ?, seen_ns, seen_in, settings, own FROM keys LIMIT 1", (f"x{n}",)
            )
    assert len(known(path)) == history.MAX_OF_OWNER


def test_spoilt_files_cost_the_history_alone(path):
    """Bytes and cells that somebody changed: keys are found, or the history ends with its reason."""
    kept(path, *(key(f"k{n}") for n in range(5)))
    honest, random_ = path.read_bytes(), random.Random(13)
    ended = 0
    for number in range(150):
        path.write_bytes(honest if number % 2 else spoil_bytes(random_, honest))
        if number % 2:
            spoil_cells(random_, path)
        session = history.StoredKeys(path)
        assert all(isinstance(name, str) and seen.isprintable() for name, _, seen in session.earlier(owner()))
        session.remember([(owner(), key("new"))])
        ended += session.problem is not None
    assert 30 < ended < 150
