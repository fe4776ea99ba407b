"""Open the sessions that the notebooks read: the ones in `data`, or new ones if this machine has a GPU."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import compilediag as cd


def open_session(name):
    """Return the session `name` ("autotune" or "cudagraphs") and the content of its JSON file (a dict, or None).

    If this machine has a GPU, `record_NAME.py` records a new session; otherwise the session in `data` is used. The
    printed line says which.

    Raises RuntimeError if the recording fails.
    """
    path = Path("data") / f"{name}.cdiag"
    if has_gpu():
        path = Path(tempfile.mkdtemp()) / path.name
        process = subprocess.run([sys.executable, f"record_{name}.py", str(path)], capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError(f"record_{name}.py failed:\n{process.stderr[-3000:]}")
    session = cd.load(path)
    when = "now, on the GPU of this machine," if has_gpu() else "earlier, on a machine with a GPU,"
    print(f"recorded {when} with torch {session.meta['torch_version']}")
    measurements = path.with_suffix(".json")
    return session, json.loads(measurements.read_text()) if measurements.exists() else None


def has_gpu():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()
