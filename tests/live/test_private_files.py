"""Everything that compilediag writes is its owner's alone: files 0600, new folders 0700, whatever the umask is."""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Lists all entries below a folder again and again, with the modes that they were ever seen with.
LOOK = """
import json, os, stat, sys
from pathlib import Path

def look(root, found):
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            try:
                mode = stat.S_IMODE(os.lstat(path).st_mode)
            except OSError:
                continue
            found.setdefault(os.path.relpath(path, root), set()).add(oct(mode))
"""

#: Each view, export and live folder of one watch; the umask of the process allows everybody everything.
WRITE = """
import threading
import torch
import compilediag as cd
from compilediag.views.widget import ENDINGS, answer_export

root, log = Path(sys.argv[1]), sys.argv[2]
mask = os.umask(0)
found, done = {}, threading.Event()
def keep_looking():
    while not done.wait(0.002):
        look(root, found)
looking = threading.Thread(target=keep_looking)
looking.start()

@torch.compile(backend="inductor", dynamic=False)
def step(x):
    return x + 1

with cd.watch() as session:
    step(torch.ones(3))
    step(torch.ones(4))
    session.flush()
    look(root, found)
temporary = session.path
out = root / "out"
with cd.watch(out / "run.cdiag") as named:
    torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    named.flush()
    look(root, found)
with cd.watch(f"{out}/ranks/") as ranked:
    torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2))
    ranked.flush()
    # The folder as another process sees it while this one records.
    code = "import os, sys, compilediag as cd; s = cd.load(sys.argv[1]); assert s.state == 'watching'; print(s.path)"
    import subprocess
    follower = subprocess.run([sys.executable, "-c", code, f"{out}/ranks"], capture_output=True, text=True, check=True)
    look(root, found)
folder = cd.load(f"{out}/ranks")
read = cd.ingest(log, out=out / "log.cdiag")
unnamed = cd.ingest(log)
session.report(out / "report.html")
session.report(out / "redacted.html", redact=True)
session.save(out / "saved.cdiag")
session.warmup(out / "warm.py")
session.export(out / "trace.json", "perfetto")
session.export(out / "tables.md", "markdown")
session.export(out / "csv", "csv")
session.export(out / "parquet", "parquet")
cd.diff(named, session).report(out / "diff.html")
os.mkdir(out / "page", 0o700)
os.chdir(out / "page")
for format in ENDINGS:
    assert "path" in answer_export(session.data, {"format": format})
child = os.fork()
if not child:
    killed = cd.start(out / "killed.cdiag")
    torch.compile(lambda x: x * 3, backend="eager")(torch.ones(2))
    killed.flush()
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
look(root, found)
done.set()
looking.join()
print(json.dumps({
    "found": {path: sorted(modes) for path, modes in found.items()},
    "temporary": os.path.relpath(temporary, root), "follower": os.path.relpath(follower.stdout.strip(), root),
    "folder": os.path.relpath(folder.path, root), "log": os.path.relpath(unnamed.path, root),
    "mask": [os.umask(mask)],
}))
"""

#: A program for `compilediag try` that lists what its trial has written.
TRIED = """
import torch
f = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)
for n in (2, 3, 4):
    f(torch.ones(2), n)
found = {}
look(os.environ["TMPDIR"], found)
with open(os.path.join(os.environ["LISTS"], str(os.getpid())), "w") as file:
    json.dump({path: sorted(modes) for path, modes in found.items()}, file)
"""
#: What torch and its compiler write: temporary files, and caches inside of a folder of ours.
TORCHS = re.compile(r"(^|/)(caches|tmp/cc\w{6}\.[\w.]+|torchinductor_\w+|compilediag-caches-\w+/.+|tmp/tmp\w{8})(/|$)")


