"""The session in plain text: what compiled, what it cost, what to change first."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Set
from typing import Any

from ..diagnosis import Finding, explain_gaps, find_gaps, fix_code
from ..diagnosis.wording import counted, one_line, position, spent
from ..plugins import gaps

WIDTH = 100
SHOWN = 10


def summary(session: Any, encoding: str | None = None) -> str:
    """The session as text of at most 100 columns (only a word longer than that goes beyond).

    `encoding`: what the text has to be printable in; by default that of standard output. Characters of the
    user's that it lacks are escaped, so that printing never fails.
    """
    from .model import totals

    found = session.findings()
    text = render(totals(session), found, explain_gaps(session) | gaps(), find_gaps(session))
    return printable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def render(totals: dict[str, Any], findings: list[Finding], gaps: dict[str, str], unseen: Set[str]) -> str:
    """The text of the view model's totals, ranked findings, what was not observed with why, and the tables that
    lack it.
    """
    told = [finding for finding in findings if finding.rule != "not_observed"]
    found = _findings(told, totals, unseen, bool(gaps))
    parts = [*_header(totals, unseen), "", *found, *_gaps(gaps), "", *wrapped(_pointer(told))]
    return "\n".join(parts) + "\n"


def printable(text: str, encoding: str) -> str:
    """`text` with what `encoding` lacks, and lone surrogates, as backslash escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def headline(totals: dict[str, Any], unseen: Set[str]) -> str:
    """Compiles and recompiles with what they cost, in one line; `unseen` tables are not observed."""
    compiled = "compiles not observed"
    if "compiles" not in unseen:
        compiled = f"{counted(totals['compiles'], 'compile')}, {spent(totals['compile_s'])} compiling"
    recompiled = "recompiles not observed"
    if "recompiles" not in unseen:
        lost = f", {spent(totals['lost_s'])} lost to them" if totals["recompiles"] else ""
        recompiled = counted(totals["recompiles"], "recompile") + lost
    return f"compilediag: {compiled}; {recompiled}"


def _header(totals: dict[str, Any], unseen: Set[str]) -> list[str]:
    usual = (_caches(totals, unseen), _breaks(totals, unseen), _own_cost(totals))
    rare = [part for part in (_tuning(totals, unseen), _graphs(totals, unseen), _calls(totals)) if part]
    lines = (headline(totals, unseen), "; ".join(usual), "; ".join(rare))
    return [part for line in lines if line for part in wrapped(line)]


def _caches(totals: dict[str, Any], unseen: Set[str]) -> str:
    seen = totals["cache_hits"] + totals["cache_misses"]
    if "compile_caches" in unseen and not seen:
        return "cache look-ups not observed"
    partly = "not all cache look-ups observed: " if "compile_caches" in unseen else ""
    hits = f"{counted(totals['cache_hits'], 'cache hit')} saved {spent(totals['cache_saved_s'])}"
    told = hits if totals["cache_hits"] else "no cache hits"
    return f"{partly}{told}, {counted(totals['cache_misses'], 'miss', 'misses')}"


def _tuning(totals: dict[str, Any], unseen: Set[str]) -> str:
    """Nothing where nothing was tuned: most programs don't."""
    if not totals["tuning_runs"]:
        return ""
    failed = f", {counted(totals['tuning_failed'], 'choice')} failed" if totals["tuning_failed"] else ""
    least = "at least " if "autotune" in unseen else ""
    return f"{least}{counted(totals['tuning_runs'], 'tuning')} took {spent(totals['tuning_s'])}{failed}"


def _graphs(totals: dict[str, Any], unseen: Set[str]) -> str:
    """Nothing where no CUDA graph was captured or skipped."""
    counts = {
        "captured": totals["graph_records"],
        "captured again": totals["graph_rerecords"],
        "skipped": totals["graph_skips"],
        "replayed": totals["graph_replays"],
    }
    told = ", ".join(f"{count:,}x {what}" for what, count in counts.items() if count)
    least = "at least " if "cudagraphs" in unseen else ""
    return f"CUDA graphs: {least}{told}" if told else ""


def _calls(totals: dict[str, Any]) -> str:
    """Nothing where calls were not counted, or all of them paid."""
    once, eager = totals["used_once"], totals["eager_calls"]
    parts = [
        f"{counted(once, 'entry was', 'entries were')} compiled and used once: {spent(totals['used_once_s'])}"
        if once
        else "",
        f"{counted(eager, 'call')} ran eagerly where torch gave up: {spent(totals['eager_s'])}" if eager else "",
    ]
    return "; ".join(filter(None, parts))


def _breaks(totals: dict[str, Any], unseen: Set[str]) -> str:
    breaks = counted(totals["graph_breaks"], "graph break")
    limits = f", {counted(totals['limit_hits'], 'recompile limit')} hit" if totals["limit_hits"] else ""
    return ("graph breaks not observed" if "graph_breaks" in unseen else breaks) + limits


def _own_cost(totals: dict[str, Any]) -> str:
    share = totals["own_share"]
    return f"own cost {spent(totals['own_s'])}" + (f" ({100 * share:.1f} %)" if share is not None else "")


def _findings(findings: list[Finding], totals: dict[str, Any], unseen: Set[str], has_gaps: bool) -> list[str]:
    if not findings:
        return [_nothing_found(totals, unseen, has_gaps)]
    lines = [line for number, f in enumerate(findings[:SHOWN], 1) for line in _finding(number, f)]
    rest = len(findings) - SHOWN
    return [*lines, f"... and {rest} more in session.findings()"] if rest > 0 else lines


def _nothing_found(totals: dict[str, Any], unseen: Set[str], has_gaps: bool) -> str:
    """Nothing observed is not health: said apart from nothing to fix."""
    if "compiles" not in unseen and not totals["compiles"]:
        return "Nothing was compiled while this watched."
    return "Nothing to fix in what was observed." if has_gaps else "Nothing to fix."


def _finding(number: int, finding: Finding) -> list[str]:
    lead = f"{number}. [{finding.severity}] "
    lines = wrapped(finding.title, lead, "   ") + _user_line(finding) + wrapped(finding.suggestion, "   ", "   ")
    code = fix_code(finding.fix)
    return lines + wrapped(f"To try it without an edit: {code}", "   ", "   ") if code else lines


def _user_line(finding: Finding) -> list[str]:
    """The line of the user's that made the guard; of a graph break the title has the place."""
    if not finding.user_code:
        return []
    place = position(finding.user_file, finding.user_line)
    return wrapped(f"at {place}: {one_line(finding.user_code)}" if place else one_line(finding.user_code), "   ", "   ")


def _gaps(gaps: dict[str, str]) -> list[str]:
    """What was not observed, in one sentence a reason."""
    if not gaps:
        return []
    missed: dict[str, list[str]] = {}
    for what, why in gaps.items():
        missed.setdefault(why, []).append(what)
    sentences = (f"Not observed: {', '.join(subjects)}: {why}" for why, subjects in missed.items())
    return ["", *(line for sentence in sentences for line in wrapped(sentence, "", "  "))]


def _pointer(findings: list[Finding]) -> str:
    if findings:
        return 'More: session.dashboard(), session.recompiles, session.report("report.html")'
    return "More: session.dashboard(), session.compiles"


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """`text` in lines of at most WIDTH; `first` and `rest` stand before the first and the other lines."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
