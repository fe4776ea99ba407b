"""`compilediag fix`: real scripts, changed and run until a change is proven."""

import difflib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import torch

from tests.tiers import quick

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
#: Two causes at the same calls, and `dynamic=False` of the user's own.
TWO_CAUSES = """
import torch

@torch.compile(backend="eager", dynamic=False)
def step(x, k):
    return (x * k).sum()

for n, k in ((4, 2), (6, 5), (7, 9), (9, 11)):
    x = torch.ones(n)
    print("loss", float(step(x, k)))
"""


@pytest.fixture
def fix(program_server, tmp_path):
    """Runs `compilediag fix --json ...` in the folder of the scripts; gives the values and the exit code."""

    def run(*args):
        done = program_server.run("-m", "compilediag", "fix", "--json", *args, cwd=tmp_path)
        values = json.loads(done.stdout)
        assert values["exit_code"] == done.returncode, done.stderr
        return values

    return run


def test_the_smallest_change_is_proven_written_and_then_nothing_is_left(fix, script, tmp_path):
    path = script(TWO_CAUSES)
    found = fix("--write", "--patch", "fix.diff", "train.py")
    assert found["exit_code"] == 0 and found["is_proven"] and found["lines"] == 1
    assert (found["proof"]["before"]["recompiles"], found["proof"]["after"]["recompiles"]) == (3, 0)
    assert [change["kind"] for change in found["changes"]] == ["dynamic"]
    before, after = TWO_CAUSES.splitlines(), path.read_text().splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert changed == [
        ('@torch.compile(backend="eager", dynamic=False)', '@torch.compile(backend="eager", dynamic=True)')
    ]
    patch = "".join(difflib.unified_diff(*map(split, (before, after)), "a/train.py", "b/train.py"))
    assert found["patch"] == patch == (tmp_path / "fix.diff").read_text()
    # The plan and the user's own option alone were tried too, and do less or take more lines.
    assert {attempt["recompiles"] for attempt in found["tried"]} >= {0, 1}
    again = fix("--fast", "train.py")
    assert (again["exit_code"], again["patch"], again["runs"], again["tried"]) == (0, "", 1, [])


def split(lines):
    return [f"{line}\n" for line in lines]


#: The setting that keeps the graph whole is assigned already, below the imports.
OWN_SETTING = """
import torch

torch._dynamo.config.capture_scalar_outputs = False  # as in the example

@torch.compile(backend="eager")
def step(x):
    return x * x.sum().item()

print(float(step(torch.ones(4)).sum()))
"""


