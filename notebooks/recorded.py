"""The sessions that the notebooks read: recorded on a GPU and kept in `data`, or recorded anew where there is one."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import compilediag as cd


def session_of(name):
    """The session `name` ("autotune", "cudagraphs"): recorded now, by `record_NAME.py`, if there is a GPU here; else
    the one that comes with the notebooks. The first line that it prints says which.
    """
    if not has_gpu():
        session = cd.load(Path("data") / f"{name}.cdiag")
        print(f"recorded earlier, with torch {session.meta['torch_version']}, on a machine with a GPU")
        return session
    path = Path(tempfile.mkdtemp()) / f"{name}.cdiag"
    done = subprocess.run([sys.executable, f"record_{name}.py", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"record_{name}.py failed:\n{done.stderr[-3000:]}")
    print("recorded now, on the GPU of this machine")
    return cd.load(path)


def has_gpu():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()
