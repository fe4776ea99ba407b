"""What has to be quick is measured: keystrokes over 10,000 rows, 5,000 events a second, the first paint of a report."""

import re
import time

import pytest

import compilediag
from compilediag.events import CacheLookup, Compile, Phase, Recompile
from compilediag.views import page_json
from compilediag.views.report import write_report
from tests.unit.log_builder import golden

from .keystrokes import KEYSTROKES

KEYSTROKE_MS, TO_INTERACTIVE_MS, REPORT_BYTES, LOG_KEY_MS = 50, 1_000, 5_000_000, 100
MS = 1_000_000


def many_events(count, begin):
    """Compiles with recompiles, phases and cache look-ups, as a training run of many shapes would give."""
    for n in range(count // 5):
        at = {"compile_id": f"{n % 40}/{n // 40}", "time_ns": begin + n * 20 * MS}
        place = {
            "function": f"forward_{n % 40}",
            "file": f"/home/somebody/project/models/block_{n % 40}.py",
            "line": 30 + n % 40,
        }
        values = {
            "guard_source": f"x.size()[{n % 3}]",
            "guard_kind": "tensor_size",
            "expected": str(n),
            "actual": str(n + 1),
        }
        yield Compile(
            **at,
            **place,
            trigger="dynamo",
            outcome="ok",
            is_recompile=n >= 40,
            duration_s=0.015,
            dynamo_s=0.015,
            aot_s=0.01,
            inductor_s=0.008,
            guard_count=20,
            graph_ops=12,
        )
        yield Recompile(
            **at,
            **place,
            **values,
            reason=f"tensor 'x' size mismatch at index 0. expected {n}, actual {n + 1}",
            closest_compile_id=f"{n % 40}/0",
        )
        yield Phase(**at, name="entire_frame_compile", depth=0, duration_s=0.015)
        yield Phase(**at, name="inductor_compile", depth=1, duration_s=0.008, parent="entire_frame_compile")
        yield CacheLookup(**at, cache="fx_graph", outcome="miss", key=f"f{n:060x}")


@pytest.fixture
def ten_thousand_rows(recorded):
    """10,000 recompiles and as many compiles; the search goes over both."""
    recorded.add(*many_events(50_000, recorded.clock))
    return recorded


def test_a_keystroke_over_ten_thousand_rows_is_painted_in_time(ten_thousand_rows, open_widget):
    page = open_widget(ten_thousand_rows.snapshot())
    assert page.text_content('[data-tab="recompiles"] .cdiag-count') == "10,000"
    page.evaluate(KEYSTROKES)
    page.click(".cdiag-search")
    page.keyboard.type("forward_7 x.size", delay=120)
    times = sorted(page.evaluate("window.keystrokes"))
    print(f"keystrokes over 10,000 rows: median {times[8]:.0f} ms, of {[round(t) for t in times]}")
    assert len(times) == 16
    assert times[8] <= KEYSTROKE_MS  # the slowest are the machine's: other work shares its cores
    assert page.text_content('[data-tab="recompiles"] .cdiag-count') == "250 of 10,000"


def test_a_hundred_thousand_rows_scroll(recorded, open_widget):
    recorded.add(
        *(
            Compile(time_ns=recorded.clock + n * MS, compile_id=f"0/{n}", function="f", outcome="ok", duration_s=0.001)
            for n in range(100_000)
        )
    )
    page = open_widget(recorded.snapshot())
    page.click('[data-tab="compiles"]')
    began = time.perf_counter()
    page.evaluate("() => { const s = document.querySelector('.cdiag-scroller'); s.scrollTop = s.scrollHeight; }")
    page.wait_for_selector('.cdiag-row:has-text("f 0/0")')
    assert time.perf_counter() - began < 1
    assert page.locator(".cdiag-row").count() < 60


def test_five_thousand_events_a_second_all_arrive_and_the_page_stays_responsive(recorded, open_widget, totals):
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    events = list(many_events(25_000, recorded.clock))
    page.evaluate(LONGEST_FRAME)
    began = time.perf_counter()
    for number in range(50):
        recorded.add(*events[number * 500 : (number + 1) * 500])
        message = {"type": "patch", "patch": page_json.dumps(recorded.patch()), "sent_ms": time.time() * 1e3}
        page.evaluate("(message) => window.host.deliver(message)", message)
        time.sleep(max(0, began + (number + 1) * 0.1 - time.perf_counter()))
    took = time.perf_counter() - began
    page.wait_for_function("() => document.querySelector('[data-total=compiles]').dataset.value === '5000'")
    frames = sorted(page.evaluate("window.frames_ms"))
    slow = frames[int(0.95 * len(frames))]
    print(f"25,000 events in {took:.1f} s; frames: p95 {slow:.0f} ms, longest {frames[-1]:.0f} ms")
    assert totals(page)["recompiles"] == "5,000"
    assert totals(page)["cache_misses"] == "5,000"
    assert slow < 100


LONGEST_FRAME = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const frame = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


#: Notes when the first row was painted, in ms from the start of the navigation.
FIRST_ROW = """() => new MutationObserver((_, watcher) => {
  if (!document.querySelector(".cdiag-row")) return;
  watcher.disconnect();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => (window.paintedAt = performance.now());
  requestAnimationFrame(() => channel.port2.postMessage(null));
}).observe(document, { childList: true, subtree: true })"""


def test_a_report_of_ten_thousand_events_is_small_and_quick(recorded, new_page, tmp_path):
    recorded.add(*many_events(10_000, recorded.clock))
    for n in range(300):
        text = "\n".join(
            f"buf{k} = empty_strided_cpu(({n * 31 + k * 7919 % 4093}, 8), (8, 1), torch.float32)" for k in range(500)
        )
        recorded.text("inductor_output_code", text, compile_id=f"{n % 40}/0")
    path = write_report(recorded.session.data, tmp_path / "report.html")
    page = new_page()
    page.add_init_script(f"({FIRST_ROW})()")
    page.goto(path.as_uri())
    page.wait_for_function("() => window.paintedAt !== undefined")
    painted = page.evaluate("window.paintedAt")
    print(f"report of 10,000 events: {path.stat().st_size / 1e6:.2f} MB, painted {painted:.0f} ms after navigation")
    assert path.stat().st_size <= REPORT_BYTES
    assert painted <= TO_INTERACTIVE_MS


def renumbered(log, by):
    """The log with other frames: as if the run went on."""
    return re.sub(rb'("(?:frame_id|compile_id)": "?)(\d+)', lambda m: m[1] + b"%d" % (int(m[2]) + by), log)


def test_the_report_of_a_long_log_opens_and_answers_in_time(new_page, tmp_path):
    """A sixteenth of the 100 MB that benchmarks/page.py opens in the whole of this time."""
    log, records = tmp_path / "long.log", golden()
    log.write_bytes(b"".join(renumbered(records, 100 * n) for n in range(6_250_000 // len(records))))
    report = compilediag.ingest(log).report(tmp_path / "report.html")
    page = new_page()
    page.add_init_script(f"({FIRST_ROW})()")
    page.goto(report.as_uri())
    page.wait_for_function("() => window.paintedAt !== undefined")
    painted = page.evaluate("window.paintedAt")
    page.evaluate(KEYSTROKES)
    page.click(".cdiag-search")
    page.keyboard.type("forward size", delay=120)
    keys = sorted(page.evaluate("window.keystrokes"))
    told = f"painted {painted:.0f} ms after navigation, keys {[round(key) for key in keys]}"
    print(f"report of a log of {log.stat().st_size / 1e6:.0f} MB: {report.stat().st_size / 1e6:.2f} MB, {told}")
    assert report.stat().st_size <= REPORT_BYTES
    assert painted <= TO_INTERACTIVE_MS
    assert len(keys) >= 12 and keys[-3] <= LOG_KEY_MS
