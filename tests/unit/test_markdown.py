"""The Markdown of a session as GitHub renders it: tables and code stay what they are, and nobody is mentioned."""

import html
import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from compilediag.diagnosis import diagnose
from compilediag.document import BREAK_PAGE, format_block, format_sentence, format_span, format_table
from compilediag.errors import CompilediagError
from compilediag.events import GraphBreak, RowList
from tests.inside import main
from tests.unit.session_builder import SECOND, saved
from tests.unit.tables_builder import changes, compiled, refused, sizes

#: Bytes that a comment of GitHub may have, with a margin.
MAX_SIZE = 60_000
HOSTILE = "a|b `c` ``d`` <img src=x> @ada #12 **bold** [l](u) ~~e~~ \\| _f_ ~~~ ```"


class Document(HTMLParser):
    """The tags of rendered Markdown, and the texts of its cells and of its blocks of code."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self.blocks, self._target = [], [], [], None
        self.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag in ("td", "th", "pre"):
            self._target = self.blocks if tag == "pre" else self.cells
            self._target.append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th", "pre"):
            self._target = None

    def handle_data(self, data):
        if self._target is not None:
            self._target[-1] += data


def write(session, **options):
    """The session's Markdown."""
    return session.export(session.path.with_name("issue.md"), "markdown", **options).read_text()


@pytest.fixture
def session(tmp_path):
    rows = sizes("4", "6", "9", user_file="/home/SECRET/train.py", user_line=3, user_code="SECRET(x)")
    modes = changes("self.table['SECRET']", "value", "'SECRET_a'", "'SECRET_b'", compile_id="0/9")
    breaks = GraphBreak(time_ns=SECOND, compile_id="0/0", break_id="GB0059", reason="SECRET", user_code="SECRET(x)")
    calls = (refused(actual="SECRET"), refused(actual="SECRET", count=3), refused(refused_by="fail_on_recompile"))
    return saved(tmp_path, compiled(duration_s=3.0, function="for|ward"), *rows, *modes, breaks, *calls)


def test_whatever_a_program_contains_is_text():
    document = Document(f"{format_sentence(HOSTILE)}\n\n{format_block(HOSTILE)}\n\n- {format_span(HOSTILE)}")
    assert set(document.tags) <= {"p", "pre", "code", "ul", "li"}
    assert document.blocks == [HOSTILE + "\n"]
    rendered = html.unescape(re.sub(r"<[^>]+>", "", MarkdownIt("commonmark").render(format_sentence("x @ada _y_ #12"))))
    assert rendered.strip() == "x @ada _y_ #12"
    assert "@ada" not in format_sentence("by @ada") and "#12" not in format_sentence("see #12")


#: What GitHub makes a link, a mention or a reference of, wherever it is in a text.
LINKED = re.compile(
    r"(?:https?|ftp)://|www\.|[\w.+-]+@[\w-]+\.|@\w|#\d|\bGH-\d|\b(?=[a-f]*[0-9])[0-9a-f]{7,40}\b", re.IGNORECASE
)
REFERENCES = (
    *("https://evil.example/a?b=c", "http://evil.example", "ftp://evil.example/a", "HTTPS://EVIL.EXAMPLE"),
    *("www.evil.example", "_www.evil.example", "(www.evil.example)", "<https://evil.example>"),
    *("[x](https://evil.example)", "ada@evil.example", "ada.b+c@evil.example", "mailto:ada@evil.example"),
    *("xmpp:ada@evil.example", "@ada", "@org/team"),
    *("#12", "org/project#12", "GH-12", "gh-12", "0123abc", "0123456789abcdef0123456789abcdef01234567", "a@0123abc"),
    *(f"{BREAK_PAGE}gb0059.html{after}" for after in ("/../evil", "\u115fevil", "?x=y", ".evil", "#12")),
    *(f"{BREAK_PAGE}{name}" for name in ("gb0059.htm", "gb1/../../evil.html", "")),
    "https://evil.example`code`",
)


