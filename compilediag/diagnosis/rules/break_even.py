"""Compiled entries: what each cost, how often it was called since, whether that has paid for its compile, and what the
calls pay for their guards.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ...decode.guards.guard_text import ObjectNames, parse_tree_line, split_tree
from ...decode.records.record_kinds import GUARD_TREE
from ...events import Artifact, Calls, Compile, Rows, SourceStatus, describe_column
from ...formatting import format_amount, format_seconds, format_share
from ..change import CodeChange
from ..evidence import Evidence, Place, get_place, group_by, is_timed, kept, kept_after, kept_of, sum_seconds
from ..finding import Finding, get_severity
from ..rule import Rule, report

if TYPE_CHECKING:
    import pandas as pd

#: Outcomes of a compile that made an entry.
MADE = ("ok", "empty", None)
USED_ONCE = Rule(
    "used_once",
    title="{function} spent {spent} on {entries} called once",
    action="Fix what recompiles it, or run calls that do not repeat eagerly: "
    'torch.compiler.set_stance("eager_on_recompile").',
    worth_s=1.0,
    cost="under that stance new sizes run eagerly, however often they come",
    docs="trouble",
    cost_kind="used_once",
    cause="entries that are called once",
    headline="Entries that were called once took {seconds} of {session}",
)
#: Guards that are a good part of each call. What the calls of a function spend less on is not worth a change.
GUARD_COST = Rule(
    "guard_cost",
    title="{function}: checking its {guards} takes {check} of each call, {share} of it",
    action="A call checks them before it runs compiled code.{setting} Guards that are left out, with "
    "skip_guard_eval_unsafe or a guard_filter_fn, are unsafe: a value that changes then gives wrong results, silently.",
    severity="low",
    docs="recompiles",
)
RULES = (USED_ONCE, GUARD_COST)
#: The share of a call, and its us, from which on its guards are reported.
GUARDS_SHARE, GUARDS_US = 0.05, 10.0
#: What is below dicts of modules that have not changed is not checked again. torch 2.13 turned this off, because before
#: Python 3.12 it reads dicts that may be freed (pytorch/pytorch pull requests 188101 and 188103).
DICT_TAGS, DICT_TAGS_OFF_SINCE, DICT_TAGS_PYTHON = "use_recursive_dict_tags_for_guards", (2, 13), (3, 12)
_TRY_TAGS = (
    f" torch._dynamo.config.{DICT_TAGS} = True keeps all of them, and passes over what is below dicts of modules that "
    "have not changed since the last check; torch has this off because it is safe from Python 3.12 on only. "
    "compilediag fix --guards measures whether it helps."
)
#: A value that has so much of all guards below it is not named: its parts are. So many of them are.
_MOST_OF, _SHOWN_PARTS = 0.9, 3
#: Layers of one list count together.
_INDEX = re.compile(r"\[\d+\]")

K = TypeVar("K", bound=Hashable)
#: rank, pid, function, file and line: a function in one process.
ProcessPlace = tuple[int | None, int | None, str | None, str | None, int | None]


@dataclass
class CallTally:
    """The calls of one entry or function, summed up over the rows of table `calls`."""

    calls: int = 0
    timed: int = 0
    total_s: float = 0.0
    min_s: float | None = None
    first_s: float | None = None

    def add(self, row: Calls) -> None:
        """Add the calls of a row."""
        self.calls += row.count or 0
        self.timed += row.timed or 0
        self.total_s += row.total_s or 0.0
        self.min_s = min((s for s in (self.min_s, row.min_s) if s is not None), default=None)
        self.first_s = row.first_s if self.first_s is None else self.first_s

    @property
    def mean_s(self) -> float | None:
        """s of a call. The first one sets up what the others use, so it counts only if there are no others."""
        if self.timed > 1 and self.first_s is not None:
            return max(0.0, self.total_s - self.first_s) / (self.timed - 1)
        return self.total_s / self.timed if self.timed else None


@dataclass(frozen=True)
class EntryWorth:
    """Whether an entry has paid for its compile: its seconds, calls, and s of a compiled and an eager call."""

    paid_s: float | None
    calls: int
    mean_s: float | None
    eager_s: float | None

    @property
    def won_s(self) -> float | None:
        """s that its calls took less than as many eager ones; negative if the eager call is faster."""
        if self.mean_s is None or self.eager_s is None:
            return None
        return self.calls * (self.eager_s - self.mean_s)

    @property
    def break_even(self) -> int | None:
        """Calls after which it has paid for its compile; None if never, or if not all of it is known."""
        if self.paid_s is None or self.mean_s is None or self.eager_s is None or self.eager_s <= self.mean_s:
            return None
        return math.ceil(round(self.paid_s / (self.eager_s - self.mean_s), 6))

    @property
    def once(self) -> bool:
        """True if it was called once."""
        return self.calls == 1


@dataclass
class CompiledEntry:
    """A compiled entry: its compile and its calls. `tally` and `worth` are None if calls were not counted."""

    compile: Compile
    paid_s: float | None
    tally: CallTally | None
    worth: EntryWorth | None
    #: True if its function had another entry, or ran eagerly, after it was made.
    was_left: bool

    @property
    def place(self) -> Place:
        """The compiled function."""
        return get_place(self.compile)


def are_calls_counted(data: Rows) -> bool:
    """True if calls were counted in this session."""
    return any((state.name, state.status) == ("calls", "active") for state in data.rows(SourceStatus))


@kept_after(Compile, Calls, SourceStatus)
def list_entries(evidence: Evidence) -> list[CompiledEntry]:
    """The compiled entries of a session, in the order of their compiles."""
    compiles = evidence.rows(Compile)
    # Compile key -> s of the compile, its backward included; without those that were not timed.
    paid: dict[str, float] = defaultdict(float)
    for row in compiles:
        if row.compile_key is not None and is_timed(row.duration_s):
            paid[row.compile_key] += row.duration_s
    calls = evidence.rows(Calls)
    tallies = _tally((row for row in calls if row.ran != "eager"), lambda row: row.compile_key)
    eager = _tally((row for row in calls if row.ran == "eager"), _get_process_place)
    # The compiles that made an entry, one per key.
    all_made = [row for row in compiles if row.trigger != "lazy_backward" and row.outcome in MADE]
    first = {row.compile_key: row for row in reversed(all_made)}
    made = [row for row in all_made if row.compile_key is None or first[row.compile_key] is row]
    last = {(_get_process_place(row), row.region): row for row in made}
    are_counted = are_calls_counted(evidence)
    entries = []
    for row in made:
        key, place = row.compile_key, _get_process_place(row)
        paid_s = row.duration_s if key is None else paid.get(key)
        # Without a key no call can be attributed: the number of calls is unknown, not 0.
        tally = tallies.get(key, CallTally()) if are_counted and key is not None else None
        mean_s = eager[place].mean_s if place in eager else None
        worth = EntryWorth(paid_s, tally.calls, tally.mean_s, mean_s) if tally else None
        entries.append(CompiledEntry(row, paid_s, tally, worth, last[place, row.region] is not row or place in eager))
    return entries


def _tally(rows: Iterable[Calls], key: Callable[[Calls], K]) -> dict[K, CallTally]:
    tallies: dict[K, CallTally] = defaultdict(CallTally)
    for row in rows:
        tallies[key(row)].add(row)
    return dict(tallies)


def _get_process_place(row: Compile | Calls) -> ProcessPlace:
    return row.rank, row.pid, row.function, row.file, row.line


def break_even(data: Rows) -> pd.DataFrame:
    """One row per entry, with the columns of `COLUMNS`. What was not counted is NA."""
    import pandas as pd

    of_compile = ("event_id", "rank", "pid", "compile_id", "compile_key", "function", "file", "line")
    of_calls = ("calls", "mean_s", "eager_s", "won_s", "break_even", "once")
    cells = [
        {
            **{name: getattr(entry.compile, name) for name in of_compile},
            "paid_s": entry.paid_s,
            "first_s": entry.tally.first_s if entry.tally else None,
            **{name: getattr(entry.worth, name, None) for name in of_calls},
        }
        for entry in list_entries(data)
    ]
    frame = pd.DataFrame(cells, columns=list(COLUMNS))
    return frame.astype({name: column["dtype"] for name, column in COLUMNS.items()})


#: The columns of `break_even`.
COLUMNS = {
    "event_id": describe_column("Int64", "number of the event of its compile"),
    "rank": describe_column("Int64", "rank in a distributed job; NA outside of one"),
    "pid": describe_column("Int64", "process that it was compiled in"),
    "compile_id": describe_column("string", "torch's id of its compile"),
    "compile_key": describe_column("string", "key of its compile, unique in the session"),
    "function": describe_column("string", "name of the compiled code object"),
    "file": describe_column("string", "file of the code object"),
    "line": describe_column("Int64", "first line of the code object"),
    "paid_s": describe_column("float64", "s of its compile, backward included"),
    "calls": describe_column("Int64", "its calls during the watch"),
    "first_s": describe_column("float64", "s of its first call, on the host, forward only"),
    "mean_s": describe_column("float64", "s of a later call, on average; of the first if there are no others"),
    "eager_s": describe_column("float64", "s of an eager call of the same function, on average; NA if there was none"),
    "won_s": describe_column(
        "float64", "s that its calls saved compared with as many eager calls; negative if they took longer"
    ),
    "break_even": describe_column("Int64", "calls after which it has saved paid_s; NA if never, or not known"),
    "once": describe_column("boolean", "true if it was called once"),
}


@dataclass(frozen=True)
class CallTotals:
    """Of all functions: calls that ran compiled, and eagerly where torch gave up; entries that were called once."""

    compiled_calls: int | None = None
    eager_calls: int | None = None
    eager_s: float | None = None
    used_once: int | None = None
    used_once_s: float | None = None


@kept
def sum_calls(evidence: Evidence) -> CallTotals:
    """The totals of all calls; None throughout if calls were not counted."""
    if not are_calls_counted(evidence):
        return CallTotals()
    rows = evidence.rows(Calls)
    eager = [row for row in rows if row.ran == "eager"]
    once = [entry for entry in list_entries(evidence) if entry.worth is not None and entry.worth.once]
    return CallTotals(
        compiled_calls=sum(row.count or 0 for row in rows if row.ran == "compiled"),
        eager_calls=sum(row.count or 0 for row in eager),
        eager_s=sum(row.total_s or 0.0 for row in eager),
        used_once=len(once),
        used_once_s=sum_seconds(entry.paid_s for entry in once),
    )


@kept
def make_eager_call_counter(evidence: Evidence) -> Callable[[Place], str | None]:
    """A function that says how many calls of a function ran eagerly; None if calls were not counted."""
    are_counted = are_calls_counted(evidence)
    tallies = _tally((row for row in evidence.rows(Calls) if row.ran == "eager"), get_place)

    def describe(place: Place) -> str | None:
        tally = tallies.get(place)
        if tally is None:
            return "no call ran eagerly since" if are_counted else None
        took = f", {format_seconds(tally.total_s)}" if tally.timed else ""
        return f"{format_amount(tally.calls, 'call', 'calls')} ran eagerly since{took}"

    return describe


@kept_of(Calls)
def find_entries_used_once(evidence: Evidence) -> list[Finding]:
    """Functions whose entries cost much, were called once and then left for others; none if calls were not counted."""
    once = (entry for entry in list_entries(evidence) if entry.worth is not None and entry.worth.once)
    findings = []
    for place, entries in group_by((entry for entry in once if entry.was_left), lambda entry: entry.place).items():
        paid_s = sum_seconds(entry.paid_s for entry in entries)
        if paid_s >= USED_ONCE.worth_s:
            facts = {
                "spent": format_seconds(paid_s),
                "entries": format_amount(len(entries), "entry that was", "entries that were"),
            }
            # No seconds: where they are recompiles, the finding on their cause has these already.
            severity, compiles = get_severity(paid_s, 1, "medium"), [entry.compile for entry in entries]
            findings.append(report(USED_ONCE, compiles, facts, severity=severity, places=(place,)))
    return findings


@kept_of(Calls)
def find_guard_costs(evidence: Evidence) -> list[Finding]:
    """Functions whose calls spend much on checking guards; none if calls were not counted and timed.

    An entry's check is what its own calls pay. What they pay for the entries that are tried before it is not known.
    """
    groups = group_by(
        (entry for entry in list_entries(evidence) if entry.compile.guard_check_us is not None),
        lambda entry: entry.place,
    )
    has_setting = can_use_dict_tags(evidence)
    findings = []
    for entries in groups.values():
        timed = [(each.compile, each.worth) for each in entries if each.worth and each.worth.mean_s is not None]
        calls = sum(worth.calls for _, worth in timed)
        checks_s = sum(worth.calls * (row.guard_check_us or 0.0) / 1e6 for row, worth in timed)
        runs_s = sum(worth.calls * (worth.mean_s or 0.0) for _, worth in timed)
        if not calls or checks_s / calls * 1e6 < GUARDS_US or checks_s < GUARDS_SHARE * (checks_s + runs_s):
            continue
        most, _ = max(timed, key=lambda pair: pair[1].calls)
        facts = {
            "guards": format_amount(most.guard_count or 0, "guard"),
            "check": format_seconds(checks_s / calls),
            "share": format_share(checks_s / (checks_s + runs_s)),
            "setting": _TRY_TAGS if has_setting else "",
        }
        trees = (row for row in evidence.rows(Artifact) if row.name == GUARD_TREE)
        tree = next((row.event_id for row in trees if row.compile_key == most.compile_key), None)
        parts = find_guarded_parts(evidence.read_artifact(tree))
        details = tuple(f"{format_share(share)} of the guards are on {name} and what is in it" for name, share in parts)
        changes = (CodeChange(settings={DICT_TAGS: True}),) if has_setting else ()
        findings.append(report(GUARD_COST, (row for row, _ in timed), facts, details=details, changes=changes))
    return findings


def can_use_dict_tags(evidence: Evidence) -> bool:
    """True if guards can pass over unchanged dicts of modules, and do not by default."""
    return evidence.torch_version >= DICT_TAGS_OFF_SINCE and evidence.python_version >= DICT_TAGS_PYTHON


def find_guarded_parts(tree: str) -> list[tuple[str, float]]:
    """The values with the most guards on them and on what is in them, largest first, with their share of all guards.

    A value that holds nearly all guards, such as a model, is passed over for its parts.
    """
    around: list[tuple[int, str]] = []
    below: dict[str, Counter[str]] = defaultdict(Counter)
    guards, names = 0, ObjectNames()
    for line in map(partial(parse_tree_line, names=names), split_tree(tree)):
        around = [(depth, name) for depth, name in around if depth < line.depth]
        if line.what.endswith("GuardManager"):
            around.append((line.depth, line.description.partition(": ")[0]))
            continue
        guards += 1
        for parent, name in itertools.pairwise(dict.fromkeys(name for _, name in around)):
            below[parent][name] += 1
    parts = below[""].most_common()
    while parts and below[parts[0][0]] and parts[0][1] > _MOST_OF * sum(count for _, count in parts):
        parts = below[parts[0][0]].most_common()
    alike: Counter[str] = Counter()
    for name, count in parts:
        alike[_INDEX.sub("[*]", name)] += count
    return [(name, count / guards) for name, count in alike.most_common(_SHOWN_PARTS)]
