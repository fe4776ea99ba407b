"""The whole way in real JupyterLab: a cell compiles with Inductor, its dashboard is used before the cell ends."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
#: With this set the screenshots in docs/img are taken anew; else they go to the test's own folder.
KEEP_SCREENSHOTS = os.environ.get("COMPILEDIAG_SCREENSHOTS") == "1"
LATENCY_MS = 250
#: A round takes 30 to 50 s; what is on the screen late because of this much is none of our doing.
STOLEN_S = 0.5

TRAINING = """
import torch
import compilediag as cd

class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x)))) / self.step

def attend(q, k, temperature):
    return torch.softmax(q @ k.transpose(-1, -2) / temperature, -1) @ k

def log_loss(loss):
    print("loss", loss.shape)
    return loss * 2

block, attention, logged = torch.compile(Block(64)), torch.compile(attend), torch.compile(log_loss)
session = cd.start()
"""
BUSY = """
from IPython.display import display
display(session.dashboard())
for batch in (4, 6, 9, 12):
    out = block(torch.randn(batch, 16, 64))
    out = attention(out, out, 8.0)
    logged(out.sum()).backward()
attention(out, out, 4.0), attention(out.double(), out.double(), 2.0)
print("CELL-END")
"""
FINISH = """
cd.stop()
session.report("report.html")
print(len(session.compiles), "compiles")
"""
EXPLORED = """
import os
import time
import torch
import compilediag as cd

class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.step = 0

    def forward(self, x, scale):
        self.step += 1
        hidden = torch.nn.functional.gelu(self.up(x)) * scale
        return x + self.down(hidden) / self.step

def attend(q, k, act):
    return act(q @ k.transpose(-1, -2)) @ k

block, attention = (torch.compile(f, backend="aot_eager", dynamic=False) for f in (Block(64), attend))
session = cd.start()
"""
EXPLORING = """
from IPython.display import display
display(session.dashboard())
for batch, scale in ((4, 1.0), (6, 1.0), (9, 0.5), (12, 0.5), (16, 0.25), (9, 0.25)):
    out = block(torch.randn(batch, 16, 64), scale)
for act in (lambda scores: scores.softmax(-1), lambda scores: scores.sigmoid()):
    attention(out, out, act)
while not os.path.exists("explored"):
    time.sleep(0.05)
cd.stop()
"""
MANY = """
import json
from torch._inductor.utils import fresh_cache
from IPython.display import display
if "board" in globals():
    board.close()  # Each round has the page to itself.
session = cd.start()
board = session.dashboard()
display(board)
def function(k):
    scope = {}
    exec(f"def small_{k}(x):\\n    return x * {k} + x.sin().sum() - {k}.5", scope)
    return scope[f"small_{k}"]
import time
time.sleep(4)
with fresh_cache():
    for k in range(30):
        torch.compile(function(k))(torch.randn(5))
cd.stop()
compiles = session.compiles
ends = compiles["time"].astype("int64") / 1e6 + compiles["duration_s"] * 1e3
print("ENDS", json.dumps(dict(zip(compiles["event_id"].tolist(), ends.tolist()))))
"""
FLOOD = """
import time
from IPython.display import display
from compilediag.events import KernelCompile
session = cd.start()
display(session.dashboard())
time.sleep(2)
def kernel(n):
    return [KernelCompile(time_ns=time.time_ns(), name=str(n), outcome="compiled")]
from compilediag.active_recording import find_current
recorder = find_current().recorder
began = time.perf_counter()
for n in range(25_000):
    while time.perf_counter() - began < n / 5_000:
        pass
    recorder.put(recorder.feeds[0], kernel, n)
