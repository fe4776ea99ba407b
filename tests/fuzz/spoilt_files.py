"""Ways to spoil a session file or a log, from a random generator: its bytes, its cells, its values of JSON."""

import contextlib
import dataclasses
import gzip
import json
import sqlite3
import zlib

from compilediag.diagnosis.plan.plan import Outcome

from .spoilt_values import choose_cell, choose_json

PAGE = 4096
#: Facts about a session, and the parts of those that have some.
FACTS = ("title", "detail", "created_ns", "stopped_ns", "pid", "host", "boot_id", "my_code", "library_folders")
FACTS += ("torch_version", "python_version", "platform", "device", "program", "tried", "outcome", "asked_for")
NESTED = {
    "program": ("script", "module", "arguments", "folder"),
    "tried": tuple(field.name for field in dataclasses.fields(Outcome)),
}


def spoil_bytes(random_, data):
    """The bytes with some of them changed, cut, doubled, swapped, or overwritten."""
    data = bytearray(data)
    for _ in range(random_.choice((1, 1, 2, 5, 20, 200))):
        ways = (_flip, _flip, _overwrite, _overwrite, _cut, _double, _swap)
        data = random_.choice(ways)(random_, data) if data else data
    return bytes(data)


def _flip(random_, data):
    data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    return data


def _overwrite(random_, data):
    at, size = random_.randrange(len(data)), random_.choice((1, 2, 4, 8, 100, PAGE))
    new = random_.choice((bytes(size), b"\xff" * size, b"\x7f" * size, random_.randbytes(size)))
    data[at : at + size] = new[: len(data) - at]
    return data


def _cut(random_, data):
    if random_.random() < 0.3:
        return data[: random_.randrange(len(data))]
    at = random_.randrange(len(data))
    return data[:at] + data[at + random_.choice((1, 10, PAGE)) :]


def _double(random_, data):
    at, size = random_.randrange(len(data)), random_.choice((1, 100, PAGE))
    return data[: at + size] + data[at:] if len(data) < 8 << 20 else data


def _swap(random_, data):
    one, other = (random_.randrange(len(data)) // PAGE * PAGE for _ in range(2))
    first, second = data[one : one + PAGE], data[other : other + PAGE]
    if len(first) == len(second):
        data[one : one + PAGE], data[other : other + PAGE] = second, first
    return data


# Sessions


def spoil_cells(random_, file):
    """Change cells of a session or another database: in one row, some or all, of any table."""
    db = sqlite3.connect(file, isolation_level=None)
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    filled = [table for table in tables if db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]]
    db.execute("BEGIN")
    for _ in range(random_.choice((1, 1, 2, 5, 20, 100))):
        table = random_.choice(filled)
        names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]
        name = random_.choice(names)
        where = random_.choice(("rowid = ?", "rowid % 3 = ? % 3", "1 OR ?"))
        value = "CAST(x'80ff41' AS TEXT)" if random_.random() < 0.05 else "?2"
        sql = f'UPDATE OR IGNORE {table} SET "{name}" = {value} WHERE {where.replace("?", "?1")}'
        row = random_.randrange(1, 200)
        _execute(db, sql, (row, choose_cell(random_))[: 2 if value == "?2" else 1])
    if random_.random() < 0.2:
        _spoil_facts(random_, db)
    if random_.random() < 0.2 and "payloads" in tables:
        _spoil_texts(random_, db)
    db.execute("COMMIT")
    db.close()


def _execute(db, sql, values):
    # SQLite refuses some values, as it would refuse them of an author.
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
        db.execute(sql, values)


def _spoil_facts(random_, db):
    for key in random_.sample(FACTS, 3):
        value = choose_json(random_)
        if key in NESTED and random_.random() < 0.7:
            value = {name: choose_json(random_) for name in NESTED[key] if random_.random() < 0.8}
        _execute(db, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))


def _spoil_texts(random_, db):
    """Change what artifacts unpack to."""
    for rowid, body in db.execute("SELECT rowid, body FROM payloads").fetchall():
        if random_.random() < 0.3:
            text = spoil_bytes(random_, _unpack(body)[:20_000])
            _execute(db, "UPDATE payloads SET body = ? WHERE rowid = ?", (zlib.compress(text), rowid))


def _unpack(body):
    try:
        return zlib.decompress(body)
    except (zlib.error, TypeError):
        return b"graph():"


# Logs


def spoil_values(random_, log):
    """A log in which values of the JSON of some records are others."""
    lines = log.split(b"\n")
    for _ in range(random_.choice((1, 2, 10, 50))):
        at = random_.randrange(len(lines))
        head, brace, text = lines[at].partition(b"{")
        try:
            value = json.loads(brace + text)
        except ValueError:
            continue
        lines[at] = head + _dump(_replace_part(random_, value))
    return b"\n".join(lines)


def _dump(value):
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _replace_part(random_, value):
    """The value with one of its parts replaced."""
    if random_.random() < 0.2 or not isinstance(value, (dict, list)) or not value:
        return choose_json(random_)
    if isinstance(value, dict):
        key = random_.choice(list(value))
        return {**value, key: _replace_part(random_, value[key])}
    at = random_.randrange(len(value))
    return [*value[:at], _replace_part(random_, value[at]), *value[at + 1 :]]


def spoil_log(random_, log):
    """The bytes of a log file, packed or not, after one of the ways to spoil it."""
    way = random_.random()
    if way < 0.5:
        log = spoil_values(random_, log)
    if way > 0.35:
        log = spoil_bytes(random_, log)
    if random_.random() < 0.2:
        packed = gzip.compress(log, 1)
        return "a.log.gz", spoil_bytes(random_, packed) if random_.random() < 0.5 else packed
    return "a.log", log
