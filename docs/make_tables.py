"""Writes docs/tables.md to stdout, from what the code itself declares: `make docs`."""

from compilediag import events
from compilediag.diagnosis import incidents
from compilediag.diagnosis.rules import break_even
from compilediag.storage import data

INTRODUCTION = """# Tables

Each table of a session is a pandas DataFrame: `session.compiles`, `session.recompiles` and so on. A row is one event.
Missing is NA, never 0 or an empty string; cells of dtype json are a list, a dict or None. The unit of a number follows
its dtype. `make docs` writes this file from `compilediag/events/`, and a test compares the two.

The columns are listed in the order of the DataFrame: the most useful ones first. Before them, every table but `events`
has `compile_id`, and behind them the others of these columns:
"""


def main() -> None:
    print(INTRODUCTION)
    print(rows(data.COMMON_COLUMNS))
    section("events", "every event of every kind", data.EVENT_COLUMNS)
    for name, kind in events.BY_TABLE.items():
        own = {column: spec for column, spec in data.frame_columns(name).items() if column in events.columns(kind)}
        section(name, f"kind `{kind.kind}`", own)
    print(f"\n## `break_even()`: one row per compiled entry, from `compiles` and `calls`\n\n{rows(break_even.COLUMNS)}")
    print(f"\n## `incidents`: what compiled after the warm-up, from the other tables\n\n{rows(incidents.COLUMNS)}")
    named("Incidents", "kind", incidents.KINDS)
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
    body = [f"| `{name}` | {describe_type(column)} | {column['doc']} |" for name, column in columns.items()]
    return "\n".join(["| column | dtype | meaning |", "|---|---|---|", *body])


def describe_type(column) -> str:
    return f"{column['dtype']}, {column['unit']}" if column.get("unit") else column["dtype"]


if __name__ == "__main__":
    main()