@pytest.fixture
def spaces(tmp_path):
    """Folders for temporary files and caches, and the environment that names them."""
    root = tmp_path / "root"
    for name in ("tmp", "cache", "out"):
        (root / name).mkdir(parents=True)
    (tmp_path / "inductor").mkdir()
    return root, {
        "TMPDIR": str(root / "tmp"),
        "XDG_CACHE_HOME": str(root / "cache"),
        "COMPILEDIAG_HISTORY": "",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def list_others(found):
    """path -> modes of what somebody else than the owner can read, write or enter; torch's own files left out."""
    return {
        path: modes
        for path, modes in found.items()
        if not TORCHS.search(path) and any(int(mode, 8) & 0o077 for mode in modes)
    }


def run_private(python, root, environment, code, *args):
    done = python("-c", LOOK + code, root, *args, env=environment, umask=0)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long("an interpreter that writes each kind of file")
def test_what_a_watch_its_exports_and_live_folders_create_is_private(python, spaces, tmp_path):
    root, environment = spaces
    log = tmp_path / "torch.log.gz"
    shutil.copy(ROOT / "tests/golden/torch-2.13-rank0.log.gz", log)
    seen = run_private(python, root, environment, WRITE, log)
    found = seen["found"]
    own = {path: modes for path, modes in found.items() if not TORCHS.search(path)}
    files = {path: modes for path, modes in own.items() if "0o600" in modes}
    folders = {path: modes for path, modes in own.items() if "0o700" in modes}
    assert {**files, **folders} == {p: m for p, m in own.items() if p not in ("out", "tmp", "cache")}
    written = ("report.html", "redacted.html", "saved.cdiag", "warm.py", "trace.json", "tables.md", "diff.html")
    written += ("csv/compiles.csv", "parquet/compiles.parquet", "run.cdiag-wal", "run.cdiag-shm", "log.cdiag")
    written += ("killed.cdiag", "killed.cdiag-wal", "killed.cdiag-shm")  # What a killed process leaves.
    assert {f"out/{name}" for name in written} <= files.keys()
    suffixes = {Path(path).suffix for path in files if path.startswith("out/page")}
    assert suffixes >= {".html", ".md", ".json", ".csv", ".parquet"}
    assert {"out/csv", "out/parquet", "out/ranks", "cache/compilediag"} <= folders.keys()
    assert "cache/compilediag/keys-1.sqlite" in files
    for name in ("temporary", "folder", "log"):
        assert seen[name] in files and str(Path(seen[name]).parent) in folders
    assert f"{seen['temporary']}-wal" in files and seen["follower"].startswith("tmp/compilediag-")
    assert [p for p in (root / "tmp").iterdir() if p.name.startswith("compilediag-")] == [], "sessions leave no folder"
    assert seen["mask"] == [0], "the umask is the program's"


def test_what_a_trial_creates_is_private(python, spaces, tmp_path):
    root, environment = spaces
    script = tmp_path / "program.py"
    script.write_text(LOOK + TRIED)
    (tmp_path / "lists").mkdir()
    environment["LISTS"] = str(tmp_path / "lists")
    command = ["-m", "compilediag", "try", "--fast", "--runs", "1", "--save", root / "out" / "tried.cdiag", script]
    done = python(*command, env=environment, umask=0, stdin=subprocess.DEVNULL)
    lists = [json.loads(file.read_text()) for file in (tmp_path / "lists").iterdir()]
    assert len(lists) > 1, done.stderr
    for found in lists:
        assert list_others(found) == {}
    names = {Path(path).name for found in lists for path in found}
    assert {"job.json", "stdout", "stderr", "result.json", "run.cdiag", "run.cdiag-wal"} <= names
    assert oct((root / "out" / "tried.cdiag").stat().st_mode & 0o777) == "0o600"


def test_no_code_changes_the_umask_of_the_process():
    changing = [p for p in (ROOT / "compilediag").rglob("*.py") if "umask" in p.read_text()]
    assert changing == []


#: Function that creates a file or a folder -> what its call has to contain; 448 is 0o700, and 384 is 0o600.
PRIVATE_CALLS = {
    "mkdir": "mode=448",
    "makedirs": "mode=448",
    "touch": "mode=384",
    **dict.fromkeys(("write_text", "write_bytes", "copyfile", "copy2", "to_json"), "nothing: use `write_file`"),
    "to_csv": "to_csv(index",
    "to_parquet": "to_parquet(None",
    "open": "opener=open_private",
}


def test_each_call_that_creates_something_makes_it_private():
    """What no other test reaches: each says its mode, or goes through a function that does."""
    open_calls = [
        f"{file.name}:{node.lineno}: {text}"
        for file in (ROOT / "compilediag").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and (name := getattr(node.func, "attr", getattr(node.func, "id", None)))
        if name in PRIVATE_CALLS and not is_private(name, text := ast.unparse(node))
    ]
    assert open_calls == []


def is_private(name, call):
    """True unless a call creates a file or a folder that others can read."""
    if call.startswith("os.open("):
        return "O_CREAT" not in call or call.endswith((", 384)", ", PRIVATE)"))
    if name == "to_json" and call.endswith("to_json()"):
        return True  # Without a path it gives the text.
    if name == "open" and re.search(r"'[wax]b?'", call) is None:
        return True
    return PRIVATE_CALLS[name] in call
