"""The plan on the page: first of all, kept as it is while a watch runs, copied, opened by key, safe with any text."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import expect_value, host_widget, open_tab
from tests.browser.plan_builder import (
    make_cost,
    make_empty_plan,
    make_example,
    make_finding,
    make_outcome,
    make_plan,
    make_proof,
    make_second_step,
    make_source,
    make_step,
)
from tests.browser.test_accessibility import SPILLS, check_both_themes, find_violations
from tests.browser.test_page import HOSTILE
from tests.inside import render_report

#: What is wider than its place in the plan; a diff and a table scroll, and the line of a step is cut.
FITS = """() => [...document.querySelectorAll(".cdiag-plan, .cdiag-plan *")]
  .map((n) => [n, getComputedStyle(n)])
  .filter(([n, style]) => n.scrollWidth > n.clientWidth + 1 && style.display !== "inline")
  .filter(([, style]) => style.overflowX !== "auto" && style.textOverflow !== "ellipsis").map(([n]) => n.className)"""
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


def open_step(page, number):
    step(page, number).locator(".cdiag-step-title").click()
    return step(page, number).locator(".cdiag-step-body")


def open_change(page):
    page.locator(".cdiag-whole-title").click()


def open_all(page):
    """Open all steps, the whole change, and all folds."""
    for title in page.locator(".cdiag-plan :is(.cdiag-step-title, .cdiag-whole-title):visible").all():
        title.click()
    for summary in page.locator(".cdiag-plan summary:visible").all():
        summary.click()


def expect_pasted(page, text):
    """What is on the clipboard."""
    page.evaluate("""() => {
      document.querySelector("body > textarea")?.remove();
      document.body.append(document.createElement("textarea"));
    }""")
    page.locator("body > textarea").focus()
    page.keyboard.press("Control+v")
    expect(page.locator("body > textarea")).to_have_value(text)


def copy_all(page):
    return page.locator(".cdiag-whole-actions .cdiag-copy")


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
    expect(page.locator(".cdiag-plan [aria-live]")).to_have_count(1)
    expect(page.locator(".cdiag-plan-headline")).to_have_attribute("aria-live", "polite")


def test_a_step_is_one_line_with_its_cause_place_and_saving(open_plan):
    values = [f"(4, {n})" for n in range(6)]
    second = make_second_step(title_values=values, has_more_values=True)
    page = open_plan(make_plan(make_step(recompiles_gained=3, seconds_gained=9.8), second))
    first, second = step(page, 1), step(page, 2)
    expect(second.locator(".cdiag-step-values")).to_have_text(", ".join(values) + ", …")
    expect(first.locator(".cdiag-step-cause")).to_have_text("ids comes in 3 shapes (4, 16), (6, 16), (6, 24)")
    expect(first.locator(".cdiag-step-place")).to_have_text("train.py:28")
    expect(first.locator(".cdiag-step-place")).to_have_attribute("title", "/home/me/train.py:28")
    expect(first.locator(".cdiag-step-count")).to_have_text("−3 recompiles")
    expect(first.locator(".cdiag-step-seconds")).to_have_text("−9.8 s")
    expect(second.locator(".cdiag-step-count")).to_have_text("−7 more, after step 1")
    expect(first.locator(".cdiag-step-body")).to_have_count(0)
    height = "() => document.querySelector('.cdiag-step-row').offsetHeight"
    expect_value(page, height, 36)
    page.evaluate("() => { document.querySelector('.cdiag').dataset.size = 'compact'; }")
    expect_value(page, height, 30)


def test_an_open_step_says_why_what_to_change_and_what_that_saves(open_plan):
    page = open_plan(make_plan())
    step(page, 1).locator(".cdiag-step-title").focus()
    page.keyboard.press("Enter")
    first = step(page, 1).locator(".cdiag-step-body")
    expect(first.locator(".cdiag-step-code")).to_have_text("logits = model(ids)")
    expect(first.locator(".cdiag-step-why")).to_contain_text("torch compiles a function")
    expect(first.locator(".cdiag-step-saving")).to_contain_text("Alone it saves nothing: self.step fails")
    expect(first.locator(".cdiag-diff .is-added")).to_have_count(2)
    expect(first.locator(".cdiag-diff")).not_to_contain_text("self.step.add_")
    expect(step(page, 1).locator(".cdiag-step-count")).to_have_text("with step 2")
    page.keyboard.press("Enter")
    expect(first).to_have_count(0)


def test_a_change_that_no_program_can_apply_is_a_sentence(open_plan):
    steps = make_step(can_be_applied=False, change="Keep `self.step` in a tensor."), make_second_step()
    body = open_step(open_plan(make_plan(*steps)), 1)
    expect(body.locator(".cdiag-diff")).to_have_count(0)
    expect(body).to_contain_text("Keep self.step in a tensor.")


def test_the_whole_change_has_the_step_of_each_line(open_plan):
    page = open_plan(make_plan())
    expect(page.locator(".cdiag-whole-title")).to_contain_text("+3 −1 lines in train.py")
    expect(page.locator(".cdiag-whole .cdiag-diff")).to_have_count(0)
    open_change(page)
    rows = page.locator(".cdiag-whole .cdiag-diff > div")
    read = "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    expect_value(
        page,
        lambda: rows.evaluate_all(read),
        [
            ["26", "", " ", "for ids in batches:"],
            ["", "1", "+", "    torch._dynamo.mark_dynamic(ids, 0)"],
            ["", "1", "+", "    torch._dynamo.mark_dynamic(ids, 1)"],
            ["", "2", "-", "    self.step += 1"],
            ["", "2", "+", "    self.step.add_(1)"],
            ["28", "", " ", "    logits = model(ids)"],
        ],
    )


def test_without_a_source_the_changes_are_shown_as_code(open_plan):
    page = open_plan(make_plan(sources=[], patch=None))
    expect(open_step(page, 1).locator("pre.cdiag-snippet").first).to_contain_text("torch._dynamo.mark_dynamic(ids, 0)")
    open_change(page)
    expect(page.locator(".cdiag-whole .cdiag-snippet")).to_have_text(make_plan()["code"])
    expect(page.get_by_role("button", name="Save patch")).to_have_count(0)


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_copy_puts_the_change_on_the_clipboard_and_says_so(open_plan, has_clipboard):
    page = open_plan(make_plan(), permissions=["clipboard-read", "clipboard-write"])
    if not has_clipboard:
        page.evaluate(NO_CLIPBOARD)
    button = copy_all(page)
    button.click()
    expect(button).to_have_text("Copied")
    expect(button).to_be_focused()
    expect_pasted(page, make_plan()["patch"])
    if has_clipboard:  # Else it takes as long again.
        expect(button).to_have_text("Copy")
    lines = open_step(page, 2).locator(".cdiag-box-title .cdiag-copy")
    lines.click()
    expect(lines).to_have_text("Copied")
    expect_pasted(page, "    self.step.add_(1)")


def test_a_clipboard_that_refuses_is_said(open_plan):
    page = open_plan(make_plan())
    page.evaluate(NO_CLIPBOARD)
    page.evaluate("() => { document.execCommand = () => false; }")
    copy_all(page).click()
    expect(copy_all(page)).to_have_text("Not copied")


def test_of_a_cell_the_changed_text_is_copied_and_of_a_file_the_patch_is_saved(open_plan, deliver, patch_of):
    page = open_plan(make_plan(), permissions=["clipboard-read", "clipboard-write"])
    with page.expect_download() as download:
        page.get_by_role("button", name="Save patch").click()
    assert download.value.path().read_text() == make_plan()["patch"]
    cell = make_source(place="In[4]", cell=4, before="model(ids)", after="mark()\nmodel(ids)")
    deliver(page, patch_of(make_plan(sources=[cell]), 1))
    expect(page.get_by_role("button", name="Save patch")).to_have_count(0)
    expect(page.locator(".cdiag-replace")).to_have_count(0)  # There is no notebook around this page.
    copy_all(page).click()
    expect(copy_all(page)).to_have_text("Copied")
    expect_pasted(page, "mark()\nmodel(ids)")


def test_a_step_and_a_finding_show_an_example_of_their_rule(recorded, open_widget, deliver, patch_of):
    rules = {"size_changes": make_example("x = 1"), "graph_break": make_example("print(x)", "")}
    findings = [make_finding(rule="graph_break", evidence=[7])]
    parts = {"plan": make_plan(make_step(rule="size_changes"), make_step(rule="of_a_plugin"))}
    page = open_widget({**recorded.snapshot(), **parts, "findings": findings, "examples": rules})
    expect(open_step(page, 2).get_by_text("Example")).to_have_count(0)
    fold = open_step(page, 1).locator("details", has_text="What a user notices.")
    fold.locator("summary").click()
    for text in ("What a user notices.", "x = 1", "f recompiled 2x", "With this change:", "torch.mark(x)"):
        expect(fold).to_contain_text(text)


def test_other_ways_unresolved_causes_and_specifications_are_folded_and_open_by_key(open_plan):
    causes = [{"what": "`n` changes", "reason": "each length is wanted", "place": "a.py:3", "evidence": []}]
    title, code = "Instead of steps 1 and 2, one specification of step (train.py:8):", "x = ShapeVar('x') # <b>"
    specs = [{"title": title, "steps": [1, 2], "code": code}]
    page = open_plan(make_plan(unresolved=causes, notes=["Compiled in two threads."], specs=specs))
    fold = open_step(page, 1).locator("details", has_text="1 other way")
    expect(fold.locator("pre")).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("pre")).to_contain_text("dynamic_sources")
    page.keyboard.press("Tab")
    expect(fold.locator(".cdiag-copy")).to_be_focused()
    page.keyboard.press("Escape")
    expect(fold.locator("pre")).to_be_hidden()
    expect(fold.locator("summary")).to_be_focused()
    page.click("text=1 cause not resolved, and why")
    expect(page.locator(".cdiag-unresolved li")).to_have_text("a.py:3: n changes: each length is wanted")
    expect(page.locator(".cdiag-plan-note")).to_have_text("Compiled in two threads.")
    shown = page.locator(".cdiag-plan pre", has_text="ShapeVar")
    expect(shown).not_to_be_visible()
    page.click(f"text={title.removesuffix(':')}")
    expect(shown).to_have_text(code)


def test_the_evidence_of_a_step_is_what_torch_compiled_and_why(open_plan):
    proof = make_proof((None, False), ("ids.shape[0]: 4 → 6", True), ("self.step: 1 → 2", False))
    body = open_step(open_plan(make_plan(make_step(proof=proof))), 1)
    expect(body.locator(".cdiag-proof tbody tr")).to_have_count(3)
    expect(body.locator(".cdiag-proof tbody tr").nth(0)).to_contain_text("first compile")
    expect(body.locator(".cdiag-proof-change")).to_have_text(["ids.shape[0]: 4 → 6"])
    expect(body.locator(".cdiag-proof h3")).to_have_text("Evidence: the 3 compiles of forward (model.py:30)")


def test_costs_without_recompiles_are_folded_below_the_steps(open_plan, deliver, patch_of):
    page = open_plan(make_plan(costs=[make_cost()]))
    expect(page.locator(".cdiag-cost-what")).to_be_hidden()
    page.click("text=Where compile time goes")
    expect(page.locator(".cdiag-cost-what")).to_have_text("The next process compiles 2 of 3 graphs again: 9.0 s.")
    expect(page.locator(".cdiag-costs pre")).to_contain_text("['Scale']")
    page.click("text=1 detail")
    deliver(page, patch_of(make_plan(costs=[make_cost(what="The next process repeats 12 s")]), 1))
    expect(page.locator(".cdiag-cost-what")).to_have_text("The next process repeats 12 s.")
    expect(page.locator(".cdiag-costs .cdiag-sentences li li")).to_be_visible()


def test_a_large_cost_is_a_line_like_a_step(open_plan, deliver, patch_of):
    cost = make_cost(kind="tuning", title="7 tunings all end at torch's own kernel", seconds=53.0, place="")
    plan = make_empty_plan("Tuning took 53 s of 199 s and never pays off", recompiles=0, costs=[cost], leads="tuning")
    page = open_plan(plan)
    deliver(page, patch_of(plan, 1, meta={"state": "stopped"}))
    expect(step(page, 1).locator(".cdiag-step-cause")).to_have_text("7 tunings all end at torch's own kernel")
    expect(step(page, 1).locator(".cdiag-step-seconds")).to_have_text("−53.0 s")
    expect(page.locator(".cdiag-split-keys")).to_contain_text("tuning 53.0 s")
    expect(open_step(page, 1).locator("pre")).to_contain_text("['Scale']")


def test_what_each_call_costs_is_a_line_without_seconds(open_plan, deliver, patch_of):
    cost = make_cost(kind="not_captured", title="CUDA graphs were asked for, and none was captured", seconds=0.0)
    plan = make_empty_plan("No CUDA graph was captured", recompiles=0, costs=[cost], leads="not_captured")
    page = open_plan(plan)
    deliver(page, patch_of(plan, 1, meta={"state": "stopped"}))
    expect(page.locator(".cdiag-plan-headline")).to_have_text("No CUDA graph was captured")
    expect(step(page, 1).locator(".cdiag-step-cause")).to_have_text(cost["title"])
    expect(step(page, 1).locator(".cdiag-step-seconds")).to_have_text("")
    expect(page.locator(".cdiag-split-keys, .cdiag-costs")).to_have_count(0)


@pytest.mark.parametrize(("holds", "after"), [(True, 0), (False, 2)])
def test_a_trial_shows_its_outcome(open_plan, holds, after):
    note = None if holds else "2 recompiles that the plan names are left"
    page = open_plan(make_plan(tried=make_outcome(holds=holds, recompiles_after=after, note=note)))
    message = page.locator(".cdiag-trial")
    expect(message.and_(page.locator(".is-good" if holds else ".is-warn"))).to_be_visible()
    for text in ["Tried: it holds.", "7 → 0 recompiles", "same output"] if holds else ["5 of 7 recompiles gone", note]:
        expect(message).to_contain_text(text)


def test_a_plan_without_steps_is_one_line_and_the_reasons(open_plan, deliver, patch_of):
    page = open_plan(make_empty_plan("Nothing recompiled", recompiles=0))
    expect(page.locator(".cdiag-plan-headline")).to_have_text("Nothing recompiled so far")
    expect(page.locator(".cdiag-plan .cdiag-copy:visible")).to_have_count(0)
    causes = [{"what": "`mode` changes", "reason": "both modes are wanted", "place": "a.py:3", "evidence": []}]
    headline = "Found no change that removes any of 3 recompiles"
    plan = make_empty_plan(headline, unresolved=causes, costs=[make_cost()])
    deliver(page, patch_of(plan, 1, meta={"state": "stopped"}))
    expect(page.locator(".cdiag-cost-what")).to_be_visible()
    expect(page.locator(".cdiag-plan-headline")).to_have_text(headline)
    expect(page.locator(".cdiag-unresolved li")).to_be_visible()
    deliver(page, patch_of(make_plan(unresolved=causes, costs=[make_cost()]), 2))
    expect(page.locator(".cdiag-unresolved li")).to_be_hidden()
    expect(page.locator(".cdiag-cost-what")).to_be_hidden()


def test_nothing_moves_while_steps_come(open_plan, deliver, patch_of):
    """Neither the first step nor what is below the plan."""
    places = """() => ['.cdiag-steps-frame, .is-waiting', '.cdiag-plan']
      .map((name) => document.querySelector(name).getBoundingClientRect())
      .map((box, i) => Math.round(i ? box.bottom : box.top))"""
    page = open_plan(make_empty_plan("Nothing recompiled", recompiles=0))
    before = page.evaluate(places)
    for seq, steps in ((1, [make_step()]), (2, [make_step(), make_second_step()])):
        deliver(page, patch_of(make_plan(*steps, costs=[make_cost()]), seq))
        expect(page.locator(".cdiag-step-row")).to_have_count(seq)
        assert page.evaluate(places) == before
    deliver(page, patch_of(make_plan(*(make_step(line=line) for line in (1, 2, 3, 4))), 3))
    expect(page.locator(".cdiag-step:visible")).to_have_count(2)
    assert page.evaluate(places) == before
    expect(page.locator(".cdiag-more-steps")).to_have_text("2 more steps")
    deliver(page, patch_of(make_plan(*(make_step(line=line) for line in (1, 2, 3, 4))), 4, meta={"state": "stopped"}))
    expect(page.locator(".cdiag-step:visible")).to_have_count(4)


def test_a_new_plan_keeps_focus_selection_and_open_folds(open_plan, deliver, patch_of):
    page = open_plan(make_plan(sources=[]))
    open_step(page, 1).locator("summary", has_text="other way").click()
    open_change(page)
    page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.cdiag-step-code'))")
    copy = step(page, 1).locator(".cdiag-copy").first
    copy.focus()
    # The second step becomes the first one, and there is another one after it.
    third = make_second_step(line=40, place="train.py:40", expression="n")
    saving = "Saves 8 of 8 recompiles and 130 s."
    deliver(page, patch_of(make_plan(make_second_step(), make_step(saving=saving), third, sources=[]), 1))
    expect(page.locator(".cdiag-step-place")).to_have_text(["train.py:12", "train.py:28", "train.py:40"])
    expect(step(page, 2).locator(".cdiag-step-saving")).to_have_text(saving)
    expect(step(page, 2).locator(".cdiag-copy").first).to_be_focused()
    expect(step(page, 2).locator(".cdiag-other-ways pre")).to_be_visible()
    expect(page.locator(".cdiag-whole pre")).to_be_visible()
    expect_value(page, SELECTED, "logits = model(ids)")


def test_open_folds_stay_open_when_something_comes_before_them(open_plan, deliver, patch_of):
    page = open_plan(make_plan(make_step()))
    open_step(page, 1).locator("summary", has_text="other way").click()
    page.click(".cdiag-top .cdiag-menu > button")
    page.click('[data-command="html"]')
    expect(page.locator(".cdiag-exported")).to_contain_text("the kernel writes it")
    expect(step(page, 1).locator(".cdiag-other-ways pre")).to_be_visible()
    deliver(page, patch_of(make_plan(make_step(origin="ids = batch[0]")), 1))
    expect(step(page, 1).locator(".cdiag-step-code")).to_have_text(["logits = model(ids)", "ids = batch[0]"])
    expect(step(page, 1).locator(".cdiag-other-ways pre")).to_be_visible()


def test_many_steps_are_folded(open_plan, deliver, patch_of):
    plan = make_plan(*[make_step(line=line, place=f"train.py:{line}") for line in range(1, 13)])
    page = open_plan(plan)
    deliver(page, patch_of(plan, 1, meta={"state": "stopped"}))
    expect(page.locator(".cdiag-step:visible")).to_have_count(5)
    page.click("text=Show all 12 steps")
    expect(page.locator(".cdiag-step:visible")).to_have_count(12)
    page.click("text=Show fewer steps")
    expect(page.locator(".cdiag-step:visible")).to_have_count(5)
    page.emulate_media(media="print")
    expect(page.locator(".cdiag-step:visible")).to_have_count(12)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".cdiag-step-body:visible")).to_have_count(12)
    expect(page.locator(".cdiag-copy:visible")).to_have_count(0)


def test_a_step_leads_to_its_recompiles_and_to_its_guard(recorded, open_widget):
    for number in range(4):
        recorded.compile(number)
    snapshot = recorded.snapshot()
    evidence = [row[0] for row in snapshot["rows"]["recompiles"]]
    page = open_widget({**snapshot, "plan": make_plan(make_step(evidence=evidence))})
    open_tab(page, "sources")
    show = open_step(page, 1).locator(".cdiag-step-evidence")
    show.focus()
    page.keyboard.press("Enter")
    expect(page.locator('[data-tab="recompiles"]')).to_have_attribute("aria-selected", "true")
    expect(page.locator(".cdiag-chip")).to_contain_text("only: step 1, train.py:28")
    expect(show).to_have_attribute("aria-pressed", "true")
    page.click(".cdiag-chip")
    expect(show).to_have_attribute("aria-pressed", "false")
    step(page, 1).locator(".cdiag-explore-link").click()
    expect(page.locator(".cdiag-page-title code")).to_contain_text("x.shape[0]")


def test_pointing_at_a_step_marks_its_compiles_in_the_timeline(recorded, open_widget):
    for number in range(4):
        recorded.compile(number)
    snapshot = recorded.snapshot()
    evidence = [snapshot["rows"]["recompiles"][0][0]]
    page = open_widget({**snapshot, "plan": make_plan(make_step(evidence=evidence))})
    page.mouse.move(0, 0)
    before = page.locator(".cdiag-canvas").first.screenshot()
    step(page, 1).locator(".cdiag-step-title").hover()
    expect_value(page, lambda: page.locator(".cdiag-canvas").first.screenshot() != before, True)
    page.locator(".cdiag-plan-headline").hover()
    expect_value(page, lambda: page.locator(".cdiag-canvas").first.screenshot() == before, True)


def test_the_plan_alone_is_a_page_of_its_own(recorded, new_page):
    """What `%compilewatch plan` shows."""
    page = new_page()
    page.set_content("<!doctype html><html><body></body></html>")
    host_widget(page, {**recorded.snapshot(), "plan": make_plan()}, page="plan")
    expect(page.locator(".cdiag-step")).to_have_count(2)
    expect(page.locator(".cdiag > :not(.cdiag-tooltip)")).to_have_count(1)
    assert find_violations(page, "document.querySelector('.cdiag')") == []


def test_hostile_text_in_every_part_of_a_plan_is_text(open_plan):
    texts = ("file", "place", "function", "code", "expression", "title", "what", "change", "why", "saving", "rule")
    steps = [make_step(**dict.fromkeys(texts, name), title_values=[name], alternatives=[name]) for name in HOSTILE]
    causes = [{"what": name, "reason": name, "place": name, "evidence": []} for name in HOSTILE]
    whole = "\n".join(HOSTILE)
    costs = [make_cost(what=name, title=name, advice=name, code=name, details=[name]) for name in HOSTILE]
    lines = [[None, "+", name, 1] for name in HOSTILE]
    source = make_source(place=whole, cell=4, lines=lines, before=whole, after=whole)
    parts = {"headline": whole, "code": whole, "patch": whole, "notes": HOSTILE, "sources": [source]}
    page = open_plan(
        make_plan(*steps, unresolved=causes, costs=costs, tried=make_outcome(note=whole), **parts), width=400
    )
    page.click(".cdiag-more-steps")
    open_all(page)
    expect_value(page, "() => document.querySelector('.cdiag-plan-headline').textContent", whole)
    read = "rows => rows.map((row) => row.querySelector('code').textContent)"
    expect_value(page, lambda: page.locator(".cdiag-whole .cdiag-diff > div").evaluate_all(read), HOSTILE)
    expect_value(page, "window.bitten", None)
    expect(page.locator(".cdiag img, .cdiag script")).to_have_count(0)
    expect_value(page, FITS, [])


def test_it_fits_any_width_and_every_text_can_be_read(recorded, open_plan):
    for number in range(3):
        recorded.compile(number)
    recorded.in_flight(compile_id="0/9", function="a_rather_long_function_name", file="/home/me/model.py", line=30)
    proof = make_proof((None, False), ("ids.shape[0]: 4 → 6", True))
    long = make_step(code=f"logits = model({', '.join(f'argument_{n}=batch[{n}]' for n in range(30))})", proof=proof)
    causes = [{"what": "`n` changes", "reason": "each length is wanted", "place": "a.py:3", "evidence": []}]
    examples = {long["rule"]: make_example("x = 1  # long " * 20, "+y = 2  # long " * 20)}
    parts = {"costs": [make_cost()], "tried": make_outcome(holds=False), "notes": ["Compiled in two threads."]}
    page = open_plan(make_plan(long, make_second_step(), unresolved=causes, **parts), examples=examples, width=400)
    open_all(page)
    for width in (400, 600, 1300):
        page.set_viewport_size({"width": width, "height": 1000})
        expect_value(page, FITS, [])
        if width >= 600:  # the tables below need that
            expect_value(page, SPILLS, [])
        expect_value(page, "document.documentElement.scrollWidth <= innerWidth", True)
    check_both_themes(page, "document.querySelector('.cdiag')")


def test_a_report_shows_the_plan_and_how_to_try_it_without_any_request(recorded, open_report, tmp_path):
    for number in range(3):
        recorded.compile(number)
    (tmp_path / "report.html").write_text(render_report({**recorded.snapshot(), "plan": make_plan()}))
    page = open_report(tmp_path / "report.html", permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator(".cdiag-plan-kind")).to_have_text("Plan · not tried yet")
    page.get_by_role("button", name="Copy the try command").click()
    expect(page.locator(".cdiag-plan-actions .cdiag-copy")).to_have_text("Copied")
    expect_value(page, "() => navigator.clipboard.readText()", "compilediag try train.py")
