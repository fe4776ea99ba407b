"""Write docs/img/watch.webp: JupyterLab while torch.compile runs, from a real notebook. Needs Chromium; takes a minute.

    python docs/make_capture.py [FILE]

The capture is played faster than it was taken, in LENGTH_S; the dashboard's own clock shows the real time.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageChops
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
LENGTH_S, PICTURES, WIDTH, HEIGHT = 16, 80, 1120, 960
#: The last picture stays for so long, in ms, before the capture begins again.
END_MS = 6000
#: A bound of the file: a README should open quickly.
MAX_BYTES = 3_000_000

SETUP = """%load_ext compilediag
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.step = torch.nn.Linear(64, 64), 0

    def forward(self, x):
        self.step += 1
        return torch.nn.functional.gelu(self.proj(x)) * self.step

model = torch.compile(Block())"""
TRAIN = """%%compilewatch
for size in (8, 12, 16, 20):
    batch = torch.randn(size, 64)
    model(batch).sum().backward()"""


class Frame(NamedTuple):
    """A picture, and the time at which it was taken, in s."""

    time: float
    image: Image.Image


def capture(page: Page, seconds_after: float = 3.0) -> list[Frame]:
    """Pictures of the page until its cell has ended, and some seconds more; only those that differ from the last."""
    frames: list[Frame] = []
    end = None
    while end is None or time.monotonic() < end:
        if end is None and page.evaluate("() => window.ended !== null"):
            end = time.monotonic() + seconds_after
        image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        if not frames or ImageChops.difference(frames[-1].image, image).getbbox() is not None:
            frames.append(Frame(time.monotonic(), image))
    return frames


def choose(frames: list[Frame]) -> list[Frame]:
    """The pictures nearest to evenly spaced times, the first and the last one included; each once."""
    first, last = frames[0].time, frames[-1].time
    times = (first + number * (last - first) / (PICTURES - 1) for number in range(PICTURES))
    chosen = (min(frames, key=lambda frame: abs(frame.time - wanted)) for wanted in times)
    return list({frame.time: frame for frame in chosen}.values())


def write_animation(frames: list[Frame], path: Path) -> None:
    """Write an animated WebP that never stops."""
    speed = (frames[-1].time - frames[0].time) / LENGTH_S
    shown = [round(1000 * (after.time - before.time) / speed) for before, after in pairwise(frames)]
    first, *others = (frame.image for frame in frames)
    first.save(path, save_all=True, append_images=others, duration=[*shown, END_MS], loop=0, quality=70, method=4)


def main() -> None:
    from tests.browser.lab import lab_page, run_lab

    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/img/watch.webp"
    with tempfile.TemporaryDirectory() as folder, run_lab(Path(folder)) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with lab_page(browser, lab) as page:
            page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            notebook = lab.open(page, [SETUP, TRAIN])
            notebook.run(0)
            notebook.begin(1)
            page.locator(".jp-CodeCell").nth(1).evaluate("cell => cell.scrollIntoView({ block: 'start' })")
            frames = capture(page)
        browser.close()
    frames = choose(frames)
    write_animation(frames, path)
    size = path.stat().st_size
    print(f"{path}: {len(frames)} pictures, {size / 1e6:.1f} MB")
    if size > MAX_BYTES:
        sys.exit(f"{path} is larger than {MAX_BYTES / 1e6:.0f} MB; show less, or use a lower quality.")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
