"""A real JupyterLab and its notebooks in Chromium, for the tests and the benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
#: How long to wait for what has to come, however busy the machine is.
MOST_S = 300
MOST_MS = MOST_S * 1000
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
#: A cell that defines a compiled function, which recompiles for each size.
COMPILED = """
import torch
import compilediag as cd

@torch.compile(backend="eager", dynamic=False)
def double(x):
    return x * 2

%load_ext compilediag
"""
WATCHED = "session = %compilewatch on\nfor size in (2, 3, 4):\n    double(torch.ones(size))"
STOPPED = "%compilewatch off"
#: Opens another notebook in a page that has loaded JupyterLab, which takes seconds, and closes those that it shows.
REPLACE_NOTEBOOK = """async (path) => {
  const { commands, shell } = window.jupyterapp;
  const others = [...shell.widgets('main')];
  await commands.execute('docmanager:open', { path });
  for (const widget of others) {
    if (widget.context) widget.context.model.dirty = false;  // else JupyterLab asks whether to save it
    widget.close();
  }
  while (others.some((widget) => !widget.isDisposed)) await new Promise((resolve) => setTimeout(resolve, 20));
}"""


class Lab:
    """A running JupyterLab on loopback; `open(page, cells)` shows the cells as a notebook."""

    def __init__(self, root: Path, base: str, token: str):
        self.root, self.base, self.token = root, base, token

    def open(self, page: Page, cells: list[str]) -> Notebook:
        name = f"{secrets.token_hex(4)}.ipynb"
        opened = Notebook(page, write_notebook(self.root / "nb" / name, *cells))
        if page.url.startswith(self.base):
            page.evaluate(REPLACE_NOTEBOOK, name)
            opened.wait_until_idle()
        else:
            page.goto(f"{self.base}/lab/tree/{name}?token={self.token}&reset")
            opened.wait_until_idle()
            page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
        return opened

    def open_copy(self, page: Page, notebook: dict[str, Any]) -> None:
        """Show a copy of a notebook, which JupyterLab does not trust, and end the new kernel that it starts for it."""
        name = f"{secrets.token_hex(4)}.ipynb"
        cells = [nbformat.v4.new_markdown_cell("A copy."), *notebook["cells"]]
        (self.root / "nb" / name).write_text(json.dumps({**notebook, "cells": cells}))
        page.goto(f"{self.base}/lab/tree/{name}?reset")
        Notebook(page, self.root / "nb" / name).wait_until_idle()
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")


def write_notebook(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)
    return path


class Notebook:
    def __init__(self, page: Page, file: Path):
        self.page = page
        self.file = file

    def wait_until_idle(self) -> None:
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=MOST_MS)
        status = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        self.page.wait_for_function(f"() => {status} === 'idle'", timeout=MOST_MS)

    def begin(self, index: int) -> None:
        """Run a cell without waiting for it; `window.ended` is the time at which it did, null before."""
        self.page.evaluate(
            """(index) => {
              window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
              window.ended = null;
              window.jupyterapp.commands.execute('notebook:run-cell').then(() => (window.ended = performance.now()));
            }""",
            index,
        )

    def is_running(self) -> bool:
        return self.page.evaluate("() => window.ended === null")

    def wait(self) -> None:
        self.page.wait_for_function("() => window.ended !== null", timeout=MOST_MS)

    def run(self, index: int) -> None:
        self.begin(index)
        self.wait()

    def output(self, index: int) -> str:
        cell = self.page.locator(".jp-CodeCell").nth(index)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_text_contents())


@contextlib.contextmanager
def run_lab(root: Path) -> Iterator[Lab]:
    """A JupyterLab whose notebooks, settings, history and caches are in the folder `root`."""
    token = secrets.token_hex(16)
    (root / "nb").mkdir()
    settings = root / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    with open(root / "lab.log", "wb") as log:
        server = subprocess.Popen(
            _command(root, token),
            env={**os.environ, **_folders(root)},
            cwd=root,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield _wait_until_up(root, token, server)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _folders(root: Path) -> dict[str, str]:
    folders = {
        "HOME": root,
        "JUPYTER_CONFIG_DIR": root / "config",
        "JUPYTER_DATA_DIR": root / "data",
        "IPYTHONDIR": root / "ipython",
        "JUPYTER_RUNTIME_DIR": root / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": root / "settings",
        "TORCHINDUCTOR_CACHE_DIR": root / "inductor",
        "PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT),
    }
    return {name: str(folder) for name, folder in folders.items()}


def _command(root: Path, token: str) -> list[str]:
    options = [
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        "--port=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={root / 'nb'}",
        f"--MappingKernelManager.kernel_info_timeout={MOST_S}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    # Without this package, which takes 5 s to import: see tests/conftest.py.
    start = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyterlab.labapp import main; sys.exit(main())"
    return [sys.executable, "-c", start, *options]


def _wait_until_up(root: Path, token: str, server: subprocess.Popen[bytes]) -> Lab:
    """The server writes down which free port it has taken."""
    end = time.monotonic() + MOST_S
    while True:
        try:
            (details,) = (root / "runtime").glob("jpserver-*.json")
            base = f"http://127.0.0.1:{json.loads(details.read_text())['port']}"
            urllib.request.urlopen(f"{base}/api?token={token}", timeout=20).close()
            return Lab(root, base, token)
        except (OSError, ValueError, urllib.error.URLError):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"JupyterLab did not start:\n{(root / 'lab.log').read_text()[-4000:]}") from None
            time.sleep(0.1)


@contextlib.contextmanager
def lab_page(browser: Browser, lab: Lab, expected: tuple[str, ...] = ()) -> Iterator[Page]:
    """A page that may talk to this JupyterLab and to nothing else, and in which nothing may go wrong but errors
    that begin with one of `expected`.
    """
    context = browser.new_context(viewport={"width": 1300, "height": 1250})
    page = context.new_page()
    page.set_default_timeout(MOST_MS)
    troubles: list[str] = []
    own = (lab.base, lab.base.replace("http", "ws"), "blob:", "data:")
    page.on("pageerror", lambda e: str(e).startswith(expected) or troubles.append(f"page error: {e}"))
    page.on("request", lambda r: r.url.startswith(own) or troubles.append(f"request: {r.url}"))
    page.on("websocket", lambda w: w.url.startswith(own) or troubles.append(f"websocket: {w.url}"))
    yield page
    context.close()
    assert troubles == [], troubles


def show_all(page: Page) -> None:
    """Show the whole page: a notebook shows less at first."""
    page.click('.cdiag-size[aria-label="Show everything"]')
    page.wait_for_selector(".cdiag[data-size=full]")


def total(page: Page, key: str) -> float:
    """The number that a total shows; NaN if it shows none."""
    return float(page.get_attribute(f'[data-total="{key}"]', "data-value") or "nan")


def wait_for_total(page: Page, key: str, least: int) -> None:
    page.wait_for_function(
        "([key, least]) => Number(document.querySelector(`[data-total=${key}]`)?.dataset.value) >= least",
        arg=[key, least],
        timeout=MOST_MS,
    )
