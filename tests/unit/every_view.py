"""Everything that compilediag shows or writes of one session, for tests that make sessions nobody should trust."""

import contextlib
import io
from pathlib import Path

from compilediag import diff, load
from compilediag.errors import CompilediagError
from compilediag.events import BY_TABLE
from tests import inside

from .session_builder import page_text

FIGURES = ("timeline", "causes", "phases", "caches", "autotune", "autotune_margins", "autotune_payoff", "cudagraphs")
FIGURES += ("cudagraphs_captures", "cudagraphs_coverage", "cudagraphs_skips", "tracing")
#: The ids of events that single views are asked for.
ASKED = 40


def list_views(path, folder):
    """(name, function without arguments that returns texts) of each view of a session file."""
    session = load(path)
    views = {
        **{name: lambda name=name: [session.table(name).to_string(max_rows=5)] for name in ("events", *BY_TABLE)},
        "summary": lambda: [session.summary(), repr(session), session._repr_html_()],
        "status": lambda: [inside.format_status(session.status()), str(session.progress()), session.state],
        "plan": lambda: _show_plan(session.plan()),
        "findings": lambda: [f"{f}{f._repr_html_()}" for f in session.findings()] + [session.findings()._repr_html_()],
        "findings_document": lambda: [session.findings_document().to_json()],
        "what_if": lambda: [str(session.what_if(finding)) for finding in session.findings()],
        "explorer": lambda: [repr(session.explore())],
        "misses": lambda: list(_explain_misses(session)),
        "break_even": lambda: [session.break_even().to_string()],
        "ranks": lambda: [session.ranks().summary(), str(session.ranks().frame), str(session.ranks().graphs)],
        "page": lambda: [page_text(load(path))],
        "redacted_page": lambda: [page_text(load(path), redact=True)],
        "record": lambda: list(inside.make_record(session).values()),
        "report": lambda: [inside.read_page(session.report(folder / "report.html"))],
        "diff": lambda: _show_diff(diff(session, session), folder),
        "check": lambda: [run_command("check", path, "--max-recompiles", "0", "--no-silent-eager", "--baseline", path)],
        "warmup": lambda: [session.warmup(folder / "warmup.py").read_text()],
        "repro": lambda: [session.repro()],
        "texts": lambda: list(_read_texts(session)),
        "live": lambda: [run_command("live", path, "--plain")],
        **{f"figure {name}": lambda name=name: [session.figure(name).to_json()] for name in FIGURES},
        "sarif": lambda: [session.export(folder / "run.sarif", "sarif").read_text()],
        "perfetto": lambda: [session.export(folder / "trace.json").read_text()],
        "speedscope": lambda: [session.export(folder / "tracing.json", "speedscope").read_text()],
        "csv": lambda: [f.read_text() for f in session.export(folder / "csv", "csv").iterdir()],
        "parquet": lambda: [str(session.export(folder / "parquet", "parquet"))],
        "markdown": lambda: [session.export(folder / "x.md", "markdown", redact=False).read_text()],
        "save": lambda: [str(load(session.save(folder / "copy.cdiag")))],
    }
    return session, views


def show_everything(path, folder, but=()):
    """The texts of every view by its name. What a view refuses in one line is its text; anything else is raised."""
    session, views = list_views(Path(path), folder)
    shown = {}
    for name, show in views.items():
        if name in but:
            continue
        try:
            shown[name] = show()
        except CompilediagError as error:
            assert "\n" not in str(error)
            shown[name] = [f"refused: {error}"]
    return shown


def _show_plan(plan):
    return [str(plan), plan.code(), str(plan.patch()), str(plan.to_dict()), plan._repr_html_()]


def _explain_misses(session):
    for lookup in session.cache_lookups["event_id"][:ASKED]:
        with contextlib.suppress(CompilediagError):
            yield session.explain_miss(lookup)


def _show_diff(found, folder):
    return [
        found.summary(),
        str(found.frame),
        found._repr_html_(),
        inside.read_page(found.report(folder / "diff.html")),
    ]


def _read_texts(session):
    for event_id in session.artifacts["event_id"][:ASKED]:
        with contextlib.suppress(KeyError):
            yield session.artifact(event_id)
    for event_id in session.compiles["event_id"][:ASKED]:
        with contextlib.suppress(KeyError):
            yield str(session.metrics(event_id))
    for key in session.stacks["stack"].dropna()[:ASKED]:
        with contextlib.suppress(KeyError):
            yield str(session.stack(key))


def run_command(*arguments):
    """What a command prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = inside.main(arguments)
    if code == 2:
        raise CompilediagError(err.getvalue().strip())
    return out.getvalue()
