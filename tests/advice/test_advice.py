"""Every rule has a program whose advice is executed, and a page of the cookbook. Real compiler."""

from pathlib import Path

import pytest
import torch

import compilediag
from compilediag.diagnosis import fix_code, merge_fixes
from compilediag.events import GUARD_KINDS
from tests.advice.cookbook import write_examples, write_pages
from tests.advice.judgements import JUDGES
from tests.advice.known_programs import NOT_RUN, load_failures, load_programs
from tests.advice.rules import NOT_HERE, list_executed_rules, list_rules
from tests.advice.runs import run_original

PROGRAMS = load_programs()
COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook"
GPU_TESTS = Path(__file__).resolve().parents[1] / "gpu"
#: Kinds of guards that no program has, and why.
KINDS_WITHOUT_PROGRAM = {
    "other": "what is not understood",
    "default_device": "a device mode is reported as a mode",
    "all_passed": "a race of two threads: tests/live/test_findings.py has it",
}
#: The version of torch whose texts the cookbook shows.
TORCH = "2.13"
OPEN = "some checks were not run: python -m tests.advice --update, then make docs"
HAS_OPEN_CHECKS = any(NOT_RUN in programs.values() for programs in load_failures().values())


def test_each_rule_has_a_program_or_a_reason_for_none():
    rules, executed = list_rules(), list_executed_rules(PROGRAMS)
    assert rules - set(NOT_HERE) == executed
    assert set(NOT_HERE) <= rules


def test_each_rule_of_a_gpu_has_a_test_there():
    followed = "".join(path.read_text() for path in sorted(GPU_TESTS.glob("test_*advice.py")))
    assert [rule for rule, why in NOT_HERE.items() if "tests/gpu" in why and f'"{rule}"' not in followed] == []


def test_what_the_programs_print_are_rules_that_were_found_in_the_code():
    printed = {finding["rule"] for program in PROGRAMS for finding in run_original(program)["findings"]}
    assert printed <= list_rules()


def test_each_kind_of_guard_has_a_program_or_a_reason_for_none():
    kinds = {row["kind"] for program in PROGRAMS for row in run_original(program)["recompiles"]}
    assert set(GUARD_KINDS) - set(KINDS_WITHOUT_PROGRAM) <= kinds
    assert "other" not in kinds


def test_the_settings_that_are_printed_need_no_more_than_import_torch(python):
    findings = [finding for program in PROGRAMS for finding in run_original(program)["findings"]]
    settings = merge_fixes(change["settings"] for finding in findings for change in finding["changes"])
    assert len(settings) >= 3
    done = python("-c", "import torch\n" + (fix_code(settings) or "").replace("; ", "\n"))
    assert done.returncode == 0, done.stderr


def test_known_failures_are_of_programs_and_checks_that_exist():
    assert set(load_failures()) <= set(JUDGES)
    names = {program.name for program in PROGRAMS}
    assert all(set(programs) <= names for programs in load_failures().values())


def test_there_are_as_many_programs_as_the_documentation_says():
    assert len(PROGRAMS) >= 125
    assert sum(bool(program.threads) for program in PROGRAMS) >= 50
    assert sum(program.same_calls for program in PROGRAMS) >= 30


@pytest.mark.skipif(not torch.__version__.startswith(TORCH), reason=f"the cookbook shows the texts of torch {TORCH}")
@pytest.mark.skipif(HAS_OPEN_CHECKS, reason=OPEN)
def test_the_cookbook_is_what_its_generator_writes():
    written = {path.name: path.read_text() for path in COOKBOOK.glob("*.md")}
    assert written == write_pages(PROGRAMS), "run make docs"
    examples = Path(compilediag.__file__).with_name("diagnosis") / "examples.json"
    assert examples.read_text(encoding="utf-8") == write_examples(PROGRAMS), "run make docs"
