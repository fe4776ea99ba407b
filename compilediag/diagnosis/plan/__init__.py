"""The plan: the smallest set of changes that saves the most compile seconds, and what no change resolves."""

from __future__ import annotations

from .make_plan import make_plan
from .plan import Plan, PlanStep, UnresolvedCause, describe_missing

__all__ = ["Plan", "PlanStep", "UnresolvedCause", "describe_missing", "make_plan"]
