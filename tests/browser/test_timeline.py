"""The timeline: zoom, move, lanes, keys, table, paper. What the canvas shows is read from the texts drawn on it."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import SECOND, expect_value, run_modules, show_widget
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
#: Left edge and width of the window on the minimap, as shares of the whole.
WINDOW = """(() => {
  const [part, whole] = [".cdiag-minimap-window", ".cdiag-minimap-track"].map((each) =>
    document.querySelector(each).getBoundingClientRect());
  return [(part.left - whole.left) / whole.width, part.width / whole.width];
})()"""
#: A frame after the next one, when all that was asked for is painted.
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def open_timeline(new_page, recorded, **options):
    page = new_page(**options)
    page.evaluate(WATCH)
    show_widget(page, recorded.snapshot())
    expect_value(page, TEXTS, bool)
    return page


def lanes_box(page):
    page.locator(".cdiag-lanes").scroll_into_view_if_needed()
    return page.locator(".cdiag-lanes").bounding_box()


def expect_window(page, accepts):
    """Wait until the window on the minimap is accepted; its left edge and its width, as shares."""
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
    page = open_timeline(new_page, recorded, height=500)
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
    share = (x - box["x"] - 260) / (box["width"] - 260)
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
    x, y = box["x"] + 260 + (box["width"] - 260) * 0.5, box["y"] + 40
    page.mouse.move(x, y)
    for part in ("forward 0/1", "2.0 s", "recompile", "Dynamo 2.0 s (entire_frame_compile)"):
        expect(page.locator(".cdiag-tip")).to_contain_text(part)
    page.mouse.dblclick(x, y)
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/1")
    first, third = expect_window(page, lambda left, width: is_near(left, 1 / 3, 0.04) and is_near(width, 1 / 3, 0.08))

    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y + 3, steps=5)
    page.mouse.up()
    expect_window(page, lambda left, width: left > first + 0.03 and is_near(width, third, 0.01))
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
    expect_window(page, lambda left, width: is_near(width, 120 / (box["width"] - 260)))
    page.click(".cdiag-reset")
    expect_window(page, lambda left, width: width > 0.99)


def test_the_window_of_the_minimap_moves_and_has_edges(recorded, new_page):
    for number in range(4):
        recorded.compile(number)
    page = open_timeline(new_page, recorded)
    page.locator(".cdiag-minimap").scroll_into_view_if_needed()
    track = page.locator(".cdiag-minimap-track").bounding_box()
    y = track["y"] + 12

    def drag(start, end):
        page.mouse.move(track["x"] + track["width"] * start, y)
        page.mouse.down()
        page.mouse.move(track["x"] + track["width"] * end, y, steps=4)
        page.mouse.up()

    drag(0.999, 0.4)
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
    page.click(".cdiag-switch >> text=as a table")
    window = expect_window(page, lambda left, width: width < 0.5)
    page.reload()
    page.wait_for_selector(".cdiag-reset")
    expect_window(page, lambda *again: all(is_near(*pair, 1e-3) for pair in zip(window, again, strict=True)))
    expect(page.locator(".cdiag-more-lanes")).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".cdiag-switch >> text=as a table")).to_have_attribute("aria-pressed", "true")


def test_lanes_are_sorted_by_cost_and_more_shows_the_others(recorded, new_page):
    record_functions(recorded, 9)
    resumed = place("torch_dynamo_resume_in_forward_at_21", 99)
    recorded.compile(0, seconds=20.0, place=resumed, compile_key="resumed")
    page = open_timeline(new_page, recorded)
    names = [f"block_{n}" for n in range(8, 2, -1)]
    drawn = page.evaluate(TEXTS)
    assert [text for text in drawn if text in ("forward", *names, "block_0")] == ["forward", *names]
    assert "after the graph break at line 21" in drawn[drawn.index("forward") - 1]
    box = lanes_box(page)
    page.mouse.move(box["x"] + 30, box["y"] + 40)
    expect(page.locator(".cdiag-tip-head")).to_have_text("forward, after the graph break at line 21")
    expect(page.locator(".cdiag-tip")).to_contain_text("model.py:99")
    expect(page.locator(".cdiag-tip")).to_contain_text("1 compile, 20.0 s")
    expect(page.locator(".cdiag-more-lanes")).to_have_text("3 more functions")
    page.click(".cdiag-more-lanes")
    expect_value(page, TEXTS, lambda texts: {"block_0", "block_1", "block_2"} <= set(texts))
    page.click(".cdiag-more-lanes")
    expect_value(page, TEXTS, lambda texts: "block_0" not in texts)
    page.fill(".cdiag-search", "block_0")
    expect_value(page, TEXTS, lambda texts: "block_0" in texts)


def test_phases_have_names_ticks_are_whole_and_have_one_unit(recorded, new_page):
    recorded.compile(0, seconds=4.0)
    page = open_timeline(new_page, recorded)
    texts = page.evaluate(TEXTS)
    assert {"Dynamo", "Inductor"} <= set(texts)
    assert texts.count("seconds since the start") == 1
    assert texts[texts.index("seconds since the start") + 1 :] == ["0", "1", "2", "3"]
    page.focus(".cdiag-lanes")
    for _ in range(12):
        page.keyboard.press("+")
    expect_value(page, TEXTS, lambda texts: "milliseconds since the start" in texts)


def test_idle_stretches_fold(recorded, new_page):
    recorded.compile(0, seconds=2.0)
    recorded.clock += 50 * SECOND
    recorded.compile(1, seconds=2.0)
    page = open_timeline(new_page, recorded)
    fold = page.locator(".cdiag-switch >> text=fold 50.0 s without compiles")
    expect(fold).to_have_attribute("aria-pressed", "false")
    box = lanes_box(page)
    x, y = box["x"] + 260 + (box["width"] - 260) * 0.3, box["y"] + 40
    page.mouse.move(x, y)
    page.evaluate(SETTLED)
    expect(page.locator(".cdiag-tip")).to_be_hidden()
    fold.click()
    page.mouse.move(x + 2, y)
    expect(page.locator(".cdiag-tip")).to_contain_text("forward 0/0")
    texts = page.evaluate(TEXTS)
    assert {"0", "1", "2", "52", "53"} <= set(texts) and not {"20", "30"} & set(texts)


def test_the_keys_lead_to_each_compile_and_say_what_it_is(recorded, new_page):
    recorded.compile(0, seconds=2.0)
    recorded.compile(1, seconds=2.0)
    recorded.compile(0, seconds=1.0, place=place("other"), compile_key="other", outcome="failed")
    page = open_timeline(new_page, recorded)
    status = page.locator(".cdiag-timeline [role=status]")
    page.focus(".cdiag-lanes")
    for key, words in (
        ("ArrowRight", ["forward 0/0", "2.0 s", "first compile", "Dynamo 2.0 s"]),
        ("ArrowRight", ["forward 0/1", "recompile"]),
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
    recorded.compile(1, seconds=1.0, inductor_s=0.25)
    page = open_timeline(new_page, recorded)
    rows = page.locator(".cdiag-timeline-table tbody tr")
    expect_value(
        page,
        lambda: rows.evaluate_all("all => all.map(row => [...row.cells].map(cell => cell.textContent))"),
        [
            ["forward 0/0", "0 s", "2.0 s", "first compile", "Dynamo 2.0 s, AOTAutograd 1.0 s"],
            ["forward 0/1", "2.0 s", "1.0 s", "recompile", "Dynamo 1.0 s, AOTAutograd 500 ms, Inductor 250 ms"],
        ],
    )
    expect(page.locator(".cdiag-timeline-table button")).to_have_count(0)  # Nobody would see that it has the focus.
    page.click(".cdiag-switch >> text=as a table")
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
    assert "block_8" in texts and "model.py:8" in texts and texts.count("s") == 1
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
    page.hover(".cdiag-now-phase")
    expect(page.locator(".cdiag-tooltip")).to_contain_text("Inductor turns a graph into kernels")
    page.focus(".cdiag-key.is-aot")
    page.keyboard.press("Tab")
    expect(page.locator(".cdiag-tooltip")).to_contain_text("Inductor turns a graph into kernels")
    page.keyboard.press("Shift+Tab")
    expect(page.locator(".cdiag-tooltip")).to_contain_text("derives the graph of the backward")


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
    expect(page.locator(".cdiag-more-lanes")).to_have_text("33 more functions")


#: The arithmetic of ranges, without a page around it.
ARITHMETIC = """([view, axis]) => {
  const spans = [{ start: 1000, end: 2000 }, { start: 1500, end: 3000 }, { start: 9000, end: 10000 }];
  const extent = { from: 1000, to: 10000 };
  const idle = view.findIdle((visit) => spans.forEach(({ start, end }) => visit(start, end)), extent);
  const folded = new view.TimeScale(extent, idle);
  const bounds = { from: 0, to: 1000 };
  const steps = [0.1, 100, 2999, 4000, 900e3, 5e7].map((ms) => axis.chooseTicks(ms, 1000));
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
    whole: steps.every(({ unit, step }) => Math.abs(step / unit.ms - Math.round(step / unit.ms)) < 1e-9),
    units: steps.map(({ unit }) => unit.short),
  };
}"""


def test_ranges_of_the_axis(new_page):
    found = run_modules(new_page(), ["dashboard/timeline-view.js", "dashboard/timeline-axis.js"], ARITHMETIC)
    assert found["idle"] == [{"from": 3000, "to": 9000}]
    assert [round(ms, 6) for ms in found["there_and_back"]] == [1000, 2999, 4000, 8999, 9500, 10000, 12000]
    assert found["after"] < 100 and abs(found["width"] - 3000 - found["after"]) < 1e-6
    assert found["zoomed"] == {"from": 125, "to": 625}
    assert found["moved"] == {"from": 900, "to": 1000}
    assert abs(found["closest"]["to"] - found["closest"]["from"] - 0.05) < 1e-9
    assert found["pinched"] == {"from": 400, "to": 600}
    assert found["crossed"]["to"] - found["crossed"]["from"] == 200
    assert found["whole"] and found["units"] == ["µs", "ms", "ms", "s", "min", "h"]
