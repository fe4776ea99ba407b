"""Where compile time goes even if nothing recompiles: the costs that a plan lists after its steps.

What the next process finds in torch's caches, and what it repeats: Dynamo traces in every process, so `dynamo_s`
outside `aot_s` is always repeated. What AOTAutogradCache keeps is found with all that is below it. Without its entry
AOTAutograd traces again, and FxGraphCache decides for each of the two graphs. Kernels have files of their own, so a
process that finds no graph still finds the kernels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, NamedTuple

from ...decode.call_stacks import is_called_code
from ...decode.guards.path import parse_path
from ...decode.records.compilation_metrics import CPU_CHECK
from ...events import (
    AutotuneChoice,
    CacheLookup,
    Compile,
    CudaGraphAction,
    Event,
    GraphBreak,
    KernelCompile,
    Phase,
    Rows,
    SourceStatus,
    StackFrame,
    TracedFunction,
)
from ...formatting import (
    format_amount,
    format_count,
    format_first_line,
    format_function,
    format_line,
    format_names,
    format_place,
    format_seconds,
    format_share,
    format_times,
    is_resumed,
)
from ..evidence import (
    Evidence,
    Place,
    get_ids,
    get_place,
    group_by,
    is_timed,
    kept_after,
    kept_of,
    sum_seconds,
)
from ..finding import Finding, get_severity
from ..rule import Rule, list_changes, report
from ..trace_tree import build_trace_tree, sum_user_functions
from .autotune import SMALL_GAIN, TUNED_AGAIN, find_tuning_problems, find_tuning_runs, group_small_gains
from .break_even import MADE, USED_ONCE, find_entries_used_once
from .caches import advise_bypass
from .coverage import PARTS, map_collected
from .cudagraphs import advise_skip
from .graph_breaks import list_own_breaks

#: The first version of torch in which a nested compile region is traced once, however often it is called. In 2.11,
#: Dynamo traces it at each call, which takes longer than inlining it.
REGIONS_SINCE = (2, 13)
#: A Python loop whose iterations are most of a graph.
UNROLLED_LOOP = Rule(
    "unrolled_loop",
    title="{function}: the loop at {place} is unrolled, {number} iterations are {share} of the graph; compiling one of "
    "them saves about {seconds} of {total}",
    action="{advice}",
    worth_s=0.5,
    cost="nothing is fused across iterations any more, and in a loop that is not compiled each iteration is a compiled "
    "call",
    docs="trouble",
    cost_kind="unrolled_loop",
    cause="a Python loop that is unrolled",
    headline="Compiling one iteration of an unrolled loop saves about {seconds} of {session}",
)
RULES = (UNROLLED_LOOP,)
_COMPILE_BODY = "Compile {body} instead of the loop: torch.compile({name}), and run the loop without torch.compile."
_REGION = (
    "Or keep the loop compiled and decorate {body} with @torch.compiler.nested_compile_region, so that it is compiled "
    "once."
)

SKIP_CPU_CHECK = 'os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"  # before torch is imported'

#: What the next process repeats.
NEXT_PROCESS = Rule(
    "next_process", title="The next process repeats {amount}{parts}{saved}", action="{reasons}", worth_s=0.1
)
#: Identical blocks of one graph, compiled one by one. Less is not worth another structure of the program.
REPEATED_BLOCKS = Rule(
    "repeated_blocks",
    title="{function}: {number} identical blocks of class {class} ({share} of the graph) are compiled one by one"
    "{times} in {total}; compiling one block saves about {seconds}",
    action="torch compiles the first block and uses its code for the others. Fusion across blocks is lost, and each "
    "block is a compiled call of its own: 0.2 to 0.7 ms of host time per block and step, so measure a step if it is "
    "short.",
    worth_s=1.0,
    cause="{number} identical blocks of class `{class}` are compiled one by one",
    headline="Compiling one of {number} identical blocks saves about {seconds} of {session}",
)
#: The same graph, compiled again for each module.
REPEATED_COMPILES = Rule(
    "repeated_compiles",
    title="{function}: a graph of the same size was compiled {times} although no guard failed; all but the first took "
    "{seconds}",
    action="Each torch.compile(..., isolate_recompiles=True) has entries of its own, and torch._dynamo.reset() drops "
    "all of them. To share one entry among modules of one class, compile each with module.compile(), without "
    "isolate_recompiles, and do not reset between them.",
    worth_s=1.0,
    worth_count=3,
    cause="a graph of the same size was compiled {times}",
    headline="Compiling the same graph again took {seconds} of {session}",
)
#: A backward prepared although none ran: inference with gradients enabled.
UNUSED_BACKWARD = Rule(
    "unused_backward",
    title="{function}: {seconds} went into a backward that never ran",
    action="If no gradients are needed here, call it under torch.no_grad() or torch.inference_mode(). torch then "
    "traces the forward alone, keeps no activations, and stores the graph in AOTAutogradCache, which it does for a "
    "graph with a backward only after the backward.",
    worth_s=0.1,
    cause="a backward that never ran",
    headline="A backward that never ran took {seconds} of {session}",
)
#: torch's check of the CPU's vector instructions.
CHECK_OF_CPU = Rule(
    "cpu_check",
    title="torch took {seconds} to check the CPU's vector instructions, as it does in every process that compiles for "
    "the CPU",
    action="Set the environment variable TORCHINDUCTOR_VEC_ISA_OK=1 on machines where the check succeeded.",
    worth_s=1.0,
    cause="torch checks the CPU's vector instructions in every process",
)
#: Code of torch that runs a model, such as DistributedDataParallel, and that torch itself cannot trace.
TORCHS_BREAKS = Rule(
    "torchs_breaks",
    title="{times} of code of torch around the graph breaks at {places} took {seconds} and made no graph",
    action="No change of your code removes these breaks. torch compiles what that code runs, such as the forward of "
    "your model, by itself.",
    worth_s=0.1,
    cause="graph breaks of code of torch",
)
#: A function of the user's that Dynamo traces again and again in one frame.
TRACING = Rule(
    "tracing",
    title="{function} is inlined {times} and takes {share} of tracing: {seconds} of {total}",
    action="Dynamo traces a function again wherever it is called. {advice}",
    worth_s=1.0,
    worth_count=2,
    cause="functions that are traced again and again",
)
#: The share of all tracing that such a function takes.
MUCH_OF_TRACING = 0.25
_TRACE_ONCE = (
    "To trace it once, decorate it with @torch.compiler.nested_compile_region: its calls may differ in the values of "
    "tensors only, and its tensors must not share memory. Or compile it alone, and call it from code that is not "
    "compiled."
)
_COMPILE_ALONE = "Compiled alone, and called from code that is not compiled, it is traced once."
#: Functions that run without CUDA graphs although these were asked for: a cost of each call, which is not measured.
NOT_CAPTURED = Rule(
    "not_captured",
    title="CUDA graphs were asked for, and none was captured: {reasons}",
    action="{advice}",
    cause="CUDA graphs were asked for, and none was captured",
    headline="No CUDA graph was captured: {first}",
)
#: What ends without a capture, and what shows that there was one.
_REFUSED, _CAPTURED = ("skip", "stuck", "failed"), ("record", "rerecord", "replays")
#: Functions that the details of tracing list.
SHOWN_FUNCTIONS = 5
#: In a headline: the compile time of the session, which is filled in last.
_SESSION = "{session}"
#: Settings by which torch uses its own kernel for an op without tuning it.
_OWN_KERNELS = {
    "convolution": 'torch._inductor.config.max_autotune_conv_backends = "ATEN"',
    "": 'torch._inductor.config.max_autotune_gemm_backends = "ATEN"',
}
#: Rule of a finding that is a cost too -> kind of the cost.
_OF_FINDINGS = {rule.id: rule for rule in (TUNED_AGAIN, USED_ONCE, UNROLLED_LOOP)}


def find_cost_kind(rule: str) -> str | None:
    """The kind of the costs that findings of a rule are part of; None if they are of none."""
    return next((one.cost_kind for one in (SMALL_GAIN, *_OF_FINDINGS.values()) if one.id == rule), None)


@dataclass(frozen=True)
class CompileCost:
    """Time that is spent without a recompile.

    `seconds` (s) is what the advice saves; for "next_process", what is repeated; for "tracing", what the function
    takes; for "torchs_breaks", what they took; 0.0 for what each call costs, which is not measured. `what` is one
    sentence without a period, `advice` what to do, `code` the lines to paste if there are any. `title` is the cause in
    a few words, and `headline` what a plan says first if this is its largest cost; "" for what no change saves.
    `details` has one line per compile or reason. `place` is the function, if there is only one. `evidence` holds event
    ids.
    """

    kind: str
    seconds: float
    what: str
    advice: str
    evidence: tuple[int, ...]
    code: str | None = None
    details: tuple[str, ...] = ()
    place: Place = (None, None, None)
    title: str = ""
    headline: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The cost as plain JSON values."""
        function, file, line = self.place
        return {
            **{name: getattr(self, name) for name in ("kind", "seconds", "title", "what", "advice", "code")},
            "function": function,
            "file": file,
            "line": line,
            "place": format_place(file, line),
            "details": [*self.details],
            "evidence": [*self.evidence],
        }