def test_a_setting_that_the_script_assigns_is_changed_there(fix, script):
    script(OWN_SETTING)
    found = fix("--fast", "--allow", "settings", "train.py")
    changed = [line for line in found["patch"].splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    setting = "torch._dynamo.config.capture_scalar_outputs = {}  # as in the example"
    assert changed == [f"-{setting.format(False)}", f"+{setting.format(True)}"]
    assert found["search"]["after"]["graph_breaks"] == 0


#: A tensor for the number would remove the recompiles, and change what is printed, or what the call returns.
PRINTS = """
import torch

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 0.5

    def forward(self, x):
        return x * self.factor

model = torch.compile(Scale(), backend="eager", dynamic=False)
for step in range(3):
    model.factor = 0.5 / (step + 1)
    model(torch.ones(4))
    print(model.factor)
"""
RETURNS = """
import torch

@torch.compile(backend="eager", dynamic=False)
def scale(x, factor):
    return x * factor, factor

x = torch.ones(4)
for factor in (0.5, 0.25, 0.125):
    scale(x, factor)
"""


@pytest.mark.parametrize(("text", "said"), [(PRINTS, "the output differs"), (RETURNS, "returns something else")])
def test_a_change_of_what_the_program_computes_is_rejected(fix, script, text, said):
    script(text)
    found = fix("--fast", "--allow", "tensor", "train.py")
    assert found["exit_code"] == 2 and found["changes"] == [] and found["patch"] == ""
    assert any(said in (attempt["objection"] or "") for attempt in found["tried"])


#: The search compiles without Inductor, whose own pass here takes no sizes that vary.
OWN_BACKEND = """
import torch
import torch._inductor.config

def take_fixed_sizes(graph):
    values = (node.meta.get("example_value") for node in graph.nodes)
    if any(isinstance(value, torch.SymInt) for value in values):
        raise NotImplementedError("sizes that vary")

torch._inductor.config.pre_grad_custom_pass = take_fixed_sizes

@torch.compile(dynamic=False)
def double(x):
    return x * 2

for n in (4, 6):
    print(double(torch.ones(n)).sum().item())
"""


@pytest.mark.long("compiles with Inductor in four fresh processes")
def test_what_the_own_backend_refutes_is_no_longer_accepted(fix, script):
    script(OWN_BACKEND)
    found = fix("train.py")
    assert found["exit_code"] == 2 and not found["is_proven"]
    refuted = [attempt for attempt in found["tried"] if "own backend" in (attempt["objection"] or "")]
    assert refuted and all(attempt["recompiles"] == 0 for attempt in refuted)


#: What is kept moves to the two calls; what a branch on a tensor chooses is chosen by torch.
KEEPS = """
import torch

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        self.sizes.append(x.shape[0])
        if x.sum().item() > 4:
            x = x / 2
        return x * 3

model = Scale()
scale = torch.compile(model, backend="eager", dynamic=True)
batches = [torch.ones(n) for n in (3, 4, 5)]
for batch in batches:
    print(float(scale(batch).sum()))
x = torch.ones(6)
y = scale(x)
print(float(y.sum()), model.sizes)
"""
KEPT = """
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        x = torch.where(x.sum() > 4, x / 2, x)
        return x * 3

model = Scale()
scale = torch.compile(model, backend="eager", dynamic=True)
batches = [torch.ones(n) for n in (3, 4, 5)]
for batch in batches:
    scale.sizes.append(batch.shape[0])
    print(float(scale(batch).sum()))
x = torch.ones(6)
scale.sizes.append(x.shape[0])
y = scale(x)
print(float(y.sum()), model.sizes)
"""
PRINTS_INSIDE = """
import torch

@torch.compile(backend="eager")
def double(x):
    y = x * 2
    print("doubled")
    return y + 1

print(float(double(torch.ones(3)).sum()))
"""

#: torch moves no tuple.
PRINTS_A_SHAPE = PRINTS_INSIDE.replace('"doubled"', '"doubled", tuple(y.shape)')

#: A number that an inner function reads; each request has its own.
CLOSURE = """
import torch

def make(scale):
    def act(x):
        return x * scale
    return act

@torch.compile(backend="eager", dynamic=False)
def apply(x, act):
    return act(x)

for n in (1, 2, 3):
    print(float(apply(torch.ones(4), make(n / 2)).sum()))
"""

#: Two fields of an argument: with a tensor for one of them, the other one recompiles.
FIELDS = """
import dataclasses
import torch

@dataclasses.dataclass
class Params:
    scale: float
    shift: float

@torch.compile(backend="eager", dynamic=False)
def apply(x, params):
    return x * params.scale + params.shift

for n in (1, 2, 3):
    params = Params(n / 2, n / 4)
    print(float(apply(torch.ones(4), params).sum()))
"""
SET_FIELDS = """
    params.scale = torch.as_tensor(params.scale)
    params.shift = torch.as_tensor(params.shift)
    print(float(apply(torch.ones(4), params).sum()))
"""

#: Three numbers of one call: all recompile as long as one of them is a number.
ARGUMENTS = """
import torch

@torch.compile(backend="eager", dynamic=False)
def apply(x, a, b, c):
    return x * a + b - c

for n in (1, 2, 3):
    a, b, c = n / 2, n / 4, n / 8
    print(float(apply(torch.ones(4), a, b, c).sum()))
"""

#: Gradients are off in the main thread only.
THREAD = """
import threading
import torch

torch.set_grad_enabled(False)
model = torch.compile(torch.nn.Linear(4, 4), backend="eager")
torch.nn.init.ones_(model.weight)
model(torch.ones(2, 4))

def work():
    print(model(torch.ones(2, 4)).shape)

thread = threading.Thread(target=work)
thread.start()
thread.join()
"""

#: torch gives up on forward, for which each name is another function. `compile()` of a class of torch.nn does nothing.
HEADS = """
import torch

torch._dynamo.config.recompile_limit = 2

class Trunk(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).relu()

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk(4, 4)
        self.heads = torch.nn.ModuleDict({name: torch.nn.Linear(4, 2) for name in "abcd"})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x)).square()

torch.manual_seed(0)
model = Model()
compiled = torch.compile(model, backend="eager")
for task in "abcd":
    print(float(compiled(torch.ones(2, 4), task).sum()))
"""
TRUNK = """
compiled = model
compiled.trunk.compile(backend="eager")
"""

#: An `int` of a schema is one number in each graph.
SCHEMA = """
import torch

library = torch.library.Library("own", "DEF")
library.define("repeat(Tensor x, int count) -> Tensor")

@torch.library.impl("own::repeat", "CompositeExplicitAutograd", lib=library)
def repeat(x, count):
    return x * count

@torch.library.register_fake("own::repeat", lib=library)
def repeat_fake(x, count):
    return torch.empty_like(x)

@torch.compile(backend="eager")
def apply(x, count):
    return torch.ops.own.repeat(x, count)

for count in (2, 3, 4, 5):
    print(float(apply(torch.ones(3), count).sum()))
"""

#: Each layer has keys of its own, so each is compiled for itself; torch gives up at the ninth.
LAYERS = """
import torch

class Layer(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.scales = name, {name: len(name) * 0.1}

    def forward(self, x):
        return x * self.scales[self.name]

layers = torch.nn.Sequential(*(Layer("l" * n) for n in range(COUNT)))
for layer in layers:
    layer.compile(backend="eager")
for _ in range(2):
    print(float(layers(torch.ones(4)).sum()))
"""


@pytest.mark.long("compiles a function for each of 12 entries in each run")
@pytest.mark.parametrize(("count", "kinds"), [(3, []), (12, ["isolate"])])
def test_entries_of_their_own_are_worth_a_change_where_torch_gives_up(fix, script, count, kinds):
    script(LAYERS.replace("COUNT", str(count)))
    found = fix("--fast", "train.py")
    assert [change["kind"] for change in found["changes"]] == kinds
    isolated = [attempt for attempt in found["tried"] if attempt["title"].startswith("isolate_recompiles")]
    assert [attempt["recompiles"] for attempt in isolated] == [0]
    assert (found["exit_code"], found["patch"] == "") == ((0, False) if kinds else (2, True)), found["left"]


LOGS_IN_A_LOOP = """
import logging
import torch

logger = logging.getLogger("sizes")

@torch.compile(backend="eager")
def resize(x):
    for size in x.shape:
        logger.info("a size")
    return torch.sin(x)

print(float(resize(torch.ones(6, 8)).sum()))
"""


def test_a_graph_break_at_which_torch_gave_up_is_removed(fix, script):
    """Before, there was nothing to fix: no graph break is between two graphs."""
    script(LOGS_IN_A_LOOP)
    found = fix("--fast", "train.py")
    assert found["exit_code"] == 0, found["left"]
    assert (found["search"]["before"]["graph_breaks"], found["search"]["after"]["graph_breaks"]) == (1, 0)
    assert "+torch._dynamo.config.ignore_logging_functions.add(logging.Logger.info)\n" in found["patch"]


@pytest.mark.parametrize(
    ("text", "kinds", "lines"),
    quick(
        [
            (KEEPS, "code", KEPT),
            (PRINTS_INSIDE, "settings", "torch._dynamo.config.reorderable_logging_functions.add(print)\n"),
            (PRINTS_A_SHAPE, "code,settings", "    print(f'doubled {tuple(y.shape)}')\n"),
            (CLOSURE, "tensor", "    scale = torch.tensor(scale)\n"),
            (FIELDS, "tensor", SET_FIELDS),
            (ARGUMENTS, "tensor", "apply(torch.ones(4), torch.tensor(a), torch.tensor(b), torch.tensor(c))"),
            (THREAD, "code", "def work():\n    torch.set_grad_enabled(False)\n"),
            (HEADS, "code", TRUNK),
            (SCHEMA, "code,dynamic", 'define("repeat(Tensor x, SymInt count) -> Tensor")'),
        ],
        [PRINTS_INSIDE],
        why="a whole search",
    ),
    ids=[
        *("a statement and a branch", "print", "a print of a tuple", "a closure", "fields", "several arguments"),
        *("a thread", "the trunk of heads", "a schema"),
    ],
)
def test_what_the_code_does_is_changed_where_it_stays_the_same(fix, script, text, kinds, lines):
    path = script(text)
    found = fix("--fast", "--write", "--allow", kinds, "train.py")
    assert found["exit_code"] == 0, found["left"]
    after = found["search"]["after"]
    assert (after["recompiles"], after["graph_breaks"], after["uncached"]) == (0, 0, 0)
    assert lines in path.read_text()


#: Recompiles in the first calls only; each run appends how many calls it made.
LONG = """
import atexit, os
import torch

@torch.compile(backend="eager", dynamic=False)
def double(x):
    return x * 2

for n in range(400):
    double(torch.ones(4 + min(n, 2)))
    with open("calls.txt", "a") as file:
        file.write(f"{os.getpid()} ")
"""


def test_a_changed_run_ends_soon_after_the_calls_that_compiled(fix, script, tmp_path):
    script(LONG)
    found = fix("--fast", "train.py")
    assert found["search"]["after"]["recompiles"] == 0
    pids = (tmp_path / "calls.txt").read_text().split()
    counts = [pids.count(pid) for pid in dict.fromkeys(pids)]
    # The call that ends a run does not return.
    assert counts[0] == 400 and set(counts[1:]) == {22} and len(counts) == found["runs"]


#: What is needed stays: an optional argument is another program.
NEEDED = """
import torch

@torch.compile(backend="eager")
def attend(x, mask=None):
    return x.sum() if mask is None else (x * mask).sum()

x = torch.ones(4)
print(float(attend(x)), float(attend(x, torch.ones(4))))
"""
#: A list needs the number itself: settings, which the plan proposes, save nothing.
REFUTED = """
import torch

class Sampler(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.at, self.scales = 2, [0.5, 0.25, 0.125, 0.0625, 0.75, 2.0]

    def forward(self, x):
        return x * self.scales[self.at]

sampler = Sampler()
step = torch.compile(sampler, backend="eager")
for at in (2, 3, 4):
    sampler.at = at
    print(float(step(torch.ones(4)).sum()))
"""
#: The number varies with `dynamic=True`, and the condition is left: the caller could decide it.
CONDITION = """
import torch

@torch.compile(backend="eager", dynamic=True)
def step(x, k):
    return x.sum() if k > 3 else x.mean() * k

for k in (2, 3, 5):
    print(float(step(torch.ones(4), k)))
"""
RAISES = "import torch\ntorch.compile(lambda x: x, backend='eager')(torch.ones(2))\nraise ValueError('mine')"


@pytest.mark.parametrize(("text", "code"), [(NEEDED, 0), (RAISES, 3)])
def test_a_program_without_a_change_is_left_as_it_is(fix, script, text, code):
    path = script(text)
    found = fix("--write", "train.py")
    assert (found["exit_code"], found["patch"], found["changes"]) == (code, "", [])
    assert path.read_text() == textwrap.dedent(text)
    assert [left["is_needed"] for left in found["left"]] == [True] * (code == 0)


def test_what_runs_have_refuted_is_reported_and_not_recommended(fix, script):
    script(REFUTED)
    found = fix("--fast", "--allow", "settings,dynamic", "train.py")
    (left,) = found["left"]
    assert (found["exit_code"], left["reason"], left["is_needed"]) == (2, "", False)
    assert {one["title"] for one in left["tried"]} == {one["title"] for one in found["tried"]}
    assert any("dynamic_sources" in one["title"] for one in left["tried"])
    for one in left["tried"]:
        assert one["objection"] is None and one["recompiles"] == one["recompiles_before"] == left["recompiles"]


def test_a_condition_is_not_said_to_be_needed(fix, script):
    script(CONDITION)
    found = fix("--fast", "train.py")
    assert [(left["is_needed"], left["recompiles"]) for left in found["left"]] == [(False, 1)]
    assert found["exit_code"] == 2 and found["left"][0]["reason"]


#: Only the first run recompiles.
ONCE = """
import pathlib, torch

@torch.compile(backend="eager", dynamic=False)
def step(x):
    return x * 2

is_first = not pathlib.Path("was_here").exists()
pathlib.Path("was_here").touch()
for n in (4, 6, 8) if is_first else (4,):
    step(torch.ones(n))
"""
#: torch gives up on a loop at the first graph break; only without it is the second one seen.
TWO_BREAKS = """
import torch

@torch.compile(backend="eager")
def step(x):
    for _ in range(2):
        n = x.sum().item()
        x = x * n + torch.nonzero(x).sum()
    return x

print(float(step(torch.ones(4)).sum()))
"""
#: Each of two causes alone reaches the recompile limit, one after the other.
TWO_LIMITS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 0

    def forward(self, x):
        return x * self.k

torch._dynamo.config.recompile_limit = 4
net = Net()
step = torch.compile(net, backend="eager", dynamic=False)
for k in range(6):
    net.k = k + 2
    print(float(step(torch.ones(4)).sum()))
for n in range(6):
    print(float(step(torch.ones(5 + n)).sum()))
"""


@pytest.mark.parametrize(
    ("text", "options", "titles"),
    [
        (TWO_BREAKS, [], {"capture_scalar_outputs = True", "capture_dynamic_output_shape_ops = True"}),
        pytest.param(TWO_LIMITS, ["--allow", "settings,dynamic"], None, marks=pytest.mark.long("a whole search")),
    ],
)
def test_changes_that_help_only_together_are_found(fix, script, text, options, titles):
    script(text)
    found = fix("--fast", *options, "train.py")
    assert found["exit_code"] == 0 and found["runs"] <= 25
    after = found["search"]["after"]
    assert (after["graph_breaks"], after["limits"], after["recompiles"]) == (0, 0, 0)
    assert len(found["changes"]) == 2 and titles in (None, {change["title"] for change in found["changes"]})
    # The first of them does not help alone.
    alone = [one for one in found["tried"] if one["title"] in {change["title"] for change in found["changes"]}]
    assert not alone[0]["is_kept"]


NOTHING = "import torch\nprint(torch.ones(3).sum())"
CLEAN = "import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(3))"
SYNTAX = "import torch\ndef f(:\n    pass"


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (ONCE, [], 3, "0 recompiles; 0 recompiles; 2 recompiles"),
        (NOTHING, [], 0, "nothing was compiled"),
        (CLEAN, [], 0, "nothing recompiled"),
        (SYNTAX, [], 3, "SyntaxError: invalid syntax (train.py:2)"),
        (TWO_CAUSES, ["--max-time", "0.1"], 3, "--max-time"),
    ],
)
def test_a_program_in_which_nothing_can_be_searched_is_said_to_be_one(fix, script, text, options, code, said):
    script(text)
    found = fix("--fast", *options, "train.py")
    assert (found["exit_code"], found["tried"], found["patch"]) == (code, [], "")
    assert said in found["headline"]


def test_what_each_run_says_is_what_changed(forked_commands, script, tmp_path):
    """A break and no recompile: no line speaks of recompiles. What was added is not `needed`, which is for what is left
    out again.
    """
    script(OWN_SETTING)
    command = [sys.executable, "-m", "compilediag", "fix", "--fast", "--max-runs", "5", "--patch", "a.diff", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    first, unchanged, *runs, last = done.stderr.splitlines()
    assert "up to 5 times" in first and unchanged == "unchanged: 1 graph break" and last == "compilediag: wrote a.diff"
    assert runs[-1].endswith("capture_scalar_outputs = True: graph breaks 1 -> 0; better")
    assert not [line for line in runs if "recompile" in line or "needed" in line]


def test_an_interrupt_prints_the_best_so_far_and_writes_nothing(forked_commands, script, tmp_path):
    script(TWO_CAUSES)
    with begin_fix(tmp_path, "--write") as process:
        lines = iter(process.stderr.readline, "")
        next(line for line in lines if line.startswith("["))  # The first attempt has ended.
        found, stderr = interrupt(process)
    assert "(interrupted, tried: " in found["headline"] and "recompiles 3 -> " in found["headline"]
    assert "+@torch.compile(backend=" in found["patch"] and "not proven" in stderr
    assert (tmp_path / "train.py").read_text() == textwrap.dedent(TWO_CAUSES)


def test_an_end_during_the_first_run_says_that_nothing_was_found(forked_commands, script, tmp_path):
    script("import pathlib, time\npathlib.Path('began').touch()\ntime.sleep(300)")
    with begin_fix(tmp_path) as process:
        while not (tmp_path / "began").exists() and process.poll() is None:
            time.sleep(0.05)
        found, _ = interrupt(process, signal.SIGTERM)
    assert found["headline"].startswith("Interrupted: nothing was found") and found["patch"] == ""


def begin_fix(folder, *options):
    command = [sys.executable, "-m", "compilediag", "fix", "--json", *options, "train.py"]
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def interrupt(process, number=signal.SIGINT):
    """Interrupt a search; its result, and what it says beside."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=300)
    found = json.loads(stdout)
    assert process.returncode == found["exit_code"] == 130
    return found, stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "compilediag: none.py does not exist; pass a Python script\n"),
        (
            ["--allow", "magic", "train.py"],
            "there is no kind 'magic'; the kinds are dynamic, marks, settings, tensor, isolate, code\n",
        ),
        (["--until", "n ==", "train.py"], "'n ==' is no expression: invalid syntax\n"),
        (["--max-runs", "0", "train.py"], "'0' is not a number from 3 to 100\n"),
        # Both ways to start a launcher. A search with ranks takes a minute, so one of them is searched, below.
        *(
            ([*launcher, "--no-python", "train.py"], "starts another program; name the script itself\n")
            for launcher in (["torchrun"], ["-m", "torch.distributed.run"])
        ),
    ],
)
def test_a_wrong_use_is_one_line_and_runs_nothing(run_here, script, arguments, message):
    script("open('it_ran', 'w')")
    code, out, err = run_here("fix", *arguments)
    assert (code, out) == (2, "") and err.endswith(message) and os.listdir() == ["train.py"]


