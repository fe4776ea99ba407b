"""Writes docs/advice.md to stdout, from the rules and the programs that follow them: `make docs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compilediag.diagnosis import Rule
from compilediag.diagnosis.registry import RULES_BY_SUBJECT
from tests.advice.cookbook import choose_examples
from tests.advice.known_programs import Program, load_programs
from tests.advice.rules import NOT_HERE

INTRODUCTION = """# Advice and how it is tested

A finding says what to change. Each change is executed by a test: the recompiles are gone, results and gradients are the
same, the code is still compiled, and no graph break is new. `finding.changes` holds the changes, the preferred one
first: settings, edits of your call, or a text where only you can make the change.

`tests/advice` changes the source of whole programs and runs them in processes of their own; a test there fails if a
rule has no program. `tests/live/test_suggested_changes.py` has the cases in which similar programs need different
advice. With torch 2.15 and later, [specifications](plan.md#as-a-specification-of-torchcompile) are followed too: of all
programs by `tests/advice/test_specs.py`, and by `tests/live/test_dynamic_specs.py`, which has the scenarios of torch's
own proposal (pytorch#184440): its specification and ours need one compile each.

`make docs` writes this page from the rules. Each rule has a page in the [cookbook](cookbook/index.md). A rule can say
different things in different situations. In the texts, `x` is your value, and "..." is what depends on your program.
"""
#: What texts name of a program, in general.
FACTS = {"name": "x", "container": "x", "tensor": "x", "dynamic": 'torch.compiler.config.dynamic_sources = "..."'}
#: Programs that are named of each rule.
SHOWN = 3
_FACT = re.compile(r"\{(\w+)\}")


def main() -> None:
    print(INTRODUCTION)
    programs = choose_examples(load_programs())
    sections = [_write_section(title, rules, programs) for title, rules in RULES_BY_SUBJECT.items()]
    print("\n\n".join(sections))


def _write_section(title: str, rules: Iterable[Rule], programs: dict[str, list[Program]]) -> str:
    rows = [_write_row(rule, programs.get(rule.id, [])) for rule in rules]
    return "\n".join([f"## {title}\n", "| rule | what it says | followed by |", "|---|---|---|", *rows])


def _write_row(rule: Rule, programs: list[Program]) -> str:
    named = ", ".join(f"`{program.name}`" for program in programs[:SHOWN])
    texts = dict.fromkeys(text for case in (rule, *rule.cases) if (text := _write_texts(case.action)))
    says = [*([f"*{_fill(rule.title)}*"] if rule.title else []), *texts]
    cells = [f"[{rule.id}](cookbook/{rule.id}.md)", "<br>".join(says), named or NOT_HERE.get(rule.id, "")]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _write_texts(action: str | tuple[str, ...]) -> str:
    """The first text of an action that says something without the facts of a program."""
    texts = [action] if isinstance(action, str) else [*action]
    return next((filled for text in texts if (filled := _fill(text)).strip(". ")), "")


def _fill(text: str) -> str:
    """The text in general, as Markdown."""
    general = _FACT.sub(lambda found: FACTS.get(found[1], "..."), text).strip()
    return re.sub(r"([*_<>])", r"\\\1", general)


if __name__ == "__main__":
    main()