print("RATE", 25_000 / (time.perf_counter() - began))
cd.stop()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Lab:
    """A JupyterLab of its own on loopback; `open(cells)` shows them as a notebook."""

    def __init__(self, root: Path, port: int, token: str):
        self.root, self.token = root, token
        self.base = f"http://127.0.0.1:{port}"

    def open(self, page: Page, cells: list[str]) -> Notebook:
        name = f"{secrets.token_hex(4)}.ipynb"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.root / "nb" / name)
        page.goto(f"{self.base}/lab/tree/{name}?token={self.token}&reset")
        opened = Notebook(page)
        opened.wait_until_idle()
        page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
        return opened


class Notebook:
    def __init__(self, page: Page):
        self.page = page

    def wait_until_idle(self) -> None:
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        status = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        self.page.wait_for_function(f"() => {status} === 'idle'", timeout=120_000)

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
        self.page.wait_for_function("() => window.ended !== null", timeout=300_000)

    def run(self, index: int) -> None:
        self.begin(index)
        self.wait()

    def output(self, index: int) -> str:
        cell = self.page.locator(".jp-CodeCell").nth(index)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_text_contents())


@pytest.fixture(scope="module")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("lab")
    (root / "nb").mkdir()
    settings = root / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    lab = Lab(root, free_port(), secrets.token_hex(16))
    with serve(lab):
        yield lab
    shutil.rmtree(root / "inductor", ignore_errors=True)


@contextlib.contextmanager
def serve(lab: Lab) -> Iterator[None]:
    root = lab.root
    folders = {
        "HOME": root,
        "JUPYTER_CONFIG_DIR": root / "config",
        "JUPYTER_DATA_DIR": root / "data",
        "IPYTHONDIR": root / "ipython",
        "JUPYTER_RUNTIME_DIR": root / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": root / "settings",
        "TORCHINDUCTOR_CACHE_DIR": root / "inductor",
        "PYTHONPATH": ROOT,
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={lab.base.split(':')[-1]}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={lab.token}",
        f"--ServerApp.root_dir={root / 'nb'}",
        "--LabApp.expose_app_in_browser=True",
    ]
    with open(root / "lab.log", "wb") as log:
        environment = {**os.environ, **{name: str(path) for name, path in folders.items()}}
        server = subprocess.Popen(
            command, env=environment, cwd=root, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_until_up(lab, server)
        yield
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


def wait_until_up(lab: Lab, server: subprocess.Popen) -> None:
    end = time.monotonic() + 90
    while True:
        try:
            urllib.request.urlopen(f"{lab.base}/api?token={lab.token}", timeout=2).close()
            return
        except (OSError, urllib.error.URLError):
            assert server.poll() is None and time.monotonic() < end, (lab.root / "lab.log").read_text()[-4000:]
            time.sleep(0.1)


@pytest.fixture
def lab_page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """A page that may talk to its own JupyterLab and to nothing else, and in which nothing may go wrong."""
    context = browser.new_context(viewport={"width": 1300, "height": 1250})
    page = context.new_page()
    page.set_default_timeout(30_000)
    troubles: list[str] = []
    own = (lab.base, lab.base.replace("http", "ws"), "blob:", "data:")
    page.on("pageerror", lambda error: troubles.append(f"page error: {error}"))
    page.on("request", lambda r: r.url.startswith(own) or troubles.append(f"request: {r.url}"))
    page.on("websocket", lambda w: w.url.startswith(own) or troubles.append(f"websocket: {w.url}"))
    yield page
    context.close()
    assert troubles == []


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[str], Path]:
    folder = ROOT / "docs" / "img" if KEEP_SCREENSHOTS else tmp_path
    return lambda name: folder / name


def total(page: Page, key: str) -> float:
    return float(page.get_attribute(f'[data-total="{key}"]', "data-value") or "nan")


def wait_for_total(page: Page, key: str, least: int) -> None:
    page.wait_for_function(
        "([key, least]) => Number(document.querySelector(`[data-total=${key}]`)?.dataset.value) >= least",
        arg=[key, least],
        timeout=120_000,
    )


