"""What users get wrong, and what programs throw at us: one clear line, or the text as it was."""

import pytest
import torch

import compilediag as cd
from tests.inside import read_page_data
from tests.live import programs

HOSTILE = ["a\ud800b", "nul\0byte", "\u2028\u2029", "</script><script>alert(1)</script>", "\u202e", "'\"\\\n\r\t", ""]


def test_a_session_opens_where_torch_is_not_installed(python_without, tmp_path):
    with cd.watch(tmp_path / "run.cdiag"):
        programs.numbers()
    code = f"""
import sys
import compilediag as cd
session = cd.load({str(tmp_path / "run.cdiag")!r})
session.report({str(tmp_path / "run.html")!r})
print(len(session.compiles), len(session.findings()) > 0, "recompile" in session.summary(), "torch" in sys.modules)
"""
    done = python_without({"torch", "triton", "IPython", "anywidget", "plotly"}, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["True", "True", "False"] and int(done.stdout.split()[0]) > 2


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_and_names_are_recorded_and_shown(tmp_path, text):
    table = {text: 1.0}
    function = programs.compiled(lambda x, key: x + table[key] if key in table else x - 1)
    with cd.watch() as session:
        function(torch.ones(2), "other")
        function(torch.ones(2), text)
    assert len(session.recompiles) == 1
    assert session.recompiles["guard_source"].tolist() == ["key"]
    assert session.recompiles["actual"].notna().all()
    path = session.report(tmp_path / "report.html")
    data = path.read_text().partition('id="cdiag-data">')[2].partition("</script>")[0]
    assert data.isascii() and "<" not in data and path.read_text().count("</script>") == 2
    assert read_page_data(path)["tables"]["recompiles"]
    assert {row["reason"] for row in programs.at_work(session).values()} == {None}
    assert session.summary().encode()


def test_an_exception_with_a_huge_message_is_kept_and_passes():
    def backend(graph, inputs):
        raise ValueError("secret " + "x" * 5_000_000)

    with cd.watch() as session, pytest.raises(Exception, match="secret"):
        programs.compiled(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert session.compiles["outcome"].tolist() == ["failed"]
    assert session.compiles["fail_type"].iloc[0] in ("ValueError", "BackendCompilerFailed")
