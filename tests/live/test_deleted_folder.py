"""A program whose working directory was deleted is recorded as any other."""

import json

PROGRAM = """
import json, os, sys
import torch, torch._dynamo
import compilediag as cd
from compilediag.errors import CompilediagError
os.makedirs("gone")
os.chdir("gone")
os.rmdir(os.getcwd())
folder = sys.argv[1]
compiled = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)

def refuse(function, *arguments):
    try:
        function(*arguments)
    except CompilediagError as error:
        return str(error).count("working directory") == 1 and "\\n" not in str(error)
    return False

refused = [refuse(cd.start, "run.cdiag"), refuse(cd.start, "folder/")]
with cd.watch(my_code=["mine.py"]) as session:
    for n in range(3):
        compiled(torch.zeros(2), n)
    session.dashboard(), session.summary()
with cd.watch(os.path.join(folder, "run.cdiag")):
    compiled(torch.zeros(2), 5)
outputs = [session.report, session.save, session.export, session.warmup]
refused += [refuse(write, "file") for write in outputs]
written = [os.path.exists(write(os.path.join(folder, write.__name__))) for write in outputs]
plan = session.plan()
plan.patch()
print(json.dumps({
    "refused": refused, "written": written, "recompiles": len(session.recompiles), "steps": len(plan.steps),
    "bad": [row["name"] for row in session.status() if row["reason_code"] in ("errors", "lost")],
}))
"""


def test_a_watch_works_in_a_folder_that_was_deleted(program_server, tmp_path, monkeypatch):
    monkeypatch.setenv("COMPILEDIAG_HISTORY", "history.sqlite")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = program_server.run("program.py", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["recompiles"] == 2 and found["steps"] == 1 and found["bad"] == []
    assert found["refused"] == [True] * 6 and found["written"] == [True] * 4


DELETE = """
import os, sys
os.chdir(sys.argv[1])
os.rmdir(sys.argv[1])
from tests.inside import main
for command in sys.argv[2:]:
    assert main([command, *["a.cdiag", "b.cdiag"][: 1 + (command == "diff")]]) == 2, command
"""


def test_each_command_says_so_in_one_line(python, tmp_path):
    commands = ("run", "live", "plan", "try", "ranks", "diff", "check")
    done = python("-c", DELETE, tmp_path, *commands)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and len(lines) == len(commands), done.stderr
    assert all("working directory" in line for line in lines)