def test_a_real_compile_is_watched_searched_reloaded_and_reported(lab, lab_page, picture, new_page, totals):
    page = lab_page
    notebook = lab.open(page, [TRAINING, BUSY, FINISH])
    notebook.run(0)
    notebook.begin(1)
    page.wait_for_selector(".cdiag-flight")
    wait_for_total(page, "recompiles", 3)
    page.fill(".cdiag-search", "batch-that-is-not-there")
    page.wait_for_selector("text=nothing matches")
    page.fill(".cdiag-search", "")
    page.locator(".cdiag-row").first.click()
    page.wait_for_selector(".cdiag-detail h2")
    assert notebook.is_running(), "the dashboard only worked when the cell had ended"
    take_pictures(page, picture)
    assert notebook.is_running()

    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    seen = total(page, "compiles")
    page.reload()
    notebook.wait_until_idle()
    page.wait_for_selector(".cdiag [data-total=compiles]", timeout=60_000)
    assert total(page, "compiles") > seen
    assert page.text_content(".cdiag-state") == "watching"

    notebook.run(2)
    page.wait_for_selector("[data-state=stopped]")
    report = new_page()
    report.goto((lab.root / "nb" / "report.html").as_uri())
    report.wait_for_selector(".cdiag-row")
    report.locator(".cdiag-row").first.click()
    report.screenshot(path=picture("report.png"), full_page=True)
    assert totals(report) == totals(page)
    assert int(notebook.output(2).split()[0]) == total(page, "compiles") == total(report, "compiles")


def take_pictures(page: Page, picture: Callable[[str], Path]) -> None:
    """Light and dark, while something compiles."""
    for theme, name in (("JupyterLab Light", "dashboard.png"), ("JupyterLab Dark", "dashboard-dark.png")):
        wanted = "dark" if "Dark" in theme else "light"
        page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_selector(f".cdiag[data-theme={wanted}]")
        page.locator(".cdiag").evaluate("node => node.scrollIntoView({ block: 'start' })")
        page.wait_for_selector(".cdiag-flight")
        page.screenshot(path=picture(name))
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' })")


