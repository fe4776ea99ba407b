"""Findings at the user's lines, for reviewers: annotations and the summary of a step on GitHub, and SARIF."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from ..diagnosis import Finding, diagnose
from ..diagnosis.gate import Baseline, Broken, group_causes
from ..diagnosis.registry import find_rule, find_torch_page
from ..document import Items, Para, Section, fit, to_markdown
from ..events import Rows
from ..formatting import escape_controls, escape_lines
from ..version import __version__

#: Annotations of each level that GitHub shows for a step.
MAX_ANNOTATIONS = 10
#: Characters of a summary at most: GitHub takes 1 MiB for a step, with all that its other commands write.
MAX_SUMMARY = 60_000
#: The first of `document.LIMITS` that is tried: 40 items of a list.
_FIRST_LIMIT = 2
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: Severity of a finding -> level of a result in SARIF.
_LEVELS = {"high": "error", "medium": "warning", "low": "note"}


# The user's line


#: A file of the repository, relative to its root and with `/`, and a line of it.
ReviewPlace = tuple[str, int | None]


def find_repository() -> Path:
    """The root of the repository in a workflow of GitHub, otherwise the working directory."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or os.getcwd())


def find_review_place(finding: Finding, root: Path) -> ReviewPlace | None:
    """The first of the finding's lines whose file is in the repository at `root`; None if all are somewhere else."""
    for file, line in finding.lines:
        if file.startswith("<") or "\0" in file:
            continue  # A notebook's cell, for example.
        inside = PurePath(os.path.relpath(os.path.realpath(root / file), os.path.realpath(root)))
        is_installed = {"site-packages", "dist-packages"} & {*inside.parts}
        if not is_installed and inside.parts[:1] != ("..",) and not inside.is_absolute():
            return inside.as_posix(), line
    return None


# GitHub


def write_annotations(data: Rows, broken: Sequence[Broken], baseline: Baseline | None, root: Path) -> list[str]:
    """The workflow commands that show a check at the user's lines: an error for each cause that breaks a limit, and for
    each broken limit without known causes; a warning for each other cause that can be removed and is not accepted.
    """
    errors = {finding.fingerprint: finding for limit in broken for finding in limit.findings}
    known = {*errors, *(baseline or ())}
    others = [findings[0] for name, findings in group_causes(data).items() if name not in known]
    lines = [_annotate("error", finding, root) for finding in errors.values()]
    lines += [_write_command("error", limit.title, title="compilediag") for limit in broken if not limit.findings]
    warnings = [_annotate("warning", finding, root) for finding in others if not finding.is_expected]
    return [*lines[:MAX_ANNOTATIONS], *warnings[:MAX_ANNOTATIONS]]


def _annotate(level: str, finding: Finding, root: Path) -> str:
    file, line = find_review_place(finding, root) or (None, None)
    message = f"{finding.title}\n{finding.suggestion}\n{finding.fingerprint}"
    return _write_command(level, message, file=file, line=line, title=f"compilediag: {finding.rule}")


def _write_command(name: str, message: str, **properties: str | int | None) -> str:
    """A workflow command, which is one line. The order of the properties is kept."""
    given = {key: _escape_message(str(value)) for key, value in properties.items() if value is not None}
    escaped = [f"{key}={value.replace(':', '%3A').replace(',', '%2C')}" for key, value in given.items()]
    return f"::{name} {','.join(escaped)}::{_escape_message(message)}"


def _escape_message(text: str) -> str:
    """Escape what ends a command; what only a terminal would obey becomes an escape of Python."""
    clean = escape_controls(text, keep="\n\r\t")
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def write_step_summary(head: str, broken: Sequence[Broken], fixed: str | None, plan: str) -> str:
    """The summary of a step as Markdown: the verdict, each broken limit with its causes, and the plan, closed.

    `head` is the verdict with the totals, and `plan` Markdown already.
    """
    limits = [Section(Items([cause.split("\n") for cause in limit.causes]), title=limit.title) for limit in broken]
    gone = [Items([[line.strip()] for line in fixed.splitlines()], "plain")] if fixed else []
    document = Section(Para(head, strong=True), *limits, *gone)
    text = fit(document, to_markdown, MAX_SUMMARY, _FIRST_LIMIT)
    return f"{text}\n\n<details><summary>Plan and recompiles</summary>\n\n{plan.rstrip()}\n\n</details>\n\n"


# SARIF 2.1.0


def make_sarif(data: Rows, root: Path) -> str:
    """The findings of a session as SARIF: one result per finding, at the line of the user."""
    findings = diagnose(data)
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    described: list[dict[str, Any]] = []
    for name in rules:
        rule, page = find_rule(name), find_torch_page(name)
        entry: dict[str, Any] = {"id": name, "shortDescription": {"text": name.replace("_", " ")}}
        if rule is not None and rule.why and "{" not in rule.why:
            entry["fullDescription"] = {"text": rule.why}
        if page is not None:
            entry["helpUri"] = page.url
        described.append(entry)
    run = {
        "tool": {"driver": {"name": "compilediag", "version": __version__, "rules": described}},
        "columnKind": "unicodeCodePoints",
        "results": [_make_result(finding, rules, root) for finding in findings],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _make_result(finding: Finding, rules: Sequence[str], root: Path) -> dict[str, Any]:
    locations = []
    if (place := find_review_place(finding, root)) is not None:
        # A path that is relative to the root of the repository, which GitHub asks for.
        file, line = place
        artifact = {"uri": quote(file, errors="replace"), "uriBaseId": "%SRCROOT%"}
        region = {"region": {"startLine": line}} if line and line > 0 else {}
        locations.append({"physicalLocation": {"artifactLocation": artifact, **region}})
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": escape_lines(f"{finding.title}\n{finding.suggestion}")},
        "locations": locations,
        "partialFingerprints": {"compilediag/v1": finding.fingerprint},
        "occurrenceCount": max(1, finding.count),
        "properties": {"secondsRecoverable": round(finding.seconds_recoverable, 6)},
    }
