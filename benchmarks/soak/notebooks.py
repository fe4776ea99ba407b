"""In real JupyterLab: four dashboards of a watch with 50,000 events, and a kernel that restarts while it records."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import compilediag as cd
from benchmarks.soak.workload import is_quick, is_time_left, report

EVENTS = 5_000 if is_quick() else 50_000
DASHBOARDS = 4
RESTARTS = 2 if is_quick() else 5
PATH = "restarted.cdiag"

START = f"""
import sys, time
import torch
import compilediag as cd
from compilediag import sources
from tests.browser.many_events import many_events
from benchmarks.soak.workload import run_eager, expect_eager
from IPython.display import display
session = cd.start({PATH!r})
wrong = 0
"""
#: The events go the way that the hooks' go, while the program compiles.
STREAM = f"""
clock = time.time_ns()
for n in range(50):
    sources._attached[0].emit(lambda n=n: list(many_events({EVENTS} // 50, clock + n * 10**9)))
    wrong += run_eager() != expect_eager()
    time.sleep(0.02)
session.flush()
print("wrong results:", wrong)
"""
ENDLESS = """
display(session.dashboard())
while True:
    assert run_eager() == expect_eager()
"""
STOP = """
cd.stop()
errors = [(row["name"], row["reason"]) for row in session.status() if row["reason_code"] == "errors"]
print("errors:", errors, "hooks:", sources.list_hooks(), "compiles:", len(session.compiles))
"""
#: JupyterLab's own error if it has just asked the kernel for a subshell.
RESTARTED = ("Error: Canceled future for create_subshell_request",)
#: Each dashboard's number of compiles.
TOTALS = "() => [...document.querySelectorAll('[data-total=compiles]')].map((total) => Number(total.dataset.value))"
RESTART = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
#: Runs a cell whose kernel will be restarted: JupyterLab then says that the run was canceled.
BEGIN = """(index) => {
  window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
  window.jupyterapp.commands.execute('notebook:run-cell').catch(() => undefined);
}"""
#: Of each compile in `many_events` there are five events; four compiles come with each of 50 rounds.
COMPILES = EVENTS // 5 + 50 * 4


def show_dashboards(page: Any, lab: Any) -> None:
    show = "display(session.dashboard())"
    notebook = lab.open(page, [START, *[show] * DASHBOARDS, STREAM, STOP])
    for cell in range(DASHBOARDS + 1):
        notebook.run(cell)
    notebook.run(DASHBOARDS + 1)
    problems = [] if "wrong results: 0" in notebook.output(DASHBOARDS + 1) else [notebook.output(DASHBOARDS + 1)]
    try:
        page.wait_for_function(
            f"() => ({TOTALS})().filter((count) => count === {COMPILES}).length === {DASHBOARDS}", timeout=120_000
        )
    except Exception:
        problems.append(f"the dashboards show {page.evaluate(TOTALS)} compiles, not {COMPILES}")
    notebook.run(DASHBOARDS + 2)
    if f"errors: [] hooks: [] compiles: {COMPILES}" not in notebook.output(DASHBOARDS + 2):
        problems.append(notebook.output(DASHBOARDS + 2))
    page.evaluate(RESTART)
    report(f"{DASHBOARDS} dashboards: event missing, result changed", EVENTS, problems, f"{COMPILES} compiles in each")


def restart_kernels(page: Any, lab: Any) -> None:
    """Restart the kernel while it compiles; its session is readable, and the next kernel records to the same path."""
    notebook = lab.open(page, [START, ENDLESS, STREAM, STOP])
    path, problems, done = lab.root / "nb" / PATH, [], 0
    while done < RESTARTS and is_time_left():
        done += 1
        notebook.run(0)
        page.evaluate(BEGIN, 1)
        page.wait_for_function(f"() => ({TOTALS})().some((count) => count >= 8)")
        page.evaluate(RESTART)
        problems += find_file_problems(path)
        notebook.wait_until_idle()
    for cell in (0, 2, 3):
        notebook.run(cell)
    for text in ("wrong results: 0", f"errors: [] hooks: [] compiles: {COMPILES}"):
        if text not in notebook.output(2) + notebook.output(3):
            problems.append(f"after the last restart: {notebook.output(2)} {notebook.output(3)}")
    report("kernel restarted while it records: session not readable", done, problems)


def find_file_problems(path: Path) -> list[str]:
    """What is wrong with the session of a kernel that was killed."""
    try:
        count = len(cd.load(path).compiles)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    with closing(sqlite3.connect(path)) as connection:
        is_whole = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return [] if count >= 8 and is_whole else [f"{count} compiles, whole: {is_whole}"]


def main() -> None:
    from tests.chromium import find_chromium

    chromium = find_chromium()
    if chromium is None:
        report("dashboards and kernel restarts", 0, [], "skipped: Chromium is not installed")
        return
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGS
    from tests.browser.lab import lab_page, run_lab

    with tempfile.TemporaryDirectory() as folder, run_lab(Path(folder)) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        with lab_page(browser, lab, RESTARTED) as page:
            show_dashboards(page, lab)
            restart_kernels(page, lab)
        browser.close()


if __name__ == "__main__":
    main()
