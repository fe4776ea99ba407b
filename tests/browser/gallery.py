"""Writes the gallery of the documentation: `make gallery`.

Real sessions are recorded on the CPU, opened with the recorded ones, and photographed as dashboard or as report, light
or dark, wide or narrow. Nothing here is made up: every page shows what torch.compile did in these programs.

python -m tests.browser.gallery [--more NAME=run.cdiag ...] [--out docs/img/gallery] [--page docs/gallery.md]
"""

from __future__ import annotations

import argparse
import base64
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import compilediag as cd
from tests.browser.conftest import ARGS, MOST_MS, show_widget
from tests.chromium import find_chromium
from tests.unit.session_builder import page_of

ROOT = Path(__file__).resolve().parents[2]
#: All pictures together, in bytes: they are part of every clone of the repository.
MAX_BYTES = 3_000_000
#: Tried one after the other until all pictures fit.
QUALITIES = (0.8, 0.6, 0.4)
SIZES = {1300: 1000, 400: 800}
SCHEMES = {"light": "#ffffff", "dark": "#111111"}

#: What a picture shows: the view, the width in px and the theme.
WIDE, WIDE_DARK = ("dashboard", 1300, "light"), ("dashboard", 1300, "dark")
REPORT, NARROW_DARK = ("report", 1300, "light"), ("dashboard", 400, "dark")

#: Sessions of notebooks/data, which were recorded on an H200 by notebooks/record_*.py.
RECORDED = (
    ("gpt2", "GPT-2 of transformers on an H200", "Lengths vary, and the last batch is smaller.", (WIDE, NARROW_DARK)),
    ("vit", "A vision transformer with max-autotune on an H200", "The last batch is smaller.", (REPORT,)),
    ("autotune", "Max-autotune on an H200", "Matrix products and other kernels are tuned.", (WIDE_DARK,)),
    ("cudagraphs", "CUDA graphs on an H200", "Some graphs are captured again or skipped.", (WIDE,)),
)
MANY_FUNCTIONS = "import torch\n\n" + "\n".join(
    f"""
@torch.compile(backend="eager")
def layer_{k}(x):
    return torch.relu(x * {k} + 1).sum()


layer_{k}(torch.randn(8, 8))
"""
    for k in range(40)
)
STORM = """
import torch

torch._dynamo.config.recompile_limit = 300
torch._dynamo.config.accumulated_recompile_limit = 400

@torch.compile(backend="eager", dynamic=False)
def normalize(batch):
    return (batch - batch.mean(0)) / (batch.std(0) + 1e-5)

for size in range(2, 355):
    normalize(torch.ones(size, 4))
"""
#: Encodes a picture as WebP in the browser, so that no other program is needed.
TO_WEBP = """async ([picture, quality]) => {
  const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/webp", quality });
  const address = await new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
  return address.split(",")[1];
}"""


@dataclass(frozen=True)
class Exhibit:
    """A session of the gallery: the start of its pictures' names, its title, what ran, and the pictures of it."""

    name: str
    title: str
    text: str
    session: cd.Session
    shown: tuple[tuple[str, int, str], ...] = (WIDE,)


@dataclass(frozen=True)
class Picture:
    """A picture of an exhibit, as PNG."""

    exhibit: str
    view: str
    width: int
    scheme: str
    png: bytes

    @property
    def file(self) -> str:
        """`storm-report-400-dark.webp`."""
        return f"{self.exhibit}-{self.view}-{self.width}-{self.scheme}.webp"


def record_exhibits(folder: Path, more: dict[str, Path]) -> Iterator[Exhibit]:
    """Record what runs on a CPU, and open what was recorded elsewhere."""
    yield Exhibit("functions", "40 functions", "Each is compiled once.", record(folder, "functions", MANY_FUNCTIONS))
    storm = record(folder, "storm", STORM)
    yield Exhibit("storm", "300 recompiles", "Every batch has another size, up to a limit.", storm, (WIDE_DARK,))
    yield Exhibit("ranks", "Two ranks", "From one call on, their batches differ.", record_ranks(folder), (REPORT,))
    for name, title, text, shown in RECORDED:
        yield Exhibit(name, title, text, cd.load(ROOT / "notebooks" / "data" / f"{name}.cdiag"), shown)
    for name, path in more.items():
        yield Exhibit(name, name.replace("_", " "), "Recorded elsewhere.", cd.load(path))


