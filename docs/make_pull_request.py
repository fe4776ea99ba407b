"""Write docs/img/pull-request.png: what a reviewer sees of `compilediag check --baseline`. Needs Chromium.

    python docs/make_pull_request.py [FILE]

A program is accepted, changed, and checked as on GitHub Actions. Its annotations and its summary are drawn here, from
what the command writes, much as GitHub draws them.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

import markdown
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
CHECK = ("-m", "compilediag", "check", "--baseline", ".compilediag.toml")
BEFORE = """import torch

model = torch.nn.Linear(16, 4)


@torch.compile(backend="eager")
def step(x, scale):
    return model(x).sum() * scale


for epoch in range(3):
    for rows in (32, 32, 8):
        loss = step(torch.randn(rows, 16), 1.0 + epoch)
"""
#: A commit: a print in the step, and an input of another type.
CHANGES = {
    "    return model(x).sum()": '    print("step")\n    return model(x.float()).sum()',
    "torch.randn(rows, 16)": "torch.randn(rows, 16).to(DTYPES[epoch])",
    "model = ": "DTYPES = (torch.float32, torch.float32, torch.float64)\nmodel = ",
}
ANNOTATION = re.compile(r"^::(error|warning) file=([^,]+),line=(\d+),title=([^:]*)::(.*)$", re.M)
STYLE = """
body { margin: 24px; width: 900px; font: 14px/1.5 system-ui, sans-serif; color: #1f2328 }
h2 { font-size: 16px } h3 { font-size: 15px } code, pre { font: 12px/20px ui-monospace, monospace }
code { background: #eff1f3; border-radius: 6px; padding: 2px 5px } pre code { background: none; padding: 0 }
section { border: 1px solid #d1d9e0; border-radius: 6px; margin-bottom: 24px; overflow: hidden }
section > h2 { margin: 0; padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0 }
.line { display: flex; font: 12px/20px ui-monospace, monospace; white-space: pre }
.line > b { width: 44px; padding-right: 12px; text-align: right; font-weight: normal; color: #59636e }
.is-new { background: #dafbe1 }
.note { margin: 8px 16px 8px 56px; padding: 8px 12px; border: 1px solid #ff818266; border-radius: 6px }
.note { border-left: 4px solid #cf222e }
.summary { padding: 0 16px 8px }
table { border-collapse: collapse }
td, th { border: 1px solid #d1d9e0; padding: 4px 10px }
"""


def main(file: str = str(ROOT / "docs" / "img" / "pull-request.png")) -> None:
    after = BEFORE
    for old, new in CHANGES.items():
        assert old in after
        after = after.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        program, summary = Path(folder, "train.py"), Path(folder, "summary.md")
        environment = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_WORKSPACE": folder}
        program.write_text(BEFORE)
        check = [sys.executable, *CHECK, "train.py"]
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        subprocess.run([*check[:-1], "--update", check[-1]], cwd=folder, check=True, env=os.environ)
        program.write_text(after)
        environment["GITHUB_ACTIONS"] = "true"
        done = subprocess.run(check, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        page = draw(after, done.stdout, summary.read_text())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 948, "height": 400})
        shown.set_content(page)
        shown.screenshot(path=file, full_page=True)
        browser.close()


def draw(program: str, output: str, summary: str) -> str:
    """The page: the changed file with its annotations, then the summary of the step."""
    notes = {int(line): (unquote(title), unquote(text)) for _, _, line, title, text in ANNOTATION.findall(output)}
    known, lines = BEFORE.splitlines(), []
    for number, text in enumerate(program.splitlines(), 1):
        style = "line" if text in known else "line is-new"
        lines.append(f'<div class="{style}"><b>{number}</b>{html.escape(text)}</div>')
        if number in notes:
            title, message = notes[number]
            shown = html.escape(message).replace("\n", "<br>")
            lines.append(f'<div class="note"><strong>{html.escape(title)}</strong><br>{shown}</div>')
    text = summary.replace("<details>", '<details markdown="1">')
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "md_in_html"])
    file = f"<section><h2>train.py</h2>{''.join(lines)}</section>"
    return (
        f"<!doctype html><style>{STYLE}</style>{file}"
        f'<section><h2>Summary of the step</h2><div class="summary">{body}</div></section>'
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
