"""The main function of the scripts that record the notebooks' sessions on a GPU."""

import contextlib
import json
import linecache
import platform
import sqlite3
import sys
from pathlib import Path

import torch


def main(script, usage):
    """Run the function `record` of a script with the path from the command line."""
    file = Path(script)
    if len(sys.argv) != 2:
        raise SystemExit(usage.splitlines()[0])
    if not torch.cuda.is_available():
        raise SystemExit(f"{file.stem}: this machine has no GPU; run the script on a machine with a CUDA GPU")
    # Compile the script under its file name alone, so that the session contains no path of this machine.
    source = file.read_text()
    linecache.cache[file.name] = (len(source), None, source.splitlines(keepends=True), file.name)
    program = {"__name__": file.stem}
    exec(compile(source, file.name, "exec"), program)
    program["record"](sys.argv[1])
    folders = {file.resolve().parent: "", Path(torch.__file__).parents[1]: "site-packages/"}
    remove_machine_paths(sys.argv[1], folders)


def remove_machine_paths(path, folders):
    """Replace folders in the names of files and in the facts about the session."""
    with contextlib.closing(sqlite3.connect(path)) as session, session:
        (program,) = session.execute("SELECT value FROM meta WHERE key = 'program'").fetchone()
        known = json.loads(program)
        names = {"script": Path(known["script"]).name, "arguments": [Path(path).name], "folder": ""}
        changes = {
            "platform": f"{platform.system()} {platform.machine()}",
            "library_folders": [],
            "program": {**known, **names},
        }
        for key, value in changes.items():
            session.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(value), key))
        for table, column in list_file_columns(session):
            query = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?"
            for folder, instead in folders.items():
                begin = f"{folder}/"
                session.execute(query, (instead, len(begin) + 1, len(begin), begin))


def list_file_columns(session):
    """Return (table, column) of each column that has names of files."""
    tables = session.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    columns = [(name, row[1]) for (name,) in tables for row in session.execute(f"PRAGMA table_info({name})")]
    return [(table, column) for table, column in columns if column == "file" or column.endswith("_file")]
