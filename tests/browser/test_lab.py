"""The whole way in real JupyterLab: a cell compiles with Inductor, its dashboard is used before the cell ends. And the
other hosts that one server has: Notebook 7, the classic notebook and Voila.

How soon what happens is on the screen is measured by benchmarks/lab.py.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Page, expect

from compilediag.events import GraphBreak
from tests.browser import lab as jupyter
from tests.browser.conftest import MOST_MS, expect_value, read_totals
from tests.browser.lab import COMPILED, STOPPED, WATCHED, Lab, Notebook, show_all, total, wait_for_total, write_notebook
from tests.unit.session_builder import saved
from tests.unit.tables_builder import changes, compiled, sizes

ROOT = Path(__file__).resolve().parents[2]
#: With this set the screenshots in docs/img are taken anew; else they go to the test's own folder.
KEEP_SCREENSHOTS = os.environ.get("COMPILEDIAG_SCREENSHOTS") == "1"

#: Of most functions. Inductor always compiles one of them, with its backward: what its kernels add to the page.
BACKEND = "inductor" if KEEP_SCREENSHOTS else "aot_eager"
TRAINING = f"""
BACKEND = {BACKEND!r}
"""
TRAINING += """
import os
import time
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

def scale(x):
    return x * 2

def wait_until_seen(graph, inputs):
    # It compiles until the page has been looked at.
    while not os.path.exists("seen"):
        time.sleep(0.05)
    return graph

block, attention = (torch.compile(f, backend=BACKEND) for f in (Block(64), attend))
logged = torch.compile(log_loss)
scaled = torch.compile(scale, backend=wait_until_seen)
session = cd.start()
"""
BUSY = """
from IPython.display import display
display(session.dashboard())
for batch in (4, 6, 9):
    out = block(torch.randn(batch, 16, 64))
    out = attention(out, out, 8.0)
logged(out.sum()).backward()
scaled(out)
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

block, attention = (torch.compile(f, backend="eager", dynamic=False) for f in (Block(64), attend))
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
FLOOD = """
import time
import compilediag as cd
from IPython.display import display
from compilediag.events import KernelCompile
from tests.inside import find_recorder
session = cd.start()
display(session.dashboard())
def kernel(n):
    return [KernelCompile(time_ns=time.time_ns(), name=str(n), outcome="compiled")]
recorder = find_recorder()
for n in range(25_000):
    recorder.put(recorder.feeds[0], kernel, n)
cd.stop()
"""
KILL = "import os\nos.kill(os.getpid(), 9)"
THREE_SIZES = "for size in (2, 3, 4):\n    double(torch.ones(size))"
#: Pixels of the timeline that have the color of its texts in the theme that is set.
COUNT_TEXT_PIXELS = """() => {
  const canvas = document.querySelector(".cdiag-canvas");
  const text = getComputedStyle(canvas).getPropertyValue("--cd-text").trim();
  const wanted = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += wanted.every((part, k) => data[i + k] === part);
  return count;
}"""


@pytest.fixture(scope="module")
def lab_page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """One page for all notebooks, one after the other: it takes seconds to load JupyterLab."""
    with jupyter.lab_page(browser, lab) as page:
        yield page


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[str], Path]:
    folder = ROOT / "docs" / "img" if KEEP_SCREENSHOTS else tmp_path
    return lambda name: folder / name


def test_a_real_compile_is_watched_searched_reloaded_and_reported(lab, lab_page, picture, new_page):
    page = lab_page
    notebook = lab.open(page, [TRAINING, BUSY, FINISH])
    notebook.run(0)
    notebook.begin(1)
    wait_for_total(page, "recompiles", 3)
    page.wait_for_selector('.cdiag-flight:has-text("scale")')
    show_all(page)
    page.fill(".cdiag-search", "batch-that-is-not-there")
    page.wait_for_selector("text=nothing matches")
    page.fill(".cdiag-search", "")
    page.locator(".cdiag-row").first.click()
    page.wait_for_selector(".cdiag-detail h2")
    take_pictures(page, picture)
    assert notebook.is_running(), "the dashboard only worked when the cell had ended"

    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    seen = int(total(page, "compiles"))
    (lab.root / "nb" / "seen").touch()
    page.reload()
    notebook.wait_until_idle()
    wait_for_total(page, "compiles", seen + 1)
    expect(page.locator(".cdiag-now")).to_have_attribute("data-state", "watching")

    notebook.run(2)
    page.wait_for_selector("[data-state=stopped]")
    report = new_page()
    report.goto((lab.root / "nb" / "report.html").as_uri())
    report.wait_for_selector(".cdiag-row")
    report.locator(".cdiag-row").first.click()
    report.screenshot(path=picture("report.png"), full_page=True)
    expect_value(page, lambda: read_totals(page), read_totals(report))
    compiles = int(expect_value(page, lambda: notebook.output(2), lambda output: " compiles" in output).split()[0])
    expect_value(page, lambda: (total(page, "compiles"), total(report, "compiles")), (compiles, compiles))
    page.click(".cdiag-top .cdiag-menu > button")
    page.click('[data-command="markdown"]')
    expect(page.locator(".cdiag-exported")).to_contain_text(f"written to {lab.root / 'nb'}")
    assert [*(lab.root / "nb").glob("*.md")] != []