def test_a_file_that_changes_during_the_search_is_not_written(program_server, script, tmp_path):
    path = script(TWO_CAUSES + "open('train.py', 'a').write('# once more\\n')\n")
    done = program_server.run("-m", "compilediag", "fix", "--fast", "--write", "train.py", cwd=tmp_path)
    assert done.returncode == 2 and "was changed since the search began" in done.stderr
    assert "dynamic=False" in path.read_text()


PYTEST = """
import pytest
import shapes
import torch

@torch.compile(backend="eager", dynamic=False)
def step(x, k):
    return (x * k).sum()

@pytest.mark.parametrize(("n", "k"), shapes.ALL)
def test_step(n, k):
    assert step(torch.ones(n), k) == n * k
"""


@pytest.mark.long("each run of the search starts pytest")
def test_files_that_pytest_imports_are_changed(fix, script):
    script("ALL = ((4, 2), (6, 5), (7, 9), (9, 11))\n", "shapes.py")
    path = script(PYTEST, "test_step.py")
    found = fix("--fast", "-m", "pytest", "-p", "no:cacheprovider", "test_step.py")
    before, after = (found["search"][name]["recompiles"] for name in ("before", "after"))
    assert (before, after, found["lines"]) == (3, 0, 1), found
    assert "+++ b/test_step.py" in found["patch"] and "shapes.py" not in found["patch"]
    assert path.read_text() == PYTEST


