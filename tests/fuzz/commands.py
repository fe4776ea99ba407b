"""Runs commands in this process and says what is wrong with how they end."""

import ast
import base64
import collections
import contextlib
import csv
import html.parser
import io
import json
import signal
import sys
import traceback
import zlib
from pathlib import Path

from compilediag.cli import live_command
from compilediag.errors import CompilediagError
from compilediag.events import BY_TABLE
from tests.inside import main

from ..unit.every_view import list_views
from .spoilt_values import NAME

#: CPU seconds that a command may take, and how much more memory the process may have during it, in MB.
MOST_S, MOST_MB = 60, 1_200
#: What a line of output may hold beside what can be printed: source code has tabs, and other languages have spaces.
SPACES = str.maketrans("", "", "\t\xa0\u3000\u2009")


#: Exit code -> how many commands ended with it.
ENDINGS = collections.Counter()
#: Views of a session whose texts are HTML, JSON, files, or texts as they were recorded.
NOT_PRINTED = {"findings", "page", "redacted_page", "record", "report", "texts", "csv", "parquet", "perfetto"}
NOT_PRINTED |= {"sarif", "save"}


class TooLongError(BaseException):
    """A command took more than MOST_S of CPU time."""


def list_commands(file, base, folder):
    """The arguments of each command for one file; `base` is an honest session, `folder` takes what is written."""
    file, base = str(file), str(base)
    names = ("r.html", "csv", "parquet", "t.json", "m.md", "w.py", "i.cdiag", "r.sarif", "b.toml")
    out = {name: str(folder / name) for name in names}
    return [
        ["views", file],
        ["ranks", str(folder / "ranks")],
        ["live", str(folder / "ranks"), "--plain"],
        ["plan", file],
        ["plan", file, "--code"],
        ["plan", file, "--patch"],
        ["plan", file, "--json"],
        ["plan", file, "--warmup", out["w.py"]],
        ["findings", file],
        ["findings", file, "--json"],
        ["ranks", file, "--json"],
        ["diff", base, file, "--json"],
        ["coldstart", base, file, "--json"],
        ["check", file, "--max-recompiles", "0", "--json"],
        ["live", file, "--json"],
        ["report", file, "-o", out["r.html"]],
        ["report", file, "-o", out["r.html"], "--redact"],
        ["export", file, "--format", "csv", "-o", out["csv"]],
        ["export", file, "--format", "parquet", "-o", out["parquet"]],
        ["export", file, "--format", "perfetto", "-o", out["t.json"]],
        ["export", file, "--format", "sarif", "-o", out["r.sarif"]],
        ["export", file, "--format", "markdown"],
        ["export", file, "--format", "markdown", "--no-redact", "-o", out["m.md"]],
        ["check", file, "--max-recompiles", "0", "--max-graph-breaks", "0", "--no-silent-eager"],
        ["check", file, "--baseline", base],
        ["check", file, "--baseline", out["b.toml"], "--update", "--github"],
        ["check", base, "--baseline", file],
        ["diff", file, base, "--report", out["r.html"]],
        ["diff", base, file],
        ["repro", file],
        ["ranks", file],
        ["live", file, "--plain"],
        ["ingest", file, "-o", out["i.cdiag"], "-j", "1"],
    ]


def find_problems(arguments):
    """What is wrong with the end of one command: a list of texts, empty if it ended as it should."""
    out, err = _Text(arguments), io.StringIO()
    before = _begin_peak()
    run = _show_views if arguments[0] == "views" else main
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _limit_time(), _look_once():
            code = run(arguments)
    except TooLongError:
        return [f"took more than {MOST_S} s of CPU time"]
    except BaseException:
        return [traceback.format_exc()]
    shown, said = out.getvalue(), err.getvalue()
    ENDINGS[code] += 1
    problems = [] if code in (0, 1, 2, live_command.INTERRUPTED) else [f"exit code {code}"]
    if code == 2 and (shown or said.count("\n") != 1 or not said.startswith("compilediag: ")):
        problems.append(f"refused, but not in one line: {shown[:200]!r} {said[:500]!r}")
    problems += [f"control characters: {line[:300]!r}" for line in _find_controls(shown + said)]
    if _read_memory("VmHWM") - before > MOST_MB:
        problems.append(f"the process has had {MOST_MB} MB more memory than before")
    written = Path(arguments[arguments.index("-o") + 1]) if "-o" in arguments else None
    if "--report" in arguments or "--warmup" in arguments:
        written = Path(arguments[-1])
    if arguments[-1] == "--code":
        problems += _judge_code(shown)
    if code != 2 and written is not None and written.exists():
        problems += list(_judge_file(written))
    return problems


