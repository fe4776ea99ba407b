"""Real Chromium over real sessions: events are made by hand, everything after them is the product's own.

Every page is closed with three checks: no error in it, nothing on its console, and no request that left the machine.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Frame, Page, expect, sync_playwright

from compilediag import Session
from compilediag.diagnosis import FEEDS
from compilediag.events import (
    Artifact,
    CacheLookup,
    Compile,
    Event,
    GraphBreak,
    GuardFailure,
    Phase,
    Recompile,
    SourceStatus,
)
from tests.browser.lab import Lab, run_lab
from tests.inside import RecordedData, Recorder, ViewModel, esm, to_page_json
from tests.unit.tables_builder import add_keys

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: How long to wait for what has to come, however busy the machine is.
MOST_MS = 300_000
expect.set_options(timeout=MOST_MS)
LOCAL = ("blob:", "data:", "file:", "about:")
BEGIN_NS = 1_795_000_000_000_000_000
SECOND = 1_000_000_000

#: A page that hosts the widget as anywidget does: the module from a blob address, a model with get, on and send.
#: `host.asked` has what the page asks by itself when it begins, some of it only after seconds without news.
#: `window.paintedAfter`: how many ms it took from its rendering to a frame that shows it.
HOST = """async ([source, style, traits]) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
  const handlers = {};
  const call = (name, ...args) => (handlers[name] ?? []).forEach((handler) => handler(...args));
  window.host = { asked: [], sent: [], deliver: (message) => call("msg:custom", message, []) };
  window.host.set = (name, value) => (traits[name] = value, call(`change:${name}`));
  const model = {
    get: (name) => traits[name],
    on: (name, handler) => (handlers[name] ??= []).push(handler),
    send: (message) => window.host[message.action === "ask" || "seq" in message ? "asked" : "sent"].push(message),
  };
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const made = (await import(address)).default;
  const widget = typeof made === "function" ? await made() : made;
  await widget.initialize?.({ model });
  const startedAt = performance.now();
  window.host.close = await widget.render({ model, el: document.body });
  await new Promise((done) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    requestAnimationFrame(() => channel.port2.postMessage(null));
  });
  window.paintedAfter = performance.now() - startedAt;
}"""

#: True when a patch is on the screen, or waits because the display is paused.
PAINTED = """(seq) => Number(document.querySelector(".cdiag").dataset.seq) >= seq
  || document.querySelector(".cdiag-now").dataset.state === 'paused'"""


@dataclass
class Feed:
    """Stands for the sources that feed a recorder."""

    name: str = "test"
    events: int = 0
    dropped: int = 0

    def note_error(self, error: BaseException) -> None:
        raise error


@dataclass
class Flight:
    """A compile in flight, as the sources tell it."""

    now: dict[str, Any]

    def state(self) -> dict[str, Any]:
        return self.now


class Recorded:
    """A session that is being watched, whose events the test makes, and the view model that reads it."""

    def __init__(self, path: Path):
        meta = {
            "torch_version": "2.13.0",
            "python_version": "3.11.7",
            "title": "train.py",
            "detail": "full",
            "pid": os.getpid(),
            "created_ns": BEGIN_NS,
            "stopped_ns": None,
        }
        self.recorder = Recorder(path, meta).begin()
        self.session = Session(RecordedData(path, self.recorder.flush))
        self.model = ViewModel(self.session.data)
        self.feed = Feed()
        self.clock = BEGIN_NS
        self.attempts: Counter[int] = Counter()

    def add(self, *events: Event | tuple[Artifact, str]) -> None:
        """Record events; one without a compile key gets that of its compile id."""
        keyed = [(add_keys(item[0]), item[1]) if isinstance(item, tuple) else add_keys(item) for item in events]
        self.recorder.put(self.feed, lambda: keyed)

    def sources(self, **why_not: str) -> None:
        """All sources active, but for those given with a reason, and that of calls, which has to be asked for."""
        for name in dict.fromkeys(name for names in FEEDS.values() for name in names if name != "calls"):
            status = "unavailable" if name in why_not else "active"
            counts = {"events": 0, "dropped": 0, "overhead_s": 0.001}
            self.add(SourceStatus(time_ns=BEGIN_NS, name=name, status=status, reason=why_not.get(name), **counts))

    def text(self, name: str, text: str, **common: Any) -> None:
        """An artifact with its text."""
        self.add((Artifact(time_ns=self.clock, name=name, **common), text))

    def compile(
        self,
        number: int,
        function: str = "forward",
        seconds: float = 1.0,
        place: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """One compile with two phases and a cache look-up; from the second on a recompile for a size."""
        common = {"compile_id": f"0/{number}", "time_ns": self.clock}
        if self.attempts[number]:  # torch uses an id again after torch._dynamo.reset()
            common["compile_key"] = f"{self.attempts[number]}.0/{number}"
        self.attempts[number] += 1
        place = place or {"function": function, "file": "/home/me/model.py", "line": 30}
        if number:
            values = {
                "guard_source": "x.size()[0]",
                "guard_kind": "tensor_size",
                "expected": str(number),
                "actual": str(number + 1),
                "user_file": "/home/me/model.py",
                "user_line": 31,
            }
            counts = {"entries_checked": number, "guards_failed": number}
            self.add(Recompile(**common, **place, **values, **counts, closest_compile_id=f"0/{number - 1}"))
            for k in range(number):
                entry = {"entry_compile_id": f"0/{k}", "is_first": True, "guard": f"L['x'].size()[0] == {k}"}
                self.add(GuardFailure(**common, **values, **entry))
        inner = {**common, "time_ns": self.clock + SECOND // 4, "parent": "entire_frame_compile"}
        found = {"outcome": "hit", "saved_s": 2.5} if number else {"outcome": "miss"}
        times = {"duration_s": seconds, "dynamo_s": seconds, "aot_s": seconds / 2, "guard_count": 12}
        outcome = {"trigger": "dynamo", "outcome": "ok", "is_recompile": number > 0}
        self.add(
            Phase(**common, duration_s=seconds, name="entire_frame_compile", depth=0),
            Phase(**inner, duration_s=seconds / 2, name="inductor_compile", depth=1),
            CacheLookup(**common, cache="fx_graph", tier="local", key=f"k{number}", **found),
            Compile(**{**common, **place, **outcome, **times, **more}),
        )
        self.clock += int(seconds * SECOND)

    def graph_break(self, reason: str, **more: Any) -> None:
        self.add(GraphBreak(time_ns=self.clock, compile_id="0/0", reason=reason, **more))

    def in_flight(self, **state: Any) -> None:
        """What is compiling now; nothing if no state is given."""
        self.recorder.progress.clear()
        if state:
            key = state.get("compile_id") and f"0.{state['compile_id']}"
            usual = {"started_ns": time.time_ns(), "phases": ["inductor_compile"], "trigger": "dynamo"}
            now = {**usual, "compile_key": key, **state}
            self.recorder.progress[1] = Flight(now)

    def snapshot(self) -> dict[str, Any]:
        return self.model.snapshot()

    def patch(self) -> dict[str, Any]:
        patch = self.model.patch()
        assert patch is not None, "nothing is new"
        return patch

    def stop(self) -> None:
        self.recorder.close()
        self.session.data.end_recording()


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    """A session whose sources are all active."""
    recorded = Recorded(tmp_path / "run.cdiag")
    recorded.sources()
    yield recorded
    recorded.stop()


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """One Chromium for the tests of this folder. It ends with them: while playwright runs, this thread has an event
    loop, and IPython can't run a cell with a top-level await.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS, timeout=MOST_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def lab(program_server: object, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for the tests of this folder."""
    root = tmp_path_factory.mktemp("lab")
    with run_lab(root) as lab:
        yield lab
    shutil.rmtree(root / "inductor", ignore_errors=True)


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """`new_page(width=..., color_scheme=...)`: a page that is checked for errors and requests when the test ends."""
    contexts, troubles = [], []

    def note_console(message: Any) -> None:
        if message.type in ("error", "warning"):
            troubles.append(f"console: {message.text}")

    def make(width: int = 1300, height: int = 1000, **options: Any) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(MOST_MS)
        page.on("pageerror", lambda error: troubles.append(f"page error: {error}"))
        page.on("console", note_console)
        page.on("request", lambda r: r.url.startswith(LOCAL) or troubles.append(f"request: {r.url}"))
        return page

    yield make
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def open_widget(new_page: Callable[..., Page]) -> Callable[..., Page]:
    """`open_widget(snapshot)`: the dashboard's module in a plain page; `deliver(page, patch)` then sends it patches."""

    def open_it(snapshot: dict[str, Any] | None, *, is_full: bool = True, **options: Any) -> Page:
        page = new_page(**options)
        show_widget(page, snapshot, is_full=is_full)
        return page

    return open_it