SPAWN = """
import torch

@torch.compile(backend="eager", dynamic=False)
def step(x):
    return (x * 2).sum()

def work(rank):
    for n in (3, 4, 5):
        step(torch.ones(n))

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=1)
"""
LAUNCH = """
import subprocess
import sys

subprocess.run([sys.executable, "train.py"], check=True)
"""


@pytest.mark.long("searches a program that spawns processes")
def test_processes_that_the_program_spawns_are_changed(fix, script):
    path = script(SPAWN)
    found = fix("--fast", "--write", "train.py")
    assert found["exit_code"] == 0, found
    assert (found["search"]["before"]["recompiles"], found["search"]["after"]["recompiles"]) == (2, 0)
    assert "dynamic=False" not in path.read_text()


@pytest.mark.long("the program starts an interpreter in each run")
def test_a_program_that_compiles_in_commands_of_its_own_cannot_be_tried(fix, script):
    script(LAUNCH, "launch.py")
    script(TWO_CAUSES)
    found = fix("launch.py")
    assert found["exit_code"] == 3 and not found["changes"] and "\n" not in found["problem"]


RANKS = """
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 4))
torch.nn.init.ones_(model.module.weight)

@torch.compile(backend="eager", dynamic=False)
def scale(x):
    return x / x.shape[0]

for step in range(int(sys.argv[1])):
    loss = model(scale(torch.ones(2 + min(step, 3) + dist.get_rank(), 4))).square().mean()
    loss.backward()
    with open(f"steps-{dist.get_rank()}.txt", "a") as file:
        file.write(f"{os.getpid()} ")
print("loss", float(loss))
dist.destroy_process_group()
"""


