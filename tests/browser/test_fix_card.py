"""The button of the plan's card: from a click in real JupyterLab to a proven patch, and each state of the card."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import lab as jupyter
from tests.browser.conftest import expect_value
from tests.browser.plan_builder import make_plan, make_source
from tests.browser.test_accessibility import check_both_themes

DEFINE = """%load_ext compilediag
import torch

@torch.compile(backend="aot_eager", dynamic=False)
def step(x, k):
    return (x * k).sum()
"""
#: Two causes at the same calls.
TRAIN = """%%compilewatch
for n, k in ((4, 2), (6, 5), (7, 9), (9, 11)):
    loss = step(torch.ones(n), k)
"""
SKIPPED = "# compilediag: skip\nopen('skipped', 'a').write('x')"
PROVEN = ".cdiag-trial.is-good"


@pytest.mark.long("a search in JupyterLab; test_magics.py runs the cells")
def test_a_click_proves_a_change_of_the_cells_while_the_kernel_is_used(lab, browser: Browser):
    with jupyter.lab_page(browser, lab) as page:
        notebook = lab.open(page, [DEFINE, TRAIN, "print(2 + 3)", SKIPPED])
        for index in (0, 1):
            notebook.run(index)
        notebook.run(3)
        page.click(".cdiag-size")
        button(page).click()
        page.wait_for_selector(".cdiag-trial.is-run progress")
        expect(button(page)).to_be_disabled()
        expect(page.locator('.cdiag-now[data-state="trying"]')).to_contain_text("Trying the plan")
        page.wait_for_selector(".cdiag-trial-lines li >> nth=1")
        notebook.run(2)
        expect_value(page, lambda: notebook.output(2), "5\n")
        assert page.locator(PROVEN).count() == 0, "the kernel could only be used when the search had ended"
        page.wait_for_selector(PROVEN)
        expect(page.locator('.cdiag-now[data-state="stopped"]')).not_to_contain_text("Trying")
        expect(page.locator(PROVEN)).to_contain_text("3 → 0 recompiles")
        expect(page.locator(".cdiag-plan-headline")).to_contain_text("3 of 3 recompiles")
        expect(button(page)).to_have_text("Try again")
        page.locator(".cdiag-whole-title").click()
        expect(page.locator(".cdiag-whole .cdiag-diff")).to_contain_text("dynamic")
        expect(page.locator(".cdiag-whole-title")).to_contain_text("In[1]")
        assert (lab.root / "nb" / "skipped").read_text() == "x"  # by the notebook, and by no process

        # The proven change is put into the cell, and nothing runs.
        page.locator(".cdiag-replace").click()
        expect(page.locator(".cdiag-replace")).to_have_text("Replaced · Undo")
        changed = expect_value(page, read_cell(0), lambda text: "dynamic=False" not in text)
        assert changed.splitlines()[:3] == DEFINE.splitlines()[:3]

        # The record that the notebook keeps has it too, and no button.
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
        saved: dict[str, Any] = json.loads(notebook.file.read_text())
        record = "".join(saved["cells"][1]["outputs"][0]["data"]["text/html"])
        assert "recompiles 3 -&gt; 0 (proven: " in record and "<button" not in record
        page.reload()
        notebook.wait_until_idle()
        page.wait_for_selector(PROVEN)


def read_cell(index: int) -> str:
    """JavaScript that gives the text of a cell."""
    return f"window.jupyterapp.shell.currentWidget.content.widgets[{index}].model.sharedModel.source"


@pytest.mark.long("a search in JupyterLab")
def test_the_change_takes_the_place_of_the_cell_and_can_be_undone(lab, browser: Browser):
    define = DEFINE.replace(", dynamic=False", "")
    with jupyter.lab_page(browser, lab) as page:
        notebook = lab.open(page, [define, TRAIN, "%compilewatch plan"])
        notebook.run(0)
        notebook.run(1)
        replace = page.locator(".cdiag-replace")
        expect(replace).to_have_text("Replace cell In[2]")
        page.locator(".cdiag-whole-title").click()
        lines = page.locator(".cdiag-whole .cdiag-diff > div:not(.is-removed) > code")
        changed = "\n".join(lines.all_text_contents())
        replace.click()
        expect_value(page, read_cell(1), changed)
        expect(replace).to_have_text("Replaced · Undo")
        assert changed.startswith("%%compilewatch\n") and changed != TRAIN.rstrip()
        prompt = page.locator(".jp-CodeCell").nth(1).locator(".jp-InputArea-prompt")
        expect(prompt).to_have_text("[2]:")  # It did not run.
        replace.click()
        expect_value(page, read_cell(1), TRAIN.rstrip())
        expect(replace).to_have_text("Replace cell In[2]")

        # Places in tables and below the names of lanes lead to their lines, and a step to its stretch of the timeline.
        selected = "document.getSelection().toString()"
        page.click(".cdiag-size")
        page.get_by_role("tab", name="Recompiles").click()
        page.locator(".cdiag-row .cdiag-go").first.click()
        expect_value(page, selected, "    return (x * k).sum()")
        assert page.locator(".cdiag-row.is-open").count() == 0
        lanes = page.locator(".cdiag-lanes")
        lanes.scroll_into_view_if_needed()
        box = lanes.bounding_box()
        assert box
        page.mouse.click(box["x"] + 30, box["y"] + box["height"] - 12)
        expect_value(page, selected, lambda text: "torch.compile" in text)
        content = "window.jupyterapp.shell.currentWidget.content"
        page.evaluate(f"{content}.widgets[0].editor.setCursorPosition({{line: 0, column: 0}})")
        expect_value(page, selected, "")
        lanes.focus()
        for key in ("Home", "Shift+Enter"):
            page.keyboard.press(key)
        expect_value(page, selected, lambda text: "torch.compile" in text)
        page.locator(".cdiag-step-title").first.click()
        page.get_by_role("button", name="Show in the timeline").click()
        expect(page.locator(".cdiag-reset")).to_be_visible()
        page.click(".cdiag-size")

        # A cell that was edited since is left alone. The page notices by itself, whenever the notebook changes.
        page.evaluate(f"{read_cell(1)} = 'print(1)'")
        expect(replace).to_be_disabled()
        expect(page.locator(".cdiag-replace-why")).to_have_text("The cell has changed since; copy the lines instead")
        expect(page.locator(".cdiag-step-place").first).to_have_text("In[2]:3")
        notebook.run(2)
        card = page.locator(".cdiag-plan-page .cdiag-plan")
        expect(card.locator(".cdiag-step")).to_have_count(page.locator(".cdiag-dashboard .cdiag-step").count())
        expect(card.locator(".cdiag-replace")).to_be_disabled()
        notebook.run(1)  # It gets another number.
        why = card.locator(".cdiag-replace-why")
        expect(why).to_have_text("The notebook has no cell of this number; copy the lines instead")


@pytest.mark.long("two searches in JupyterLab")
def test_a_watch_that_goes_on_has_its_change_tried_and_replaced(lab, browser: Browser):
    with jupyter.lab_page(browser, lab) as page:
        define = DEFINE.replace("%load_ext compilediag", "%load_ext compilediag\n%compilewatch")
        loop = TRAIN.replace("%%compilewatch\n", "").replace("k in", "m in").replace("n), k", "n), 2")
        notebook = lab.open(page, [define, loop, "step(torch.ones(3), 5)"])
        notebook.run(0)
        notebook.run(1)
        button(page).click()
        expect(page.locator(PROVEN)).to_contain_text("0 recompiles", timeout=120_000)
        page.locator(".cdiag-replace").click()
        expect(page.locator(".cdiag-replace")).to_have_text("Replaced · Undo")
        expect_value(page, read_cell(0), lambda text: "dynamic=False" not in text)
        # What was tried is about less once more recompiled.
        notebook.run(2)
        expect(page.locator(".cdiag-trial")).to_have_count(0)
        expect(button(page)).to_contain_text("Try it")


@pytest.mark.long("a search in JupyterLab")
def test_a_cell_that_ran_while_the_page_was_loaded_again_is_found(lab, browser: Browser):
    wait = "import time\nwhile not open('go').read():\n    time.sleep(0.1)\n"
    with jupyter.lab_page(browser, lab) as page:
        go = lab.root / "nb" / "go"
        go.write_text("")
        # torch remembers the sizes of the code of another test.
        notebook = lab.open(page, [f"{DEFINE.replace(', dynamic=False', '')}# Loaded again.", TRAIN + wait])
        notebook.run(0)
        notebook.begin(1)
        page.wait_for_selector(".cdiag-step")
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
        page.reload()
        page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel")
        go.write_text("go")  # The widget comes when the cell is done.
        page.wait_for_selector(".cdiag-step")
        replace = page.locator(".cdiag-replace")
        expect(replace).to_be_enabled()
        prompt = page.locator(".jp-CodeCell").nth(1).locator(".jp-InputArea-prompt")
        assert "2" not in (prompt.text_content() or ""), "the page knows the number, so nothing is tested"
        replace.click()
        expect(replace).to_have_text("Replaced · Undo")
        expect_value(page, read_cell(1), lambda text: text != (TRAIN + wait).rstrip() and text.endswith("sleep(0.1)"))


# Each state of the card, in a plain page

FOUND = {
    "headline": "2 lines changed: recompiles 3 -> 1 (proven: 7 runs, 12 s).",
    "patch": "--- a/Cell In[1]\n+++ b/Cell In[1]\n@@ -1 +1 @@\n-@compile(dynamic=False)\n+@compile(dynamic=True)\n",
    "holds": True,
    "left": ["Cell In[2]:3: `mask` was None, then a Tensor (1 recompile): every compiled version is needed"],
    "rejected": ["a tensor for `k`: call 2 returns something else"],
    "notes": ["Left out, as you asked: Cell In[4]."],
    "lines": 2,
    "recompiles_before": 3,
    "recompiles_after": 1,
    "compile_seconds_before": 9.0,
    "compile_seconds_after": 4.0,
    "wall_seconds_before": 12.0,
    "wall_seconds_after": 6.0,
}
RUNNING = {
    "running": True,
    "now": "unchanged, 3 s",
    "done": 1,
    "total": 25,
    "lines": ["unchanged: 3 recompiles"],
    "error": "",
}


@pytest.fixture
def card(recorded, open_widget):
    """A page with the plan of a watch that has ended, whose kernel has answered that it can search."""
    snapshot = recorded.snapshot()
    meta = {**snapshot["meta"], "state": "stopped"}
    page = open_widget({**snapshot, "meta": meta, "plan": make_plan()}, width=1000)
    expect(page.locator(".cdiag-plan")).to_be_visible()
    expect(button(page)).to_be_hidden()  # A notebook without a kernel has no button.
    answer(page, 1)
    expect(button(page)).to_be_visible()
    return page


def button(page):
    return page.locator(".cdiag-try")


def answer(page, request, **more):
    page.evaluate("(message) => window.host.deliver(message)", {"type": "answer", "request": request, **more})


def show_search(page, **changed):
    page.evaluate("(search) => window.host.set('search', search)", {**RUNNING, "error": "", **changed})


def test_what_the_kernel_holds_on_the_gpu_is_said_before_a_search(card):
    button(card).click()
    expect(button(card)).to_be_disabled()
    answer(card, 2, notice="This kernel holds 3.2 GB of GPU memory.")
    expect(card.locator(".cdiag-trial > .cdiag-message-text")).to_have_text("This kernel holds 3.2 GB of GPU memory.")
    check_both_themes(card, "document.querySelector('.cdiag')")
    card.get_by_role("button", name="Cancel").click()
    expect(card.locator(".cdiag-trial")).to_be_hidden()
    button(card).click()
    answer(card, 3, notice="This kernel holds 3.2 GB of GPU memory.")
    card.get_by_role("button", name="Fast, on the CPU").click()
    start = {"type": "fix", "action": "start"}
    sent = [{**start, "request": 2}, {**start, "request": 3}, {**start, "on_cpu": True, "request": 4}]
    expect_value(card, "window.host.sent", sent)
    answer(card, 4, error="another search is running in this kernel")
    expect(card.locator(".cdiag-trial.is-bad > .cdiag-message-text")).to_have_text(
        "another search is running in this kernel"
    )
    check_both_themes(card, "document.querySelector('.cdiag')")
    expect(button(card)).to_be_enabled()


def test_a_search_shows_a_line_for_each_run_and_can_be_cancelled(card):
    show_search(card)
    expect(button(card)).to_be_disabled()
    expect(card.locator(".cdiag-trial > .cdiag-message-text")).to_contain_text("Trying: run 2, unchanged, 3 s")
    expect(card.locator(".cdiag-trial-lines li")).to_have_text(["unchanged: 3 recompiles"])
    check_both_themes(card, "document.querySelector('.cdiag')")
    card.get_by_role("button", name="Cancel").click()
    expect_value(card, "window.host.sent", [{"type": "fix", "action": "cancel", "request": 2}])
    expect(card.get_by_role("button", name="Cancelling")).to_be_disabled()
    show_search(card, running=False, error="Interrupted: nothing was found so far (1 run, 3 s).")
    expect(card.locator(".cdiag-trial.is-bad > .cdiag-message-text")).to_have_text(
        "Interrupted: nothing was found so far (1 run, 3 s)."
    )
    expect(button(card)).to_have_text("Try it")


def test_the_head_says_which_run_it_is_at_any_width(card):
    show_search(card, done=3)
    for width in (1000, 400):
        card.set_viewport_size({"width": width, "height": 800})
        what = card.locator(".cdiag-now-what")
        expect(what).to_contain_text("run 4")
        expect_value(card, lambda: what.evaluate("(text) => text.scrollWidth <= text.clientWidth"), True)  # noqa: B023


def test_a_proven_change_takes_the_place_of_the_prediction(card, deliver):
    proven = make_source(place="In[1]", cell=1, lines=[[1, "-", "@compile(dynamic=False)", None]], before="", after="x")
    deliver(card, {"seq": 1, "reset": False, "plan": make_plan(searched=FOUND, sources=[proven])})
    expect(card.locator(".cdiag-trial.is-warn")).to_contain_text("Tried: 2 of 3 recompiles gone, 1 is left.")
    expect(card.locator(".cdiag-trial.is-warn")).to_contain_text("every compiled version is needed")
    expect(card.locator(".cdiag-split-keys")).to_contain_text("needed 4.0 s")
    card.locator(".cdiag-whole-title").click()
    expect(card.locator(".cdiag-whole .is-removed > code")).to_have_text("@compile(dynamic=False)")
    card.click("text=1 change tried and rejected")
    expect(card.locator(".cdiag-plan")).to_contain_text("call 2 returns something else")
    check_both_themes(card, "document.querySelector('.cdiag')")
    whole = {**FOUND, "left": [], "recompiles_after": 0}
    deliver(card, {"seq": 2, "reset": False, "plan": make_plan(searched=whole, sources=[proven])})
    expect(card.locator(PROVEN)).to_contain_text("3 → 0 recompiles · compiling 9.0 s → 4.0 s · run 12.0 s → 6.0 s")
    check_both_themes(card, "document.querySelector('.cdiag')")
    refuted = {**FOUND, "holds": False, "patch": "", "headline": "Not proven: exit code 1 (9 runs, 1 s)."}
    deliver(card, {"seq": 3, "reset": False, "plan": make_plan(searched=refuted)})
    expect(card.locator(".cdiag-trial.is-warn")).to_contain_text(refuted["headline"])


def test_a_report_shows_the_proven_change_without_a_button(recorded, open_report, tmp_path):
    for number in range(3):
        recorded.compile(number)
    recorded.session.data.set_meta(searched={**FOUND, "left": [], "recompiles_after": 0})
    page = open_report(recorded.session.report(tmp_path / "report.html"))
    expect(page.locator(PROVEN)).to_contain_text("3 → 0 recompiles")
    expect(page.locator(".cdiag-plan-headline")).to_contain_text("2 changed lines remove 3 of 3 recompiles")
    expect(button(page)).to_have_count(0)
    redacted = open_report(recorded.session.report(tmp_path / "redacted.html", redact=True))
    expect(redacted.locator(".cdiag-plan")).to_be_visible()
    expect(redacted.locator(".cdiag-trial")).to_have_count(0)
    expect(redacted.locator(".cdiag-whole .cdiag-diff")).to_have_count(0)
