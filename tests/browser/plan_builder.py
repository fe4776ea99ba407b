"""Plans of a page, made by hand: the values that `Plan.to_dict()` gives."""

from __future__ import annotations

from typing import Any

SETTINGS = "torch.compiler.config.dynamic_sources = \"L['ids']\""
INSERTED = "torch._dynamo.mark_dynamic(ids, 0)\ntorch._dynamo.mark_dynamic(ids, 1)"
REPLACED = "self.step.add_(1)"
PATCH = """--- train.py
+++ train.py
@@ -26,3 +26,5 @@
     ids, labels = batch
+    torch._dynamo.mark_dynamic(ids, 0)
+    torch._dynamo.mark_dynamic(ids, 1)
     logits = model(ids)
"""


def make_step(**more: Any) -> dict[str, Any]:
    """A step that marks two dimensions; `more` replaces parts of it."""
    step = {
        "file": "/home/me/train.py",
        "line": 28,
        "place": "train.py:28",
        "function": "main",
        "code": "logits = model(ids)",
        "expression": "ids.shape",
        "title": "`ids` comes in 3 shapes",
        "title_values": ["(4, 16)", "(6, 16)", "(6, 24)"],
        "has_more_values": False,
        "origin": "",
        "what": "ids.shape was (4, 16), then (6, 16), (6, 24)",
        "values": ["(4, 16)", "(6, 16)", "(6, 24)"],
        "change": INSERTED,
        "why": "torch compiles a function for the sizes that it sees first.",
        "saving": "Saves 0 of 7 recompiles. Alone it saves nothing: `self.step` fails at the same calls.",
        "recompiles_saved_alone": 0,
        "recompiles_saved": 0,
        "seconds_saved": 0.0,
        "recompiles_gained": 0,
        "seconds_gained": 0.0,
        "rule": "tensor_size",
        "evidence": [],
        "proof": None,
        "can_be_applied": True,
        "is_certain": True,
        "alternatives": [SETTINGS],
        **more,
    }
    return {"value_count": len(step["values"]), **step}


def make_second_step(**more: Any) -> dict[str, Any]:
    """The step that completes the first one."""
    parts = {
        "line": 12,
        "place": "train.py:12",
        "function": "forward",
        "code": "self.step += 1",
        "expression": "self.step",
        "title": "`self.step` is a new number at every call",
        "title_values": ["1", "2", "3"],
        "what": "self.step was 1, then 2, 3",
        "values": ["1", "2", "3"],
        "change": REPLACED,
        "why": "torch compares an int with the one that it compiled for.",
        "saving": "Saves 7 of 7 recompiles and 123 s. Alone it saves nothing: `ids.shape` fails at the same calls.",
        "recompiles_saved": 7,
        "seconds_saved": 123.0,
        "recompiles_gained": 7,
        "seconds_gained": 123.0,
        "rule": "int_value",
        "alternatives": [],
    }
    return make_step(**{**parts, **more})


def make_plan(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A plan of these steps, by default the two above; `more` replaces parts of it."""
    return {
        "headline": "2 changes remove 7 of 7 recompiles and save 123 s of 199 s compile time",
        "leads": None,
        "steps": list(steps) or [make_step(), make_second_step()],
        "recompiles": 7,
        "recompiles_saved": 7,
        "seconds": 199.0,
        "seconds_saved": 123.0,
        "settings": {"dynamic_sources": "L['ids']"},
        "settings_code": SETTINGS,
        "code": f"# train.py:28\n{INSERTED}\n# train.py:12\n{REPLACED}",
        "patch": PATCH,
        "sources": [make_source()],
        "try_command": "compilediag try train.py",
        "unresolved": [],
        "costs": [],
        "specs": [],
        "tried": None,
        "searched": None,
        "notes": [],
        **more,
    }


def make_source(**more: Any) -> dict[str, Any]:
    """The lines of the file that the first step changes, or those of another file or cell."""
    lines = [
        [26, " ", "for ids in batches:", None],
        [None, "+", "    torch._dynamo.mark_dynamic(ids, 0)", 1],
        [None, "+", "    torch._dynamo.mark_dynamic(ids, 1)", 1],
        [27, "-", "    self.step += 1", 2],
        [None, "+", "    self.step.add_(1)", 2],
        [28, " ", "    logits = model(ids)", None],
    ]
    return {"place": "train.py", "cell": None, "lines": lines, "before": None, "after": None, **more}


def make_proof(*compiles: tuple[str | None, bool]) -> dict[str, Any]:
    """The evidence of a step: compiles with what changed for each, and whether that is what the step is about."""
    rows = [
        {"event": None if change is None else n, "time": 1000.0 * n, "values": [str(n)], "change": change}
        | {"is_own": is_own, "seconds": 2.0}
        for n, (change, is_own) in enumerate(compiles)
    ]
    return {"function": "forward (model.py:30)", "names": ["ids.shape[0]"], "compiles": rows, "hidden": 0}


def make_empty_plan(headline: str, **more: Any) -> dict[str, Any]:
    """A plan without steps."""
    empty = {"steps": [], "settings": {}, "settings_code": "", "code": "", "patch": None, "sources": []}
    empty["seconds_saved"] = 0.0
    return make_plan(**{**empty, "headline": headline, "recompiles_saved": 0, **more})


def make_cost(**more: Any) -> dict[str, Any]:
    """What the next process repeats."""
    return {
        "kind": "next_process",
        "seconds": 9.0,
        "title": "",
        "what": "The next process compiles 2 of 3 graphs again: 9.0 s",
        "advice": "Set `torch._functorch.config.autograd_cache_allow_custom_autograd_functions`.",
        "code": "torch._functorch.config.autograd_cache_allow_custom_autograd_functions = ['Scale']",
        "function": "forward",
        "file": "/home/me/train.py",
        "line": 12,
        "place": "train.py:12",
        "details": ["0/0 bypasses the cache: `Scale` is a custom autograd function"],
        "evidence": [],
        **more,
    }


def make_outcome(**more: Any) -> dict[str, Any]:
    """The outcome of a trial that went well."""
    return {
        "recompiles_before": 7,
        "recompiles_after": 0,
        "compile_seconds_before": 199.0,
        "compile_seconds_after": 76.0,
        "wall_seconds_before": 240.0,
        "wall_seconds_after": 117.0,
        "exit_codes": [0, 0],
        "same_output": True,
        "backend": None,
        "note": None,
        "holds": True,
        "text": "Tried, the plan holds: 7 recompiles -> 0, 199 s -> 76 s compiling, exit code 0, same output.",
        **more,
    }


def make_example(program: str, diff: str = "+torch.mark(x)") -> dict[str, Any]:
    """A worked example with one change; without a diff, no change is needed."""
    outcome = "With this change:" if diff else "No change is needed."
    changes = [{"outcome": outcome, "diff": diff}]
    return {"symptom": "What a user notices.", "program": program, "printed": "f recompiled 2x", "changes": changes}


def make_finding(**more: Any) -> dict[str, Any]:
    """A finding that no step of the plan fixes; `more` replaces parts of it."""
    return {
        "rule": "size_changes",
        "title": "f recompiled 2x",
        "seconds_recoverable": 0.0,
        "is_expected": False,
        "count": 1,
        "suggestion": "Mark it.",
        "function": "f",
        "file": "train.py",
        "line": 3,
        "evidence": [],
        "values": [],
        "step": None,
        "is_cost": False,
        **more,
    }
