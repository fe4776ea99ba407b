"""The record that a saved notebook keeps: what it says, that it is small, and that no host takes it apart."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from tests.inside import make_record
from tests.unit.session_builder import saved
from tests.unit.tables_builder import SECOND, changes, compiled, graph_break, lookup, sizes, source

#: Bytes that a notebook keeps of it.
MAX_HTML = 50_000
#: What the record is made of. No host removes these, and without styles the text stays readable.
TAGS = {"div", "p", "strong", "small", "br", "ol", "ul", "li", "code", "pre"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td", "img"}
SIZES = sizes("4", "6", "7")


@pytest.fixture
def record_of(tmp_path):
    """The HTML that a notebook keeps of a watch of just these events."""

    def make(*events, **options):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        session = saved(folder, *events, **options)
        return make_record(session)["text/html"]

    return make


class Page(HTMLParser):
    """The elements, attributes and text of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words = set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def compiles(number, **more):
    return [compiled(compile_id=f"0/{k}", time_ns=k * 3 * SECOND, is_recompile=k > 0, **more) for k in range(number)]


def test_it_has_the_plan_the_totals_other_findings_and_each_function(record_of):
    text = Page(record_of(*compiles(3), *SIZES, graph_break(), lookup("hit", saved_s=1.5))).text
    assert text.startswith("1 change removes 2 of 2 recompiles and saves 2.0 s of 6.0 s compile time")
    assert "x.shape[0] has 3 values: 4, 6, 7" in text
    assert "compilediag: 3 compiles took 6.0 s; 2 recompiles cost 2.0 s" in text
    assert "1 cache hit saved 1.5 s, 0 misses; 1 graph break" in text
    assert "Other findings: graph break at model.py:33, once" in text
    assert "forward (model.py:30) 6.0 s in 3 compiles" in text
    assert re.search(r"watch of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC · ", text) and "torch 2.13" in text


def test_what_the_plan_has_is_no_other_finding(record_of):
    assert "findings" not in Page(record_of(*compiles(3), *SIZES)).text.lower()


def test_nothing_compiled_and_nothing_collected_are_not_the_same(record_of):
    assert "Nothing was compiled during this watch." in Page(record_of()).text
    blind = Page(record_of(source("compiles", "unavailable", "torch is too old", "missing"), feed_name="phases")).text
    assert "Nothing was compiled" not in blind
    assert "compiles not collected" in blind and "torch is too old" in blind


def test_hostile_names_stay_text_and_nothing_runs(record_of):
    name = "</td><script>alert(1)</script><img onerror=alert(2)>\"'"
    more = {"function": name, "file": f"/a/{name}.py"}
    page = Page(record_of(*compiles(3, **more), *sizes("4", "6", "7", user_code=name, user_file="/a/b.py", **more)))
    assert page.tags <= TAGS
    assert {attribute for attribute, _ in page.attributes} <= {"class", "style", "src", "width", "height", "alt"}
    assert "<script>alert(1)</script>" in page.text


def test_the_pictures_need_no_network_and_are_described(record_of):
    page = Page(record_of(*compiles(3)))
    pictures = [unquote(value) for name, value in page.attributes if name == "src"]
    assert len(pictures) == 3, "two signs of the legend, one function"
    for picture in pictures:
        head, _, svg = picture.partition(",")
        assert head == "data:image/svg+xml" and {
            node.tag.rpartition("}")[2] for node in ElementTree.fromstring(svg).iter()
        } <= {"svg", "path"}
    (described,) = [value for name, value in page.attributes if name == "alt" and value]
    assert described == "compile after 0 s: 2.0 s; recompile after 3.0 s: 2.0 s; recompile after 6.0 s: 2.0 s"


def test_bars_are_where_the_compiles_were(record_of):
    page = Page(record_of(*compiles(3)))
    lane = unquote([value for name, value in page.attributes if name == "src"][-1])
    first, recompiles = (
        re.findall(r"M(\d+) (\d+)h(\d+)", path)
        for path in re.findall(r"<path d='(M\d+ \d+h\d+v\d+H\d+z.*?)'", lane)[1:]
    )
    # 0 to 2 s, 3 to 5 s and 6 to 8 s of 8 s, on 318 px
    assert [(int(x), int(wide)) for x, _, wide in first] == [(0, 79)]
    assert [(int(x), int(wide)) for x, _, wide in recompiles] == [(119, 79), (238, 80)]
    assert int(recompiles[0][1]) > int(first[0][1]), "a recompile is lower, so color is not the only sign"


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("page", ["#ffffff", "#1e1e1e", "#000000"])
def test_bars_are_seen_on_light_and_dark_pages(record_of, page):
    colors = set(re.findall(r"#[0-9a-f]{6}", unquote(record_of(*compiles(3)))))
    assert len(colors) >= 2
    for color in colors:
        low, high = sorted((luminance(color), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= 3, color


def test_colors_are_those_of_the_page(record_of):
    styles = {value for name, value in Page(record_of(*compiles(3), *SIZES)).attributes if name == "style"}
    assert styles == {"text-align:left"}


def storm(functions, values, length):
    for number in range(functions):
        place = {
            "function": f"{'f' * length}_{number}",
            "file": f"/home/ada/{'m' * length}_{number}.py",
            "line": number,
        }
        user = {"user_file": place["file"], "user_line": number, "user_code": f"call_{'x' * length}({number})"}
        for k in range(values):
            at = (number * values + k) * SECOND
            yield compiled(compile_id=f"{number}/{k}", time_ns=at, is_recompile=k > 0, duration_s=0.5, **place)
        yield from changes(
            f"self.{'a' * length}_{number}", "value", *(f"'{'v' * length}{k}'" for k in range(values)), **place, **user
        )


@pytest.mark.parametrize(("functions", "values", "length"), [(1, 300, 10), (60, 3, 60), (40, 12, 400)])
def test_a_storm_of_any_kind_is_small_and_keeps_its_numbers(functions, values, length, record_of):
    html = record_of(*storm(functions, values, length))
    assert len(html.encode()) <= MAX_HTML
    text = Page(html).text
    assert f"{functions * (values - 1)} recompiles" in text and f"{functions * values} compiles took" in text
    assert functions == 1 or " more in session." in text or "not shown" in text


def test_where_styles_and_data_addresses_are_removed_every_word_is_left(record_of):
    """As on GitHub: it keeps the elements, but no styles, no classes and only pictures of web addresses."""
    bleach = pytest.importorskip("bleach")
    whole = record_of(*compiles(3), *SIZES, graph_break())
    left = bleach.clean(whole, tags=TAGS, attributes={"img": ["alt", "src", "width", "height"]}, protocols={"https"})
    assert "style=" not in left and "data:" not in left
    assert Page(left).text == Page(whole).text
    assert "recompile after 3.0 s: 2.0 s" in left
