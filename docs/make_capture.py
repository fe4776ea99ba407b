"""Write the pictures of JupyterLab while torch.compile runs, from a real notebook. Needs Chromium; takes minutes.

    python docs/make_capture.py [FOLDER]

`watch.webp` is an animation, played faster than it was taken, in LENGTH_S; the dashboard's own clock shows the real
time. The others are still: `dashboard-dark.png` while a recompile runs, `dashboard.png` after the run, and
`explorer-grid.png`.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image, ImageChops
from playwright.sync_api import Page, sync_playwright

if TYPE_CHECKING:
    from tests.browser.lab import Lab

ROOT = Path(__file__).resolve().parents[1]
LENGTH_S, PICTURES, WIDTH, HEIGHT = 16, 80, 1120, 960
#: The last picture stays for so long, in ms, before the capture begins again.
END_MS = 6000
#: A bound of the file: a README should open quickly.
MAX_BYTES = 3_000_000

MODEL = """%load_ext compilediag
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, LENGTH = 128, 32, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.block, self.head, self.num_updates = Block(), nn.Linear(WIDTH, VOCAB), 0

    def forward(self, idx, targets):
        warmup = min(1.0, (self.num_updates + 1) / 10)
        x = self.block(self.embed(idx) + self.place.weight[: idx.shape[1]])
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten()) * warmup


model = Model()
opt = torch.optim.AdamW(model.parameters())"""
STEP = """def loader():
    for size, length in ((8, 16), (8, 24), (6, 40)):
        text = torch.randint(0, VOCAB, (size, length + 1))
        yield text[:, :-1].contiguous(), text[:, 1:].contiguous()


forward = torch.compile(model)


def step(idx, targets):
    loss = forward(idx, targets)
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.num_updates += 1
    return loss"""
TRAIN = """%%compilewatch
for epoch in range(2):
    for idx, targets in loader():
        loss = step(idx, targets)
    print(f"epoch {epoch}: loss {loss.item():.4f}")"""
#: The colors of a still picture, which is a PNG with a palette.
COLORS = 192


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


def take_animation(page: Page, lab: Lab) -> list[Frame]:
    """The cell while it runs; after its end all of the page is shown."""
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    notebook = lab.open(page, [MODEL, STEP, TRAIN])
    notebook.run(0)
    notebook.run(1)
    notebook.begin(2)
    page.locator(".jp-CodeCell").nth(2).evaluate("cell => cell.scrollIntoView({ block: 'start' })")
    frames = capture(page)
    page.click(".jp-OutputArea .cdiag-size")
    return frames + capture(page)


def take_stills(page: Page, lab: Lab, folder: Path) -> None:
    """The whole page in the dark while a recompile runs, with an open step after the run, and the explorer."""
    page.set_viewport_size({"width": 1300, "height": 1000})
    notebook = lab.open(page, [MODEL, STEP, TRAIN])
    notebook.run(0)
    notebook.run(1)
    notebook.begin(2)
    page.wait_for_selector(".jp-OutputArea .cdiag-size")
    show_theme(page, "Dark")
    page.click(".jp-OutputArea .cdiag-size")
    page.wait_for_selector(".cdiag-step-row >> nth=1")
    page.wait_for_selector(".cdiag-now .cdiag-cause")
    write_still(page, ".jp-OutputArea .cdiag", folder / "dashboard-dark.png")
    notebook.wait()
    page.wait_for_selector('.cdiag-now[data-state="stopped"]')
    show_theme(page, "Light")
    page.locator(".cdiag-step-title").nth(1).click()
    write_still(page, ".jp-OutputArea .cdiag", folder / "dashboard.png")
    page.click(".cdiag-to-explorer")
    page.wait_for_selector(".cdiag-explorer")
    write_still(page, ".cdiag-explorer", folder / "explorer-grid.png")


def show_theme(page: Page, theme: str) -> None:
    change = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
    page.evaluate(change, f"JupyterLab {theme}")
    page.wait_for_selector(f".cdiag[data-theme={theme.lower()}]")
    page.wait_for_selector("#jupyterlab-splash", state="detached")


def write_still(page: Page, top: str, path: Path) -> None:
    """Write the page, scrolled to the first node that the selector `top` matches."""
    page.locator(top).first.evaluate("(node) => node.scrollIntoView({ block: 'start' })")
    page.mouse.move(2, 700)
    page.wait_for_timeout(1000)  # what fades has faded
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    palette = image.quantize(COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    palette.save(path, optimize=True)


def main() -> None:
    from tests.browser.lab import lab_page, run_lab
    from tests.chromium import find_chromium

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/img"
    with tempfile.TemporaryDirectory() as root, run_lab(Path(root)) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        with lab_page(browser, lab) as page:
            frames = choose(take_animation(page, lab))
            shutil.rmtree(Path(root) / "inductor", ignore_errors=True)  # else the stills show cache hits
            take_stills(page, lab, folder)
        browser.close()
    path = folder / "watch.webp"
    write_animation(frames, path)
    size = path.stat().st_size
    print(f"{path}: {len(frames)} pictures, {size / 1e6:.1f} MB")
    if size > MAX_BYTES:
        sys.exit(f"{path} is larger than {MAX_BYTES / 1e6:.0f} MB; show less, or use a lower quality.")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