def record(folder: Path, name: str, program: str) -> cd.Session:
    """The session of a program that runs in a process of its own, in a folder of its own."""
    script = folder / f"{name}.py"
    script.write_text(program.lstrip())
    run_python(folder, "-m", "compilediag", "run", "--quiet", "--save", f"{name}.cdiag", script.name)
    return cd.load(folder / f"{name}.cdiag")


def record_ranks(folder: Path) -> cd.Session:
    """The session of a job of two ranks."""
    ranks = folder / "ranks"
    ranks.mkdir()
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.live.two_ranks", str(rank), str(folder / "meeting"), str(ranks)],
            cwd=ROOT,
            env=make_environment(folder),
        )
        for rank in range(2)
    ]
    codes = [job.wait(600) for job in jobs]
    if any(codes):
        raise RuntimeError("a rank failed")
    return cd.load(ranks)


def run_python(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=folder, env=make_environment(folder), check=True, timeout=600)


def make_environment(folder: Path) -> dict[str, str]:
    """The caches of the user stay as they are."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}


def take_pictures(browser: Browser, exhibit: Exhibit, folder: Path) -> Iterator[Picture]:
    """The pictures of a session."""
    for view, width, scheme in exhibit.shown:
        viewport = {"width": width, "height": SIZES[width]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        context.set_default_timeout(MOST_MS)
        page = context.new_page()
        if view == "dashboard":
            show_widget(page, page_of(exhibit.session))
            page.evaluate("(color) => Object.assign(document.body.style, { background: color })", SCHEMES[scheme])
        else:
            page.goto(exhibit.session.report(folder / f"{exhibit.name}.html").as_uri())
            page.wait_for_selector(".cdiag [data-total]", state="attached")
        yield Picture(exhibit.name, view, width, scheme, take(page))
        context.close()


def take(page: Page) -> bytes:
    """The page after two frames, when everything has its size."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.screenshot()


def write_pictures(browser: Browser, pictures: list[Picture], out: Path) -> int:
    """Write all pictures as WebP with the best quality with which they fit; returns their bytes."""
    page = browser.new_page()
    encoded: dict[str, bytes] = {}
    for quality in QUALITIES:
        for picture in pictures:
            text = page.evaluate(TO_WEBP, [base64.b64encode(picture.png).decode(), quality])
            encoded[picture.file] = base64.b64decode(text)
        if sum(map(len, encoded.values())) <= MAX_BYTES:
            break
    else:
        raise RuntimeError(f"the pictures have more than {MAX_BYTES:,} bytes; leave some out")
    page.close()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, content in encoded.items():
        (out / name).write_bytes(content)
    return sum(map(len, encoded.values()))


def format_page(exhibits: list[Exhibit], folder: str) -> str:
    """The page of the documentation; `folder` is that of the pictures, as seen from the page."""
    parts = ["# Gallery", "", "Dashboards and reports of real sessions. `make gallery` takes the pictures."]
    for exhibit in exhibits:
        headline = exhibit.session.plan().headline
        parts += ["", f"## {exhibit.title}", "", f"{exhibit.text} The plan: {headline}.", ""]
        for view, width, scheme in exhibit.shown:
            alt = f"{exhibit.title}, {view}, {width} px, {scheme}"
            parts.append(f"![{alt}]({folder}/{exhibit.name}-{view}-{width}-{scheme}.webp)")
    return "\n".join(parts) + "\n"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write the gallery of the documentation.")
    parser.add_argument("--more", metavar="NAME=PATH", action="append", default=[], help="another session to show")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "img" / "gallery", help="folder of the pictures")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "gallery.md", help="page of the documentation")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    chromium = find_chromium()
    more = {name: Path(path) for name, _, path in (text.partition("=") for text in args.more)}
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        exhibits = list(record_exhibits(folder, more))
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGS)
        pictures = [picture for exhibit in exhibits for picture in take_pictures(browser, exhibit, folder)]
        size = write_pictures(browser, pictures, args.out)
        args.page.write_text(format_page(exhibits, os.path.relpath(args.out, args.page.parent)))
        browser.close()
    print(f"wrote {len(pictures)} pictures ({size / 1e6:.1f} MB) to {args.out}, and {args.page}")


if __name__ == "__main__":
    main()
