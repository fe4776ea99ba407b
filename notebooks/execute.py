"""Execute notebooks and store their outputs without the widgets, which only a running kernel can show.

python notebooks/execute.py [NOTEBOOK...]
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
WIDGET = "application/vnd.jupyter.widget-view+json"


def execute(path: Path, then: str = "", timeout_s: int = 1200, **parameters: object) -> nbformat.NotebookNode:
    """Run the notebook from top to bottom in a new kernel, in a temporary folder with the recorded sessions and the
    scripts. `then` is the code of a cell that is added to its end. `BACKEND="eager"` replaces the value that a cell
    assigns to this name.

    Raises CellExecutionError if a cell fails, and ValueError if no cell assigns a parameter.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "data", Path(folder) / "data")
        for script in HERE.glob("record*.py"):
            shutil.copy(script, folder)
        notebook = nbformat.read(shutil.copy(path, folder), as_version=4)
        for name, value in parameters.items():
            _assign(notebook, name, value)
        if then:
            notebook.cells.append(nbformat.v4.new_code_cell(then))
        options = {"timeout": timeout_s, "startup_timeout": 300, "store_widget_state": False}
        client = NotebookClient(notebook, resources={"metadata": {"path": folder}}, **options)
        # Nothing is found in the caches of earlier runs, and nothing is left there.
        return client.execute(env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache"})


def _assign(notebook: nbformat.NotebookNode, name: str, value: object) -> None:
    assignment = re.compile(rf"^{name} = .*$", re.MULTILINE)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and assignment.search(cell.source)]
    if not cells:
        raise ValueError(f"no cell assigns {name}")
    for cell in cells:
        cell.source = assignment.sub(lambda _: f"{name} = {value!r}", cell.source)


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove what is specific to this run, in place: widgets (their text stays) and execution times."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(HERE.glob("*.ipynb")):
        nbformat.write(clean(execute(Path(name))), name)