def _report(
    rule: Rule, seconds: float, rows: Iterable[Event], facts: Mapping[str, object], place: Place = (None, None, None)
) -> CompileCost:
    """A cost; `facts` are what the texts of its rule name beside its seconds and function."""
    known = {"seconds": format_seconds(seconds), "function": format_function(*place), **facts}
    texts = (rule.title, str(rule.action), rule.cause, rule.headline)
    what, advice, title, headline = (text.format_map({**known, "session": _SESSION}) for text in texts)
    return CompileCost(rule.id, seconds, what, advice, get_ids(rows), place=place, title=title, headline=headline)


@kept_of(TracedFunction)
def _find_traced_again(evidence: Evidence) -> list[CompileCost]:
    """The user's function that takes most of all tracing, if it is traced as part of others. The body of an unrolled
    loop is left out: the loop is a cost of its own.
    """
    total = sum_seconds(root.total_s for root in build_trace_tree(evidence))
    functions = sum_user_functions(evidence)
    loops = {row.loop.get("body") for row in evidence.rows(Compile) if row.loop is not None}
    often = (each for each in functions if each.is_inlined and each.count >= TRACING.worth_count)
    most = next((each for each in often if each.place[0] not in loops), None)
    if most is None or most.seconds < max(TRACING.worth_s, MUCH_OF_TRACING * total):
        return []
    facts = {
        "times": format_amount(most.count, "time"),
        "share": format_share(most.seconds / total),
        "total": format_seconds(total),
        "advice": _TRACE_ONCE if evidence.torch_version >= REGIONS_SINCE else _COMPILE_ALONE,
    }
    rows = [row for row in evidence.rows(TracedFunction) if get_place(row) == most.place]
    cost = _report(TRACING, most.seconds, rows, facts, most.place)
    details = [
        f"{format_function(*each.place)}, {format_times(each.count)}: {format_seconds(each.seconds)}, "
        f"{format_share(each.seconds / total)}"
        for each in functions[:SHOWN_FUNCTIONS]
    ]
    return [replace(cost, details=tuple(details))]


