"""How the scripts that record the notebooks' sessions run: on a GPU, under a bare name."""

import contextlib
import json
import linecache
import platform
import sqlite3
import sys
from pathlib import Path

import torch


def main(script, usage):
    """Run the function `record` of a script with the path that it was given."""
    file = Path(script)
    if len(sys.argv) != 2:
        raise SystemExit(usage.splitlines()[0])
    if not torch.cuda.is_available():
        raise SystemExit(f"{file.stem}: there is no GPU here")
    # Compiled anew under its bare name: a session that is handed on holds no path of the machine that recorded it.
    source = file.read_text()
    linecache.cache[file.name] = (len(source), None, source.splitlines(keepends=True), file.name)
    program = {"__name__": file.stem}
    exec(compile(source, file.name, "exec"), program)
    program["record"](sys.argv[1])
    leave_out_machine(sys.argv[1], [file.resolve().parent, Path(torch.__file__).parents[1]])


def leave_out_machine(path, folders):
    """Files in call stacks are named without these folders, and of the system no more than its kind."""
    with contextlib.closing(sqlite3.connect(path)) as session, session:
        kind = json.dumps(f"{platform.system()} {platform.machine()}")
        session.execute("UPDATE meta SET value = ? WHERE key = 'platform'", (kind,))
        for folder in map(str, folders):
            cut = "UPDATE stacks SET file = substr(file, ?) WHERE substr(file, 1, ?) = ?"
            session.execute(cut, (len(folder) + 2, len(folder) + 1, f"{folder}/"))
