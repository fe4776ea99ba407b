"""Measure how soon a compile appears in a real JupyterLab, how soon a newcomer gets an answer, how many events
per second reach the page, and for what share of the time the page's thread in the kernel works while functions
compile.

    python benchmarks/lab.py

Runs three rounds of 30 compiles and reports the best, because other work may share the machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import Figure, print_figures
from ingest import ROOT

ROUNDS = 3
IMPORTS = """
import json
import threading
import time
import torch
import compilediag as cd
from compilediag.recording.active_recording import find_current
from compilediag.events import KernelCompile
from torch._inductor.utils import fresh_cache
from IPython.display import display
torch.compile(lambda x: x + 1)(torch.randn(5))
def begin_page_clock():
    # Its result gives the CPU time per s of wall time since now, of the thread that sends to the page.
    (page,) = [each for each in threading.enumerate() if each.name == "compilediag-dashboard" and each.is_alive()]
    clock, began = time.pthread_getcpuclockid(page.ident), time.perf_counter()
    cpu_s = time.clock_gettime(clock)
    return lambda: (time.clock_gettime(clock) - cpu_s) / (time.perf_counter() - began)
"""
COMPILES = """
if "board" in globals():
    board.close()  # Only one dashboard is open at a time.
session = cd.start()
board = session.dashboard()
display(board)
def make_function(k):
    scope = {}
    exec(f"def small_ROUND_{k}(x):\\n    return x * {k} + x.sin().sum() - {k}.5", scope)
    return scope[f"small_ROUND_{k}"]
time.sleep(4)
read_share = begin_page_clock()
with fresh_cache():
    for k in range(30):
        torch.compile(make_function(k))(torch.randn(5))
print("SHARE", read_share())
cd.stop()
compiles = session.compiles
ends = compiles["time"].astype("int64") / 1e6 + compiles["duration_s"] * 1e3
print("ENDS", json.dumps(dict(zip(compiles["event_id"].tolist(), ends.tolist()))))
"""
#: Recompiles one after the other, without a backend: the most news. Two rounds: what the first shows is there then.
STORM = """
session = cd.start()
display(session.dashboard())
time.sleep(2)
shares = []
for _ in range(2):
    read_share, began = begin_page_clock(), time.perf_counter()
    while time.perf_counter() - began < 10:
        torch._dynamo.reset()
        scaled = torch.compile(lambda x, n: (x * n).relu().sum(), backend="eager")
        for n in range(2, 10):
            scaled(torch.ones(n, n), float(n))
    shares.append(read_share())
cd.stop()
print("SHARE", max(shares))
"""
FLOOD = """
session = cd.start()
display(session.dashboard())
time.sleep(2)
def make_event(n):
    return [KernelCompile(time_ns=time.time_ns(), name=str(n), outcome="compiled")]
recorder = find_current().recorder
began = time.perf_counter()
for n in range(25_000):
    while time.perf_counter() - began < n / 5_000:
        pass
    recorder.put(recorder.feeds[0], make_event, n)
print("RATE", 25_000 / (time.perf_counter() - began))
cd.stop()
"""
WATCHED = "%load_ext compilediag\n%compilewatch"
NEWCOMER = """
import torch

@torch.compile
def step(x, scale):
    return torch.nn.functional.gelu(x * scale).sum()

for size, scale in ((8, 0.5), (16, 0.6), (24, 0.7), (32, 0.8)):
    step(torch.ones(size, 4), scale)
