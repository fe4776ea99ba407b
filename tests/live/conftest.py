"""Fixtures of tests that run scripts and commands."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inside import main


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """`script(text, name="train.py")`: writes a script, gives its path."""

    def write(text: str, name: str = "train.py") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`run_here("try", ...)`: a command in this process and the folder of the scripts; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[object, str, str]:
        try:
            code: object = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        return (code, *capsys.readouterr())

    return run