@kept_of(AutotuneChoice)
def _find_tuning(evidence: Evidence) -> list[CompileCost]:
    """All tuning that gained little, as one cost: one setting or two undo it."""
    groups = group_small_gains(find_tuning_runs(evidence))
    if not groups:
        return []
    runs = [run for group in groups for run in group]
    seconds = sum_seconds(run.spent_s for run in runs)
    has_gain, s = any(run.winner_kind != "extern" for run in runs), "" if len(runs) > 1 else "s"
    ops = Counter(format_line(run.op or "an op", 60) for run in runs)
    code = dict.fromkeys(_OWN_KERNELS.get(op, _OWN_KERNELS[""]) for op in ops)
    facts = {
        "tunings": format_amount(len(runs), "tuning"),
        "end": f"hardly gain{s} over" if has_gain else "all end at" if len(runs) > 1 else "ends at",
        "pays": "hardly pays off" if has_gain else "never pays off",
        "seconds": format_seconds(seconds),
        "session": _SESSION,
    }
    title = SMALL_GAIN.cause.format_map(facts)
    places = {run.place for run in runs}
    cost = CompileCost(
        kind=SMALL_GAIN.cost_kind or SMALL_GAIN.id,
        seconds=seconds,
        what=f"{title} and took {facts['seconds']}: "
        + ", ".join(f"{op} {count}x" if count > 1 else op for op, count in ops.items()),
        advice="Or compile this part without max-autotune. torch caches the results of tuning, so the next process "
        "does not tune again.",
        evidence=tuple(sorted(number for run in runs for number in run.evidence)),
        code="\n".join(code),
        details=tuple(f"{run.label}: {format_share(run.margin_extern or 0.0)}" for run in runs[:SHOWN]),
        place=places.pop() if len(places) == 1 else (None, None, None),
        title=title,
        headline=SMALL_GAIN.headline.format_map(facts),
    )
    return [cost]


