"""A cause has one fingerprint, wherever it is seen: live or in logs, on another rank, in another folder, as a cell; two
causes in one function have two.
"""

import compilediag as cd
from tests.unit.log_builder import GOLDEN

PROGRAM = """import torch
@torch.compile(backend="eager", dynamic=False)
def step(x, scale, name):
    return x * scale if name else x + 1
def train(x, scale, name="a"):
    return step(x, scale, name)
train(torch.ones(4), 1.5)
train(torch.ones(6), 1.5)
train(torch.ones(6), 2.5)
step(torch.ones(6), 2.5, "")
torch.compiler.set_stance("eager_on_recompile")
step(torch.ones(6), 9.5, "a")
step(torch.ones(9), 2.5, "a")
"""
CELL = """import sys
import compilediag as cd
from IPython.core.interactiveshell import InteractiveShell
source = open(sys.argv[1]).read()
with cd.watch(sys.argv[2]):
    InteractiveShell.instance().run_cell(source)
"""


def name_causes(session):
    """Rule -> the fingerprints of its findings, without what only one kind of recording has."""
    found = {}
    for finding in session.findings():
        if finding.source is not None:
            found.setdefault(finding.rule == "refused_calls", []).append(finding.fingerprint)
    return {is_refused: sorted(names) for is_refused, names in found.items()}


def test_a_cause_has_one_fingerprint_wherever_it_is_seen(program_server, tmp_path):
    def run(folder, *arguments, **environment):
        done = program_server.run(*arguments, cwd=folder, env={"COMPILEDIAG_HISTORY": "off", **environment})
        assert done.returncode == 0, done.stderr

    here, there = tmp_path / "here", tmp_path / "there" / "below"
    there.mkdir(parents=True)
    here.mkdir()
    (here / "train.py").write_text(PROGRAM)
    (there / "train.py").write_text("# above\n" * 100 + PROGRAM)
    (there / "cell.py").write_text(CELL)
    command = ("-m", "compilediag", "run", "--quiet", "--save")
    run(here, *command, "a.cdiag", "train.py", TORCH_TRACE=str(here / "logs"))
    run(there, *command, "b.cdiag", "train.py", RANK="3", WORLD_SIZE="4")
    run(there, "cell.py", "train.py", "c.cdiag")
    first = name_causes(cd.load(here / "a.cdiag"))
    for is_refused, count in ((False, 3), (True, 2)):
        assert len(first[is_refused]) == len(set(first[is_refused])) == count
    assert not {*first[False]} & {*first[True]}
    cell = cd.load(there / "c.cdiag")
    assert name_causes(cd.load(there / "b.cdiag")) == name_causes(cell) == first
    assert set(cell.refused_calls["set_file"]) == {"Cell In[1]"}
    assert name_causes(cd.ingest(here / "logs")) == {False: first[False]}


def test_logs_of_two_versions_of_torch_have_the_same_fingerprints():
    for name in ("failures", "export"):
        logs = (GOLDEN.with_name(f"torch-{version}-{name}.log.gz") for version in ("2.13", "2.15"))
        one, other = (sorted(finding.fingerprint for finding in cd.ingest(log).findings()) for log in logs)
        assert one == other and len(one) >= 3