class LinkedTexts(HTMLParser):
    """All texts, and the pieces in which GitHub looks for links: not code, and not what is in a link already."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.pieces, self.links, self._inside = [], [], [], 0
        self.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))

    def handle_starttag(self, tag, attributes):
        self._inside += tag in ("code", "a")
        self.links += [value for name, value in attributes if name == "href"]

    def handle_endtag(self, tag):
        self._inside -= tag in ("code", "a")

    def handle_data(self, data):
        self.texts.append(data)
        if not self._inside:
            self.pieces.append(data)


@pytest.mark.parametrize("text", REFERENCES)
@pytest.mark.parametrize("around", ["{}", "see {} and", "({})", "*{}*", "x {}, {}"])
def test_no_text_of_a_program_becomes_a_link_or_a_reference(text, around):
    found = LinkedTexts(format_sentence(around.replace("{}", text)))
    assert found.links == [] and [piece for piece in found.pieces if LINKED.search(piece)] == []


#: What somebody copies from an issue.
COPIED = (
    *("2.11.0+cu130", "2.15.0a0+git1234abc", "2.15.0.dev20260101+cu132", "0.1.dev1+g0123abc.d20260101"),
    *("1e5f", "1e-5", "1234567", "12345678.5", "0x7f8a12345678", "[4, 1234567]", "f32[1048576, 3][3, 1]"),
    *("s77*1234567", "GB0059", "/home/ada/0123abc/train.py:1234567", "C:\\code\\train.py:3", "self.a_b[0]"),
    *("__init__", "x['a*b']", "a@b", "k=1 & j<2", "https://docs.pytorch.org/a?b=c_d"),
    *('torch.compile(f, mode="max-autotune")', "aten::mm", "$x$ ~y~ #3"),
)


@pytest.mark.parametrize("text", COPIED)
def test_what_is_copied_from_the_rendered_text_is_what_was_recorded(text):
    for shown in (format_sentence(f"see {text}, {text}"), f"see {format_span(text)}, {format_span(text)}"):
        assert "".join(LinkedTexts(shown).texts).strip() == f"see {text}, {text}"
    assert text in format_span(text)


def test_a_link_to_a_page_of_torch_ends_where_it_ends():
    page = f"{BREAK_PAGE}gb0059.html"
    found = LinkedTexts(format_sentence(f"See {page} evil.example/more @ada"))
    assert found.links == [page] and "evil.example/more" in "".join(found.pieces)
    assert LinkedTexts(format_sentence(f"See {page}. The code")).links == [page]
    assert LinkedTexts(format_sentence(f"See {page}.")).links == [page]
    reason = f"{page}, https://evil.example"
    for number in ("GB0059", "GB0059/../evil", "GB59 evil", "gb0059\u115f", "GB٠٠٥٩"):
        rows = [GraphBreak(time_ns=SECOND, break_id=number, reason=reason, user_file="/a.py", user_line=1)]
        (finding,) = diagnose(RowList(rows))
        assert (page in finding.suggestion) == (number == "GB0059")
        assert finding.suggestion.endswith(f"See {page}.") == (number == "GB0059")


def test_a_cell_stays_a_cell():
    document = Document(format_table(("one", "two"), [(format_span(HOSTILE), format_sentence(HOSTILE)), ("", "x")]))
    assert len(document.cells) == 6 and document.tags.count("tr") == 3
    assert document.cells[2].startswith("a|b `c`") and document.cells[3].startswith("a|b c d <img src=x>")


def test_it_has_environment_plan_and_recompiles(session):
    text = write(session, redact=False)
    document = Document(text)
    assert text.startswith("**torch.compile: 1 compile, 3.0 s compiling, 3 recompiles")
    assert "2.13" in document.cells and document.tags.count("table") == 2
    row = document.cells.index("forward model.py:30")
    assert document.cells[row : row + 4] == ["forward model.py:30", "x.shape[0] tensor size", "4, then 6, 9", "2"]
    assert any("dynamic_sources" in block for block in document.blocks)
    assert "SECRET_a" in text and "`train.py:3`: `SECRET(x)`" in text
    assert "Graph breaks: `GB0059` 1x" in text
    assert "5 refused calls" in text and "Refused calls: `eager_on_recompile` 4x, `fail_on_recompile` 1x" in text
    assert text.index("Not resolved:") < text.index("### Recompiles")


def test_it_has_the_script_of_the_costliest_recompile_unless_it_is_redacted(session, tmp_path):
    texts = [
        session.export(tmp_path / f"{redact}.md", format="markdown", redact=redact).read_text()
        for redact in (False, True)
    ]
    fenced = f"```python\n{session.repro().rstrip()}\n```"
    assert [fenced in text for text in texts] == [True, False] and "GUARD" not in texts[1]


def test_redacted_it_has_the_same_numbers_and_no_values_code_and_paths(session, tmp_path):
    text = session.export(tmp_path / "issue.md", "markdown").read_text()
    assert "SECRET" not in text and "train.py" not in text and "model.py" not in text and "/home" not in text
    assert "4, then 6" not in text and text.count("paths are left out") == 1
    first = write(session, redact=False).splitlines()[0]
    assert text.startswith(first) and "x.shape[0]" in text and "dynamic_sources = \"L['x']\"" in text
    assert session.export(tmp_path / "whole.md", "markdown", redact=False).read_text().count("SECRET") > 3


def test_a_session_with_much_in_it_fits_a_comment(tmp_path):
    rows = [
        row
        for number in range(100)
        for row in changes(f"self.{'n' * 200}{number}", "value", "1", "2", function=f"f{number}", line=number)
    ]
    text = write(saved(tmp_path, *rows), redact=False)
    assert 5_000 < len(text.encode()) <= MAX_SIZE
    assert "and 60 more in `session.plan()`" in text
    assert "### Recompiles" in text and "and 60 more guards failed" in text
    assert Document(text).tags.count("table") == 2


def test_other_formats_are_not_redacted_and_say_so(session, tmp_path):
    with pytest.raises(CompilediagError, match="format 'csv' cannot be redacted"):
        session.export(tmp_path / "tables", "csv", redact=True)
    assert not (tmp_path / "tables").exists()


def test_the_command_prints_it(session, tmp_path, capsys):
    assert main(["export", str(session.path), "--format", "markdown"]) == 0
    assert capsys.readouterr().out == write(session)
    assert main(["export", str(session.path), "--format", "markdown", "--no-redact", "-o", str(tmp_path / "x.md")]) == 0
    assert (tmp_path / "x.md").read_text() == write(session, redact=False)
    assert main(["export", str(session.path)]) == 2
    assert "format 'perfetto' needs a file or folder to write: -o PATH" in capsys.readouterr().err
