"""The plan on the page: first of all, kept as it is while a watch runs, copied, opened by key, safe with any text."""

import re

import pytest
from playwright.sync_api import expect

from compilediag.views.report import render_report
from tests.browser.conftest import expect_value, open_tab
from tests.browser.plan_builder import (
    PATCH,
    make_cost,
    make_empty_plan,
    make_example,
    make_finding,
    make_outcome,
    make_plan,
    make_second_step,
    make_step,
)
from tests.browser.test_page import HOSTILE, SPILLS, expect_contrast

#: What is wider than its place in the plan; a diff scrolls.
FITS = """() => [...document.querySelectorAll(".cdiag-plan, .cdiag-plan *")]
  .filter((n) => n.scrollWidth > n.clientWidth + 1 && getComputedStyle(n).display !== "inline")
  .map((n) => n.className).filter((name) => name !== "cdiag-snippet is-diff")"""
SELECTED = "() => getSelection().toString()"
#: Pages without https have no clipboard.
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"


@pytest.fixture
def patch_of(recorded):
    """The next patch of a page, with this plan."""

    def make(plan, seq, **more):
        return {"seq": seq, "reset": False, "plan": plan, **more}

    return make


@pytest.fixture
def open_plan(recorded, open_widget):
    """A page that shows this plan."""

    def opened(plan, examples=None, **options):
        snapshot = recorded.snapshot()
        return open_widget({**snapshot, "plan": plan, "examples": examples or {}}, **options)

    return opened


def step(page, number):
    return page.locator(".cdiag-step").nth(number - 1)


def test_the_plan_is_above_everything_but_the_top_line(recorded, open_plan):
    for number in range(3):
        recorded.compile(number)
    page = open_plan(make_plan())
    expect(page.locator(".cdiag-plan-headline")).to_have_text(
        "2 changes remove 7 of 7 recompiles and save 123 s of 199 s compile time"
    )
    tops = (
        "() => ['top', 'plan', 'totals'].map((n) => document.querySelector(`.cdiag-${n}`).getBoundingClientRect().top)"
    )
    expect_value(page, tops, lambda found: found == sorted(found))


def test_a_step_says_where_what_the_change_and_what_it_saves(open_plan):
    page = open_plan(make_plan())
    first = step(page, 1)
    expect(first.locator(".cdiag-step-place")).to_have_text("train.py:28")
    expect(first.locator(".cdiag-step-place")).to_have_attribute("title", "/home/me/train.py:28")
    expect(first.locator(".cdiag-step-code")).to_have_text("logits = model(ids)")
    expect(first.locator(".cdiag-step-what")).to_have_text("ids.shape changes: 4x16, 6x16, 6x24")
    expect(first.locator("pre")).to_have_text(re.compile(r"^torch\._dynamo\.mark_dynamic\(ids, 0\)\n"))
    expect(first.locator(".cdiag-step-saving")).to_contain_text("Alone it saves nothing: self.step fails")
    # The sentence has the values, so they are not listed again.
    expect(step(page, 2).locator(".cdiag-step-what")).to_have_text("self.step is a new constant at every call: 1, 2, 3")
    expect(page.locator(".cdiag-plan-code pre")).to_contain_text("self.step.add_(1)")


def test_a_change_that_no_program_can_apply_is_a_sentence(open_plan):
    steps = make_step(can_be_applied=False, change="Keep `self.step` in a tensor."), make_second_step()
    page = open_plan(make_plan(*steps))
    expect(step(page, 1).locator("pre:visible")).to_have_count(0)
    expect(step(page, 1)).to_contain_text("Keep self.step in a tensor.")


def test_the_code_of_a_single_step_is_not_repeated(open_plan):
    page = open_plan(make_plan(make_step(), code="# train.py:28\nmark()"))
    expect(page.locator(".cdiag-plan-code")).to_be_hidden()
    expect(step(page, 1).locator("pre")).to_have_text("# train.py:28\nmark()")
    expect(step(page, 1).locator(".cdiag-copy")).to_be_visible()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_copy_puts_the_block_on_the_clipboard_and_says_so(open_plan, deliver, patch_of, has_clipboard):
    page = open_plan(make_plan(), permissions=["clipboard-read", "clipboard-write"])
    page.evaluate("() => document.body.append(document.createElement('textarea'))")
    if not has_clipboard:
        page.evaluate(NO_CLIPBOARD)
    button = page.locator(".cdiag-plan-code .cdiag-copy")
    button.click()
    expect(button).to_have_text("Copied")
    expect(button).to_be_focused()
    page.locator("body > textarea").focus()
    page.keyboard.press("Control+v")
    expect(page.locator("body > textarea")).to_have_value(make_plan()["code"])
    expect(button).to_have_text("Copy")