@kept_of(CudaGraphAction)
def _find_not_captured(evidence: Evidence) -> list[CompileCost]:
    """CUDA graphs that were asked for and never captured, as one cost of all functions: the first reason of each. None
    if something was captured, or may still be.
    """
    rows = [row for row in evidence.rows(CudaGraphAction) if row.backend != "user"]
    first = {get_place(row): row for row in reversed(rows) if row.action in _REFUSED}
    is_any_left = any(row.action in _CAPTURED or get_place(row) not in first for row in rows)
    if not rows or is_any_left or evidence.state == "watching":
        return []
    refusals = [*reversed(first.values())]
    reasons = []
    for row in refusals:
        why = row.reason or ("no reason given" if row.action == "skip" else "no capture succeeded")
        reasons.append(f"{format_first_line(why)} in {format_function(*get_place(row))}")
    advice = list(dict.fromkeys(filter(None, (advise_skip(row.reason) for row in refusals))))
    facts = {
        "reasons": format_names(reasons),
        "first": format_names(reasons, 1),
        "advice": advice[0] if len(advice) == 1 else "The findings say for each function what to change.",
    }
    cost = _report(NOT_CAPTURED, 0.0, refusals, facts, *([get_place(refusals[0])] if len(refusals) == 1 else []))
    return [replace(cost, details=tuple(reasons[:SHOWN]) if len(reasons) > 1 else ())]


def _find_cpu_check(data: Rows) -> list[CompileCost]:
    """torch's check of the CPU's vector instructions: before torch 2.13 it imports torch in a new process each time."""
    checks = [phase for phase in data.rows(Phase) if phase.name == CPU_CHECK]
    seconds = sum_seconds(phase.duration_s for phase in checks)
    if seconds < CHECK_OF_CPU.worth_s:
        return []
    return [replace(_report(CHECK_OF_CPU, seconds, checks, {}), code=SKIP_CPU_CHECK)]


@kept_after(Compile, GraphBreak, StackFrame)
def _find_torchs_breaks(evidence: Evidence) -> list[CompileCost]:
    """What torch compiled of its own code in vain. Recompiles are left out: they are part of their causes."""
    rows = [
        row
        for row in evidence.rows(Compile)
        if row.outcome in ("empty", "failed") and not row.is_recompile and is_called_code(row.file or "")
    ]
    breaks = group_by(list_own_breaks(evidence), lambda row: row.compile_key) if rows else {}
    rows = [row for row in rows if row.compile_key in breaks or is_resumed(row.function)]
    seconds = sum_seconds(row.duration_s for row in rows)
    if not breaks or seconds < TORCHS_BREAKS.worth_s:
        return []
    own = [one for row in rows for one in breaks.get(row.compile_key, ())]
    places = dict.fromkeys(format_place(one.user_file, one.user_line) for one in own)
    facts = {"times": format_amount(len(rows), "compile"), "places": format_names([*filter(None, places)])}
    return [_report(TORCHS_BREAKS, seconds, rows, facts)]


# Code that one graph contains many times: identical blocks of a model, and Python loops that Dynamo unrolls

#: Phases that a process pays once, whatever it compiles.
ONCE = ("inductor_codecache_torch_key", CPU_CHECK)
_HEADER = "precompiled header"
#: What is counted of code that repeats.
NUMBERS = ("count", "ops", "graph_ops")


def estimate_saving(
    rows: Sequence[Compile], repeated: Mapping[str, Any], phases: Iterable[Phase], kernels: Iterable[KernelCompile]
) -> float:
    """s that compiling one of the identical parts saves: (N - 1)/N of the time that grows with the graph.

    That is without what a process pays once, and without waiting for kernels: Inductor compiles equal kernels once. The
    time in which kernels were compiled beside the code generation of the other blocks becomes a wait. Measured on an
    H100 with 12 blocks, the estimate was 34 % above to 14 % below what was saved (docs/compile_time.md).
    """
    kernels = list(kernels)
    once = sum_seconds(phase.duration_s for phase in phases if phase.name in ONCE)
    once += sum_seconds(kernel.duration_s for kernel in kernels if kernel.name == _HEADER)
    waited = sum_seconds(row.triton_s for row in rows)
    grows = sum_seconds(row.duration_s for row in rows) - waited - once
    hidden = max(0.0, _measure_union(kernel for kernel in kernels if kernel.name != _HEADER) - waited)
    count, share = int(repeated["count"]), float(repeated["count"] * repeated["ops"] / repeated["graph_ops"])
    return max(0.0, grows * share * (count - 1) / count - hidden)


def _measure_union(kernels: Iterable[KernelCompile]) -> float:
    """s in which at least one of the kernels was being compiled."""
    seconds, reached = 0.0, 0
    for kernel in sorted(kernels, key=lambda row: row.time_ns):
        begin = max(kernel.time_ns, reached)
        seconds += max(0, kernel.end_ns - begin) / 1e9
        reached = max(reached, kernel.end_ns)
    return seconds


class RepeatedCode(NamedTuple):
    """A compile of a graph that has the same code many times: its rows, forward first, what is recorded of that code,
    and the s that compiling it once saves.
    """

    forward: Compile
    code: Mapping[str, Any]
    rows: Sequence[Compile]
    saved_s: float


