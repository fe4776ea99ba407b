"""Files of the repository that are in no package: scripts and programs that a test wrote, as modules; schemas."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

SCHEMAS = Path(__file__).resolve().parents[1] / "compilediag" / "schemas"


def load_script(path: Path) -> ModuleType:
    """Run a Python file and return it as a module; it is not in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_schema(schema: str) -> dict[str, Any]:
    """The JSON schema that a document names: `compilediag.findings/1` is in `findings-1.json`."""
    return json.loads((SCHEMAS / f"{schema.removeprefix('compilediag.').replace('/', '-')}.json").read_text())