def test_a_clipboard_that_refuses_is_said(open_plan):
    page = open_plan(make_plan())
    page.evaluate(NO_CLIPBOARD)
    page.evaluate("() => { document.execCommand = () => false; }")
    button = page.locator(".cdiag-plan-code .cdiag-copy")
    button.click()
    expect(button).to_have_text("Not copied")


def test_a_step_and_a_finding_show_an_example_of_their_rule(recorded, open_widget, deliver, patch_of):
    rules = {"size_changes": make_example("x = 1"), "graph_break": make_example("print(x)", "")}
    findings = [make_finding(rule="graph_break", evidence=[7])]
    parts = {"plan": make_plan(make_step(rule="size_changes"), make_step(rule="of_a_plugin"))}
    page = open_widget({**recorded.snapshot(), **parts, "findings": findings, "examples": rules})
    expect(step(page, 2).get_by_text("Example")).to_be_hidden()
    fold = step(page, 1).locator("details", has_text="What a user notices.")
    fold.locator("summary").click()
    for text in ("What a user notices.", "x = 1", "f recompiled 2x", "With this change:", "+torch.mark(x)"):
        expect(fold).to_contain_text(text)
    fold = page.locator(".cdiag-finding-list li", has_text="Example")
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("pre:visible")).to_have_count(2)  # the program and what is printed; no change is needed
    deliver(
        page,
        patch_of(
            make_plan(), 1, findings=[make_finding(rule="graph_break", evidence=[7], count=2, title="f broke 2x")]
        ),
    )
    expect(page.locator(".cdiag-finding-title")).to_have_text("f broke 2x")
    expect(fold.locator("pre").first).to_be_visible()


def test_the_patch_and_other_ways_are_folded_and_open_by_key(open_plan):
    page = open_plan(make_plan())
    fold = page.locator(".cdiag-prediction > .cdiag-more", has_text="Patch")
    expect(fold.locator("pre")).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("pre")).to_have_text(PATCH)
    page.keyboard.press("Tab")
    expect(fold.locator(".cdiag-copy")).to_be_focused()
    page.keyboard.press("Escape")
    expect(fold.locator("pre")).to_be_hidden()
    expect(fold.locator("summary")).to_be_focused()
    step(page, 1).locator("summary", has_text="1 other way").click()
    expect(step(page, 1).locator(".cdiag-reasons")).to_contain_text("dynamic_sources")


def test_unresolved_causes_are_folded_with_their_reasons(open_plan):
    causes = [{"what": "`n` changes", "reason": "each length is wanted", "place": "a.py:3", "evidence": []}]
    page = open_plan(make_plan(unresolved=causes, notes=["Compiled in two threads."]))
    page.click("text=1 cause not resolved, and why")
    expect(page.locator(".cdiag-unresolved li")).to_have_text("a.py:3: n changes: each length is wanted")
    expect(page.locator(".cdiag-plan-notes")).to_have_text("Compiled in two threads.")


def test_specifications_that_replace_steps_are_folded_below_them(open_plan):
    title, code = "Instead of steps 1 and 2, one specification of step (train.py:8):", "x = ShapeVar('x') # <b>"
    page = open_plan(make_plan(specs=[{"title": title, "steps": [1, 2], "code": code}]))
    shown = page.locator(".cdiag-plan pre", has_text="ShapeVar")
    expect(shown).not_to_be_visible()
    page.click(f"text={title.removesuffix(':')}")
    expect(shown).to_have_text(code)


def test_costs_without_recompiles_are_folded_below_steps_and_open_without(open_plan, deliver, patch_of):
    page = open_plan(make_plan(costs=[make_cost()]))
    expect(page.locator(".cdiag-cost")).to_be_hidden()
    page.click("text=Where compile time goes")
    expect(page.locator(".cdiag-cost-what")).to_have_text("The next process compiles 2 of 3 graphs again: 9.0 s")
    expect(page.locator(".cdiag-cost pre")).to_contain_text("['Scale']")
    page.click("text=1 detail")
    deliver(page, patch_of(make_plan(costs=[make_cost(what="The next process repeats 12 s")]), 1))
    expect(page.locator(".cdiag-cost-what")).to_have_text("The next process repeats 12 s")
    expect(page.locator(".cdiag-cost .cdiag-reasons")).to_be_visible()


