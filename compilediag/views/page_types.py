"""What the kernel sends to a page: the types of a patch and of all that is in it, and nothing else.

`docs/make_page_types.py` writes the types of the browser's code from them: `static/core/page-types.d.ts`. A class whose
name begins with `Page` has the rest of its name there.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias, TypedDict

from ..diagnosis.plan.plan import DiffLine, SearchOutcome, UnresolvedCause
from ..diagnosis.rank_comparison import RankGroup, RankRow
from ..diagnosis.registry import Example

#: The fields of a dataclass as plain values: its own declaration has their types.
ExampleValues: TypeAlias = Annotated[dict[str, Any], Example]
RankValues: TypeAlias = Annotated[dict[str, Any], RankRow]
RankGroupValues: TypeAlias = Annotated[dict[str, Any], RankGroup]
UnresolvedValues: TypeAlias = Annotated[dict[str, Any], UnresolvedCause]
SearchValues: TypeAlias = Annotated[dict[str, Any], SearchOutcome]
#: The fields of `Outcome`, and `text`, the outcome in one line.
OutcomeValues: TypeAlias = Annotated[dict[str, Any], "Outcome & {text: string}"]
#: The cells of an event, in the order of its table's columns. The first one is the event's id.
PageRow: TypeAlias = Annotated[list[Any], "Cells"]


# The session as a whole


class PageColumn(TypedDict):
    """A column. `type` says how a cell is shown: time, s, ms, us, int, share, bytes, number, bool, list, ids, id, path,
    code or text.
    """

    name: str
    label: str
    type: str
    doc: str


class SingleCacheTotals(TypedDict):
    """The lookups of one cache."""

    hits: int
    misses: int
    saved_s: float


class TotalsDict(TypedDict):
    """Counts and seconds of a session. None is a number that was not collected.

    `cache_hits` counts compiled graphs that came from a cache, `cache_misses` those that no cache had; `by_cache` has
    each cache by itself. `tuning_runs` were measured, not taken from a cache. `graph_records` are first captures.
    `compile_s` is the time of all compiles, `lost_s` of those that recompiles caused, `cache_saved_s` what hits saved
    as torch reports it, `tuning_s` what compiling and timing choices took. `own_s` is what compilediag's hooks and
    writer took, `own_share` is own_s / compile_s. `wall_s` is the time of the recording, `wall_share` the share of it
    in which a process compiled. `last_step` is the program's own step of the last compile, `end_step` its last one, if
    the recording is over. `after_warmup` counts the incidents after the warm-up; it is None if no warm-up ended. If
    ranks were grouped, `ranks` is the number of all ranks and `ranks_read` the number of those whose rows the session
    has. All other numbers cover only these.
    """

    events: int
    compiles: int
    recompiles: int
    refused_calls: int
    graph_breaks: int
    limit_hits: int
    kernels: int
    cache_hits: int
    cache_misses: int
    cache_saved_s: float
    by_cache: dict[str, SingleCacheTotals]
    tuning_runs: int
    tuning_choices: int
    tuning_failed: int
    tuning_s: float
    graph_records: int
    graph_rerecords: int
    graph_skips: int
    graph_replays: int | None
    compile_s: float
    lost_s: float
    own_s: float
    own_share: float | None
    wall_s: float | None
    wall_share: float | None
    last_step: int | None
    end_step: int | None
    after_warmup: int | None
    dropped: int
    compiled_calls: int | None
    eager_calls: int | None
    eager_s: float | None
    used_once: int | None
    used_once_s: float | None
    ranks: int | None
    ranks_read: int | None
    vllm_compiles: int
    vllm_s: float


class LeftOut(TypedDict):
    """What a report leaves out: rows (table -> how many) of so many `compiles` `of` all."""

    compiles: int
    of: int
    rows: dict[str, int]


class PageMeta(TypedDict):
    """The session as a whole. `schema` is the version of the patch format; times are in ms since 1970.

    What was not recorded is None."""

    schema: int
    state: str
    title: str | None
    detail: str | None
    started_ms: float | None
    stopped_ms: float | None
    torch: str | None
    python: str | None
    pid: int | None
    compilediag: str | None
    platform: str | None
    command: str | None
    device: str | None
    redacted: bool
    left_out: NotRequired[LeftOut]


class RunningCompile(TypedDict):
    """A compile that runs now. `phase` is the innermost of `phases`; `before_s` is what the last one of the same
    function took.
    """

    compile_id: str | None
    compile_key: str | None
    function: str | None
    file: str | None
    line: int | None
    trigger: str | None
    phases: list[str]
    phase: str | None
    started_ms: float
    before_s: float | None


# Findings and plan


class PageFinding(TypedDict):
    """A finding, see `compilediag.diagnosis.Finding`; `fix` is code, `step` the number of the plan's step for it.

    `id` names it in links. `is_cost`: the plan has it among its costs.
    """

    id: str
    rule: str
    title: str
    seconds_recoverable: float
    is_expected: bool
    count: int
    suggestion: str
    fix: str | None
    function: str | None
    file: str | None
    line: int | None
    evidence: list[int]
    values: list[str]
    step: int | None
    is_cost: bool


class PageLink(TypedDict):
    """An address and what is there."""

    title: str
    url: str


class PageStepCompile(TypedDict):
    """A compile of a function: what changed for it, null for the first one, and the values that came, "" where a guard
    held. `is_own`: the step is about this recompile. `event` is the id of the recompile.
    """

    event: int | None
    time: float
    values: list[str]
    change: str | None
    is_own: bool
    seconds: float


class PageEvidence(TypedDict):
    """The compiles of the function that a step recompiled, with the values called `names`; `hidden` are left out."""

    function: str
    names: list[str]
    compiles: list[PageStepCompile]
    hidden: int


class PagePlanStep(TypedDict):
    """A step of the plan, see `compilediag.diagnosis.plan.PlanStep`; `alternatives` are code. `recompiles_gained` and
    `seconds_gained` are what it saves beside the steps before it.
    """

    file: str | None
    line: int | None
    place: str
    function: str | None
    code: str | None
    expression: str | None
    title: str
    title_values: list[str]
    has_more_values: bool
    origin: str
    what: str
    values: list[str]
    value_count: int
    change: str
    can_be_applied: bool
    is_certain: bool
    alternatives: list[str]
    causes: list[str]
    fingerprints: list[str]
    why: str
    saving: str
    recompiles_saved_alone: int
    recompiles_saved: int
    seconds_saved: float
    recompiles_gained: int
    seconds_gained: float
    rule: str
    evidence: list[int]
    proof: PageEvidence | None


class PageCompileCost(TypedDict):
    """Time without a recompile, see `compilediag.diagnosis.rules.costs.CompileCost`."""

    kind: str
    seconds: float
    title: str
    what: str
    advice: str
    code: str | None
    function: str | None
    file: str | None
    line: int | None
    place: str
    details: list[str]
    evidence: list[int]


class PageSpec(TypedDict):
    """A specification of a function's arguments that can replace `steps`, which are numbers of steps from 1."""

    title: str
    steps: list[int]
    code: str


