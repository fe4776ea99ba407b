"""The report: one file that needs nothing else, opened from disk in Chromium."""

import random
import re

import pytest
from playwright.sync_api import expect

from compilediag.errors import CompilediagError
from tests.browser.conftest import expect_totals, expect_value, open_tab
from tests.inside import read_page_data, render_report

#: The stretch that the timeline shows, as it is remembered, in s since the first compile.
ZOOM = """() => {
  const key = Object.keys(sessionStorage).find((name) => name.includes("timeline"));
  const zoom = JSON.parse(sessionStorage.getItem(key))?.zoom;
  return zoom && [zoom.from, zoom.to].map((ms) => (ms - 1795000000000) / 1000);
}"""


@pytest.fixture
def run(recorded):
    """Three compiles of one function, a graph break, a text."""
    for number in range(3):
        recorded.compile(number)
    recorded.graph_break("print is not traced", user_code="print(x)", user_file="/home/me/model.py", user_line=33)
    recorded.text("dynamo_output_graph", "class GraphModule: ...", compile_id="0/2")
    return recorded


def test_it_shows_the_session_with_no_request_at_all(run, open_report, tmp_path):
    page = open_report(run.session.report(tmp_path / "report.html"))
    expect(page.locator(".cdiag")).to_have_attribute("data-size", "full")
    expect(page.locator(".cdiag-size")).to_have_count(0)
    expect_totals(page, recompiles="2")
    page.locator(".cdiag-row").first.click()
    page.click(".cdiag-artifact-toggle")
    page.wait_for_selector(".cdiag-pages pre")
    expect(page.locator(".cdiag-pages pre")).to_have_text("class GraphModule: ...")
    # That no request was made, and nothing was blocked by the page's own policy, new_page checks for every page.


def test_the_head_says_what_was_recorded_and_what_was_not(run, open_report, tmp_path):
    def expect_facts(page, *expected):
        for text in expected:
            expect(page.locator(".cdiag-report-head dl > div").filter(has_text=text)).to_have_count(1)

    page = open_report(run.session.report(tmp_path / "report.html"))
    expect(page.locator("h1")).to_have_text("torch.compile report: train.py")
    versions = "Versionstorch 2.13.0, Python 3.11.7"
    expect_facts(page, "Devicenot recorded", "Commandnot recorded", versions)
    expect_facts(page, re.compile(r"^Date\d+ November 2026, \d\d:\d\d:\d\d$"))
    program = {"script": "/home/me/train.py", "module": None, "arguments": ["--epochs", "3"], "folder": "/home/me"}
    run.session.data.set_meta(device="NVIDIA H200", program=program)
    page = open_report(run.session.report(tmp_path / "again.html"))
    expect_facts(page, "DeviceNVIDIA H200", "Commandpython train.py --epochs 3")
    redacted = open_report(run.session.report(tmp_path / "redacted.html", redact=True))
    expect_facts(redacted, "Commandleft out: this report is redacted")
    expect(redacted.locator("h1")).to_have_text("torch.compile report")


def test_a_link_names_a_finding_or_a_stretch_of_the_timeline(run, new_page, tmp_path):
    path = run.session.report(tmp_path / "report.html")
    finding = next(each for each in read_page_data(path)["findings"] if each["rule"] == "graph_break")
    page = new_page()
    page.goto(f"{path.as_uri()}#f-{finding['id']}")
    expect(page.locator(".cdiag-detail .cdiag-section[data-section=graph_breaks]")).to_be_visible()
    page.goto(f"{path.as_uri()}#t=0.5-1.5")
    stretch = expect_value(page, ZOOM, lambda zoom: zoom is not None)
    assert stretch == pytest.approx([0.5, 1.5])
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Export").click()
    page.click('[data-command="link"]')
    expect_value(page, "navigator.clipboard.readText()", f"{path.as_uri()}#t=0.5-1.5")
    page.locator(".cdiag-row").first.click()
    page.locator(".cdiag-finding-link button").first.click()
    copied = expect_value(page, "navigator.clipboard.readText()", re.compile(r"#f-[0-9a-f]{10}$").search)
    assert copied[-10:] in {each["id"] for each in read_page_data(path)["findings"]}
    page.goto(f"{path.as_uri()}#f-0000000000")
    page.reload()
    expect(page.locator(".cdiag [data-total]").first).to_be_visible()
    expect(page.locator(".cdiag-detail")).to_be_hidden()


