"""Run the programs of libraries without pytest, and write the table of docs/libraries.md.

python -m tests.libraries [NAME ...] [--update] [--docs]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.advice.advice_report import Row, format_failures, list_failures, make_row
from tests.advice.judgements import apply_plan
from tests.advice.runs import CannotApply, run_original, run_source

from .library_programs import FAILURES, LibraryProgram, load_library_failures, load_library_programs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libraries.md"
TABLE = PAGE.with_name("libraries.json")
HEAD = """\
# What does not work yet: check -> program -> the first problem. `python -m tests.libraries --update` writes this file.
# Each of these tests has to fail; when one passes, the line goes.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__)
    parser.add_argument("names", nargs="*", help="names of programs; all programs if none is given")
    parser.add_argument("--update", action="store_true", help="write known_failures.toml")
    parser.add_argument("--docs", action="store_true", help="write docs/libraries.md")
    options = parser.parse_args()
    for program in load_library_programs():
        if program.missing or (options.names and program.name not in options.names):
            continue
        row = make_row(program)
        print(f"{program.name} {row.seconds:.0f} s", file=sys.stderr)
        print(format_failures([row]), run_original(program).get("plan", {}).get("text"), flush=True)
        if options.update:
            FAILURES.write_text(list_failures([row], HEAD, load_library_failures()))
            load_library_failures.cache_clear()
        if options.docs:
            keep_row(row)
            PAGE.write_text(format_page(json.loads(TABLE.read_text())))


def keep_row(row: Row) -> None:
    """Put what was measured for a program into docs/libraries.json."""
    known = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    TABLE.write_text(json.dumps({**known, row.program.name: describe_row(row)}, indent=1, sort_keys=True) + "\n")


def describe_row(row: Row) -> dict[str, Any]:
    """What the table shows of a program, as plain values."""
    program, run = row.program, run_original(row.program)
    assert isinstance(program, LibraryProgram)
    plan = run["plan"]["shown"]
    causes = [f"{cause.expression or cause.says or cause.rule} at `{cause.at.strip()}`" for cause in program.causes]
    findings = [finding["title"] for finding in run["findings"] if finding["rule"] not in program.beside]
    steps = [f"{step['place']}: {' '.join(step['change'].split())}" for step in plan["steps"]]
    return {
        "packages": program.packages or ("torch",),
        "symptom": program.symptom,
        "threads": program.threads,
        "causes": causes,
        "findings": findings,
        "steps": steps,
        "before": len(run["recompiles"]),
        "claimed": plan["recompiles"] - plan["recompiles_saved"],
        "after": count_after(program),
        "fails": sorted(name for name, problems in row.problems.items() if problems),
    }


def count_after(program: LibraryProgram) -> int | None:
    """The recompiles with the plan applied; None if it cannot be applied, or the program then raises."""
    plan = run_original(program)["plan"]
    try:
        run = run_source(program, apply_plan(program, plan))
    except CannotApply:
        return None
    return None if run.get("worker_error") or run["error"] else len(run["recompiles"])


def format_page(rows: dict[str, Any]) -> str:
    """docs/libraries.md."""
    return (
        "\n\n".join([INTRODUCTION, format_table(rows), *(format_program(name, row) for name, row in rows.items())])
        + "\n"
    )


def format_table(rows: dict[str, Any]) -> str:
    """One line per program: how many causes are expected, how many were found, recompiles before and after."""
    names = ("program", "library", "expected causes", "findings", "plan claims", "plan applied")
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    lines = [
        f"| [{name}](#{name}) | {', '.join(row['packages'])} | {len(row['causes'])} | {len(row['findings'])} "
        f"| {row['before']} -> {row['claimed']} | {row['before']} -> {'?' if row['after'] is None else row['after']} |"
        for name, row in rows.items()
    ]
    return "\n".join([head, *lines])


def format_program(name: str, row: dict[str, Any]) -> str:
    """The section of one program."""
    parts = [f"## {name}", row["symptom"], "Expected causes:"]
    parts.append("\n".join(f"- {cause}" for cause in row["causes"]))
    parts += ["Findings:", "\n".join(f"- {finding}" for finding in row["findings"])]
    parts += ["Plan:", "\n".join(f"{n}. {step}" for n, step in enumerate(row["steps"], 1)) or "no step"]
    return "\n\n".join(parts).replace("[", "\\[")  # No text of a program is a link.


INTRODUCTION = """\
# Real libraries

`tests/libraries/` has programs as users of these libraries write them, with small models and random weights. The root
causes of each program are written down beside it; some of them were corrected after its findings were read. A test
checks that there is one finding per root cause, in the program's own lines, and that the plan, applied to the program,
removes what it claims.

`make test-libraries` installs the libraries into an environment of its own and runs all of them. `make test` runs those
that need torch only. `python -m tests.libraries --docs` writes this page. A question mark is a
plan that was not applied.

Corrected after a first run, because they were wrong on torch's or the library's own terms:

- `diffusers_denoise`: at the second size torch chose another convolution on a CPU (`> 20480` elements), which no mark
  avoids. The sizes are now on one side of that condition.
- `diffusers_transformer`: with repeated blocks, two recompiles stay whatever the sizes, as each kind of block is called
  in two ways. They are of one block each, not of the model.
- `flex_attention_lengths`: two heads and two blocks of the mask were one size to torch; there are four heads now.
- `lightning_fit`: the size only changes where the gradient mode needs a version anyway, so it is no cause of its own.
- `peft_adapters`: hot swapping reads the weights of an adapter from its folder.
- `sentence_embeddings`: the last sentence had one word, so its length was 1 as well. An unbacked size is no way: it
  breaks the graph in transformers.
- `timm_train`: with padding the sizes are dynamic, but the model's own size is a branch, so three recompiles stay.
- `transformers_generate_dynamic`, `timm_train`: a flag that only changes with another expected cause is no cause of its
  own, as it was written down first.
- `transformers_train`: a mark on `ids` does not reach `logits`, which come from before a graph break; `dynamic=True`
  does.
- `transformers_trainer`: a third cause, `config.problem_type`, fails at the calls of the others."""


if __name__ == "__main__":
    main()