def _begin_peak():
    """Forget the peak of this process's memory, which other tests may have caused; its memory now, in MB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _read_memory("VmRSS")


def _read_memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) >> 10


class _Text(io.TextIOWrapper):
    """Standard output of a terminal; for every other command of one that has ASCII alone."""

    def __init__(self, arguments):
        super().__init__(
            io.BytesIO(), encoding=("utf-8", "ascii")[len(arguments) % 2], newline="\n", write_through=True
        )

    def getvalue(self):
        return self.buffer.getvalue().decode(self.encoding)


def _show_views(arguments):
    """Print what the methods of a session return, and which of them end in anything but a result or one line."""
    file = Path(arguments[1])
    try:
        session, views = list_views(file, file.parent) if file.suffix == ".cdiag" else (None, {})
    except CompilediagError as error:
        print(f"compilediag: {error}", file=sys.stderr)
        return 2
    for name, show in views.items():
        try:
            texts = show()
        except CompilediagError as error:
            texts = [str(error)]
        is_printed = name not in NOT_PRINTED and name not in BY_TABLE and not name.startswith(("events", "figure"))
        print(*(texts if is_printed else []), sep="\n")
    return 0


@contextlib.contextmanager
def _limit_time():
    def end(*_):
        raise TooLongError

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def _look_once():
    """A session whose process seems to live would be followed until that ends: interrupt, as a user does."""

    class Interrupt:
        @staticmethod
        def sleep(seconds):
            raise KeyboardInterrupt

    before, live_command.time = live_command.time, Interrupt
    try:
        yield
    finally:
        live_command.time = before


def _find_controls(text):
    return [line for line in text.split("\n") if not line.translate(SPACES).isprintable()][:3]


# What was written


def _judge_file(file):
    if file.is_dir():
        for table in file.glob("*.csv"):
            yield from _judge_table(table)
    elif file.suffix == ".html":
        yield from _judge_page(file.read_text())
    elif file.suffix == ".json":
        json.loads(file.read_text(), parse_constant=lambda name: name)
    elif file.suffix == ".py":
        yield from _judge_code(file.read_text())
    elif file.suffix == ".md":
        yield from (f"control characters: {line[:300]!r}" for line in _find_controls(file.read_text()))


def _judge_code(text):
    """Code that is printed or written to be run: a text from the file is no name in it."""
    try:
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"code that is no Python: {error}: {text[:2000]}"]
    return [f"a text became code: {text[:2000]}"] if NAME in names else []


def _judge_table(file):
    with file.open(newline="", encoding="utf-8") as stream:
        csv.field_size_limit(1 << 30)
        rows = list(csv.reader(stream))
    if len({len(row) for row in rows}) > 1:
        yield f"{file.name}: rows of different lengths"
    cells = {cell for row in rows for cell in row}
    yield from (f"{file.name}: a formula: {c[:100]!r}" for c in cells if c.strip()[:1] in tuple("=@"))


class _Elements(html.parser.HTMLParser):
    """Counts the elements of a page, and finds what could run or fetch."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.active, self.policies, self.data = {}, [], [], ""
        self._is_data = False

    def handle_starttag(self, tag, attrs):
        self.found[tag] = self.found.get(tag, 0) + 1
        values = dict(attrs)
        self.active += [f"{tag} {name}" for name in values if name.startswith("on") or name in ("src", "href")]
        if "content-security-policy" in str(values.get("http-equiv")).lower():
            self.policies.append(values["content"])
        self._is_data = values.get("id") == "cdiag-data"

    def handle_endtag(self, tag):
        self._is_data = False

    def handle_data(self, data):
        if self._is_data:
            self.data += data


def _judge_page(text):
    page = _Elements()
    page.feed(text)
    page.close()
    page.found.pop("pre", None)  # The text for browsers without scripts.
    once = ("html", "head", "title", "style", "body", "noscript", "main")
    if page.found != {**dict.fromkeys(once, 1), "script": 2, "meta": 3} or page.active:
        yield f"other elements in a page: {page.found} {page.active}"
    if len(page.policies) != 1 or not page.policies[0].startswith("default-src 'none'"):
        yield f"policies: {page.policies}"
    data = zlib.decompress(base64.b64decode(page.data))
    json.loads(data, parse_constant=lambda name: _refuse_constant(name))


def _refuse_constant(name):
    raise ValueError(f"{name} in the page's data: browsers do not parse it")
