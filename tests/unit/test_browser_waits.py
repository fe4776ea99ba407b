"""The browser tests themselves: none asserts what a page shows at one moment. They wait until the page shows it."""

import ast
from pathlib import Path

import pytest

BROWSER = Path(__file__).resolve().parents[1] / "browser"
#: Methods of playwright's pages and locators that return what the page shows now.
READS = {
    "all_inner_texts",
    "all_text_contents",
    "count",
    "eval_on_selector",
    "eval_on_selector_all",
    "evaluate_all",
    "get_attribute",
    "inner_html",
    "inner_text",
    "input_value",
    "is_checked",
    "is_disabled",
    "is_editable",
    "is_enabled",
    "is_hidden",
    "is_visible",
    "text_content",
}
#: Helpers that return what is true now: a cell that has ended does not run again.
AT_ONCE = {"is_running"}


def walk_now(node):
    """The parts of `node` that are evaluated with it: not the body of a lambda."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from walk_now(child)


def is_read(node, helpers, methods):
    """True for a call of one of these methods or helpers."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in helpers
    if not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    if name == "count" and node.args:  # that of a string or a list
        return False
    return name in methods or name in helpers


def holds_read(node, names, helpers, methods=READS):
    """True if evaluating `node` reads the page, or uses one of the names, which were read before."""
    return any(is_read(p, helpers, methods) or (isinstance(p, ast.Name) and p.id in names) for p in walk_now(node))


def read_names(function, helpers):
    """Names that a function assigns what it has read."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and holds_read(node.value, names, helpers):
            names |= {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return names


def functions_of(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def find_helpers(trees):
    """Names of the functions and lambdas that return what they read, with or without another helper."""
    helpers, known = set(), None
    while helpers != known:
        known = set(helpers)
        for function in (function for tree in trees for function in functions_of(tree)):
            names = read_names(function, helpers)
            returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
            if any(holds_read(value, names, helpers, READS | {"evaluate"}) for value in returned):
                helpers.add(function.name)
        for node in (node for tree in trees for node in ast.walk(tree)):
            is_lambda = isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
            if is_lambda and holds_read(node.value.body, set(), helpers, READS | {"evaluate"}):
                helpers |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        helpers -= AT_ONCE
    return helpers


def immediate_asserts(tree, helpers):
    """Line of each assert that does not wait for what it asserts."""
    found = set()
    for function in functions_of(tree):
        names = read_names(function, helpers)
        asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
        found |= {a.lineno for a in asserts if holds_read(a.test, names, helpers, READS | {"evaluate"})}
    return sorted(found)


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("assert page.locator('a').is_hidden()", True),
        ("assert not page.locator('a').first.is_visible()", True),
        ("assert page.locator('a').count() == 3", True),
        ("assert 'b' in page.text_content('a') and done", True),
        ("assert page.evaluate('1') == 1", True),
        ("texts = page.locator('a').all_text_contents()\n    first = texts[0]\n    assert first == 'b'", True),
        ("assert titles(page) == ['b']", True),
        ("shown = titles(page)\n    assert shown == ['b']", True),
        ("assert order() == ['b']", True),
        ("expect(page.locator('a')).to_have_count(3)", False),
        ("expect_value(page, lambda: titles(page), ['b'])", False),
        ("output = expect_value(page, lambda: page.text_content('a'), len)\n    assert output == 'b'", False),
        ("assert notebook.is_running()", False),
        ("assert text.count('b') == 2", False),
        ("count = len(rows)\n    assert count == 3", False),
    ],
)
def test_asserts_that_do_not_wait_are_found(code, is_found):
    helpers = """
def titles(page):
    found = page.locator("h1").all_text_contents()
    return sorted(found)
def is_running(page):
    return page.evaluate("1")
order = lambda: page.locator("a").evaluate_all("2")
"""
    tree = ast.parse(f"{helpers}def test(page):\n    {code}\n")
    assert bool(immediate_asserts(tree, find_helpers([tree]))) is is_found


def test_no_browser_test_asserts_without_waiting():
    trees = {file.name: ast.parse(file.read_text()) for file in sorted(BROWSER.glob("*.py"))}
    helpers = find_helpers(trees.values())
    assert {"text", "titles", "first_cells", "read_totals", "total"} <= helpers
    found = [f"{name}:{line}" for name, tree in trees.items() for line in immediate_asserts(tree, helpers)]
    assert len(trees) > 10 and found == []
