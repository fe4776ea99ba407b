"""Writes docs/tables.md to stdout, from what the code itself declares: `make docs`."""

from compilediag import events
from compilediag.diagnosis.rules import break_even
from compilediag.storage import tables

INTRODUCTION = """# Tables

Each table of a session is a pandas DataFrame: `session.compiles`, `session.recompiles` and so on. A row is one event.
Missing is NA, never 0 or an empty string; columns of dtype json hold a list or None. Units stand with each column.
This file is written by `make docs` from `compilediag/events/`; a test holds the two together.

Every table but `events` begins with these columns:
"""


def main() -> None:
    print(INTRODUCTION)
    print(rows(tables.COMMON_COLUMNS))
    section("events", "every event of every kind, one row each", tables.EVENT_COLUMNS)
    for name, kind in events.BY_TABLE.items():
        section(name, f"kind `{kind.kind}`", events.columns(kind))
    print(
        f"\n## `break_even()`: one row a compiled entry, made of `compiles` and `calls`\n\n{rows(break_even.COLUMNS)}"
    )
    named("Guard kinds", "guard_kind", events.GUARD_KINDS)
    named("Caches", "cache", events.CACHES)
    named("Cache actions", "action", events.CACHE_ACTIONS)
    named("Cache outcomes", "outcome", events.CACHE_OUTCOMES)
    named("Source reasons", "reason_code", events.SOURCE_REASONS)
    named("Tuning stages", "stage", events.TUNING_STAGES)
    named("What ran", "ran", events.RAN)
    named("CUDA graph actions", "action", events.CUDAGRAPH_ACTIONS)
    named("Shape actions", "action", events.SHAPE_ACTIONS)
    named("Export problems", "problem", events.EXPORT_PROBLEMS)


def named(title: str, column: str, names: tuple[str, ...]) -> None:
    print(f"\n## {title}\n\n`{column}` is one of: " + ", ".join(f"`{name}`" for name in names) + ".")


def section(name: str, what: str, columns: dict[str, dict[str, str]]) -> None:
    print(f"\n## `{name}`: {what}\n\n{rows(columns)}")


def rows(columns: dict[str, dict[str, str]]) -> str:
    body = [f"| `{name}` | {column['dtype']} | {column['doc']} |" for name, column in columns.items()]
    return "\n".join(["| column | dtype | meaning |", "|---|---|---|", *body])


if __name__ == "__main__":
    main()