def find_repeated_code(
    evidence: Evidence, column: str, types: Mapping[str, type | UnionType], is_meant: Callable[[Compile], bool]
) -> list[RepeatedCode]:
    """The compiles of which `column` records code that repeats. `types` are those of its texts: a file can have
    anything there, and is then left out. `is_meant` is true for compiles in which that code was compiled.
    """

    def is_complete(code: Mapping[str, Any] | None) -> bool:
        numbers = [(code or {}).get(name) for name in NUMBERS]
        are_numbers = all(isinstance(value, int | float) and 0 < value < 1e9 for value in numbers)
        return are_numbers and all(isinstance((code or {}).get(name), kind) for name, kind in types.items())

    phases, kernels = evidence.by_compile(Phase), evidence.by_compile(KernelCompile)
    found = []
    for key, rows in evidence.by_compile(Compile).items():
        forward = next((row for row in rows if is_meant(row) and is_complete(getattr(row, column))), None)
        if key is not None and forward is not None:
            code = getattr(forward, column)
            saved_s = estimate_saving(rows, code, phases.get(key, ()), kernels.get(key, ()))
            found.append(RepeatedCode(forward, code, rows, saved_s))
    return found


_LOOP = {"file": str, "line": int, "body": str | None, "module": str | None, "code": str | None}


@kept_after(Compile, Phase, KernelCompile)
def find_unrolled_loops(evidence: Evidence) -> list[Finding]:
    """One finding for each loop whose iterations took much of the compile time of a function."""
    found = find_repeated_code(evidence, "loop", _LOOP, lambda row: row.outcome == "ok")
    groups = group_by(found, lambda one: (*get_place(one.forward), one.code["file"], one.code["line"]))
    advice = (_COMPILE_BODY, _REGION) if evidence.torch_version >= REGIONS_SINCE else (_COMPILE_BODY,)
    findings = []
    for group in groups.values():
        saved = sum(one.saved_s for one in group)
        if saved < UNROLLED_LOOP.worth_s:
            continue
        loop = max((one.code for one in group), key=lambda code: code["count"])
        rows = [row for one in group for row in one.rows]
        module = parse_path(loop.get("module") or "")
        name = format_line(module.text if module is not None else loop.get("body") or "", 60)
        words = {"body": f"`{name}`" if name else "the body of the loop, as a function,", "name": name or "body"}
        texts = [text.format_map(words) for text in advice]
        facts = {
            "place": format_place(loop["file"], loop["line"]),
            "number": format_count(loop["count"]),
            "share": format_share(min(1.0, loop["count"] * loop["ops"] / loop["graph_ops"])),
            "seconds": format_seconds(saved),
            "total": format_seconds(sum_seconds(row.duration_s for row in rows)),
            "advice": " ".join(texts),
        }
        finding = report(
            UNROLLED_LOOP,
            rows,
            facts,
            seconds_lost=saved,
            severity=get_severity(saved, 1, "medium"),
            count=len(group),
            changes=list_changes(*texts),
            user_file=loop["file"],
            user_line=loop["line"],
            user_code=loop.get("code"),
        )
        findings.append(finding)
    return findings


@kept_after(Compile, Phase, KernelCompile)
def find_repeated_blocks(evidence: Evidence) -> list[CompileCost]:
    """The functions whose graphs consist of identical blocks, and what regional compilation saves of their compiles."""

    def is_compiled(row: Compile) -> bool:
        # With a graph that a cache had, nothing was compiled.
        return row.outcome in MADE and (row.backend != "inductor" or row.inductor_s is not None)

    found = find_repeated_code(evidence, "blocks", {"class": str, "path": str}, is_compiled)
    worth = [one for one in found if one.saved_s >= REPEATED_BLOCKS.worth_s]
    groups = group_by(worth, lambda one: (*get_place(one.forward), one.code["class"], one.code["count"]))
    costs = []
    for group in groups.values():
        blocks, rows = group[0].code, [row for one in group for row in one.rows]
        facts = {
            "number": int(blocks["count"]),
            "class": format_line(blocks["class"], 60),
            "share": format_share(blocks["count"] * blocks["ops"] / blocks["graph_ops"]),
            "times": f", {len(group)} times," if len(group) > 1 else "",
            "total": format_seconds(sum_seconds(row.duration_s for row in rows)),
        }
        cost = _report(REPEATED_BLOCKS, sum(one.saved_s for one in group), rows, facts, get_place(group[0].forward))
        # A file can contain any text, and users paste these lines into their program.
        name = blocks["class"] if blocks["class"].isidentifier() else "Block"
        code = (
            f'for block in model.modules():\n    if type(block).__name__ == "{name}":\n        block.compile()\n'
            "# and call the model itself, without torch.compile around it"
        )
        costs.append(replace(cost, code=code, details=(f"first block: {format_line(blocks['path'], 100)}",)))
    return costs


