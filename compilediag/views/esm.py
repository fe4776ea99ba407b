"""Joins the browser's ES modules into one module, because a page can load only one.

JupyterLab loads the widget's module from a blob address and the report holds it in an inline script; relative imports
do not resolve in either. So `join_modules` turns each file under `static/` into a function of its own: its top-level
names are private, what it exports is the function's result. Supported at the start of a line:

    import { name, other } from "./file.js";
    export function | export async function | export class | export const
    export default expression;

Anything else that imports or exports is an error. Files of `vendor/` are others' modules as they were published: their
`import{a as b}from"name"` and `export{a as b}` are read too, and a default export has the file's name. Comments that
have lines of their own are left out, which keeps reports small; so no text of several lines may hold a line that looks
like a comment.

The words that the page shares with Python are a module without a file, made of `compilediag/events/words.py`.
"""

from __future__ import annotations

import functools
import json
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from ..events import words

STATIC = Path(__file__).parent / "static"
#: The modules that a page starts with.
ENTRIES = ("widget.js", "report.js", "diff.js")
STYLES = (
    "core/theme.css",
    "dashboard/header.css",
    "plan/plan.css",
    "timeline/timeline.css",
    "tables/tables.css",
    "details/detail-pane.css",
    "details/provenance.css",
    "tables/call-site-tree.css",
    "dashboard/print.css",
    "explorer/explorer.css",
    "ranks/ranks.css",
    "vllm/vllm.css",
)

#: The module of the words; its types are in `core/words.d.ts`.
WORDS = "core/words.js"

#: The style sheet of a page that is a file of its own.
PAGE_STYLE = "core/report.css"

_IMPORT = re.compile(r'^import \{([^{}]*)\} from "(\.{1,2}/[\w./-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default (?=\S)", re.MULTILINE)
#: What is left of an import or export that is not supported.
_UNSUPPORTED = re.compile(r"^\s*(?:import|export)\b[^\n]*|\bimport\s*\([^\n]*|\bimport\.meta\b", re.MULTILINE)
_COMMENT_LINES = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)[ \t]*\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
#: The forms of a published module, which is one line without spaces.
_VENDOR = "vendor/"
_PUBLISHED_IMPORT = re.compile(r'\bimport\{([^{}]*)\}from"(\w+)";')
_PUBLISHED_EXPORT = re.compile(r"\bexport\{([^{}]*)\};?")
_PUBLISHED_DEFAULT = re.compile(r"\bexport default (?=function)")


class ModuleSyntaxError(ValueError):
    """A file under `static/` imports or exports in a way that cannot be joined."""


@dataclass(frozen=True)
class Module:
    """One file: its path below `static/`, its imports (path, names), its source, and what it exports.

    `exports` has the name inside the file for each exported one.
    """

    path: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    exports: dict[str, str]
    source: str


@functools.cache
def join_modules(entry: str, folder: Path = STATIC) -> str:
    """Return one ES module made of `entry` and every file that it imports, each before the files that need it."""
    modules = order_modules(entry, folder)
    exports = [f'export default $files["{entry}"].$default;\n'] if "$default" in modules[-1].exports else []
    return "".join(["const $files = {};\n", *map(_wrap, modules), *exports])


@functools.cache
def join_styles(*more: str) -> str:
    """Return the style sheet of all pages, with `more` files before it."""
    return "".join((STATIC / name).read_text(encoding="utf-8") for name in (*more, *STYLES))


def order_modules(entry: str, folder: Path = STATIC) -> list[Module]:
    """Return the modules that `entry` needs, each after those that it imports, `entry` last."""
    found: dict[str, Module] = {}
    _visit(entry, folder, found, ())
    return list(found.values())


def _visit(path: str, folder: Path, found: dict[str, Module], above: tuple[str, ...]) -> None:
    if path in above:
        raise ModuleSyntaxError(f"files import each other: {' > '.join([*above, path])}")
    if path in found:
        return
    text = _write_words() if path == WORDS else (folder / path).read_text(encoding="utf-8")
    module = parse_module(path, text)
    for imported, names in module.imports:
        _visit(imported, folder, found, (*above, path))
        if missing := set(names) - set(found[imported].exports):
            raise ModuleSyntaxError(f"{path} imports {', '.join(sorted(missing))}, which {imported} does not export")
    found[path] = module


def _write_words() -> str:
    named = {name: words.GLOSSARY[word] for name, word in words.GLOSSARY_NAMES.items()}
    shared = {
        "phases": words.PHASES,
        "patterns": words.PHASE_PATTERNS,
        "phaseKinds": words.PHASE_KINDS,
        "phaseNames": words.PHASE_NAMES,
        "codes": words.CODES,
        "meanings": {**words.GLOSSARY, **named, **words.GUARD_KIND_MEANINGS},
    }
    return f"export const WORDS = {json.dumps(shared, ensure_ascii=False)};\n"


def parse_module(path: str, text: str) -> Module:
    """Read the imports and exports of a file; ModuleSyntaxError for a form that is not supported."""
    if path.startswith(_VENDOR):
        return _parse_published(path, text)
    imports = tuple((_resolve(path, target), _split_names(path, names)) for names, target in _IMPORT.findall(text))
    exports = _EXPORT.findall(text) + ["$default"] * len(_DEFAULT.findall(text))
    # On as many lines, so that line numbers stay.
    source = _IMPORT.sub(lambda match: f'const {{{match[1]}}} = $files["{_resolve(path, match[2])}"];', text)
    source = _DEFAULT.sub("const $default = ", _EXPORT.sub("", source))
    return Module(path, imports, {name: name for name in exports}, _check(path, source))


def _check(path: str, source: str) -> str:
    """The source, in which no import or export is left."""
    if left := _UNSUPPORTED.search(source):
        raise ModuleSyntaxError(f"{path}: unsupported import or export: {left[0].strip()}")
    return source


def _parse_published(path: str, text: str) -> Module:
    imports = tuple(
        (f"{_VENDOR}{name}.js", tuple(name for name, _ in _split_pairs(names)))
        for names, name in _PUBLISHED_IMPORT.findall(text)
    )
    exports = {after: before for names in _PUBLISHED_EXPORT.findall(text) for before, after in _split_pairs(names)}
    if _PUBLISHED_DEFAULT.search(text):
        exports[posixpath.basename(path).removesuffix(".js")] = "$default"
    source = _PUBLISHED_IMPORT.sub(
        lambda match: f'const {{{match[1].replace(" as ", ":")}}}=$files["{_VENDOR}{match[2]}.js"];', text
    )
    source = _PUBLISHED_DEFAULT.sub("const $default=", _PUBLISHED_EXPORT.sub("", source))
    return Module(path, imports, exports, _check(path, source))


def _split_pairs(names: str) -> list[tuple[str, str]]:
    """`a as b,c` as pairs of the name before and after."""
    split = [name.split(" as ") for name in names.split(",")]
    return [(pair[0], pair[-1]) for pair in split]


def _split_names(path: str, names: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    if unsupported := [name for name in found if not _NAME.fullmatch(name)]:
        raise ModuleSyntaxError(f"{path}: unsupported import: {unsupported[0]}")
    return found


def _resolve(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _wrap(module: Module) -> str:
    exports = ", ".join(f"{name}: {inside}" for name, inside in module.exports.items())
    source = _COMMENT_LINES.sub("", module.source).strip()
    return f'$files["{module.path}"] = (() => {{\n{source}\nreturn {{ {exports} }};\n}})();\n'
