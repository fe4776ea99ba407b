"""One document, three writers: what each makes of every block, and how a document is made shorter."""

from compilediag.document import (
    Code,
    CodeBlock,
    Drawing,
    Items,
    Lines,
    Para,
    Place,
    Section,
    Table,
    shorten,
    to_html,
    to_markdown,
    to_text,
)

DOCUMENT = Section(
    Para("2 changes, see ", Place("a.py:3"), ": ", Code("f(x)"), strong=True),
    Items([[f"Step `{n}`", CodeBlock(f"x = {n}"), "It saves 1 s."] for n in (1, 2, 3)], "numbered", (" elsewhere",)),
    Section(Lines("one", "two"), Items([["a"], ["b"]]), title="More"),
    Section(Table(("name", "count"), [("a", "1,000"), (Para(Code("b")), "2")], right=(1,))),
    Drawing(lambda rows: f"<img rows={rows}>"),
)

TEXT = """\
2 changes, see a.py:3: f(x)
1. Step `1`
   x = 1
   It saves 1 s.
... and 2 more elsewhere

More
one
two
- a
... and 1 more

name  count
a     1,000
... and 1 more"""

HTML = (
    "<p><strong>2 changes, see a.py:3: <code>f(x)</code></strong></p>"
    "<ol><li>Step <code>1</code><pre><code>x = 1</code></pre>It saves 1 s.</li></ol><p>... and 2 more elsewhere</p>"
    "<p><strong>More</strong></p><p>one<br>two</p><ul><li>a</li></ul><p>... and 1 more</p>"
    "<table><thead><tr><th>name</th><th>count</th></tr></thead><tbody><tr><td>a</td><td>1,000</td></tr></tbody></table>"
    "<p>... and 1 more</p><img rows=2>"
)

MARKDOWN = """\
**2 changes, see `a.py:3`: `f(x)`**

1. Step `1`

   ```python
   x = 1
   ```

   It saves 1 s.

... and 2 more elsewhere

### More

one  \ntwo

- a

... and 1 more

| name | count |
| --- | --- |
| a | 1,000 |

... and 1 more"""


def test_each_writer_has_all_blocks():
    shown = shorten(DOCUMENT, 1, 100)
    assert to_text(shown) == TEXT
    assert to_html(shown) == f'<div class="mathjax_ignore tex2jax_ignore"><div>{HTML}</div></div>'
    assert to_markdown(shown) == MARKDOWN


def test_long_texts_and_code_are_cut_and_code_can_name_what_gives_it():
    code = "\n".join(f"x = {n}" for n in range(100))
    assert to_text(shorten("word " * 100, None, 9)) == "word word..."
    assert to_text(shorten(CodeBlock(code), None, 14)) == "   x = 0\n   x = 1\n   # ..."
    assert to_text(shorten(CodeBlock(code, "All:", "plan.code()"), None, 12)) == "All: plan.code()"


def test_of_the_documents_that_fit_the_largest_is_written():
    items = Items([["é" * 100] for _ in range(300)], rest=(" elsewhere",))
    assert to_html(items).count("<li>") == 100, "bytes count, not characters"
    assert to_html(Items(items.items[:200])).count("<li>") == 200
    assert "... and 280 more elsewhere" in to_html(items, size=5_000)


def test_no_text_becomes_markup_or_reaches_a_terminal():
    hostile = Section("<b>*x*</b>\x1b[2J", Code("`<i>`").text, Para(Code("a|`b`\x1b")))
    assert "\x1b" not in to_text(hostile) + to_html(hostile) + to_markdown(hostile)
    assert "<b>" not in to_html(hostile) and "<i>" not in to_html(hostile)
    assert "*x*" not in to_markdown(hostile) and "<b>" not in to_markdown(hostile)