@kept_after(Compile)
def find_repeated_compiles(evidence: Evidence) -> list[CompileCost]:
    """Functions whose same graph was compiled several times although no guard failed."""
    made = [row for row in evidence.rows(Compile) if row.outcome == "ok" and row.trigger == "dynamo" and row.graph_ops]
    fresh = [row for row in made if not row.is_recompile and row.compile_key is not None]
    same = ("backend", "graph_ops", "graph_nodes", "graph_inputs")
    groups = group_by(fresh, lambda row: (row.rank, row.pid, *get_place(row), *(getattr(row, name) for name in same)))
    found = []
    for rows in groups.values():
        parts = [evidence.by_compile(Compile)[row.compile_key] for row in rows]
        again = sum_seconds(row.duration_s for part in parts[1:] for row in part)
        if len(rows) >= REPEATED_COMPILES.worth_count and again >= REPEATED_COMPILES.worth_s:
            facts = {"times": format_amount(len(rows), "time")}
            paid = (row for part in parts for row in part)
            found.append(_report(REPEATED_COMPILES, again, paid, facts, get_place(rows[0])))
    return found


#: Phases that only a graph with a backward has.
JOINT = "aot_trace_joint_graph"
PARTITION = "min_cut_rematerialization_partition"
#: The backward's part of the joint graph: about as many operations as the forward has.
SHARE_OF_JOINT = 0.5
#: The phase in which a backward is compiled with the forward, so that none is seen when it runs.
EARLY_BACKWARD = "bw_compiler"
#: Backends whose early backward has that phase; with others it looks like one that never ran.
BACKENDS = ("inductor",)


@kept_after("state", Compile, Phase)
def find_unused_backwards(evidence: Evidence) -> list[CompileCost]:
    """The functions whose joint graph was traced while gradients were enabled, and whose backward never ran.

    None during a watch, in which it may still run.
    """
    if evidence.state == "watching":
        return []
    phases, unused = evidence.by_compile(Phase), []
    for key, rows in evidence.by_compile(Compile).items():
        names = [phase.name or "" for phase in phases.get(key, ())]
        # A backward that torch compiles with the forward leaves no trace when it runs, so nothing is known of it.
        is_early = any(EARLY_BACKWARD in name for name in names)
        is_fresh = rows[0].trigger == "dynamo" and rows[0].outcome in MADE and rows[0].backend in BACKENDS
        if key is not None and len(rows) == 1 and is_fresh and JOINT in names and not is_early:
            unused.append(rows[0])
    found = []
    for rows in group_by(unused, get_place).values():
        own = [phase for row in rows for phase in phases[row.compile_key]]
        seconds = SHARE_OF_JOINT * sum_seconds(phase.duration_s for phase in own if phase.name == JOINT)
        seconds += sum_seconds(phase.duration_s for phase in own if phase.name == PARTITION)
        if seconds >= UNUSED_BACKWARD.worth_s:
            cost = _report(UNUSED_BACKWARD, seconds, rows, {}, get_place(rows[0]))
            found.append(replace(cost, code="with torch.no_grad():\n    ...  # the call"))
    return found


NO_BACKWARD = "torch stores the entry of AOTAutogradCache after the backward, and no backward was compiled"
_NEEDS_NO_GRAD = "If no backward is needed, call the function under torch.no_grad(), and its entry is stored."
NOT_STORED = "torch stored no entry"
FAILED = "the compile failed, so there is nothing to store"
_ALL_SHARED = (
    "Everything below Dynamo is in the caches of this machine. A warm-up script (session.warmup(path), or "
    "compilediag plan --warmup) saves them for another one. Dynamo traces again in every process: it takes less "
    "time for a smaller graph, such as one block of a model."
)
#: Backends whose graphs torch caches.
CACHED_BACKEND = "inductor"
#: Compiles that the details list.
SHOWN = 20


@dataclass
class RepeatedTime:
    """The seconds (s) of one compile, its backward included, and what of them the next process repeats.

    `keys_s` computes the keys, `loading_s` is the time in which this process loaded what it found, and `saved_s`
    the time that this saved, as torch reports it. `uncached` maps the
    reason why no cache keeps a graph to the seconds of its compile.
    """

    place: Place
    evidence: tuple[int, ...]
    total_s: float
    dynamo_s: float = 0.0
    keys_s: float = 0.0
    loading_s: float = 0.0
    saved_s: float = 0.0
    uncached: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def again_s(self) -> float:
        """s that the next process repeats."""
        return min(self.total_s, self.dynamo_s + self.keys_s + self.loading_s + sum(self.uncached.values()))

    @property
    def text(self) -> str:
        """`forward (train.py:31): 8.0 s of 20 s again: Dynamo 0.5 s, ...`."""
        times = f"{format_seconds(self.again_s)} of {format_seconds(self.total_s)} again"
        return f"{format_function(*self.place)}: {times}{_list_parts([self])}"