@pytest.mark.long("searches a program of ranks")
def test_the_ranks_of_a_torchrun_script_are_changed_together(fix, forked_commands, script, tmp_path):
    path = script(RANKS)
    launcher = ("torchrun", "--standalone", "--nproc-per-node", "2")
    found = fix("--fast", "--write", "--max-runs", "8", *launcher, "train.py", "60")
    assert found["exit_code"] == 0, found
    assert (found["search"]["before"]["recompiles"], found["search"]["after"]["recompiles"]) == (3, 0)
    assert "dynamic=False" not in path.read_text()
    steps = [(tmp_path / f"steps-{rank}.txt").read_text().split() for rank in range(2)]
    counts = [sorted(map(rank.count, dict.fromkeys(rank))) for rank in steps]
    assert counts[0] == counts[1] and counts[0][-1] == 60 and len(counts[0]) == found["runs"]


def test_runs_end_where_an_expression_is_true(fix, script, tmp_path):
    script(LONG)
    found = fix("--fast", "--until", "n == 3", "train.py")
    assert found["search"]["after"]["recompiles"] == 0
    pids = (tmp_path / "calls.txt").read_text().split()
    # The first run ends before the call, the others within the last one before it.
    assert {pids.count(pid) for pid in pids} == {2, 3} and found["notes"]