def test_the_policy_lets_nothing_in(run, tmp_path):
    text = run.session.report(tmp_path / "report.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy == "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    assert text.count("</script>") == 2
    # The names of XML's namespaces look like addresses and are not requested.
    assert set(re.findall(r"https?://([^/\s\"'`]*)", text)) <= {"www.w3.org"}
    assert set(re.findall(r"https?://www.w3.org/([^\"]*)", text)) <= {"2000/svg", "1999/xhtml", "1998/Math/MathML"}


def test_a_report_of_a_running_session_does_not_pretend_to_go_on(recorded, open_report, tmp_path):
    recorded.compile(0)
    recorded.in_flight(compile_id="0/1", function="forward", file="/home/me/model.py", line=30)
    page = open_report(recorded.session.report(tmp_path / "report.html"))
    expect(page.locator(".cdiag-now")).to_have_attribute("data-state", "unfinished")
    expect(page.locator(".cdiag-flight")).to_be_hidden()
    expect(page.locator(".cdiag-pause")).to_be_hidden()


def test_long_texts_are_cut_to_the_budget_and_the_page_says_so(recorded, open_report, tmp_path):
    recorded.compile(0)
    noise = random.Random(0)
    long = "\n".join(f"{noise.getrandbits(256):x}" for _ in range(80_000))
    recorded.text("short", "a short one", compile_id="0/0")
    recorded.text("long", long, compile_id="0/0")
    path = recorded.session.report(tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    page = open_report(path)
    open_tab(page, "compiles")
    page.locator(".cdiag-row").first.click()
    page.locator(".cdiag-artifact-toggle", has_text="long").click()
    page.wait_for_selector("text=cut to fit; the whole text in Python: session.artifact(")
    page.locator(".cdiag-artifact-toggle", has_text="short").click()
    page.wait_for_selector(".cdiag-pages pre:has-text('a short one')")
    foot = page.locator(".cdiag-artifact-foot:has-text('cut to fit')")
    match = re.compile(r"session\.artifact\((\d+)\)")
    kept = match.search(expect_value(page, foot.text_content, match.search)).group(1)
    assert recorded.session.artifact(int(kept)) == long


def test_a_path_that_cannot_be_written_is_one_line_and_leaves_nothing(run, tmp_path):
    with pytest.raises(CompilediagError) as error:
        run.session.report(tmp_path / "missing" / "report.html")
    assert "\n" not in str(error.value) and "missing" in str(error.value)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CompilediagError):
        run.session.report(tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir() if "compilediag-" in p.name) == []


def test_the_head_says_what_a_large_report_leaves_out(run, open_report, tmp_path):
    snapshot = run.model.snapshot()
    left_out = {"compiles": 1_500, "of": 20_000, "rows": {"phases": 9_000, "guard_failures": 4}}
    meta = {**snapshot["meta"], "left_out": left_out}
    path = tmp_path / "report.html"
    path.write_text(render_report({**snapshot, "meta": meta, "rows": {**snapshot["rows"], "phases": []}}))
    page = open_report(path)
    facts = page.locator(".cdiag-report-head dl > div").filter(has_text="Left out")
    expect(facts).to_contain_text("phases, guard failures of 1,500 of 20,000 compiles")
    expect(facts).to_contain_text('cd.load("run.cdiag").phases')
    open_tab(page, "compiles")
    page.locator(".cdiag-row").first.click()
    expect(page.locator('[data-section="phases"]')).to_contain_text("left out of this report")
