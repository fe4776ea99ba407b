"""Writes tests/golden/schema-N.cdiag, a small session of the current schema with neutral paths.

    PYTHONPATH=. python tests/golden/make_session.py tests/golden/schema-N.cdiag

The program recompiles, fails more than one guard, compiles a backward, is refused a recompile by a
stance, and begins again after `torch._dynamo.reset()`, so that torch's ids come twice.
"""

import os
import sqlite3
import sys
import sysconfig
from pathlib import Path

import torch

import compilediag


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        if self.step > 100:
            print("never")
        return self.linear(x).sum() * self.step


def scale(x, factor):
    y = x * factor
    print("a graph break")
    return y + 1


def run():
    model = Model()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    scaled = torch.compile(scale, backend="eager", dynamic=False)
    for size in (2, 3, 5):
        compilediag.step()
        model.step += 1
        compiled(torch.randn(size, 4)).backward()
        scaled(torch.randn(size), size / 2)
    with torch.compiler.set_stance("eager_on_recompile"):
        scaled(torch.randn(7), 7 / 2)


def clean(file):
    """Replace this machine's paths in every text of the file, and remove what names the machine."""
    here = str(Path(__file__).resolve().parents[2])
    packages = str(Path(torch.__file__).parents[1])
    places = {here: "/home/user/project", packages: "/usr/lib/python3/site-packages"}
    places |= {sysconfig.get_path("stdlib"): "/usr/lib/python3", os.getcwd(): "/home/user/compilediag"}
    db = sqlite3.connect(file)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
            for path, place in places.items():
                if kind == "TEXT":
                    db.execute(f'UPDATE {table} SET "{column}" = replace("{column}", ?, ?)', (path, place))
    db.execute("UPDATE meta SET value = '\"Linux\"' WHERE key = 'platform'")
    db.execute("UPDATE meta SET value = '[\"/usr/lib/python3\"]' WHERE key = 'library_folders'")
    db.execute("UPDATE meta SET value = '\"make_session.py\"' WHERE key = 'title'")
    db.execute("UPDATE meta SET value = '4194305' WHERE key = 'pid'")
    db.execute("UPDATE meta SET value = '\"host\"' WHERE key IN ('host', 'boot_id')")
    db.commit()
    db.execute("VACUUM")
    db.close()


if __name__ == "__main__":
    target = sys.argv[1]
    with compilediag.watch(target, detail="lean"):
        run()
        torch._dynamo.reset()
        run()
    clean(target)