class CacheAnswers(NamedTuple):
    """What one cache answered in one compile. With `is_kept` the next process finds the entry that this one made.

    `saved_s` is what its hits saved, and `keys_s` the time of the look-ups that found nothing: what was left to do was
    to compute the key. `reason` is that of a bypass or of a failed store.
    """

    is_asked: bool
    is_found: bool
    is_kept: bool
    saved_s: float
    keys_s: float
    reason: str | None


def _read_answers(rows: Sequence[CacheLookup], has_stores: bool) -> CacheAnswers:
    """`has_stores`: the session records stores; TORCH_TRACE logs do not."""
    outcomes = {row.outcome for row in rows}
    asked = [row for row in rows if row.action == "look_up"]
    ended = (row for row in rows if row.outcome in ("bypass", "disabled", "failed"))
    return CacheAnswers(
        is_asked=bool(asked),
        is_found="hit" in outcomes,
        is_kept="saved" in outcomes or (not has_stores and "miss" in outcomes),
        saved_s=sum_seconds(row.saved_s for row in rows if row.outcome == "hit"),
        keys_s=sum_seconds(row.duration_s for row in asked if row.outcome != "hit"),
        reason=next((format_line(row.reason or row.outcome, 160) for row in ended), None),
    )


@kept_after("state", SourceStatus, CacheLookup, Compile)
def find_repeated_time(evidence: Evidence) -> list[RepeatedTime]:
    """What the next process repeats, per compile; empty if lookups were not collected. During a watch, compiles whose
    backward may still run are left out, because torch stores their entry after it.
    """
    states = evidence.rows(SourceStatus)
    active = {state.name for state in states if state.status == "active"}
    # A remote cache that was not watched makes no difference.
    if not map_collected(states).get("compile_caches", False) and not {*PARTS["compile_caches"][:2]} <= active:
        return []
    has_stores = "dynamo_cache" in active
    lookups = evidence.by_compile(CacheLookup)
    timed = [row for row in evidence.rows(Compile) if is_timed(row.duration_s) and row.compile_key is not None]
    # What was compiled ahead of time is saved.
    compiles = [row for row in timed if row.trigger != "aot_compile"]
    times = [
        _split(rows, lookups.get(key, ()), has_stores)
        for key, rows in group_by(compiles, lambda row: row.compile_key).items()
    ]
    return [time for time in times if evidence.state != "watching" or NO_BACKWARD not in time.uncached]


def _split(rows: Sequence[Compile], lookups: Sequence[CacheLookup], has_stores: bool) -> RepeatedTime:
    time = RepeatedTime(get_place(rows[0]), get_ids(rows), sum_seconds(row.duration_s for row in rows))
    outer = _read_answers([row for row in lookups if row.cache == "aot_autograd"], has_stores)
    graphs = [row for row in lookups if row.cache == "fx_graph"]
    why = _explain_missing(rows, outer)
    for row in rows:
        # A backward that is compiled later has no part in Dynamo.
        spent_s = (row.duration_s if row.trigger == "lazy_backward" else row.aot_s) or 0.0
        time.dynamo_s += max(0.0, (row.duration_s or 0.0) - spent_s)
        if outer.is_found:
            time.loading_s += spent_s
        elif not outer.is_kept and spent_s:
            # AOTAutograd traces again; the graph itself can be in the cache below.
            within = [one for one in graphs if row.time_ns <= one.time_ns <= row.end_ns]
            inner, inner_s = _read_answers(within, has_stores), min(spent_s, row.inductor_s or 0.0)
            time.uncached[why] += spent_s - inner_s
            if inner.is_found:
                time.loading_s += inner_s
            elif inner.is_kept:
                time.keys_s += min(inner_s, inner.keys_s)
            elif inner_s:
                time.uncached[inner.reason or NOT_STORED] += max(0.0, inner_s - (row.triton_s or 0.0))
    if outer.is_kept:
        time.keys_s += outer.keys_s
    time.saved_s = outer.saved_s or _read_answers(graphs, has_stores).saved_s
    return time