def host_widget(place: Page | Frame, snapshot: dict[str, Any] | None, **traits: Any) -> None:
    """Put the widget into an empty page or frame, as a notebook does."""
    traits["snapshot"] = None if snapshot is None else to_page_json(snapshot)
    place.evaluate(HOST, [esm.join_modules("widget.js"), esm.join_styles(), traits])


def show_widget(page: Page, snapshot: dict[str, Any] | None, *, is_full: bool = True) -> None:
    """The dashboard in a page of its own, in full or as a notebook shows it at first."""
    page.set_content("<!doctype html><html><body></body></html>")
    host_widget(page, snapshot)
    page.wait_for_selector(".cdiag [data-total]", state="attached")
    if is_full:
        page.click(".cdiag-size")


@pytest.fixture
def deliver() -> Callable[..., None]:
    """Sends a patch as the kernel does (whose clock may be slow), and waits for the page to paint."""

    def send(page: Page, patch: dict[str, Any], slow_by_s: float = 0) -> None:
        send_patch(page, patch, slow_by_s)
        page.wait_for_function(PAINTED, arg=patch["seq"])

    return send


def send_patch(page: Page, patch: dict[str, Any], slow_by_s: float = 0) -> None:
    message = {"type": "patch", "patch": to_page_json(patch), "sent_ms": (time.time() - slow_by_s) * 1e3}
    page.evaluate("(message) => window.host.deliver(message)", message)


