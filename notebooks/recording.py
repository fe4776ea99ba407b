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
    remove_machine_paths(sys.argv[1], [file.resolve().parent, Path(torch.__file__).parents[1]])


def remove_machine_paths(path, folders):
    """Remove the folders from file names in call stacks; reduce `platform` to the system and the machine type."""
    with contextlib.closing(sqlite3.connect(path)) as session, session:
        kind = json.dumps(f"{platform.system()} {platform.machine()}")
        session.execute("UPDATE meta SET value = ? WHERE key = 'platform'", (kind,))
        for folder in map(str, folders):
            query = "UPDATE stacks SET file = substr(file, ?) WHERE substr(file, 1, ?) = ?"
            session.execute(query, (len(folder) + 2, len(folder) + 1, f"{folder}/"))