class PageSearch(TypedDict):
    """A search that a page has started: a line for each run that has ended, what runs now, and how many runs are done.

    `error` says in one line why nothing was found that could be stored; "" otherwise.
    """

    running: bool
    now: str
    done: int
    total: int
    lines: list[str]
    error: str


class PageChangedSource(TypedDict):
    """A file or cell that the plan changes, see `compilediag.diagnosis.plan.changed_sources`. `lines` are those of its
    diff. Of a cell it has the number and the texts before and after; None for a file.
    """

    place: str
    cell: int | None
    lines: list[DiffLine]
    before: str | None
    after: str | None


class PagePlan(TypedDict):
    """The plan as `Plan.to_dict()` has it, and the change as `sources` and as `patch`, a unified diff: that of the
    steps, or the one that a search has proven; None if there is none. `try_command` tries the plan from the outside.
    """

    headline: str
    leads: str | None
    steps: list[PagePlanStep]
    recompiles: int
    recompiles_saved: int
    seconds: float
    seconds_saved: float
    settings: dict[str, Any]
    settings_code: str
    code: str
    patch: str | None
    sources: list[PageChangedSource]
    try_command: str
    unresolved: list[UnresolvedValues]
    costs: list[PageCompileCost]
    specs: list[PageSpec]
    tried: OutcomeValues | None
    searched: SearchValues | None
    notes: list[str]


# Panels, ranks and vLLM

Cell: TypeAlias = str | float | int | bool | None
#: The widths in px from which on a comparison shows its columns, and the label of the column that it is sorted by, with
#: 1 for ascending or -1 for descending.
PanelLook = TypedDict("PanelLook", {"from": NotRequired[list[int]], "sort": NotRequired[tuple[str, int]]})


class PanelTable(TypedDict):
    """The table of a panel: labels of columns, rows, and a note below the table."""

    columns: list[str]
    rows: list[list[Cell]]
    note: str | None