"""
TIMES = """
import compilediag as cd
session = cd.current()
again = session.compiles.query("is_recompile").iloc[0]
print("AGAIN", again["time"].timestamp() * 1e3)
"""
#: Notes when a newcomer's notebook shows the first step of the plan, by the kernel's clock.
WATCH_STEPS = """() => {
  window.begunAt = performance.timeOrigin + performance.now();
  const look = () => {
    if (!document.querySelector(".cdiag-step")?.getClientRects().length) return requestAnimationFrame(look);
    window.answeredAt = performance.timeOrigin + performance.now();
  };
  look();
}"""
#: Records when each row of the table is first painted, by the same clock as the kernel's.
WATCH_ROWS = """(rows) => {
  window.painted = {};
  new MutationObserver(() => {
    const shown = [...rows.querySelectorAll(".cdiag-row")].map((n) => n.dataset.eventId);
    const fresh = shown.filter((id) => !(id in window.painted));
    fresh.forEach((id) => (window.painted[id] = null));
    const channel = new MessageChannel();
    const note = () => fresh.forEach((id) => (window.painted[id] = performance.timeOrigin + performance.now()));
    channel.port1.onmessage = note;
    requestAnimationFrame(() => channel.port2.postMessage(null));
  }).observe(rows, { childList: true, subtree: true });
}"""


def main() -> None:
    from tests.chromium import find_chromium

    chromium = find_chromium()
    if chromium is None:
        print("JupyterLab is not measured: Chromium is not installed")
        return
    from playwright.sync_api import sync_playwright

    from tests.browser.lab import lab_page, run_lab

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, run_lab(Path(folder)) as lab:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with lab_page(browser, lab) as page:
            rounds = [COMPILES.replace("ROUND", name) for name in "abcdefgh"[:ROUNDS]]
            notebook = lab.open(page, [IMPORTS, *rounds])
            notebook.run(0)
            p95 = min(measure_p95_ms(notebook, index) for index in range(1, ROUNDS + 1))
            beside = min(read_number(notebook, index, "SHARE") for index in range(1, ROUNDS + 1))
        with lab_page(browser, lab) as page:
            notebook = lab.open(page, [IMPORTS, FLOOD])
            notebook.run(0)
            notebook.run(1)
            rate = read_number(notebook, 1, "RATE")
        with lab_page(browser, lab) as page:
            notebook = lab.open(page, [IMPORTS, STORM])
            notebook.run(0)
            notebook.run(1)
            in_storm = read_number(notebook, 1, "SHARE")
        with lab_page(browser, lab) as page:
            page.set_viewport_size({"width": 1280, "height": 800})
            first, after = measure_first_answer_s(lab.open(page, [WATCHED, NEWCOMER, TIMES]))
        browser.close()
    print_figures(
        [
            Figure("from the end of a compile to its row on the screen, p95", p95, 250, "ms"),
            Figure("events per second that reach the page of a running cell", rate, 4_500, "1/s", is_rate=True),
            Figure("the page's thread in the kernel while Inductor compiles", beside * 100, 1, "%"),
            Figure("the same while functions recompile in Dynamo alone", in_storm * 100, 1, "%"),
            Figure("a newcomer's first answer, from the start of the cell that compiles twice", first, 120, "s"),
            Figure("the same, from the start of its recompile", after, 5, "s"),
        ]
    )


def read_number(notebook: Any, index: int, word: str) -> float:
    """The number behind a word in the output of a cell."""
    return float(notebook.output(index).split(f"{word} ")[1].split()[0])


def measure_p95_ms(notebook: Any, index: int) -> float:
    """Return the 95th percentile of the ms from the end of a compile to its row on the screen, over 30 compiles."""
    page = notebook.page
    notebook.begin(index)
    cell = page.locator(".jp-CodeCell").nth(index)
    cell.locator('.cdiag-size[aria-label="Show everything"]').click()
    cell.locator('[data-tab="compiles"]').click()
    cell.locator(".cdiag-rows").evaluate(WATCH_ROWS)
    notebook.wait()
    cell.locator("[data-state=stopped]").wait_for()
    ends = json.loads(notebook.output(index).split("ENDS ")[1])
    painted = page.evaluate("window.painted")
    delays = sorted(painted[event] - end for event, end in ends.items() if painted.get(event))
    return delays[int(0.95 * len(delays))]


def measure_first_answer_s(notebook: Any) -> tuple[float, float]:
    """Return the seconds until a step of the plan is in view: from the start of the cell, and of the recompile."""
    page = notebook.page
    notebook.run(0)
    page.evaluate(WATCH_STEPS)
    notebook.run(1)
    page.wait_for_function("() => window.answeredAt !== undefined")
    box = page.locator(".cdiag-step").first.bounding_box()
    assert 0 <= box["y"] <= 800 - box["height"], "the first step is in view without scrolling"
    notebook.run(2)
    begun, answered = page.evaluate("[window.begunAt, window.answeredAt]")
    again = float(notebook.output(2).split("AGAIN ")[1].split()[0])
    return (answered - begun) / 1e3, (answered - again) / 1e3


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
