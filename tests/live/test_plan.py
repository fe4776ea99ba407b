"""Plans of recorded programs: the root causes, where they are in the user's own code, and that following them works."""

import importlib
import runpy
import sys
from dataclasses import asdict
from textwrap import dedent
from types import SimpleNamespace

import pytest
import torch

import compilediag
from tests.advice.source_changes import apply_edits

LIBRARY = '''
"""A small library with what libraries put around theirs: a wrapper, a loss function, an output class, graph breaks."""

import dataclasses
import functools

import torch
from torch.nn import functional as F


@dataclasses.dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor


def returns_output(function):
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        return Output(**function(self, *args, **kwargs))

    return wrapper


def compute_loss(logits, labels):
    torch._dynamo.graph_break()
    return F.cross_entropy(logits.float().view(-1, logits.size(-1)), labels.reshape(-1))


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 8)
        self.head = torch.nn.Linear(8, 50)

    @returns_output
    def forward(self, input_ids=None, labels=None, **kwargs):
        hidden = self.embed(input_ids)
        torch._dynamo.graph_break()
        rows = hidden.reshape(-1, hidden.size(-1))
        torch._dynamo.graph_break()
        logits = self.head(rows).view(*input_ids.shape, -1)
        return {"loss": compute_loss(logits, labels), "logits": logits}


class CountingModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 6
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x):
        self.step += 1
        return self.lin(x) * self.step
'''

TRAIN = """
import torch
import cdiag_library

model = torch.compile(cdiag_library.LanguageModel(), backend="eager")


def train(batch, length):
    ids = torch.zeros(batch, length, dtype=torch.long)
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()


for batch, length in ((8, 16), (8, 24), (8, 32), (5, 32)):
    train(batch, length)
"""

COUNT = """
import torch
import cdiag_library

model = torch.compile(cdiag_library.CountingModel(), backend="eager")
for batch, length in ((4, 16), (6, 24)):
    points = torch.ones(batch, length, 3)
    model(points)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a script that uses the library, which is in a folder of installed packages; returns the session."""
    folder = tmp_path / "lib" / "site-packages"
    (folder / "cdiag_library").mkdir(parents=True)
    (folder / "cdiag_library" / "__init__.py").write_text(dedent(LIBRARY))
    monkeypatch.syspath_prepend(str(folder))

    def run_script(text, name="train.py"):
        sys.modules.pop("cdiag_library", None)
        importlib.invalidate_caches()
        torch._dynamo.reset()
        script = tmp_path / name
        script.write_text(text)
        with compilediag.watch() as session:
            runpy.run_path(str(script), run_name="__main__")
        return session

    yield run_script
    sys.modules.pop("cdiag_library", None)


def run_again(run, plan, text):
    """The recompiles of the program with the plan's settings, which are all it has, or with its patch."""
    config = {key: value for key, value in plan.settings.items() if key == "dynamic_sources"}
    assert config == plan.settings
    with torch.compiler.config.patch(config):
        return len(run(text).recompiles)


def test_a_training_step_through_a_library_has_one_cause_for_each_size(run):
    session = run(TRAIN)
    plan, findings = session.plan(), session.findings()
    recompiles = [finding for finding in findings if finding.rule == "size_changes"]
    assert len(recompiles) == 2, [finding.title for finding in findings]
    assert {finding.details for finding in recompiles} == {("16", "24", "32"), ("8", "5")}
    assert sum(finding.count for finding in recompiles) == len(session.recompiles) == plan.recompiles_saved > 5
    (step,) = plan.steps
    assert (step.place, step.code) == ("train.py:10", "out = model(input_ids=ids, labels=ids)")
    assert (step.expression, step.values) == ("ids.shape[0], ids.shape[1]", ("(8, 16)", "(8, 24)", "(5, 32)"))
    assert run_again(run, plan, TRAIN) == 0


def test_three_causes_at_one_call_save_nothing_alone(run):
    session = run(COUNT)
    plan = session.plan()
    assert len(session.recompiles) == 1 and plan.recompiles_saved == 1
    assert sum(len(step.causes) for step in plan.steps) == len(session.findings()) == 3
    assert [step.recompiles_saved_alone for step in plan.steps] == [0] * len(plan.steps)
    assert all("Alone it saves nothing" in step.saving for step in plan.steps)
    assert [step.line for step in plan.steps] == [8] * len(plan.steps)
    marks = next(step for step in plan.steps if step.edits)
    assert marks.change.splitlines() == [f"torch._dynamo.maybe_mark_dynamic(points, {dim})" for dim in (0, 1)]
    changed = apply_edits(COUNT, list(map(asdict, marks.edits)), marks.file)
    assert run_again(run, plan, changed) == 0


def test_what_a_person_makes_alike_of_one_tensor_is_one_step():
    config = SimpleNamespace(mask=torch.ones(4, 4))

    @torch.compile(backend="eager")
    def attend(x, config):
        return x.sum() + config.mask.sum()

    kinds = {"dtype": torch.bool}, {"size": (16,)}, {"requires_grad": True}
    with compilediag.watch() as session:
        attend(torch.ones(4), config)
        for kind in kinds:
            config.mask = torch.ones(**{"size": (4, 4), **kind})
            attend(torch.ones(4), config)
    plan = session.plan()
    assert len(session.recompiles) == plan.recompiles_saved == len(kinds)
    assert [len(step.causes) for step in plan.steps] == [len(kinds)]


def test_a_value_that_the_call_computes_is_named_by_the_users_own_parameter():
    is_dynamic = False  # An option that the plan can't change.

    @torch.compile(backend="eager", dynamic=is_dynamic)
    def normalize(batch):
        return batch - batch.mean()

    with compilediag.watch() as session:
        for size in (4, 6, 9):
            normalize(torch.randn(size, 2))
    (step,) = session.plan().steps
    assert (step.expression, step.what) == ("batch.shape[0]", "batch.shape[0] was 4, then 6, 9")
    assert "normalize(torch.randn(size, 2))" in step.code
