"""The instructions for coding assistants. test_cli_help.py looks at their command lines."""

import pytest

from tests.inside import main


@pytest.fixture
def text(capsys):
    assert main(["skill"]) == 0
    return capsys.readouterr().out


def test_the_instructions_are_short(text):
    assert text.startswith("---\nname: compilediag\n") and 50 < len(text.splitlines()) <= 200


@pytest.mark.parametrize(("path", "file"), [("a/skill", "a/skill/SKILL.md"), ("b.md", "b.md")])
def test_they_are_installed_and_replaced(path, file, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["skill", "--install", path]) == 0
        assert (tmp_path / file).read_text() == text


def test_another_file_is_kept(tmp_path, capsys):
    file = tmp_path / "AGENTS.md"
    file.write_text("# Ours\n")
    assert main(["skill", "--install", str(file)]) == 2
    assert file.read_text() == "# Ours\n" and "AGENTS.md" in capsys.readouterr().err
