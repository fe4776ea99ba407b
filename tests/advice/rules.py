"""The rules that compilediag has: each needs a program that follows its advice."""

from __future__ import annotations

from compilediag.diagnosis.registry import RULES

from .known_programs import Program

#: Rules without a program here, and where their advice is followed, or why there is nothing to follow.
NOT_HERE = {
    "cudagraph_failed": "needs a GPU: tests/gpu",
    "cudagraph_invalidated": "needs a GPU: tests/gpu",
    "cudagraph_limit": "needs a GPU: tests/gpu",
    "cudagraph_overwritten": "needs a GPU: tests/gpu",
    "cudagraph_paths": "needs a GPU: tests/gpu",
    "cudagraph_rerecord": "needs a GPU: tests/gpu",
    "cudagraph_sizes": "needs a GPU: tests/gpu",
    "cudagraph_skip": "needs a GPU: tests/gpu",
    "cudagraph_stuck": "needs a GPU: tests/gpu",
    "tuning_all_failed": "needs a GPU: tests/gpu",
    "tuning_repeated": "needs a GPU: tests/gpu",
    "tuning_small_gain": "needs a GPU: tests/gpu",
    "choices_failed": "needs a GPU: tests/gpu",
    "cache_bypass": "needs Inductor's caches: tests/live/test_explain_miss.py",
    "cache_entry_gone": "needs Inductor's caches: tests/live/test_explain_miss.py",
    "cache_failed": "needs Inductor's caches: tests/live/parity/test_remote_cache.py",
    "cache_settings": "needs Inductor's caches: tests/live/test_explain_miss.py",
    "artifacts_unused": "needs artifacts of another process: tests/live/test_coldstart.py",
    "used_once": "needs counted calls, on Python 3.12 or later: tests/live/test_calls.py",
    "guard_cost": "needs counted calls, on Python 3.12 or later: tests/live/test_calls.py",
    "export_constraint": "torch.export: tests/unit/test_traced.py",
    "export_data_dependent": "torch.export: tests/unit/test_traced.py",
    "export_mismatched_fake_kernel": "torch.export: tests/unit/test_traced.py",
    "export_missing_fake_kernel": "torch.export: tests/unit/test_traced.py",
    "other": "torch's own words, for guards that compilediag does not understand",
    "global_state": "modes that torch has no name for",
    "default_device": "a device mode is reported as mode_stack",
    "not_observed": "what a session did not collect",
    "dropped": "what a session did not collect",
    "compiled_by_threads_at_once": "needs two threads at one moment: tests/live/test_findings.py",
    "ranks_cold_caches": "needs several ranks: tests/live/test_ranks.py",
    "ranks_diverge": "needs several ranks: tests/live/test_ranks.py",
    "ranks_differ_in_caches": "needs several ranks: tests/live/test_ranks.py",
}


def list_rules() -> set[str]:
    """The names of all rules."""
    return set(RULES)


def list_executed_rules(programs: tuple[Program, ...]) -> set[str]:
    """The rules whose advice a program follows."""
    causes = {cause.rule for program in programs for cause in program.causes if cause.ways or len(program.causes) > 1}
    return causes.union(*(program.beside for program in programs))