@pytest.mark.parametrize("holds", [True, False])
def test_a_trial_shows_its_outcome(open_plan, holds):
    outcome = make_outcome(holds=holds)
    line = open_plan(make_plan(tried=outcome)).locator(".cdiag-outcome-line")
    expect(line).to_have_text(outcome["text"])
    expect(line).to_have_class(re.compile("is-good" if holds else "^cdiag-outcome-line$"))


def test_a_plan_without_steps_is_one_line_and_the_reasons(open_plan, deliver, patch_of):
    page = open_plan(make_empty_plan("Nothing recompiled"))
    expect(page.locator(".cdiag-plan h2")).to_have_text("Plan so far")
    expect(page.locator(".cdiag-plan-headline")).to_have_text("Nothing recompiled")
    expect(page.locator(".cdiag-plan .cdiag-copy:visible")).to_have_count(0)
    causes = [{"what": "`mode` changes", "reason": "both modes are wanted", "place": "a.py:3", "evidence": []}]
    headline = "No change removes any of 3 recompiles"
    plan = make_empty_plan(headline, unresolved=causes, costs=[make_cost()])
    deliver(page, patch_of(plan, 1, meta={"state": "stopped"}))
    expect(page.locator(".cdiag-cost")).to_be_visible()
    expect(page.locator(".cdiag-plan h2")).to_have_text("Plan")
    expect(page.locator(".cdiag-plan-headline")).to_have_text(headline)
    expect(page.locator(".cdiag-unresolved li")).to_be_visible()
    deliver(page, patch_of(make_plan(unresolved=causes, costs=[make_cost()]), 2))
    expect(page.locator(".cdiag-unresolved li")).to_be_hidden()
    expect(page.locator(".cdiag-cost")).to_be_hidden()


def test_only_the_headline_is_announced(open_plan):
    page = open_plan(make_plan())
    expect(page.locator(".cdiag-plan [aria-live]")).to_have_count(1)
    expect(page.locator(".cdiag-plan-headline")).to_have_attribute("aria-live", "polite")


def test_a_new_plan_keeps_focus_selection_and_open_folds(open_plan, deliver, patch_of):
    page = open_plan(make_plan())
    step(page, 1).locator("summary", has_text="other way").click()
    page.locator(".cdiag-prediction > .cdiag-more summary").first.click()
    page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.cdiag-step-code'))")
    copy = step(page, 1).locator(".cdiag-copy")
    copy.focus()
    # The second step becomes the first one, and there is another one after it.
    third = make_second_step(line=40, place="train.py:40", expression="n")
    saving = "Saves 8 of 8 recompiles and 130 s."
    deliver(page, patch_of(make_plan(make_second_step(), make_step(saving=saving), third), 1))
    expect(page.locator(".cdiag-step-place")).to_have_text(["train.py:12", "train.py:28", "train.py:40"])
    expect(step(page, 2).locator(".cdiag-step-saving")).to_have_text(saving)
    expect(step(page, 2).locator(".cdiag-copy")).to_be_focused()
    expect(step(page, 2).locator(".cdiag-reasons")).to_be_visible()
    expect(page.locator(".cdiag-prediction > .cdiag-more pre").first).to_be_visible()
    expect_value(page, SELECTED, "logits = model(ids)")


def test_many_steps_are_folded(open_plan):
    steps = [make_step(line=line, place=f"train.py:{line}") for line in range(1, 13)]
    page = open_plan(make_plan(*steps))
    expect(page.locator(".cdiag-step:visible")).to_have_count(5)
    page.click("text=show all 12 steps")
    expect(page.locator(".cdiag-step:visible")).to_have_count(12)
    page.click("text=show fewer steps")
    expect(page.locator(".cdiag-step:visible")).to_have_count(5)
    page.emulate_media(media="print")
    expect(page.locator(".cdiag-step:visible")).to_have_count(12)
    expect(page.locator(".cdiag-copy:visible")).to_have_count(0)
    expect(page.locator(".cdiag-prediction > .cdiag-more pre").first).to_be_visible()


def test_many_values_are_cut(open_plan):
    page = open_plan(make_plan(make_step(values=[f"4x{n}" for n in range(64)], value_count=100)))
    expect(step(page, 1).locator(".cdiag-step-what")).to_contain_text("4x7, and 92 more")


