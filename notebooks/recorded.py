"""The sessions that the notebooks read: recorded on a GPU and kept in `data`, or recorded anew where there is one."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import compilediag as cd


def open_session(name):
    """The session `name` ("autotune", "cudagraphs"), and what was written beside it (a dict, or None).

    It is recorded now, by `record_NAME.py`, if there is a GPU here; else it is the one that comes with the notebooks.
    The line that it prints says which.
    """
    path = Path("data") / f"{name}.cdiag"
    if has_gpu():
        path = Path(tempfile.mkdtemp()) / path.name
        done = subprocess.run([sys.executable, f"record_{name}.py", str(path)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"record_{name}.py failed:\n{done.stderr[-3000:]}")
    session = cd.load(path)
    when = "now, on the GPU of this machine," if has_gpu() else "earlier, on a machine with a GPU,"
    print(f"recorded {when} with torch {session.meta['torch_version']}")
    beside = path.with_suffix(".json")
    return session, json.loads(beside.read_text()) if beside.exists() else None


def has_gpu():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()
