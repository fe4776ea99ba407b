"""A list of findings that a notebook shows as HTML."""

from __future__ import annotations

from .finding import Finding
from .finding_html import format_findings


class FindingList(list[Finding]):
    """Findings, those first that can save most seconds."""

    def _repr_html_(self) -> str:
        return format_findings(self)