class PagePanel(PanelTable, PanelLook):
    """A table of a plug-in, or of a comparison."""

    name: str
    label: str


class RankDifference(TypedDict):
    """Where ranks diverge; `order` is its place in the order of compiles."""

    kind: str
    sentence: str
    evidence: list[int]
    order: int


class RankCell(TypedDict):
    """A compile on one rank."""

    seconds: float | None
    caches: str
    guard: str | None
    expected: str | None
    actual: str | None
    collectives: list[str]


class PageRankGraph(TypedDict):
    """A compile over all ranks, see `GraphRow` of `diagnosis.rank_comparison`: `ranks` have it, `missed` do not,
    the first of which are `missing`. It has a cell for each shown rank, which is None for one that did not compile it.
    """

    order: int
    compile_id: str | None
    function: str | None
    file: str | None
    line: int | None
    trigger: str | None
    ranks: int
    missing: list[int]
    missed: int
    differs: list[str]
    slowest_rank: int | None
    slowest_s: float | None
    median_s: float | None
    spread_s: float | None
    runtime_ms: float | None
    cells: list[RankCell | None]


class PageRanks(TypedDict):
    """The page "Ranks". `count`, `group_count` and `graph_count` are total numbers; `shown` are the ranks that compiles
    have cells of. `loaded` are the ranks whose rows the session has; empty if it has the rows of all ranks.
    """

    count: int
    loaded: list[int]
    shown: list[int]
    group_count: int
    graph_count: int
    differences: list[RankDifference]
    ranks: list[RankValues]
    groups: list[RankGroupValues]
    graphs: list[PageRankGraph]


class VllmText(TypedDict):
    """A text of the session."""

    event_id: int
    name: str
    size: int | None


class VllmRange(TypedDict):
    """A range of sizes; `seconds` are those of all pieces, None if none ended."""

    start: int | None
    end: int | None
    is_cudagraph_size: bool
    seconds: float | None


class VllmCell(TypedDict):
    """A piece for a range."""

    seconds: float | None


class VllmPiece(TypedDict):
    """A piece with a cell for each range; the cell is None if the piece was not compiled for that range."""

    name: str
    graph_ops: int | None
    seconds: float | None
    cells: list[VllmCell | None]


class VllmPart(TypedDict):
    """A part of a model on the ranks that compile it in the same way; all seconds are those of the slowest of them,
    `rank`. `config` has the columns of `vllm_configs`.
    """

    ranks: list[int]
    rank: int | None
    compile_id: str | None
    config: dict[str, Any]
    compiles: int
    seconds: float | None
    piece_count: int
    ranges: list[VllmRange]
    pieces: list[VllmPiece]
    texts: list[VllmText]


class PageVllmParts(TypedDict):
    """The page "vLLM"; `count` and `compiles` are total numbers."""

    count: int
    compiles: int
    parts: list[VllmPart]


# The explorer: one document per function. Times are in ms since 1970, durations in s.


class FailedGuard(NamedTuple):
    """A guard that failed in an entry at a recompile; `guard` is its number in the document."""

    guard: int
    is_first: bool
    fail_count: int | None
    expected: str | None


class GuardCount(NamedTuple):
    """How often a guard failed in an entry: at so many recompiles, and torch's own last count."""

    guard: int
    recompiles: int
    fail_count: int | None
    expected: str | None


class EntryCalls(TypedDict):
    """Calls of an entry, the s of one, the s that they took less than eager ones, and when the compile pays off."""

    calls: int | None
    mean_s: float | None
    won_s: float | None
    break_even: int | None


class EntryDocument(EntryCalls):
    """A cache entry. `event` is None for one that was compiled before the watch."""

    event: int | None
    compile_id: str | None
    made_at: int | None
    seconds: float | None
    tree: int | None
    order: int | None
    failed: list[GuardCount]
    time: float | None
    guard_count: int | None
    guard_check_us: float | None


class RecompileDocument(TypedDict):
    """A recompile. `made`, `closest` and the first item of each of `cells` are numbers of entries; `others` is how many
    of those checked have no cell, because only the closest are analyzed.
    """

    event: int
    made: int | None
    closest: int | None
    guard: int | None
    cells: list[tuple[int, list[FailedGuard]]]
    time: float
    compile_id: str | None
    expected: str | None
    now: str | None
    entries_checked: int | None
    others: int
    lost_s: float | None


#: [guard, recompiles] of the guards that failed together with this one, the recompiles at which it was the only
#: failing guard of some entry, and what fixing it would have prevented. `with` is a keyword, so this is no class.
Company = TypedDict("Company", {"with": list[tuple[int, int]], "alone": int, "verdict": str | None})