#: True if the timeline is painted in the colors that the page has now.
FOLLOWS_THEME = """() => {
  const canvas = document.querySelector(".cdiag-canvas");
  const copy = new OffscreenCanvas(2, 1).getContext("2d", { willReadFrequently: true });
  copy.fillStyle = getComputedStyle(canvas).getPropertyValue("--cd-surface");
  copy.fillRect(0, 0, 1, 1);
  copy.drawImage(canvas, 2, 2, 1, 1, 1, 0, 1, 1);
  const [wanted, painted] = [0, 1].map((x) => copy.getImageData(x, 0, 1, 1).data.join());
  return wanted === painted;
}"""


def take_pictures(page: Page, picture: Callable[[str], Path]) -> None:
    """Light and dark, while something compiles."""
    for theme, name in (("JupyterLab Light", "dashboard.png"), ("JupyterLab Dark", "dashboard-dark.png")):
        wanted = "dark" if "Dark" in theme else "light"
        page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_selector(f".cdiag[data-theme={wanted}]")
        page.wait_for_function(FOLLOWS_THEME)
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
    page.wait_for_selector('.cdiag-step:has-text("self.step")')
    wait_for_total(page, "recompiles", 6)
    press_until(page, "Tab", "node.closest('.cdiag')")
    press_until(page, "Tab", "node.matches('.cdiag-step-title')")
    page.keyboard.press("Enter")
    press_until(page, "Tab", "node.matches('.cdiag-explore-link')")
    page.keyboard.press("Enter")
    page.wait_for_selector('.cdiag-function-sub:has-text("5 recompiles")')
    page.wait_for_selector(".cdiag-page-title code")
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-page-title")).to_contain_text("forward")
    page.wait_for_selector('.cdiag-page .cdiag-finding-title:has-text("recompiled 5x")')
    press_until(page, "Tab", "node.matches('[data-cell]')")
    press_until(page, "ArrowRight", "node.closest('.is-closest')")
    take_explorer_pictures(page, picture, "grid")
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-page-title code").first).to_contain_text("x.shape[0]")
    expect(page.locator(".cdiag-plot circle").nth(4), "5 or more").to_be_attached()
    press_until(page, "Tab", "node.dataset.key === 'guard self.step'")
    page.keyboard.press("Enter")
    page.wait_for_selector('.cdiag-page-title:has-text("self.step")')
    line = page.locator(".cdiag-code-line.is-it").first
    expect_value(page, line.text_content, lambda text: text.endswith("self.step += 1\n"))
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


def test_twenty_five_thousand_events_all_reach_the_page(lab, lab_page):
    page = lab_page
    notebook = lab.open(page, [FLOOD])
    notebook.run(0)
    page.wait_for_selector("[data-state=stopped]")
    expect(page.locator('[data-tab="kernels"] .cdiag-count')).to_have_text("25,000")
    expect_value(page, lambda: total(page, "dropped"), 0)


#: Tags and classes of an element and its parents -> what the styles of the host could change. The parents, because a
#: list in a list looks another way, and of several lists of one class not all are there in both pages.
LOOK = """() => Object.fromEntries([...document.querySelectorAll(".cdiag, .cdiag *")].map((node) => {
  const path = [];
  for (let at = node; at.closest(".cdiag"); at = at.parentElement) {
    path.push(`${at.tagName} ${at.getAttribute("class") ?? ""}${at.disabled ? " disabled" : ""}`);
  }
  const style = getComputedStyle(node);
  const names = ["padding", "marginTop", "marginBottom", "backgroundColor", "fontFamily", "fontSize", "fontWeight",
    "lineHeight", "listStyleType", "textDecorationLine", "borderTopWidth"];
  return [path.join(" < "), names.map((name) => style[name])];
}))"""


