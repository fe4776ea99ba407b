"""What a notebook shows of sessions, findings, plans and diffs: their numbers, escaped, small and without colors."""

import re
from html import unescape

import pytest

import compilediag as cd
from compilediag.events import GraphBreak

from .session_builder import saved
from .tables_builder import SECOND, compiled, sizes

EVIL = "<script>alert(1)</script><b style='color: red'>"
#: Bytes that a notebook keeps of one value.
MAX_HTML = 50_000
#: What keeps MathJax from typesetting what is between dollar signs.
NOT_TYPESET = '<div class="mathjax_ignore tex2jax_ignore">'
#: Tags that need neither scripts nor styles, and that every notebook host leaves as they are.
TAGS = {"div", "p", "strong", "br", "code", "pre", "ol", "ul", "li"}


def make_events(breaks):
    place = {"user_file": "/a.py", "time_ns": SECOND}
    reasons = [f"{EVIL} {k} {'long ' * 40}" for k in range(breaks)]
    found = [GraphBreak(reason=r, user_code=f"{EVIL}{k}", user_line=k, **place) for k, r in enumerate(reasons)]
    return [compiled(), *sizes("4", "6", "9"), *found]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("small"), *make_events(2))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("large"), *make_events(400))


def list_values(session, before):
    """Everything that has HTML of its own."""
    return [session, session.plan(), session.findings(), session.findings()[0], cd.diff(before, session)]


def read_text(html):
    return unescape(re.sub(r"<[^>]+>", " ", html))


def test_html_is_escaped_small_and_has_no_look_of_its_own(session, large, tmp_path):
    empty = saved(tmp_path)
    values = [*list_values(session, large), *list_values(large, session), empty, empty.plan(), empty.findings()]
    for value in values:
        html = value._repr_html_()
        assert html.startswith(NOT_TYPESET) or html == "<p>No findings.</p>"
        html = html.replace(NOT_TYPESET, "<div>")
        assert {tag.lower() for tag in re.findall(r"</?(\w+)", html)} <= TAGS, type(value)
        assert not re.search(r"<[^>]*(?:style|class|color|on\w+)\s*=", html) and len(html.encode()) <= MAX_HTML


def test_a_session_shows_its_state_its_totals_its_plan_and_its_findings(session):
    text, summary = read_text(session._repr_html_()), session.summary()
    assert "compilediag session  run.cdiag  (stopped)" in text
    assert session.plan().headline in text and session.plan().headline in " ".join(summary.split())
    (compiles,) = re.findall(r"compilediag: (.*)\n", summary)
    assert compiles in text and "2 graph breaks" in text
    assert all(finding.title[:60] in text for finding in session.findings() if finding.rule != "not_observed")
    assert "session.dashboard()" in text and 'session.report("report.html")' in text


def test_a_large_session_says_what_it_leaves_out(session, large):
    count = len([finding for finding in large.findings() if finding.rule != "not_observed"])
    assert count > 100 and f"... and {count - 10} more in  session.findings()" in read_text(large._repr_html_())
    shown = read_text(large.findings()._repr_html_())
    assert re.search(rf"\.\.\. and \d+ more: the list has {len(large.findings())} findings", shown)
    assert "more in  diff.frame" in read_text(cd.diff(session, large)._repr_html_())


def test_a_finding_shows_where_it_is_and_one_that_is_long_is_cut(session):
    finding = next(finding for finding in session.findings() if finding.rule == "graph_break")
    assert "at a.py:" in read_text(finding._repr_html_()) and EVIL in read_text(finding._repr_html_())
    huge = type(finding)("r", "low", "t" * 9_000, 0.0, (), "s" * 90_000, user_code="c" * 90_000)
    assert 500 < len(huge._repr_html_()) <= MAX_HTML and len(type(session.findings())([huge])._repr_html_()) <= MAX_HTML


def test_a_diff_shows_the_lines_of_its_summary(session, large):
    diff = cd.diff(session, large)
    text = " ".join(read_text(diff._repr_html_()).split())
    assert all(" ".join(line.split())[:300] in text for line in diff.totals())
    assert all(change.title[:80] in text for change in diff.changes[:5])
    assert "No differences." in read_text(cd.diff(session, session)._repr_html_())