class GuardDescription(TypedDict):
    """The part of a guard's document that says what it is."""

    key: str
    source: str | None
    name: str
    kinds: list[str]
    texts: list[str]
    user_file: str | None
    user_line: int | None
    user_code: str | None
    around: list[tuple[int, str]] | None
    framework: str | None
    framework_code: str | None
    stack: str | None
    hint: str | None


class ValueHistory(TypedDict):
    """[text, number or None] of each value; [step, value, whether a call brought it] of each point in time."""

    values: list[tuple[str, float | None]]
    points: list[tuple[int, int, bool]]


class GuardDocument(Company, GuardDescription, ValueHistory):
    """A guard that failed: where it was made, the values that it saw, and what failed together with it."""

    recompiles: int
    lost_s: float | None


class EagerCalls(TypedDict):
    """The calls of a function that ran eagerly."""

    calls: int
    total_s: float
    mean_s: float | None


class CalledOnce(TypedDict):
    """The entries that were called once: how many, and the s of those whose compile was recorded."""

    count: int
    seconds: float


class FunctionHead(TypedDict):
    """A function in one process. `eager` and `once` are None if calls were not counted."""

    rank: int | None
    pid: int | None
    file: str | None
    line: int | None
    function: str | None
    compiles: int
    recompiles: int
    lost_s: float | None
    eager: EagerCalls | None
    once: CalledOnce | None


class FunctionDocument(FunctionHead):
    """All of one function in one process."""

    entries: list[EntryDocument]
    rows: list[RecompileDocument]
    guards: list[GuardDocument]


#: A list of a document as it is sent: the names of its columns, once, and its rows.
PackedList: TypeAlias = tuple[list[str], list[list[Any]]]


class PackedDocument(FunctionHead):
    """The document of a function as it is sent."""

    entries: PackedList
    rows: PackedList
    guards: PackedList


# Patches

#: The text of an artifact: `z` is base64 of its deflated UTF-8, `cut` says whether it is only the beginning, or `same`
#: is the id of the artifact that has the same text. In a report, `in` is the artifact whose block contains the text,
#: and `slice` its first and last position there.
StoredText = TypedDict(
    "StoredText", {"z": str, "cut": bool, "same": int, "in": int, "slice": tuple[int, int]}, total=False
)
#: How a value changes: see `patches`.
DeltaItems = TypedDict("DeltaItems", {"=": list[Any]})
DeltaStep: TypeAlias = "tuple[int, int | Delta] | DeltaItems"
Delta = TypedDict(
    "Delta",
    {"=": Any, "t": tuple[int, str], "k": "dict[str, Delta]", "x": list[str], "l": list[DeltaStep]},
    total=False,
)


class PatchParts(TypedDict, total=False):
    """The parts of a patch; those that did not change are left out.

    `observed`: table -> whether all of its sources recorded. `feeds`: table -> its sources. `made_of`: group table ->
    the table of the events that it sums up. `texts`: event id of an artifact -> its text. `examples`: rule -> its
    example, for the rules of the findings and of the plan; `torch_docs` in the same way: the page about it. `changes`
    and `documents`, the latter by the ids of functions: see `patches`.
    """

    columns: dict[str, list[PageColumn]]
    feeds: dict[str, list[str]]
    made_of: dict[str, str]
    meta: PageMeta
    totals: TotalsDict
    observed: dict[str, bool]
    now: list[RunningCompile]
    findings: list[PageFinding]
    plan: PagePlan
    examples: dict[str, ExampleValues]
    torch_docs: dict[str, PageLink]
    ranks: PageRanks
    vllm: PageVllmParts
    panels: list[PagePanel]
    rows: dict[str, list[PageRow]]
    texts: dict[str, StoredText]
    changes: dict[str, Delta]
    documents: list[tuple[int, Delta]]


class PagePatch(PatchParts):
    """What is new since the patch `seq` - 1; everything if `reset`. A large patch comes in parts, numbered from 0."""

    seq: int
    reset: NotRequired[bool]
    part: NotRequired[int]


#: A column of a table in a report. `numbers` and `times` (us) are the first one and differences, a number among `texts`
#: is a position in `strings`.
class PackedColumn(TypedDict, total=False):
    cells: list[Any]
    numbers: list[int]
    times: list[int]
    texts: list[Any]


class PackedPatch(PagePatch):
    """The patch of a report: the columns of its tables instead of rows."""

    tables: dict[str, list[PackedColumn]]
    strings: list[str]