def test_a_step_leads_to_its_recompiles_and_to_its_guard(recorded, open_widget):
    for number in range(4):
        recorded.compile(number)
    snapshot = recorded.snapshot()
    evidence = [row[0] for row in snapshot["rows"]["recompiles"]]
    page = open_widget({**snapshot, "plan": make_plan(make_step(evidence=evidence))})
    show = step(page, 1).locator(".cdiag-step-evidence")
    open_tab(page, "sources")
    show.focus()
    page.keyboard.press("Enter")
    expect(page.locator('[data-tab="recompiles"]')).to_have_attribute("aria-selected", "true")
    expect(page.locator(".cdiag-chip")).to_contain_text("only: step 1, train.py:28")
    expect(show).to_have_attribute("aria-pressed", "true")
    page.click(".cdiag-chip")
    expect(show).to_have_attribute("aria-pressed", "false")
    step(page, 1).locator(".cdiag-explore-link").click()
    expect(page.locator(".cdiag-page-title code")).to_contain_text("x.shape[0]")


def test_hostile_text_in_every_part_of_a_plan_is_text(open_plan):
    texts = ("file", "place", "function", "code", "expression", "what", "change", "why", "saving", "rule")
    steps = [make_step(**dict.fromkeys(texts, name), values=[name], alternatives=[name]) for name in HOSTILE]
    causes = [{"what": name, "reason": name, "place": name, "evidence": []} for name in HOSTILE]
    whole = "\n".join(HOSTILE)
    costs = [make_cost(what=name, advice=name, code=name, details=[name]) for name in HOSTILE]
    more = {
        "costs": costs,
        "headline": whole,
        "code": whole,
        "patch": whole,
        "notes": HOSTILE,
        "tried": make_outcome(text=whole),
    }
    page = open_plan(make_plan(*steps, unresolved=causes, **more), width=400)
    page.click("text=show all 8 steps")
    page.evaluate("() => document.querySelectorAll('.cdiag-plan details').forEach((n) => { n.open = true; })")
    for part in ("-headline", "-code pre"):
        read = f"() => document.querySelector('.cdiag-plan{part}').textContent"
        expect_value(page, read, whole)
    expect_value(page, "window.bitten", None)
    expect(page.locator(".cdiag img, .cdiag script")).to_have_count(0)
    expect_value(page, FITS, [])


def test_it_fits_any_width(recorded, open_plan):
    for number in range(3):
        recorded.compile(number)
    recorded.in_flight(compile_id="0/9", function="a_rather_long_function_name", file="/home/me/model.py", line=30)
    long = make_step(code=f"logits = model({', '.join(f'argument_{n}=batch[{n}]' for n in range(30))})")
    causes = [{"what": "`n` changes", "reason": "each length is wanted", "place": "a.py:3", "evidence": []}]
    examples = {long["rule"]: make_example("x = 1  # long " * 20, "+y = 2  # long " * 20)}
    plan = make_plan(long, make_second_step(), unresolved=causes, costs=[make_cost()])
    page = open_plan(plan, examples=examples, width=400)
    for summary in page.locator(".cdiag-plan summary:visible").all():
        summary.click()
    for width in (400, 600, 1300):
        page.set_viewport_size({"width": width, "height": 1000})
        expect_value(page, FITS, [])
        if width >= 600:  # the tables below need that
            expect_value(page, SPILLS, [])
        expect_value(page, "document.documentElement.scrollWidth <= innerWidth", True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_the_plan_can_be_read(open_plan, scheme):
    causes = [{"what": "`n` changes", "reason": "each length is wanted", "place": "a.py:3", "evidence": []}]
    plan = make_plan(
        unresolved=causes, costs=[make_cost()], tried=make_outcome(holds=False), notes=["Compiled in two threads."]
    )
    page = open_plan(plan, color_scheme=scheme)
    for summary in page.locator(".cdiag-plan summary:visible").all():
        summary.click()
    expect_contrast(page)


def test_a_report_shows_the_plan_without_any_request(recorded, open_report, tmp_path):
    for number in range(3):
        recorded.compile(number)
    (tmp_path / "report.html").write_text(render_report({**recorded.snapshot(), "plan": make_plan()}))
    page = open_report(tmp_path / "report.html", permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator(".cdiag-plan h2")).to_have_text("Plan")
    page.locator(".cdiag-plan-code .cdiag-copy").click()
    expect(page.locator(".cdiag-plan-code .cdiag-copy")).to_have_text("Copied")
    expect_value(page, "() => navigator.clipboard.readText()", make_plan()["code"])
