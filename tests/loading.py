"""Scripts of the repository that are in no package, and programs that a test wrote, as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType


def load_script(path: Path) -> ModuleType:
    """Run a Python file and return it as a module; it is not in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