def press_until(page: Page, key: str, condition: str, most: int = 120) -> None:
    """Press a key until a condition (JavaScript) holds of `node`, the element that has the focus."""
    for _ in range(most):
        if page.evaluate(f"() => {{ const node = document.activeElement; return Boolean({condition}); }}"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never led there: {condition}")


def test_from_a_running_cell_to_a_cause_to_its_guard_by_key_alone(lab, lab_page, picture):
    page = lab_page
    notebook = lab.open(page, [EXPLORED, EXPLORING])
    notebook.run(0)
    notebook.begin(1)
    page.wait_for_selector('.cdiag-finding:has-text("self.step")', timeout=120_000)
    wait_for_total(page, "recompiles", 6)
    press_until(page, "Tab", "node.closest('.cdiag')")
    press_until(page, "Tab", "node.matches('.cdiag-explore-link')")
    page.keyboard.press("Enter")
    page.wait_for_selector('.cdiag-function-sub:has-text("5 recompiles")', timeout=60_000)
    page.wait_for_selector(".cdiag-page-title code")
    page.keyboard.press("Escape")
    assert "forward" in page.text_content(".cdiag-page-title")
    page.wait_for_selector('.cdiag-page .cdiag-finding-title:has-text("recompiled 5x")', timeout=60_000)
    press_until(page, "Tab", "node.matches('[data-cell]')")
    press_until(page, "ArrowRight", "node.closest('.is-closest')")
    take_explorer_pictures(page, picture, "grid")
    page.keyboard.press("Enter")
    assert "x.size(0)" in page.text_content(".cdiag-page-title code")
    assert page.locator(".cdiag-plot circle").count() >= 5
    press_until(page, "Tab", "node.dataset.key === 'guard self.step'")
    page.keyboard.press("Enter")
    page.wait_for_selector('.cdiag-page-title:has-text("self.step")')
    assert page.text_content(".cdiag-code-line.is-it").endswith("self.step += 1\n")
    take_explorer_pictures(page, picture, "guard")
    assert notebook.is_running(), "the explorer only worked when the cell had ended"
    (lab.root / "nb" / "explored").touch()
    notebook.wait()


def take_explorer_pictures(page: Page, picture: Callable[[str], Path], name: str) -> None:
    """Light and dark. The focus stays where it is: now and then JupyterLab takes it when it changes its theme."""
    focused = page.evaluate_handle("() => document.activeElement")
    for theme, suffix in (("JupyterLab Light", ""), ("JupyterLab Dark", "-dark"), ("JupyterLab Light", "")):
        wanted = "dark" if "Dark" in theme else "light"
        page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_selector(f".cdiag-explorer[data-theme={wanted}]")
        page.wait_for_selector("#jupyterlab-splash", state="detached")
        page.locator(".cdiag-explorer").evaluate("node => node.scrollIntoView({ block: 'start' })")
        focused.evaluate("node => node.isConnected && node.focus({ preventScroll: true })")
        page.screenshot(path=picture(f"explorer-{name}{suffix}.png"))


#: Notes for each row of the table when it was first painted, by the clock that the kernel has too.
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


def test_an_event_is_on_the_screen_soon_after_it_happened(lab, lab_page):
    page = lab_page
    rounds = [MANY.replace("small_", f"small_{name}_") for name in "abcdef"]
    notebook = lab.open(page, [TRAINING.replace("session = cd.start()", ""), *rounds])
    notebook.run(0)
    # The machine may have other things to do, too: one round of three has to be undisturbed. A round whose processors
    # were lent to another machine is none of the three.
    failed, told = 0, []
    for index in range(1, len(rounds) + 1):
        before = stolen_s()
        p95 = p95_latency(notebook, index)
        if p95 <= LATENCY_MS:
            return
        stolen = stolen_s() - before
        told.append(f"p95 {p95:.0f} ms with {stolen:.1f} s of processors gone")
        failed += stolen < STOLEN_S
        assert failed < 3, told
    pytest.fail(f"no round was fast enough, and another machine had this one's processors: {', '.join(told)}")


def stolen_s() -> float:
    """s of processor time that the host of this virtual machine gave to others so far; 0 where it does not say."""
    stat = Path("/proc/stat")
    fields = stat.read_text().split(None, 9) if stat.exists() else []
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


def p95_latency(notebook: Notebook, index: int) -> float:
    """ms from the end of a compile to its row on the screen, 95th percentile of 30 compiles in one cell."""
    page = notebook.page
    notebook.begin(index)
    cell = page.locator(".jp-CodeCell").nth(index)
    cell.locator('[data-tab="compiles"]').click()
    cell.locator(".cdiag-rows").evaluate(WATCH_ROWS)
    notebook.wait()
    cell.locator("[data-state=stopped]").wait_for()
    ends = json.loads(notebook.output(index).split("ENDS ")[1])
    painted = page.evaluate("window.painted")
    late = sorted(painted[event] - end for event, end in ends.items() if painted.get(event))
    p95 = late[int(0.95 * len(late))]
    middle = late[len(late) // 2]
    print(f"event to pixel, {len(late)} compiles: median {middle:.0f}, p95 {p95:.0f}, longest {late[-1]:.0f} ms")
    assert len(late) >= 25
    return p95


def test_five_thousand_events_a_second_all_reach_the_page(lab, lab_page):
    page = lab_page
    notebook = lab.open(page, [TRAINING.replace("session = cd.start()", ""), FLOOD])
    notebook.run(0)
    notebook.run(1)
    page.wait_for_selector("[data-state=stopped]", timeout=60_000)
    rate = float(notebook.output(1).split("RATE ")[1].split()[0])
    counted = page.text_content('[data-tab="kernels"] .cdiag-count')
    print(f"{rate:.0f} events a second; the page has {counted} of 25,000")
    assert rate > 4_500
    assert counted == "25,000"
    assert total(page, "events") >= 25_000
    assert total(page, "dropped") == 0