def _explain_missing(rows: Sequence[Compile], outer: CacheAnswers) -> str:
    """Why the next process finds no entry in AOTAutogradCache."""
    backend = next((row.backend for row in rows if row.backend), None)
    if outer.reason:
        return outer.reason
    if any(row.outcome not in MADE for row in rows):
        return FAILED
    if backend is not None and CACHED_BACKEND not in backend:
        return f'the backend "{format_line(backend, 40)}" has no cache'
    has_backward = any(row.trigger == "lazy_backward" for row in rows)
    return NOT_STORED if has_backward or not outer.is_asked else NO_BACKWARD


def find_next_process_cost(data: Rows) -> CompileCost | None:
    """What the next process repeats, in all; None if lookups were not collected, or it is next to nothing."""
    times = find_repeated_time(data)
    total, again = sum(time.total_s for time in times), sum(time.again_s for time in times)
    if again < NEXT_PROCESS.worth_s:
        return None
    most = sorted(times, key=lambda time: -time.again_s)
    saved = sum(time.saved_s for time in times)
    hits = f"; caches saved {format_seconds(saved)} here" if saved >= NEXT_PROCESS.worth_s else ""
    part, whole = format_seconds(again), format_seconds(total)
    facts = {
        "amount": f"all {whole}" if part == whole else f"{part} of these {whole}",
        "parts": _list_parts(most),
        "saved": hits,
        "reasons": " ".join(list_reasons(most)) or _ALL_SHARED,
    }
    return replace(
        _report(NEXT_PROCESS, again, (), facts),
        evidence=tuple(number for time in most for number in time.evidence),
        details=tuple(time.text for time in most[:SHOWN] if time.again_s >= NEXT_PROCESS.worth_s),
    )


def _list_parts(times: Sequence[RepeatedTime]) -> str:
    """`: Dynamo 4.0 s, graphs that no cache keeps 8.0 s`, without what is next to nothing."""
    parts = {
        "Dynamo": sum(time.dynamo_s for time in times),
        "cache keys": sum(time.keys_s for time in times),
        "loading cached graphs": sum(time.loading_s for time in times),
        "graphs that no cache keeps": sum(sum(time.uncached.values()) for time in times),
    }
    shown = [
        f"{name} {format_seconds(seconds)}" for name, seconds in parts.items() if seconds >= NEXT_PROCESS.worth_s / 2
    ]
    return f": {', '.join(shown)}" if shown else ""


def list_reasons(times: Sequence[RepeatedTime]) -> list[str]:
    """Why graphs are in no cache and what to do, one line per reason, most seconds first."""
    seconds: dict[str, float] = defaultdict(float)
    for time in times:
        for reason, spent in time.uncached.items():
            seconds[reason] += spent
    reasons = sorted((spent, reason) for reason, spent in seconds.items() if spent >= NEXT_PROCESS.worth_s)
    return [
        f"{format_seconds(spent)}: {reason}. "
        f"{_NEEDS_NO_GRAD if reason == NO_BACKWARD else advise_bypass(reason)}".strip()
        for spent, reason in reversed(reasons)
    ]


# All of them


@kept_after(
    *(find_repeated_time, find_tuning_problems, find_entries_used_once, find_unrolled_loops, _find_torchs_breaks),
    *(Phase, KernelCompile, TracedFunction, CudaGraphAction),
)
def find_compile_costs(evidence: Evidence) -> tuple[CompileCost, ...]:
    """The costs of a session: what the next process repeats first, then what can be saved, most seconds first."""
    again = find_next_process_cost(evidence)
    found = [*find_tuning_problems(evidence), *find_entries_used_once(evidence), *find_unrolled_loops(evidence)]
    saved = [
        *find_repeated_blocks(evidence),
        *find_repeated_compiles(evidence),
        *find_unused_backwards(evidence),
        *_find_cpu_check(evidence),
        *_find_torchs_breaks(evidence),
        *_find_traced_again(evidence),
        *_find_tuning(evidence),
        *_find_not_captured(evidence),
        *(_convert(one) for one in found if one.rule in _OF_FINDINGS and one.seconds_lost > 0),
    ]
    session = format_seconds(sum_seconds(row.duration_s for row in evidence.rows(Compile)))
    saved = [replace(cost, headline=cost.headline.replace(_SESSION, session)) for cost in saved]
    return (*([again] if again else []), *sorted(saved, key=lambda cost: -cost.seconds))


def _convert(finding: Finding) -> CompileCost:
    rule = _OF_FINDINGS[finding.rule]
    return CompileCost(
        kind=rule.cost_kind or rule.id,
        seconds=finding.seconds_lost,
        what=finding.title,
        advice=finding.suggestion,
        evidence=finding.evidence,
        details=finding.details,
        place=(finding.function, finding.file, finding.line),
        title=rule.cause,
        headline=rule.headline.format(seconds=format_seconds(finding.seconds_lost), session=_SESSION),
    )