@pytest.fixture
def open_report(new_page: Callable[..., Page]) -> Callable[..., Page]:
    def open_it(path: Path, **options: Any) -> Page:
        page = new_page(**options)
        page.goto(path.as_uri())
        page.wait_for_selector(".cdiag [data-total]", state="attached")
        return page

    return open_it


def run_modules(page: Page, names: list[str], script: str, argument: Any = None) -> Any:
    """What `script`, a function of JavaScript, returns for modules of the page and an argument, in an empty page."""
    page.set_content("<!doctype html><html><body></body></html>")
    first, *others = map(esm.join_modules, names)
    joined = first + "".join(other.replace("const $files = {};\n", "") for other in others)
    exported = ", ".join(f'$files["{name}"]' for name in names)
    run = f"""async ([text, argument]) => {{
      const address = URL.createObjectURL(new Blob([text], {{ type: "text/javascript" }}));
      return ({script})((await import(address)).default, argument);
    }}"""
    return page.evaluate(run, [f"{joined}export default [{exported}];", argument])


def open_tab(page: Page, name: str) -> None:
    """Show a table, also one that is in the menu behind the tabs."""
    tab = page.locator(f'[data-tab="{name}"]')
    page.wait_for_selector(f'[data-tab="{name}"], .cdiag-tab-strip [data-command="{name}"]', state="attached")
    if not tab.is_visible():
        page.click(".cdiag-tab-strip .cdiag-menu > button")
        page.click(f'.cdiag-menu-item[data-command="{name}"]')
    else:
        tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")


def expect_value(page: Page, read: str | Callable[[], Any], expected: Any) -> Any:
    """Wait until the value that is read is `expected`, or is accepted by it if it is a function; return the value.

    `read` is a function, or JavaScript that the page evaluates. Where `expect()` has a form for it, use that.
    """
    accepts = expected if callable(expected) else lambda value: value == expected
    end = time.monotonic() + MOST_MS / 1000
    while True:
        value = page.evaluate(read) if isinstance(read, str) else read()
        if accepts(value):
            return value
        assert time.monotonic() < end, f"{value!r} is still not {expected!r}"
        page.wait_for_timeout(20)


def read_totals(page: Page) -> dict[str, str]:
    """All totals that a page shows: key -> text."""
    script = "all => Object.fromEntries(all.map(n => [n.dataset.total, n.textContent]))"
    return page.eval_on_selector_all("[data-total]", script)


def expect_totals(page: Page, **texts: str) -> None:
    """Wait until the page shows these totals."""
    expect_value(page, lambda: {key: text for key, text in read_totals(page).items() if key in texts}, texts)
