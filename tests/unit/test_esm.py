"""The joiner of the browser's modules, and what holds for all files under views/static."""

import re
import shutil
import subprocess

import pytest

from tests.inside import esm

ALL_FILES = sorted(path.relative_to(esm.STATIC).as_posix() for path in esm.STATIC.rglob("*.js"))
FILES = [path for path in ALL_FILES if not path.startswith("vendor/")]
#: Folder below static/ -> the folders that its files may import from.
MAY_IMPORT = {
    "core": {"core", "vendor"},
    "dashboard": {"core", "dashboard", "details", "plan", "tables", "timeline", "vendor"},
    "details": {"core", "details", "tables", "timeline", "vendor"},
    "explorer": {"core", "explorer", "vendor"},
    "plan": {"core", "plan", "vendor"},
    "ranks": {"core", "ranks", "vendor"},
    "tables": {"core", "tables", "timeline", "vendor"},
    "timeline": {"core", "timeline", "vendor"},
    "vllm": {"core", "details", "vendor", "vllm"},
    "": {"", "core", "dashboard", "details", "explorer", "plan", "ranks", "tables", "timeline", "vendor", "vllm"},
}


def folder(path):
    return path.rpartition("/")[0]


@pytest.fixture
def write_files(tmp_path):
    def write(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.js").write_text(text)
        return tmp_path

    return write


def test_an_import_becomes_constants_on_the_same_line():
    text = 'import { one } from "../core/a.js";\nimport {\n  two,\n  three,\n} from "./b.js";\nexport const x = one;\n'
    module = esm.parse_module("dashboard/c.js", text)
    assert module.imports == (("core/a.js", ("one",)), ("dashboard/b.js", ("two", "three")))
    assert [*module.exports] == ["x"]
    assert module.source.count("\n") == text.count("\n")
    assert module.source.splitlines()[0] == 'const { one } = $files["core/a.js"];'


def test_the_supported_exports_are_found():
    text = "export function f() {}\nexport async function g() {}\nexport class C {}\nexport const k = 1;\n"
    assert esm.parse_module("a.js", text).exports.keys() == {"f", "g", "C", "k"}
    assert esm.parse_module("a.js", "export default 1;\n").exports.keys() == {"$default"}


def test_a_published_module_exports_other_names_than_it_has_inside():
    module = esm.parse_module("vendor/b.js", 'import{c as n}from"a";var t=n;export{t as two,n as h};\n')
    assert module.imports == (("vendor/a.js", ("c",)),) and module.exports == {"two": "t", "h": "n"}
    assert module.source == 'const {c:n}=$files["vendor/a.js"];var t=n;\n'
    assert esm.parse_module("vendor/a.js", "export default function(s){}\n").exports == {"a": "$default"}


@pytest.mark.parametrize(
    "text",
    [
        'import x from "./b.js";',
        'import * as x from "./b.js";',
        'import "./b.js";',
        'import { x as y } from "./b.js";',
        "import { x } from './b.js';",
        'import { x } from "b";',
        '  import { x } from "./b.js";',
        "export let x = 1;",
        "export { x };",
        'export * from "./b.js";',
        "const x = await import(address);",
        "const x = import.meta.url;",
    ],
)
def test_other_forms_are_errors(text):
    with pytest.raises(esm.ModuleSyntaxError, match=r"^a\.js: unsupported import"):
        esm.parse_module("a.js", text + "\n")


def test_only_comments_that_have_lines_of_their_own_are_left_out(write_files):
    text = "/** one */\n/** @type {A} */ (a).b();\nconst kept = 1;\n/**\n * two\n */\nexport default kept;\n// three\n"
    joined = esm.join_modules("a.js", write_files(a=text))
    assert "/** @type {A} */ (a).b();\nconst kept = 1;\nconst $default = kept;" in joined
    assert not any(comment in joined for comment in ("one", "two", "three"))


def test_a_name_that_is_not_exported_is_an_error(write_files):
    files = write_files(a='import { x } from "./b.js";\n', b="const x = 1;\n")
    with pytest.raises(esm.ModuleSyntaxError, match=r"a\.js imports x, which b\.js does not export"):
        esm.order_modules("a.js", files)


def test_files_that_import_each_other_are_an_error(write_files):
    a, b = 'import { y } from "./b.js";\nexport const x = 1;\n', 'import { x } from "./a.js";\nexport const y = 1;\n'
    with pytest.raises(esm.ModuleSyntaxError, match=r"import each other: a\.js > b\.js > a\.js"):
        esm.order_modules("a.js", write_files(a=a, b=b))


@pytest.mark.parametrize("entry", esm.ENTRIES)
def test_each_module_comes_once_and_after_those_that_it_imports(entry):
    order = [module.path for module in esm.order_modules(entry)]
    assert len(order) == len(set(order)) > 10 and order[-1] == entry
    for module in esm.order_modules(entry):
        assert all(order.index(path) < order.index(module.path) for path, _ in module.imports)


@pytest.mark.parametrize("entry", esm.ENTRIES)
def test_the_joined_module_is_valid_javascript(entry, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; the browser tests run the joined modules too")
    joined = tmp_path / "joined.mjs"
    joined.write_text(esm.join_modules(entry))
    checked = subprocess.run([node, "--check", str(joined)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_every_file_is_used():
    used = {module.path for entry in esm.ENTRIES for module in esm.order_modules(entry)} | {*esm.STYLES, esm.PAGE_STYLE}
    styles = {path.relative_to(esm.STATIC).as_posix() for path in esm.STATIC.rglob("*.css")}
    assert {*ALL_FILES, esm.WORDS, *styles} == used


@pytest.mark.parametrize("path", FILES)
def test_a_folder_imports_only_the_folders_that_it_may(path):
    module = esm.parse_module(path, (esm.STATIC / path).read_text())
    assert {folder(imported) for imported, _ in module.imports} <= MAY_IMPORT[folder(path)]


@pytest.mark.parametrize("text", [esm.join_modules("report.js"), esm.join_styles()], ids=["script", "style"])
def test_nothing_ends_the_element_or_asks_for_another_file(text):
    namespaces = re.sub(r"http://www\.w3\.org/(?:2000/svg|1998/Math/MathML|1999/xhtml)", "", text)
    assert re.findall(r"</(?i:script|style)|<!--|https?://|//cdn|@import|url\(", namespaces) == []


def split_selectors(group):
    """The selectors of a rule, without what they have in parentheses."""
    while (bare := re.sub(r"\([^()]*\)", "", group)) != group:
        group = bare
    return group.split(",")


def test_every_rule_is_about_the_dashboard_alone():
    bare = re.sub(r"/\*.*?\*/", "", esm.join_styles(), flags=re.DOTALL)
    inner = re.sub(r"@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}", "", bare)
    selectors = [s.strip() for group in re.findall(r"([^{}]+)\{", inner) for s in split_selectors(group)]
    stray = [s for s in selectors if not s.startswith((".cdiag", "@media", "@container"))]
    assert len(selectors) > 100 and stray == []


@pytest.mark.parametrize("path", FILES)
def test_no_text_is_ever_parsed_as_html(path):
    text = (esm.STATIC / path).read_text()
    assert re.findall(r"\.\.\.\$\{", text) == [], "data is never spread into an element"
    assert re.findall(r"(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(", text) == []
