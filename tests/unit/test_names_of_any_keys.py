"""The name of a guarded value is right whatever the keys on its path are: text stays text."""

import ast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from compilediag.decode.guards.guard_text import parse_guard

PARTS = st.sampled_from(
    (
        *("L['x']", "G['C']", "CODE()", ".size()[0]", "'", '"', "\\", "\n", "\r", "{", "}", "[", "]", "(", ")", "#"),
        *("  # a.py:1 in f", " == ", " is ", ", ", "not ", "<class 'a'>", "<", ">", "b'", "f'{", ":=", "0/1: "),
        *("KeyError on ", "\x00", "\u2028", "w" * 800),
    )
)
TEXTS = st.lists(PARTS | st.text(max_size=3), max_size=6).map("".join)
SIMPLE = (
    TEXTS | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.integers() | st.booleans() | st.none()
)
KEYS = st.recursive(SIMPLE, lambda keys: st.lists(keys, max_size=3).map(tuple), max_leaves=4)
#: The same cases in each run: a failure is there for everybody.
SAME = settings(derandomize=True, database=None, deadline=None, max_examples=150)


def read_keys(source):
    """The keys on a shown name, and the root."""
    keys, node = [], ast.parse(source, mode="eval").body
    while isinstance(node, ast.Subscript):
        keys.append(ast.literal_eval(node.slice))
        node = node.value
    return ast.unparse(node), keys[::-1]


def same(one, other):
    """Equal and of the same types, so that 1 is not True."""
    return repr(one) == repr(other)


@SAME
@given(KEYS, KEYS)
def test_a_value_in_a_nested_dict(first, second):
    path = f"L['d'][{first!r}][{second!r}]"
    if len(path) < 3_000:
        for form in (f"{path} == 3", f"___check_type_id({path}, 7)", f"len({path}) == 2", f"{path} is None"):
            parsed = parse_guard(form)
            source = parsed.source.removeprefix("len(").removesuffix(")") if form.startswith("len") else parsed.source
            root, keys = read_keys(source)
            assert root == "d" and same(keys, [first, second]), form


@SAME
@given(KEYS)
def test_a_key_that_is_looked_for(key):
    parsed = parse_guard(f"___dict_contains({key!r}, L['d'])")
    if len(repr(key)) < 3_000:
        assert same(read_keys(parsed.source), ("d", [key])) and parsed.kind == "dict_keys"


@SAME
@given(TEXTS)
def test_a_value_that_is_compared(text):
    parsed = parse_guard(f"L['k'] == {text!r}")
    assert parsed.source == "k" and parsed.kind == "value"
    if len(repr(text)) < 200:
        assert ast.literal_eval(parsed.expected) == text


@SAME
@given(KEYS)
@example("  # a.py:1 in f")
def test_the_size_of_a_tensor(key):
    parsed = parse_guard(f"tensor 'L['d'][{key!r}]' size mismatch at index 0. expected 2, actual 3")
    if len(repr(key)) < 3_000:
        assert parsed.source.endswith(".size()[0]") and (parsed.expected, parsed.actual) == ("2", "3")
        assert same(read_keys(parsed.source.removesuffix(".size()[0]")), ("d", [key]))