def read_look(page: Page) -> dict[str, list[str]]:
    """How each element looks with the mouse on none of them, since a row may have moved to where the mouse was."""
    page.mouse.move(0, 0)
    expect(page.locator(".cdiag:hover")).to_have_count(0)
    return page.evaluate(LOOK)


def find_other_looks(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, Any]:
    """The elements that look another way than before, of those with the same classes."""
    return {name: (before[name], after[name]) for name in before.keys() & after.keys() if before[name] != after[name]}


def test_a_saved_notebook_shows_the_numbers_of_the_live_page_wherever_it_is_read(lab, lab_page, browser, picture):
    page = lab_page
    notebook = lab.open(page, [COMPILED, "%compilewatch on", THREE_SIZES, "%compilewatch off"])
    for index in range(3):
        notebook.run(index)
    wait_for_total(page, "recompiles", 2)
    show_all(page)
    check_themes_repaint_the_timeline(page)
    page.fill(".cdiag-search", "double")
    look = read_look(page)
    notebook.run(3)
    page.wait_for_selector(".cdiag-record [data-state=stopped]")
    expect_value(page, lambda: find_other_looks(look, read_look(page)), {})
    assert len(look.keys() & read_look(page).keys()) > 50
    expect(page.locator(".cdiag-search")).to_have_value("double")  # The page is as it was left.
    expect(page.locator(".cdiag")).to_have_count(1)
    numbers = expect_value(page, lambda: describe_numbers(read_totals(page)), bool)

    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    saved = json.loads(notebook.file.read_text())
    (record,) = [output["data"] for output in saved["cells"][1]["outputs"]]
    assert list(record) == ["text/html", "text/plain"]
    assert read_numbers("".join(record["text/plain"])) == numbers

    page.reload()  # The kernel runs on, so the page comes back.
    notebook.wait_until_idle()
    page.wait_for_selector(".cdiag-record [data-state=stopped]")
    expect_value(page, lambda: describe_numbers(read_totals(page)), numbers)

    lab.open_copy(page, saved)  # without a kernel that knows the widget
    shown = page.locator(".cdiag-record")
    expect_value(page, lambda: read_numbers(shown.text_content()), numbers)
    expect(page.locator(".cdiag")).to_have_count(0)
    expect(page.locator("body")).not_to_contain_text("Error displaying widget")
    # The notebook is not trusted, so JupyterLab has sanitized it; the pictures are left.
    expect_value(
        page, lambda: shown.locator("img").evaluate_all("all => all.map((one) => one.naturalWidth)"), [9, 9, 320]
    )
    page.screenshot(path=picture("record.png"))

    html, _ = HTMLExporter().from_notebook_node(nbformat.reads(json.dumps(saved), as_version=4))
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(MOST_MS)
    converted = context.new_page()
    converted.set_content(html)
    expect_value(converted, lambda: read_numbers(converted.locator(".cdiag-record").text_content()), numbers)
    context.close()


def describe_numbers(totals: dict[str, str]) -> list[str]:
    """The totals of a live page, as the record says them."""
    return [
        f"{totals['compiles']} compiles took {totals['compile_s']}",
        f"{totals['recompiles']} recompiles cost {totals['lost_s']}",
        f"{totals['cache_hits']} cache hits",
        f"{totals['graph_breaks']} graph breaks",
        f"compilediag overhead {totals['own_s']} ({totals['own_share']})",
    ]


def read_numbers(text: str) -> list[str]:
    """The same from a record."""
    time = r"[\d.]+ (?:ms|s)"
    patterns = (rf"\d+ compiles took {time}", rf"\d+ recompiles cost {time}", r"\d+ cache hits", r"\d+ graph breaks")
    patterns += (rf"compilediag overhead {time} \([\d.]+ %\)",)
    return [found for pattern in patterns for found in re.findall(pattern, " ".join(text.split()))]


def check_themes_repaint_the_timeline(page: Page) -> None:
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_selector(f".cdiag[data-theme={theme.split()[1].lower()}]")
        page.wait_for_selector("#jupyterlab-splash", state="detached")
        expect_value(page, COUNT_TEXT_PIXELS, lambda count: count > 4)


