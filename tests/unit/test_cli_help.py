"""The help of the command line, and that the documentation has every command."""

import argparse
import itertools
import re
import shlex
from pathlib import Path

import pytest

from tests.inside import list_commands, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "compilediag" / "skill.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(params=list_commands(), ids=lambda command: command.name)
def command(request):
    return request.param


def test_a_command_that_is_interrupted_ends_with_a_line(command, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    arguments = [action for action in make_subparser(command)._actions if not action.option_strings or action.required]
    given = [text for action in arguments for text in (*action.option_strings[:1], "1")]
    monkeypatch.setattr(type(command), "run", interrupt)
    assert main([command.name, *given]) == 130
    assert capsys.readouterr().err == "compilediag: interrupted\n"


def make_subparser(command):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser


def test_the_help_of_a_command_says_what_it_does_and_takes(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    with pytest.raises(SystemExit) as ended:
        main([command.name, "--help"])
    shown = capsys.readouterr().out
    summary = command.__doc__.partition("\n")[0]
    assert ended.value.code == 0 and summary in shown and summary[0].isupper() and summary.endswith(".")
    for action in make_subparser(command)._actions:
        assert action.help, f"{action.dest} has no help"
        for name in action.option_strings or [action.metavar]:
            assert name in shown


def test_the_list_of_commands_has_a_line_for_each(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for command in list_commands():
        assert f"{command.name} {command.__doc__.partition('.')[0]}" in shown


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_help_of_a_command_fits_the_terminal(command, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main([command.name, "--help"])
    shown = capsys.readouterr().out
    description = shown.split("\n\n", 1)[1].partition("\n\npositional arguments:")[0].partition("\n\noptions:")[0]
    paragraphs = [part for part in description.split("\n\n") if not re.search(r"^(?: +\S|\w+: +\S)", part, re.M)]
    lines = [line for part in paragraphs for line in part.splitlines()]
    assert lines and max(map(len, lines)) <= columns
    assert all(line.strip() in shown for line in command.__doc__.splitlines() if line.startswith("      ")), "examples"


def test_the_documentation_has_every_command_and_option(command):
    pages = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"\bcompilediag {command.name}\b", (ROOT / "README.md").read_text()), "not in the README"
    for action in make_subparser(command)._actions:
        names = [re.escape(name) for name in action.option_strings if action.dest != "help"]
        assert not names or re.search(rf"(?<![-\w])({'|'.join(names)})\b", pages), f"{names} is in no page"


def list_documented():
    """The command lines in blocks of code, in the table of the README, and in the help of commands."""
    for page in PAGES:
        text = page.read_text()
        code = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S))
        yield from ((page.name, line) for line in re.findall(r"^(?:\$ )?(compilediag .*)", code, re.M))
        yield from ((page.name, line) for line in re.findall(r"^\| `(compilediag [^`]+)` \|", text, re.M))
    for command in list_commands():
        examples = re.findall(r"^ {6}(compilediag .*)", command.__doc__, re.M)
        yield from ((command.name, re.split(r" {2,}", line)[0]) for line in examples)


def test_each_documented_command_line_is_accepted(capsys, monkeypatch):
    for command in list_commands():
        monkeypatch.setattr(type(command), "run", lambda *_: 0)
    found = [*list_documented()]
    for place, line in found:
        words = list(itertools.takewhile(lambda word: word not in ("|", ">", ">>"), shlex.split(line, comments=True)))
        try:
            assert main(words[1:]) == 0
        except SystemExit as ended:
            assert ended.code == 0, f"{place}: {line}: {capsys.readouterr().err}"
    assert {name for _, line in found for name in line.split()[1:2]} >= {command.name for command in list_commands()}