@pytest.mark.long("searches the same program twice")
def test_runs_side_by_side_find_the_same_change(fix, script):
    script(TWO_CAUSES)
    one, several = (fix("--fast", "--jobs", jobs, "train.py") for jobs in ("1", "3"))
    assert several["patch"] == one["patch"] and several["left"] == one["left"]
    assert several["search"] == {**one["search"], **several["search"]}


MANY_GUARDS = """
import torch

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = 1.5

    def forward(self, x):
        return self.linear(x) * self.scale

torch.manual_seed(0)
model = torch.compile(torch.nn.Sequential(*(Layer() for _ in range(40))), backend="eager")
with torch.no_grad():
    for _ in range(3):
        y = model(torch.ones(2, 4))
print(float(y.sum()))
"""


@pytest.mark.long("a search of several runs")
def test_cheaper_guards_are_proven_if_they_are_wanted(fix, script):
    script(MANY_GUARDS)
    found = fix("--guards", "train.py")
    if sys.version_info < (3, 12) or VERSION < (2, 13):
        assert found["changes"] == [], "what makes them cheaper is unsafe, or on"
    else:
        assert found["is_proven"] and found["lines"] == 1
        assert [change["kind"] for change in found["changes"]] == ["settings"]
    assert fix("train.py")["changes"] == []