#: Shows a formula, then everything of compilediag that is HTML, with texts that look like formulas.
FORMULAS = """
import compilediag as cd
from IPython.display import HTML, display
session, other = cd.load({session!r}), cd.load({other!r})
display(HTML("<p class='formula'>$a^2$ and $b^2$</p>"))
display(session, session.plan(), session.findings(), session.findings()[0], cd.diff(other, session))
display(session.dashboard(), session.explore())
"""


@pytest.mark.long("JupyterLab and its MathJax")
def test_a_text_between_dollar_signs_is_no_formula(lab, lab_page, tmp_path):
    """Neither where it is recorded nor in a copy of the notebook, which JupyterLab sanitizes."""
    text = r"$x_1^2$ \(y_1^2\) $$z_1^2$$ \[w_1^2\]"
    place = {"user_file": "/a $p$ b $q$.py", "user_line": 1, "user_code": text}
    recompiles = [*sizes("4", "6", "9", **place), *changes("n", "value", repr(text), "'$v$'", **place)]
    breaks = [GraphBreak(time_ns=1, reason=f"{text} {n}", **{**place, "user_line": n}) for n in range(2)]
    session = saved(tmp_path, compiled(function="$f$ $g$"), *recompiles, *breaks)
    (tmp_path / "other").mkdir()
    other = saved(tmp_path / "other", compiled())
    notebook = lab.open(lab_page, [FORMULAS.format(session=str(session.path), other=str(other.path))])
    notebook.run(0)
    lab_page.wait_for_selector(".formula mjx-container")
    expect(lab_page.locator(".jp-OutputArea-output .cdiag")).not_to_have_count(0)
    shown = lab_page.locator(".jp-OutputArea-output")
    expect(shown.locator("mjx-container")).to_have_count(2)
    assert notebook.output(0).count("$x_1^2$") > 5

    lab_page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    lab_page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    lab.open_copy(lab_page, json.loads(notebook.file.read_text()))
    lab_page.wait_for_selector(".formula mjx-container")
    expect(shown.locator("mjx-container")).to_have_count(2)
    assert " ".join(shown.all_text_contents()).count("$x_1^2$") > 5


# Other hosts of the same server


@pytest.fixture
def plain_page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1300, "height": 1250})
    context.set_default_timeout(MOST_MS)
    yield context.new_page()
    context.close()


def open_notebook_7(lab: Lab, page: Page, name: str) -> Callable[[int], None]:
    page.goto(f"{lab.base}/notebooks/{name}?token={lab.token}")
    notebook = Notebook(page, lab.root / "nb" / name)
    notebook.wait_until_idle()
    return notebook.begin


def open_classic_notebook(lab: Lab, page: Page, name: str) -> Callable[[int], None]:
    page.goto(f"{lab.base}/nbclassic/notebooks/{name}?token={lab.token}")
    page.wait_for_function("() => window.Jupyter?.notebook?.kernel?.is_connected()")
    return lambda index: page.evaluate("(index) => Jupyter.notebook.execute_cells([index])", index)


@pytest.mark.long("JupyterLab is in the other tests; this is Notebook 7 and the classic one")
@pytest.mark.parametrize("open_it", [open_notebook_7, open_classic_notebook])
def test_a_notebook_shows_the_watch_live_keeps_the_page_and_reports_a_dead_kernel(lab, plain_page, open_it):
    page = plain_page
    name = f"{open_it.__name__}.ipynb"
    write_notebook(lab.root / "nb" / name, COMPILED, f"%%compilewatch\n{THREE_SIZES}", WATCHED, KILL)
    run = open_it(lab, page, name)
    run(0)
    run(1)
    page.wait_for_selector(".cdiag-record [data-state=stopped]")
    expect_value(page, lambda: read_totals(page)["recompiles"], "2")
    expect(page.locator(".cdiag")).to_have_count(1)
    run(2)
    page.wait_for_selector("[data-state=watching]")
    page.wait_for_function("() => document.querySelectorAll('[data-total=compiles][data-value=\"0\"]').length === 1")
    run(3)
    page.wait_for_selector("[data-state=cut]")


@pytest.mark.long("JupyterLab is in the other tests; this is Voila")
def test_voila_shows_the_page_of_a_watch_that_has_ended(lab, plain_page):
    page = plain_page
    write_notebook(lab.root / "nb" / "voila.ipynb", COMPILED, WATCHED, STOPPED)
    page.goto(f"{lab.base}/voila/render/voila.ipynb?token={lab.token}")
    page.wait_for_selector("[data-state=stopped]")
    expect_value(page, lambda: read_totals(page)["recompiles"], "2")
    expect(page.locator(".cdiag")).to_have_count(1)
