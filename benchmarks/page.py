"""Measure the page in Chromium: opening a report, a key in the search, scrolling, frames under load.

    python benchmarks/page.py [--large]

`--large` also measures the report of a 100 MB log. Other work may share the machine, so the figure for keys is the
median or the second slowest, and the figure for opening a report is the best.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import Figure, print_figures
from ingest import GOLDEN, ROOT, write_repeated_log
from keystrokes import KEYSTROKES

LARGE = 100_000_000
ROUNDS = 3
#: Resolves when the first paint is on the screen, to the ms since the start of the navigation.
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"
#: Records when the first row is painted, in ms since the start of the navigation.
FIRST_ROW = """() => new MutationObserver((_, watcher) => {
  if (!document.querySelector(".cdiag-row")) return;
  watcher.disconnect();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => (window.paintedAt = performance.now());
  requestAnimationFrame(() => channel.port2.postMessage(null));
}).observe(document, { childList: true, subtree: true })"""
FRAMES = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const frame = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""

#: Turns the wheel over the timeline, once per frame, in and out; returns the ms that the painting of each took.
TIMELINE_FRAMES = """async () => {
  const lanes = document.querySelector(".cdiag-lanes");
  const box = lanes.getBoundingClientRect();
  const frame = () => new Promise((done) => requestAnimationFrame(() => done(performance.now())));
  const costs = [];
  for (let n = 0; n < 120; n += 1) {
    await frame();
    const at = { clientX: box.left + 700, clientY: box.top + 100, bubbles: true, cancelable: true };
    const deltaY = Math.sin(n / 10) * 60;
    lanes.dispatchEvent(new WheelEvent("wheel", { ...at, ctrlKey: true, deltaY }));
    lanes.dispatchEvent(new PointerEvent("pointermove", at));
    const began = await new Promise((done) => requestAnimationFrame(done)); // the timeline asked first and has painted
    costs.push(performance.now() - began);
  }
  return costs;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also measure the report of a 100 MB log")
    args = parser.parse_args()
    from tests.chromium import find_chromium

    chromium = find_chromium()
    if chromium is None:
        print("the page is not measured: Chromium is not installed")
        return
    from playwright.sync_api import sync_playwright

    measurements = [measure_search, measure_scrolling, measure_frames, measure_timeline, measure_report]
    measurements += [measure_log, measure_explorer]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        figures = [figure for measure in measurements for figure in _measure_in_folder(measure, browser)]
        if args.large:
            figures += _measure_in_folder(measure_large_log, browser)
        browser.close()
    print_figures(figures)


def _measure_in_folder(measure: Callable[[Any, Path], list[Figure]], browser: Any) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        try:
            return measure(page, Path(folder))
        finally:
            page.close()


def _record_session(folder: Path) -> Any:
    from tests.browser.conftest import Recorded

    recorded = Recorded(folder / "run.cdiag")
    recorded.sources()
    return recorded


def _measure_keys(page: Any, text: str) -> list[float]:
    """Return the ms from each key to the frame that shows its result, sorted."""
    page.evaluate(KEYSTROKES)
    page.click(".cdiag-search")
    page.keyboard.type(text, delay=120)
    page.wait_for_timeout(500)
    return sorted(page.evaluate("window.keystrokes"))


def measure_search(page: Any, folder: Path) -> list[Figure]:
    from tests.browser.conftest import show_widget
    from tests.browser.many_events import many_events

    recorded = _record_session(folder)
    recorded.add(*many_events(50_000, recorded.clock))
    show_widget(page, recorded.snapshot())
    keys = _measure_keys(page, "forward_7 x.size")
    recorded.stop()
    return [Figure("a key in the search over 10,000 rows, median", keys[len(keys) // 2], 50, "ms")]


def measure_scrolling(page: Any, folder: Path) -> list[Figure]:
    from compilediag.events import Compile
    from tests.browser.conftest import show_widget

    recorded = _record_session(folder)
    common = {"function": "f", "outcome": "ok", "duration_s": 0.001}
    recorded.add(
        *(Compile(time_ns=recorded.clock + n * 1_000_000, compile_id=f"0/{n}", **common) for n in range(100_000))
    )
    show_widget(page, recorded.snapshot())
    page.click('[data-tab="compiles"]')
    began = time.perf_counter()
    page.evaluate("() => { const s = document.querySelector('.cdiag-scroller'); s.scrollTop = s.scrollHeight; }")
    page.wait_for_selector('.cdiag-row:has-text("f 0/0")')
    seconds = time.perf_counter() - began
    recorded.stop()
    return [Figure("scroll to the last of 100,000 rows", seconds, 1, "s")]


def measure_frames(page: Any, folder: Path) -> list[Figure]:
    from compilediag.views.model import dumps
    from tests.browser.conftest import show_widget
    from tests.browser.many_events import many_events

    recorded = _record_session(folder)
    show_widget(page, recorded.snapshot())
    recorded.model.patch()
    events = list(many_events(25_000, recorded.clock))
    page.evaluate(FRAMES)
    began = time.perf_counter()
    for number in range(50):
        recorded.add(*events[number * 500 : (number + 1) * 500])
        message = {"type": "patch", "patch": dumps(recorded.patch()), "sent_ms": time.time() * 1e3}
        page.evaluate("(message) => window.host.deliver(message)", message)
        time.sleep(max(0, began + (number + 1) * 0.1 - time.perf_counter()))
    rate = len(events) / (time.perf_counter() - began)
    frames = sorted(page.evaluate("window.frames_ms"))
    recorded.stop()
    return [
        Figure("events per second that the page processes", rate, 4_500, "1/s", is_rate=True),
        Figure("a frame under this load, 95th percentile", frames[int(0.95 * len(frames))], 100, "ms"),
    ]


def measure_timeline(page: Any, folder: Path) -> list[Figure]:
    """Measure how long the script of a frame runs while somebody zooms and moves over 50,000 events, all lanes open."""
    from tests.browser.conftest import show_widget
    from tests.browser.many_events import many_events

    recorded = _record_session(folder)
    recorded.add(*many_events(50_000, recorded.clock))
    show_widget(page, recorded.snapshot())
    page.click(".cdiag-more-lanes")
    costs = sorted(page.evaluate(TIMELINE_FRAMES))
    recorded.stop()
    return [
        Figure("a frame of the timeline of 50,000 events, median", costs[len(costs) // 2], 16, "ms"),
        Figure("the same, 95th percentile", costs[int(0.95 * len(costs))], 33, "ms"),
    ]


def _measure_first_row_ms(page: Any, report: Path) -> float:
    page.add_init_script(f"({FIRST_ROW})()")
    page.goto(report.as_uri())
    page.wait_for_function("() => window.paintedAt !== undefined")
    return page.evaluate("window.paintedAt")


def measure_report(page: Any, folder: Path) -> list[Figure]:
    from compilediag.views.report import write_report
    from tests.browser.many_events import many_events, many_texts

    recorded = _record_session(folder)
    recorded.add(*many_events(10_000, recorded.clock))
    many_texts(recorded)
    report = write_report(recorded.session.data, folder / "report.html")
    recorded.stop()
    return [Figure("first row of the report of 10,000 events", _measure_first_row_ms(page, report), 1_000, "ms")]


def measure_log(page: Any, folder: Path) -> list[Figure]:
    """Measure the report of a log of 6.25 MB, one sixteenth of the log of `--large`."""
    import compilediag

    log, records = folder / "long.log", gzip.decompress(GOLDEN.read_bytes())
    log.write_bytes(b"".join(_renumber(records, 100 * n) for n in range(6_250_000 // len(records))))
    first = _measure_first_row_ms(page, compilediag.ingest(log).report(folder / "report.html"))
    keys = _measure_keys(page, "forward size")
    return [
        Figure("first row of the report of a log of 6 MB", first, 1_000, "ms"),
        Figure("a key in its search, the slowest but two", keys[-3], 100, "ms"),
    ]


def _renumber(log: bytes, by: int) -> bytes:
    """Add `by` to all frame ids, as if the run continued."""
    return re.sub(rb'("(?:frame_id|compile_id)": "?)(\d+)', lambda m: m[1] + b"%d" % (int(m[2]) + by), log)


def measure_explorer(page: Any, folder: Path) -> list[Figure]:
    from tests.browser.test_explorer import add_functions, show_explorer

    recorded = _record_session(folder)
    add_functions(recorded, 200, 10)
    show_explorer(page, recorded.snapshot())
    painted = page.evaluate("window.paintedAfter")
    keys = _measure_keys(page, "forward_7 x.size")
    recorded.stop()
    return [
        Figure("open the explorer of 2,000 recompiles of 200 functions", painted, 1_000, "ms"),
        Figure("a key in its search, median", keys[len(keys) // 2], 50, "ms"),
    ]


def measure_large_log(page: Any, folder: Path) -> list[Figure]:
    import compilediag as cd

    log = write_repeated_log(folder, gzip.decompress(GOLDEN.read_bytes()), LARGE)
    session = cd.ingest(log, folder / "run.cdiag")
    report = session.report(folder / "report.html")
    found = [_measure_opening(page, report) for _ in range(ROUNDS)]
    return [
        Figure("open the report of a 100 MB log", min(ms for ms, _ in found), 2_000, "ms"),
        Figure("a key in its search, second slowest", min(keys[-2] for _, keys in found), 100, "ms"),
    ]


def _measure_opening(page: Any, report: Path) -> tuple[float, list[float]]:
    page.goto("about:blank")
    page.goto(report.as_uri())
    page.wait_for_selector(".cdiag [data-total]", state="attached")
    return page.evaluate(PAINTED), _measure_keys(page, "forward size")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
