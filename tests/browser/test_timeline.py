"""The timeline: zoom, move, lanes, keys, table, paper. What the canvas shows is read from the texts drawn on it."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from compilediag.events import Compile, GuardFailure, Phase
from tests.browser.conftest import BEGIN_NS, SECOND, expect_value, run_modules, show_widget
from tests.browser.many_events import many_events

#: Keeps what is drawn in `window.drawn`, the texts of the last painting by canvas, and counts paintings.
WATCH = """() => {
  const own = CanvasRenderingContext2D.prototype;
  const { fillText, clearRect } = own;
  window.drawn = new Map();
  window.paintings = 0;
  own.clearRect = function (...args) {
    window.drawn.set(this.canvas, []);
    if (this.canvas.matches(".cdiag-canvas")) window.paintings += 1;
    return clearRect.apply(this, args);
  };
  own.fillText = function (text, ...args) {
    window.drawn.get(this.canvas)?.push(text);
    return fillText.call(this, text, ...args);
  };
}"""
TEXTS = "window.drawn.get(document.querySelector('.cdiag-canvas')) ?? []"
#: Left edge and width of the window of the overview, as shares of the whole; all while the timeline is not zoomed.
WINDOW = """(() => {
  const [part, whole] = [".cdiag-minimap-window", ".cdiag-minimap-track"].map((each) =>
    document.querySelector(each).getBoundingClientRect());
  return whole.width ? [(part.left - whole.left) / whole.width, part.width / whole.width] : [0, 1];
})()"""
GUTTER = 200
#: A frame after the next one, when all that was asked for is painted.
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def open_timeline(new_page, recorded, is_full=True, **options):
    page = new_page(**options)
    page.evaluate(WATCH)
    show_widget(page, recorded.snapshot(), is_full=is_full)
    expect_value(page, TEXTS, bool)
    return page


def lanes_box(page):
    page.locator(".cdiag-lanes").scroll_into_view_if_needed()
    return page.locator(".cdiag-lanes").bounding_box()


def expect_window(page, accepts):
    """Wait until the window of the overview is accepted; its left edge and its width, as shares."""
    page.evaluate(SETTLED)
    return expect_value(page, WINDOW, lambda window: accepts(*window))


def is_near(value, expected, most=0.02):
    return abs(value - expected) < most


def place(name, line=30):
    return {"function": name, "file": "/home/me/model.py", "line": line}


def record_functions(recorded, count):
    """`count` functions, of which each costs more than the one before."""
    for number in range(count):
        recorded.attempts[0] = 0
        recorded.compile(0, seconds=0.5 + number / 10, place=place(f"block_{number}", number), compile_key=f"k{number}")


def test_the_wheel_zooms_with_ctrl_and_else_scrolls_the_page(recorded, new_page):
    for number in range(4):
        recorded.compile(number, seconds=2.0)
    page = open_timeline(new_page, recorded, height=250)
    box = lanes_box(page)
    x, y = box["x"] + box["width"] * 0.75, box["y"] + 40
    page.mouse.move(x, y)
    scrolled = page.evaluate("scrollY")
    page.mouse.wheel(0, -60)
    expect_value(page, "scrollY", lambda now: now < scrolled)
    expect_window(page, lambda left, width: width > 0.99)

    y = lanes_box(page)["y"] + 40
    page.mouse.move(x, y)
    page.evaluate(SETTLED)
    scrolled = page.evaluate("scrollY")
    page.keyboard.down("Control")
    for _ in range(3):
        page.mouse.wheel(0, -120)
    left, width = expect_value(page, WINDOW, lambda window: window[1] < 0.4)
    page.keyboard.up("Control")
    expect_value(page, "scrollY", scrolled)
    share = (x - box["x"] - GUTTER) / (box["width"] - GUTTER)
    assert abs(left + width * share - share) < 0.03, "the place under the pointer moved"

    page.mouse.wheel(120, 0)
    expect_value(page, WINDOW, lambda window: window[0] > left and abs(window[1] - width) < 0.01)
    page.focus(".cdiag-lanes")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-reset")).to_be_hidden()


def test_a_drag_moves_a_double_click_fits_and_shift_selects(recorded, new_page):
    for number in range(3):
        recorded.compile(number, seconds=2.0)
    page = open_timeline(new_page, recorded)
    box = lanes_box(page)
    x, y = box["x"] + GUTTER + (box["width"] - GUTTER) * 0.5, box["y"] + 40
    page.mouse.move(x, y)
    page.mouse.dblclick(x, y)
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/2")
    # While the session is live the axis ends at a round time, here 10 s; the bar is from 4 s to 6 s.
    first, fifth = expect_window(page, lambda left, width: is_near(left, 0.4, 0.04) and is_near(width, 0.2, 0.06))

    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y + 3, steps=5)
    page.mouse.up()
    expect_window(page, lambda left, width: left > first + 0.03 and is_near(width, fifth, 0.01))
    page.mouse.dblclick(x, box["y"] + 5)
    expect(page.locator(".cdiag-reset")).to_be_hidden()

    page.keyboard.down("Shift")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y, steps=4)
    expect(page.locator(".cdiag-band")).to_be_visible()
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(page.locator(".cdiag-band")).to_be_hidden()
    expect_window(page, lambda left, width: is_near(width, 120 / (box["width"] - GUTTER)))
    page.click(".cdiag-reset")
    expect_window(page, lambda left, width: width > 0.99)


def test_the_overview_of_a_zoomed_timeline_has_a_window_that_moves_and_has_edges(recorded, new_page):
    for number in range(4):
        recorded.compile(number)
    page = open_timeline(new_page, recorded)
    expect(page.locator(".cdiag-minimap")).to_be_hidden()
    page.focus(".cdiag-lanes")
    page.keyboard.press("+")
    page.locator(".cdiag-minimap").scroll_into_view_if_needed()
    track = page.locator(".cdiag-minimap-track").bounding_box()
    y = track["y"] + 12

    def drag(start, end):
        page.mouse.move(track["x"] + track["width"] * start, y)
        page.mouse.down()
        page.mouse.move(track["x"] + track["width"] * end, y, steps=4)
        page.mouse.up()

    left, width = expect_window(page, lambda left, width: is_near(width, 2 / 3))
    drag(left + width, 0.4)
    drag(left, 0.0)
    expect_window(page, lambda left, width: left < 0.01 and is_near(width, 0.4))
    drag(0.2, 0.5)
    expect_window(page, lambda left, width: is_near(left, 0.3) and is_near(width, 0.4))
    drag(0.05, 0.05)
    expect_window(page, lambda left, width: left < 0.01 and is_near(width, 0.4))


def test_the_zoom_is_remembered_when_a_report_is_loaded_again(recorded, open_report, tmp_path):
    record_functions(recorded, 9)
    path = recorded.session.report(tmp_path / "report.html")
    page = open_report(path)
    page.focus(".cdiag-lanes")
    for key in ("+", "+", "Shift+ArrowRight"):
        page.keyboard.press(key)
    page.click(".cdiag-more-lanes")
    page.click(".cdiag-switch >> text=As a table")
    window = expect_window(page, lambda left, width: width < 0.5)
    page.reload()
    page.wait_for_selector(".cdiag-reset")
    expect_window(page, lambda *again: all(is_near(*pair, 1e-3) for pair in zip(window, again, strict=True)))
    expect(page.locator(".cdiag-more-lanes")).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".cdiag-switch >> text=As a table")).to_have_attribute("aria-pressed", "true")


def test_lanes_are_sorted_by_cost_and_more_shows_the_others(recorded, new_page):
    record_functions(recorded, 9)
    resumed = place("torch_dynamo_resume_in_forward_at_21", 99)
    recorded.compile(0, seconds=20.0, place=resumed, compile_key="resumed")
    page = open_timeline(new_page, recorded)
    names = [f"block_{n}" for n in range(8, 2, -1)]
    drawn = page.evaluate(TEXTS)
    assert [text for text in drawn if text in ("forward", *names, "block_0")] == ["forward", *names]
    assert drawn[drawn.index("forward") + 1].endswith("graph break at line 21 · 20.0 s")
    box = lanes_box(page)
    page.mouse.move(box["x"] + 30, box["y"] + 40)
    expect(page.locator(".cdiag-tip-head")).to_have_text("forward, after the graph break at line 21")
    expect(page.locator(".cdiag-tip")).to_contain_text("model.py:99")
    expect(page.locator(".cdiag-tip")).to_contain_text("1 compile, 20.0 s")
    expect(page.locator(".cdiag-more-lanes")).to_have_text("3 more functions, 1.8 s")
    page.click(".cdiag-more-lanes")
    expect_value(page, TEXTS, lambda texts: {"block_0", "block_1", "block_2"} <= set(texts))
    page.click(".cdiag-more-lanes")
    expect_value(page, TEXTS, lambda texts: "block_0" not in texts)
    page.fill(".cdiag-search", "block_0")
    expect_value(page, TEXTS, lambda texts: "block_0" in texts)


def test_phases_have_names_and_ticks_are_round_times_since_the_start(recorded, new_page, deliver):
    recorded.compile(0, seconds=4.0)
    page = open_timeline(new_page, recorded)
    texts = page.evaluate(TEXTS)
    assert {"Dynamo", "Inductor", "first compile"} <= set(texts)
    page.focus(".cdiag-key.is-dynamo")
    page.keyboard.press("Tab")
    expect(page.locator(".cdiag-tooltip")).to_contain_text("Inductor turns a graph into kernels")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".cdiag-tooltip")).to_contain_text("Dynamo traces the Python code")
    assert texts[texts.index("since the start") + 1 :] == ["0", "1 s", "2 s", "3 s", "4 s"], "it ends at a round time"
    expect(page.locator(".cdiag-key")).to_have_text(["Dynamo", "Inductor", "cache miss"])
    page.focus(".cdiag-lanes")
    for _ in range(12):
        page.keyboard.press("+")
    expect_value(page, TEXTS, lambda texts: "2.48 s" in texts)
    page.keyboard.press("0")
    recorded.clock += 80 * SECOND
    recorded.model.patch()
    recorded.compile(1, seconds=4.0)
    deliver(page, recorded.patch())
    expect_value(page, TEXTS, lambda texts: "1 min 15 s" in texts)


def test_a_recompile_says_what_changed(recorded, new_page):
    recorded.compile(0, seconds=4.0)
    recorded.compile(1, seconds=4.0)
    recorded.add(failed("self.n", "4", "5"), failed("x.size()[1]", "7", "8"), failed("mode", "1", "2"))
    at = {"compile_id": "0/1", "time_ns": recorded.clock}
    recorded.add(Compile(**at, **place("forward"), trigger="lazy_backward", outcome="ok", duration_s=2.0))
    recorded.add(Phase(**at, name="entire_backward_compile", depth=0, duration_s=2.0))
    recorded.stop()
    page = open_timeline(new_page, recorded)
    assert [text for text in page.evaluate(TEXTS) if "↻" in text] == ["↻ x.shape[0]: 1 → 2"], (
        "the backward is a part of it"
    )
    page.focus(".cdiag-lanes")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    tip = page.locator(".cdiag-tip")
    expect(tip.locator(".cdiag-tip-why")).to_have_text("x.shape[0]: 1 → 2")
    for part in ("Recompile 1 of 1, at 4.0 s: 6.0 s lost", "also changed: self.n: 4 → 5, x.shape[1]: 7 → 8 and 1 more"):
        expect(tip).to_contain_text(part)
    expect(tip.locator(".cdiag-key")).to_have_text(["Dynamo 2.0 s", "Inductor 2.0 s", "AOTAutograd 2.0 s"])
    expect(tip).to_contain_text("Steps 1, 2, 3 and 4 of the plan remove it · Enter details")


def failed(source, expected, actual):
    values = {"guard_source": source, "guard_kind": "value", "expected": expected, "actual": actual}
    return GuardFailure(time_ns=BEGIN_NS, compile_id="0/1", entry_compile_id="0/0", **values)


def test_recompiles_too_narrow_for_words_are_one_until_they_are_zoomed(recorded, new_page):
    recorded.compile(0, seconds=60.0)
    for number in (1, 2, 3):
        recorded.compile(number, seconds=0.5)
    recorded.clock += 60 * SECOND
    for number in range(4, 34):
        recorded.compile(number, seconds=1.0)
    page = open_timeline(new_page, recorded)
    texts = page.evaluate(TEXTS)
    assert [text for text in texts if "↻" in text] == [
        "↻ 3 recompiles",
        "↻ 30 recompiles, 1.0 s each · x.shape[0]: 4 → 34",
    ]
    page.focus(".cdiag-lanes")
    for key in ("Home", *["ArrowRight"] * 2, *["+"] * 12):
        page.keyboard.press(key)
    expect_value(page, TEXTS, lambda texts: "↻ x.shape[0]: 2 → 3" in texts)


def test_compact_is_one_strip_that_leads_to_the_details(recorded, new_page):
    record_functions(recorded, 9)
    recorded.attempts[0] = 0
    recorded.compile(1, seconds=9.0)
    page = open_timeline(new_page, recorded, is_full=False)
    expect_value(page, TEXTS, lambda texts: "since the start" not in texts and "block_8" not in texts)
    box = lanes_box(page)
    assert box["height"] == 40
    for hidden in (".cdiag-strip", ".cdiag-more-lanes", ".cdiag-minimap"):
        expect(page.locator(hidden)).to_be_hidden()
    assert "↻ x.shape[0]: 1 → 2" in page.evaluate(TEXTS)
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 28)
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/1")


def test_idle_stretches_fold(recorded, new_page):
    recorded.compile(0, seconds=2.0)
    recorded.clock += 50 * SECOND
    recorded.compile(1, seconds=2.0)
    page = open_timeline(new_page, recorded)
    fold = page.locator(".cdiag-switch >> text=Fold 50.0 s without compiles")
    expect(fold).to_have_attribute("aria-pressed", "false")
    box = lanes_box(page)
    x, y = box["x"] + GUTTER + (box["width"] - GUTTER) * 0.3, box["y"] + 40
    page.mouse.move(x, y)
    page.evaluate(SETTLED)
    expect(page.locator(".cdiag-tip")).to_be_hidden()
    fold.click()
    page.mouse.move(x + 2, y)
    expect(page.locator(".cdiag-tip")).to_contain_text("forward 0/0")
    texts = page.evaluate(TEXTS)
    assert {"0", "1 s", "53 s"} <= set(texts) and not {"20 s", "30 s"} & set(texts)


def test_the_keys_lead_to_each_compile_and_say_what_it_is(recorded, new_page):
    recorded.compile(0, seconds=2.0)
    recorded.compile(1, seconds=2.0)
    recorded.compile(0, seconds=1.0, place=place("other"), compile_key="other", outcome="failed")
    page = open_timeline(new_page, recorded)
    status = page.locator(".cdiag-timeline [role=status]")
    page.focus(".cdiag-lanes")
    for key, words in (
        ("ArrowRight", ["forward 0/0", "2.0 s", "first compile", "Dynamo 1.0 s"]),
        ("ArrowRight", ["x.shape[0]: 1 → 2", "Recompile 1 of 1", "forward 0/1"]),
        ("ArrowDown", ["other 0/0", "first compile: failed"]),
        ("Home", ["forward 0/0"]),
        ("End", ["other 0/0"]),
        ("ArrowUp", ["forward 0/1"]),
    ):
        page.keyboard.press(key)
        for word in words:
            expect(status).to_contain_text(word)
    expect(page.locator(".cdiag-tip")).to_contain_text("forward 0/1")
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/1")


def test_the_table_says_what_the_timeline_shows(recorded, new_page):
    recorded.compile(0, seconds=2.0)
    recorded.compile(1, seconds=1.0)
    page = open_timeline(new_page, recorded)
    rows = page.locator(".cdiag-timeline-table tbody tr")
    expect_value(
        page,
        lambda: rows.evaluate_all("all => all.map(row => [...row.cells].map(cell => cell.textContent))"),
        [
            ["forward 0/0", "0 s", "2.0 s", "first compile", "Dynamo 1.0 s, Inductor 1.0 s"],
            ["forward 0/1", "2.0 s", "1.0 s", "recompile, x.shape[0]: 1 → 2", "Dynamo 500 ms, Inductor 500 ms"],
        ],
    )
    expect(page.locator(".cdiag-timeline-table button")).to_have_count(0)  # Nobody would see that it has the focus.
    page.click(".cdiag-switch >> text=As a table")
    page.locator(".cdiag-timeline-table button", has_text="forward 0/1").click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/1")
    expect(page.locator(".cdiag-timeline-table caption")).to_have_text("2 compiles in view, in order of time")
    violations = Axe().run(page, context=".cdiag-timeline").response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations] == []


#: The color of a pixel of the axis.
AXIS_COLOR = """() => {
  const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  copy.drawImage(document.querySelector(".cdiag-canvas"), 2, 2, 1, 1, 0, 0, 1, 1);
  return [...copy.getImageData(0, 0, 1, 1).data];
}"""


def test_a_theme_that_changes_while_the_page_has_no_width_is_painted(recorded, new_page):
    recorded.compile(0)
    page = open_timeline(new_page, recorded)
    expect_value(page, AXIS_COLOR, [255, 255, 255, 255])
    change = """(isLight) => new Promise((done) => {
      document.body.style.display = "none";
      document.body.dataset.jpThemeLight = String(isLight);
      Promise.resolve().then(() => { document.body.style.display = ""; done(); });
    })"""
    page.evaluate(change, False)
    expect_value(page, AXIS_COLOR, [0x13, 0x16, 0x1C, 255])
    page.evaluate(change, True)
    expect_value(page, AXIS_COLOR, [255, 255, 255, 255])


def test_two_fingers_zoom_and_one_moves(recorded, new_page):
    for number in range(4):
        recorded.compile(number)
    page = open_timeline(new_page, recorded, width=400, has_touch=True)
    box = lanes_box(page)
    devtools = page.context.new_cdp_session(page)
    y = box["y"] + 45

    def touch(kind, *xs):
        points = [{"x": box["x"] + box["width"] * x, "y": y, "id": n} for n, x in enumerate(xs)]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.4, 0.6)
    for step in range(1, 6):
        touch("touchMove", 0.4 - 0.06 * step, 0.6 + 0.06 * step)
    touch("touchEnd")
    left, width = expect_value(page, WINDOW, lambda window: abs(window[1] - 0.25) < 0.05)
    assert abs(left + width / 2 - 0.5) < 0.05
    touch("touchStart", 0.5)
    for step in range(1, 6):
        touch("touchMove", 0.5 - 0.08 * step)
    touch("touchEnd")
    expect_value(page, WINDOW, lambda window: window[0] > left + 0.05 and abs(window[1] - width) < 0.01)


def test_a_narrow_page_loses_nothing_to_the_right(recorded, new_page):
    record_functions(recorded, 9)
    page = open_timeline(new_page, recorded, width=400)
    texts = page.evaluate(TEXTS)
    assert "block_8" in texts and "model.py:8 · 1.3 s" in texts
    fits = "node => node.scrollWidth <= node.clientWidth"
    expect_value(page, lambda: page.locator(".cdiag-timeline").evaluate(fits), True)
    expect_value(page, "document.documentElement.scrollWidth <= innerWidth", True)


def test_what_compiles_now_is_the_first_lane(recorded, new_page, deliver):
    record_functions(recorded, 9)
    page = open_timeline(new_page, recorded)
    recorded.model.patch()
    recorded.in_flight(compile_id="9/0", function="cheap", file="/home/me/model.py", line=7)
    deliver(page, recorded.patch())
    expect_value(page, TEXTS, lambda texts: "cheap" in texts and texts.index("cheap") < texts.index("block_8"))


def test_paper_gets_all_lanes_and_all_of_the_time(recorded, new_page):
    record_functions(recorded, 20)
    page = open_timeline(new_page, recorded, color_scheme="dark")
    page.focus(".cdiag-lanes")
    page.keyboard.press("+")
    page.evaluate("""() => addEventListener("beforeprint", () => {
      const pieces = [...document.querySelectorAll(".cdiag-print-lanes canvas")];
      window.printed = pieces.flatMap((piece) => window.drawn.get(piece));
      window.paper = [...pieces[0].getContext("2d").getImageData(2, 2, 1, 1).data];
    })""")
    page.pdf()
    printed = set(page.evaluate("window.printed"))
    assert {f"block_{number}" for number in range(20)} <= printed
    expect_value(page, "window.paper", [255, 255, 255, 255])
    expect(page.locator(".cdiag-print-lanes canvas")).to_have_count(0)
    expect(page.locator(".cdiag")).to_have_attribute("data-theme", "dark")


@pytest.mark.long("a timeline of 50,000 events")
def test_many_moves_of_the_pointer_are_one_painting(recorded, new_page):
    recorded.add(*many_events(50_000, recorded.clock))
    page = open_timeline(new_page, recorded)
    page.evaluate(SETTLED)
    moved = page.evaluate("""async () => {
      const lanes = document.querySelector(".cdiag-lanes");
      const box = lanes.getBoundingClientRect();
      const frame = () => new Promise((done) => requestAnimationFrame(() => done()));
      await frame();
      const before = window.paintings;
      for (let n = 0; n < 200; n += 1) {
        const at = { clientX: box.left + 300 + n, clientY: box.top + 45, bubbles: true, cancelable: true };
        lanes.dispatchEvent(new PointerEvent("pointermove", at));
        lanes.dispatchEvent(new WheelEvent("wheel", { ...at, ctrlKey: true, deltaY: -4 }));
      }
      await frame();
      await frame();
      return window.paintings - before;
    }""")
    assert moved == 1
    expect_window(page, lambda left, width: width < 0.1)
    expect(page.locator(".cdiag-more-lanes")).to_contain_text("33 more functions, ")


#: The arithmetic of ranges, without a page around it.
ARITHMETIC = """([view, axis, model]) => {
  const spans = [{ start: 1000, end: 2000 }, { start: 1500, end: 3000 }, { start: 9000, end: 10000 }];
  const extent = { from: 1000, to: 10000 };
  const idle = view.findIdle(spans, extent);
  const folded = new view.TimeScale(extent, idle);
  const bounds = { from: 0, to: 1000 };
  return {
    idle,
    there_and_back: [1000, 2999, 4000, 8999, 9500, 10000, 12000].map((ms) => folded.toMs(folded.toUnits(ms))),
    width: folded.width,
    after: folded.toUnits(9000) - folded.toUnits(3000),
    zoomed: view.zoomRange(bounds, 250, 2, bounds),
    moved: view.moveRange({ from: 800, to: 900 }, 500, bounds),
    closest: view.zoomRange({ from: 1, to: 2 }, 1.5, 1e9, bounds),
    pinched: view.pinchRange([400, 600], [0, 1], bounds),
    crossed: view.pinchRange([400, 600], [1, 0], bounds),
    steps: [0.1, 100, 2999, 4000, 900e3, 5e7].map((ms) => axis.chooseStep(ms, 1000)),
    ticks: [0, 0.05, 20, 1500, 90e3, 120e3, 3600e3, 5400e3].map(axis.writeTick),
    ends: [1, 5000, 5001, 61e3, 4000e3].map(model.roundUp),
  };
}"""


def test_ranges_of_the_axis(new_page):
    found = run_modules(new_page(), ["timeline/ranges.js", "timeline/axis.js", "timeline/model.js"], ARITHMETIC)
    assert found["idle"] == [{"from": 3000, "to": 9000}]
    assert [round(ms, 6) for ms in found["there_and_back"]] == [1000, 2999, 4000, 8999, 9500, 10000, 12000]
    assert found["after"] < 100 and abs(found["width"] - 3000 - found["after"]) < 1e-6
    assert found["zoomed"] == {"from": 125, "to": 625}
    assert found["moved"] == {"from": 900, "to": 1000}
    assert abs(found["closest"]["to"] - found["closest"]["from"] - 0.05) < 1e-9
    assert found["pinched"] == {"from": 400, "to": 600}
    assert found["crossed"]["to"] - found["crossed"]["from"] == 200
    assert [round(step, 6) for step in found["steps"]] == [0.02, 20, 500, 500, 120e3, 7200e3]
    assert found["ticks"] == ["0", "50 µs", "20 ms", "1.5 s", "1 min 30 s", "2 min", "1 h", "1 h 30 min"]
    assert found["ends"] == [5000, 5000, 10_000, 90_000, 5400_000]
