"""What the page gets: the types of a patch. `static/core/store.js` reads it."""

from __future__ import annotations

from typing import Any, TypedDict

from .artifact_texts import PageText
from .page_columns import PageColumn
from .plugin_panels import PluginPanel
from .rank_page import RankPage
from .totals import TotalsDict
from .vllm_page import VllmPage

#: The cells of an event, in the order of its table's columns. The first one is the event's id.
PageRow = list[Any]


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
    started_ms: float | None
    before_s: float | None


class PageFinding(TypedDict):
    """A finding, see `compilediag.diagnosis.Finding`; `fix` is code, `step` the number of the plan's step for it.

    `is_cost`: the plan has it among its costs.
    """

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


class PageExampleChange(TypedDict):
    """A change of an example that works: what becomes of the recompiles, and a diff; "" if no change is needed."""

    outcome: str
    diff: str


class PageExample(TypedDict):
    """A worked example of a rule, see `compilediag.diagnosis.examples.Example`."""

    symptom: str
    program: str
    printed: str
    changes: list[PageExampleChange]


class PageLink(TypedDict):
    """An address and what is there."""

    title: str
    url: str


class PageStep(TypedDict):
    """A step of the plan, see `compilediag.diagnosis.plan.PlanStep`; `alternatives` are code."""

    file: str | None
    line: int | None
    place: str
    function: str | None
    code: str | None
    expression: str | None
    what: str
    values: list[str]
    value_count: int
    change: str
    can_be_applied: bool
    alternatives: list[str]
    causes: list[str]
    why: str
    saving: str
    recompiles_saved_alone: int
    recompiles_saved: int
    seconds_saved: float
    rule: str
    evidence: list[int]


class PageCause(TypedDict):
    """What no step of the plan resolves."""

    what: str
    reason: str
    place: str
    evidence: list[int]


class PageCost(TypedDict):
    """Compile time without a recompile, see `compilediag.diagnosis.compile_cost.CompileCost`."""

    kind: str
    seconds: float
    what: str
    advice: str
    code: str | None
    function: str | None
    file: str | None
    line: int | None
    place: str
    details: list[str]
    evidence: list[int]


class PagePlan(TypedDict):
    """The plan as `Plan.to_dict()` has it, and `patch`: a unified diff of the user's files, None if there is none."""

    headline: str
    steps: list[PageStep]
    recompiles: int
    recompiles_saved: int
    seconds: float
    seconds_saved: float
    settings: dict[str, Any]
    settings_code: str
    code: str
    patch: str | None
    unresolved: list[PageCause]
    costs: list[PageCost]
    tried: dict[str, Any] | None
    notes: list[str]


class PagePatch(TypedDict, total=False):
    """What is new since the patch `seq` - 1; everything if `reset`. Parts that did not change are left out.

    `observed`: table -> whether all of its sources recorded. `feeds`: table -> its sources. `made_of`: group table ->
    the table of the events that it sums up. `texts`: event id of an artifact -> its text. `examples`: rule -> its
    example, for the rules of the findings and of the plan; `torch_docs` in the same way: the page about it. `changes`
    and `documents`: see `patch_deltas`.
    """

    seq: int
    reset: bool
    columns: dict[str, list[PageColumn]]
    feeds: dict[str, list[str]]
    made_of: dict[str, str]
    meta: PageMeta
    totals: TotalsDict
    observed: dict[str, bool]
    now: list[RunningCompile]
    findings: list[PageFinding]
    plan: PagePlan
    examples: dict[str, PageExample]
    torch_docs: dict[str, PageLink]
    ranks: RankPage
    vllm: VllmPage
    panels: list[PluginPanel]
    rows: dict[str, list[PageRow]]
    texts: dict[str, PageText]
    changes: dict[str, Any]
    documents: list[tuple[int, Any]]
