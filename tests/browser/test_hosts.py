"""The dashboard in each host of docs/hosts.md: live while the watch runs, and its record afterwards.

JupyterLab, Notebook 7, the classic notebook and Voila are in test_lab.py: they have one server.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import papermill
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import MOST_MS, expect_value, host_widget, read_totals
from tests.browser.lab import COMPILED, ROOT, STOPPED, WATCHED, write_notebook

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
SENTENCE = "3 compiles took "
MARIMO = """
import marimo

app = marimo.App()


@app.cell
def _():
    import torch
    import compilediag as cd

    @torch.compile(backend="eager", dynamic=False)
    def double(x):
        return x * 2

    session = cd.start()
    return cd, double, session, torch


@app.cell
def _(session):
    session.dashboard()
    return


@app.cell
def _(cd, double, torch):
    for size in (2, 3, 4):
        double(torch.ones(size))
    cd.stop()
    return
"""
#: What VS Code allows the page of a notebook's outputs, and the blob that anywidget loads a widget's module from.
VSCODE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; "
    "img-src https: http: data:; font-src https:; connect-src https:; child-src https: data:"
)
#: Colab shows an output in a frame of another origin with these rights.
COLAB_FRAME = "allow-downloads allow-forms allow-modals allow-popups allow-same-origin allow-scripts"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1300, "height": 1250})
    page = context.new_page()
    page.set_default_timeout(MOST_MS)
    yield page
    context.close()


def test_papermill_stores_the_record_and_the_final_state_of_the_widget(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    source = write_notebook(tmp_path / "in.ipynb", COMPILED, WATCHED, STOPPED)
    done = papermill.execute_notebook(
        source, tmp_path / "out.ipynb", progress_bar=False, cwd=tmp_path, start_timeout=MOST_MS // 1000
    )
    (record,) = [output["data"] for output in done.cells[1]["outputs"]]
    assert set(record) == {"text/plain", "text/html"}
    assert all(SENTENCE in text and "2 recompiles cost " in text for text in record.values())
    states = done.metadata["widgets"][WIDGET_STATE]["state"].values()
    (snapshot,) = [json.loads(state["state"]["snapshot"]) for state in states if "snapshot" in state["state"]]
    assert snapshot["meta"]["state"] == "stopped" and len(snapshot["rows"]["compiles"]) == 3
    assert snapshot["plan"]["recompiles_saved"] == 1


@contextlib.contextmanager
def run_marimo(folder: Path) -> Iterator[str]:
    (folder / "notebook.py").write_text(MARIMO)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["marimo", "edit", "notebook.py", "--headless", "--no-token", "--skip-update-check", f"--port={port}"]
    with open(folder / "marimo.log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _wait_until_up(f"http://127.0.0.1:{port}", server)
    finally:
        server.terminate()
        server.wait()


def _wait_until_up(base: str, server: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + MOST_MS / 1000
    while True:
        try:
            urllib.request.urlopen(f"{base}/health", timeout=20).close()
            return base
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)


@pytest.mark.long("starts marimo and its kernel")
def test_marimo_names_its_cells_and_a_reload_is_up_to_date(chromium, page, tmp_path):
    with run_marimo(tmp_path) as address:
        page.goto(address)
        page.locator(".cm-content").first.click()
        page.keyboard.press("Control+Shift+R")
        page.wait_for_selector("[data-state=stopped]")
        expect_value(page, lambda: read_totals(page).get("recompiles"), "2")
        # The line that calls is the user's own code, in a cell with the id that marimo's tracebacks show.
        expect(page.locator(".cdiag-step").first).to_contain_text("marimo cell ")
        page.locator(".cdiag-step-title").first.click()
        expect(page.locator(".cdiag-step").first).to_contain_text("double(torch.ones(size))")
        page.screenshot(path=tmp_path / "host.png")
        page.reload()
        page.wait_for_selector("[data-state=stopped]")
        expect_value(page, lambda: read_totals(page).get("recompiles"), "2")


@pytest.mark.parametrize(
    "command", [["-i", "-q"], ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"]]
)
def test_a_terminal_shows_text(recorded, tmp_path, command):
    recorded.compile(0)
    recorded.compile(1)
    recorded.stop()
    program = f"import compilediag as cd\ncd.load({str(recorded.session.path)!r}).dashboard()\n"
    done = subprocess.run(
        [sys.executable, *command],
        input=program,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
    )
    assert "2 compiles took 2.0 s; 1 recompile cost 1.0 s" in done.stdout, done.stderr
    assert "object at" not in done.stdout and "Dashboard" not in done.stdout


#: What a host sets on the body and on the page -> the theme that it means.
THEMES: list[tuple[dict[str, str], dict[str, str], str]] = [
    ({"class": "vscode-dark"}, {}, "dark"),
    ({"class": "vscode-light"}, {}, "light"),
    ({"class": "vscode-high-contrast"}, {}, "dark"),
    ({"class": "vscode-high-contrast vscode-high-contrast-light"}, {}, "light"),
    ({}, {"theme": "dark"}, "dark"),
    ({}, {"theme": "light"}, "light"),
    ({"style": "background: #14171d"}, {}, "dark"),
    ({"style": "background: #fafafa"}, {}, "light"),
]
SET_ATTRIBUTES = """([body, html]) => {
  for (const [node, wanted] of [[document.body, body], [document.documentElement, html]]) {
    for (const name of ["class", "style", "theme"]) node.removeAttribute(name);
    for (const [name, value] of Object.entries(wanted)) node.setAttribute(name, value);
  }
}"""


def check_themes(frame: Any) -> None:
    for body, html, theme in THEMES:
        frame.evaluate(SET_ATTRIBUTES, [body, html])
        frame.wait_for_selector(f".cdiag[data-theme={theme}]")


def test_the_page_works_under_the_rules_of_vs_code(recorded, new_page):
    recorded.compile(0)
    recorded.compile(1)
    page = new_page(color_scheme="dark")
    page.set_content(
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{VSCODE_POLICY}"><body></body>'
    )
    host_widget(page, recorded.snapshot())
    expect_value(page, lambda: read_totals(page).get("recompiles"), "1")
    check_themes(page)


def test_the_page_works_in_a_frame_as_colab_has_it(recorded, page):
    recorded.compile(0)
    recorded.compile(1)
    page.set_content(
        f'<!doctype html><body><iframe sandbox="{COLAB_FRAME}" srcdoc="<body></body>" width=1200 height=900>'
    )
    frame = page.frames[1]
    host_widget(frame, recorded.snapshot())
    expect_value(page, lambda: frame.locator("[data-total=recompiles]").text_content(), "1")
    check_themes(frame)
