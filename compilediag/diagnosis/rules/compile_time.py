"""Where compile time goes even if nothing recompiles: the costs that a plan lists after its steps."""

from __future__ import annotations

from ...decode.records.compilation_metrics import CPU_CHECK
from ...events import Phase, Rows
from ...formatting import format_seconds
from ..compile_cost import CompileCost
from ..evidence import get_ids, sum_seconds
from ..finding import Finding
from .autotune_rules import find_tuning_problems
from .break_even import find_entries_used_once
from .next_process import find_next_process_cost
from .repeated_blocks import find_repeated_blocks, find_repeated_compiles
from .unused_backward import find_unused_backwards

#: Rule of a finding -> kind of the cost that it is.
_FROM_RULES = {"tuning_small_gain": "tuning", "tuning_repeated": "tuning", "used_once": "used_once"}
#: Less is not worth a line.
WORTH_REPORTING_S = 1.0
SKIP_CPU_CHECK = 'os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"  # before torch is imported'


def find_compile_costs(data: Rows) -> tuple[CompileCost, ...]:
    """The costs of a session: what the next process pays again first, then what can be saved, most seconds first."""
    again = find_next_process_cost(data)
    saved = [
        *find_repeated_blocks(data),
        *find_repeated_compiles(data),
        *find_unused_backwards(data),
        *_find_cpu_check(data),
        *map(_convert, filter(_is_cost, [*find_tuning_problems(data), *find_entries_used_once(data)])),
    ]
    return (*([again] if again else []), *sorted(saved, key=lambda cost: -cost.seconds))


def _is_cost(finding: Finding) -> bool:
    return finding.rule in _FROM_RULES and finding.seconds_lost > 0


def _convert(finding: Finding) -> CompileCost:
    return CompileCost(
        kind=_FROM_RULES[finding.rule],
        seconds=finding.seconds_lost,
        what=finding.title,
        advice=finding.suggestion,
        evidence=finding.evidence,
        details=finding.details,
        place=(finding.function, finding.file, finding.line),
    )


def _find_cpu_check(data: Rows) -> list[CompileCost]:
    """torch's check of the CPU's vector instructions: before torch 2.13 it imports torch in a new process each time."""
    checks = [phase for phase in data.rows(Phase) if phase.name == CPU_CHECK]
    seconds = sum_seconds(phase.duration_s for phase in checks)
    if seconds < WORTH_REPORTING_S:
        return []
    return [
        CompileCost(
            kind="cpu_check",
            seconds=seconds,
            what=f"torch took {format_seconds(seconds)} to check the CPU's vector instructions, as it does in every "
            "process that compiles for the CPU",
            advice="Set the environment variable TORCHINDUCTOR_VEC_ISA_OK=1 on machines where the check succeeded.",
            evidence=get_ids(checks),
            code=SKIP_CPU_CHECK,
        )
    ]
