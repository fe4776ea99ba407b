"""Where the user's own code calls into compiled code, and what a value of the compiled function is called there."""

import pytest

from compilediag.diagnosis.causes.call_sites import CallSite, CallSites
from compilediag.events import Compile, RowList, StackFrame

TRAIN = "/home/ada/train.py"
LIBRARY = "/home/ada/.venv/lib/python3.11/site-packages/transformers/generic.py"
TORCH = "/home/ada/.venv/lib/python3.11/site-packages/torch"
#: What torch puts between a call and the compiled function.
FUNCTION = [(f"{TORCH}/_dynamo/eval_frame.py", 1166, "compile_wrapper")]
MODULE = [
    (f"{TORCH}/nn/modules/module.py", 1778, "_wrapped_call_impl"),
    (f"{TORCH}/nn/modules/module.py", 1789, "_call_impl"),
]
OPTIMIZED = [(f"{TORCH}/_dynamo/eval_frame.py", 511, "__call__"), *MODULE, *FUNCTION, *MODULE]
NO_GRAD = [(f"{TORCH}/utils/_contextlib.py", 124, "decorate_context")]


def frame(call=None, function="<module>", file=TRAIN, line=10, parameters=(), assigned=(), code=None):
    return StackFrame(
        time_ns=1, file=file, line=line, function=function, call=call, code=code or (call or "").split("\n")[0],
        parameters=None if parameters is None else list(parameters), assigned=list(assigned),
    )  # fmt: skip


def torch_frames(places):
    return [StackFrame(time_ns=1, file=file, line=line, function=function) for file, line, function in places]


def compiled(*parameters, function="step", file=TRAIN, line=3, assigned=()):
    return frame(None, function, file, line, parameters, assigned)


def sites(*frames, my_code=()):
    """Sites of one compile, `a.1`, whose stack is these frames, outermost first."""
    keys = [f"k{number}" for number in range(len(frames))]
    rows = [
        StackFrame(**{name: getattr(row, name) for name in COLUMNS}, time_ns=1, stack=key, caller=caller)
        for row, key, caller in zip(frames, keys, [None, *keys], strict=False)
    ]
    return CallSites(RowList([*rows, Compile(time_ns=2, compile_key="a.1", stack=keys[-1])]), my_code)


COLUMNS = ("file", "line", "function", "code", "call", "parameters", "assigned")


def name(call, source, *parameters, between=FUNCTION, function="step"):
    """What a value of the compiled function is called in the user's call."""
    found = sites(frame(call), *torch_frames(between), compiled(*parameters, function=function))
    return found.name("a.1", source)


#: Call, parameters of the compiled function, guarded value, expression in the user's names.
SPELLINGS = [
    ("step(ids)", "x", "x.size()[0]", "ids.shape[0]"),
    ("step(ids, labels)", "x y", "y.size()[1]", "labels.shape[1]"),
    ("step(y=labels, x=ids)", "x y", "x", "ids"),
    ("step(ids, n)", "x n", "n", "n"),
    ("step(ids, 3)", "x n", "n", None),
    ("step(ids, n=len(items))", "x n=", "n", "len(items)"),
    ('step(batch["x"])', "x", "x.size()[0]", 'batch["x"].shape[0]'),
    ("step(batch[0], batch[1])", "x y", "y.stride()[0]", "batch[1].stride(0)"),
    ("step(batch.ids)", "x", "x.dtype", "batch.ids.dtype"),
    ("step(ids[:n])", "x", "x.size()[0]", "ids[:n].shape[0]"),
    ("step(a + b)", "x", "x.size()[0]", "(a + b).shape[0]"),
    ("step(next(it))", "x", "x.size()[0]", "next(it).shape[0]"),
    ("step(ids.to(device))", "x", "x.device", "ids.to(device).device"),
    ("step(*pair)", "x y", "y.size()[0]", "pair[1].shape[0]"),
    ("step(first, *rest)", "x y z", "z", "rest[1]"),
    ("step(*(ids, labels))", "x y", "y.size()[0]", "labels.shape[0]"),
    ("step(*(ids, labels), 3)", "x y n", "n", None),
    ("step(**batch)", "ids labels", "labels.size()[0]", "batch['labels'].shape[0]"),
    ("step(ids, **options)", "x scale", "scale", "options['scale']"),
    ("step(ids=ids, labels=ids)", "**kwargs", "kwargs['labels'].size()[1]", "ids.shape[1]"),
    ("step(**batch)", "**kwargs", "kwargs['ids'].size()[0]", "batch['ids'].shape[0]"),
    ("step(**batch)", "**kwargs", "len(kwargs)", "len(batch)"),
    ("step(ids, labels)", "*args", "args[1].size()[0]", "labels.shape[0]"),
    ("step(ids, labels)", "x *args", "args[0].size()[0]", "labels.shape[0]"),
    ("step(*args)", "*args", "args[1]", "args[1]"),
    ("step(*args)", "*args", "len(args)", "len(args)"),
    ("step(batch)", "batch", "batch['ids'].size()[0]", "batch['ids'].shape[0]"),
    ('step({"ids": ids, "n": 3})', "batch", "batch['ids'].size()[0]", "ids.shape[0]"),
    ("step(dict(ids=ids))", "batch", "batch['ids'].size()[0]", "ids.shape[0]"),
    ("step((ids, labels))", "pair", "pair[1].size()[0]", "labels.shape[0]"),
    ("step([ids] + more)", "items", "items[1].size()[0]", "([ids] + more)[1].shape[0]"),
    ("step(caches)", "c", "c.layers[0].keys.size()[2]", "caches.layers[0].keys.shape[2]"),
    ("step(x)", "x", "len(x)", "len(x)"),
    ("step(\n    ids,\n    labels=labels,\n)", "ids labels", "labels.size()[0]", "labels.shape[0]"),
    ("step(\n    torch.cat(\n        [a, b]),\n)", "x", "x.size()[0]", "torch.cat([a, b]).shape[0]"),
    ("step(outer(ids), 2)", "x n", "x.size()[0]", "outer(ids).shape[0]"),
    ("trainer.step(ids)", "self x", "x.size()[0]", "ids.shape[0]"),
    ("trainer.step(ids)", "self x", "self.count", "trainer.count"),
    ("self.inner.step(ids)", "self x", "self.count", "self.inner.count"),
    ("torch.compile(trainer.step)(ids)", "self x", "self.count", "trainer.count"),
    ("torch.compile(optimizer.step)()", "*args", "args[0]", "optimizer"),
    ("Trainer.step(self, ids)", "self x", "self.count", "self.count"),
    ("Trainer.step(trainer, ids)", "self x", "x.size()[0]", "ids.shape[0]"),
    ("await step(ids)", "x", "x.size()[0]", "ids.shape[0]"),
    ("list(step(ids))", "x", "x.size()[0]", "ids.shape[0]"),
    ("step(ids)", "x", "THRESHOLD", "THRESHOLD"),
    ("step(ids)", "x", "torch.backends.flag", "torch.backends.flag"),
    ("step(ids, ids)", "x y", "x.size()[0], y.size()[0]", "ids.shape[0], ids.shape[0]"),
    ("step(é, 'ü', n)", "a b n", "n", "n"),
    ("step(é, labels)", "a b", "b.size()[0]", "labels.shape[0]"),
    ("sum(step(ids) for ids in batches)", "x", "x.size()[0]", "ids.shape[0]"),
]


@pytest.mark.parametrize(("call", "parameters", "source", "expected"), SPELLINGS)
def test_a_value_has_the_users_name(call, parameters, source, expected):
    found = name(call, source, *parameters.split())
    assert found.expression == expected and (found.reason is None) == (expected is not None)


MODULE_CALLS = [
    ("model(ids)", "x.size()[0]", "ids.shape[0]"),
    ("model(ids)", "self.step", "model.step"),
    ("model(ids)", "self.layers[3].n", "model.layers[3].n"),
    ("model(ids)", "self.layers[*].n", "model.layers[*].n"),
    ("self.model(ids)", "self.step", "self.model.step"),
    ("models[0](ids)", "self.step", "models[0].step"),
    ("make()(ids)", "self.step", "make().step"),
    ("model(x=ids)", "x.size()[1]", "ids.shape[1]"),
]


@pytest.mark.parametrize("between", [OPTIMIZED, [*MODULE[:1], *FUNCTION, *MODULE[1:]]], ids=["compile", "module"])
@pytest.mark.parametrize(("call", "source", "expected"), MODULE_CALLS)
def test_a_module_is_the_object_that_is_called(call, source, expected, between):
    assert name(call, source, "self", "x", between=between, function="forward").expression == expected


def test_a_module_in_a_wrapper_of_torch_is_its_member():
    ddp = [(f"{TORCH}/nn/parallel/distributed.py", 1800, "forward")]
    ddp += [(f"{TORCH}/nn/parallel/distributed.py", 1715, "_run_ddp_forward")]
    found = name("model(x)", "self.step", "self", "x", between=[*MODULE, *ddp, *FUNCTION, *MODULE], function="forward")
    assert found.expression == "model.module.step"


def test_decorators_of_torch_pass_arguments_through():
    assert name("step(ids)", "x.size()[0]", "x", between=[*NO_GRAD, *FUNCTION]).expression == "ids.shape[0]"
    found = name("step(ids)", "args[0].size()[0]", "*args", "**kwargs", between=[*FUNCTION, *NO_GRAD])
    assert found.expression == "ids.shape[0]"


#: Call, parameters, guarded value, part of the reason.
FAILURES = [
    ("step(ids)", "x scale", "scale", "does not pass `scale`"),
    ("list(map(step, xs))", "x", "x.size()[0]", "`map` passes the items of `xs`"),
    ("step(*a, *b)", "x y", "y", "has arguments after `*a`"),
    ("step(**a, **b)", "x", "x", "several dicts"),
    ("step(a, b)", "*args", "len(args)", "is all further arguments"),
    ("a + b", "self other", "other", "is no call"),
    ("run(ids)", "self x", "self.count", "does not name the object"),
    ("step(x", "x y", "y", "not in the one line"),
]


@pytest.mark.parametrize(("call", "parameters", "source", "reason"), FAILURES)
def test_where_there_is_no_name_the_reason_says_why(call, parameters, source, reason):
    found = name(call, source, *parameters.split())
    assert found.expression is None and found.base is None and reason in found.reason and "\n" not in found.reason


@pytest.mark.parametrize(
    ("call", "base", "is_duplicable"),
    [
        ("step(ids)", "ids", True),
        ('step(batch["x"])', 'batch["x"]', True),
        ("step(self.data.x)", "self.data.x", True),
        ("step(next(it))", "next(it)", False),
        ("step(ids[:, :n])", "ids[:, :n]", False),
        ("step(a * b)", "(a * b)", False),
        ("step((y := make()))", "(y := make())", False),
    ],
)
def test_a_base_with_a_call_is_evaluated_once(call, base, is_duplicable):
    found = name(call, "x.size()[0]", "x")
    assert (found.base, found.is_duplicable) == (base, is_duplicable)


def test_a_name_inside_a_comprehension_has_no_value_before_the_statement():
    own = (frame("[step(x) for x in xs]"), frame("step(x)", "<listcomp>", parameters=[".0"]))
    found = sites(*own, *torch_frames(FUNCTION), compiled("x"))
    assert found.name("a.1", "x.size()[0]").expression == "x.shape[0]"
    assert not found.name("a.1", "x.size()[0]").is_duplicable
    assert found.find("a.1").function == "<module>"


# From the compiled function through other functions


def test_a_value_is_followed_through_the_functions_between():
    frames = (
        frame("step(input_ids=ids, labels=ids)"),
        *torch_frames(FUNCTION),
        frame("model(**kwargs)", "step", LIBRARY, 20, ["**kwargs"]),
        *torch_frames(MODULE),
        frame("func(self, *args, **kwargs)", "wrapper", LIBRARY, 933, ["self", "*args", "**kwargs"]),
        compiled("self", "input_ids", "labels", function="forward", file=LIBRARY),
    )
    found = sites(*frames)
    assert found.name("a.1", "input_ids.size()[0]").expression == "ids.shape[0]"
    assert found.name("a.1", "labels.size()[1]").base == "ids"
    assert "`model` is no parameter of step (generic.py:20)" in found.name("a.1", "self.config.n").reason
    twice = sites(frame("step(*args, **kwargs)"), *torch_frames(FUNCTION), compiled("x"))
    assert "`x` is one of several arguments" in twice.name("a.1", "x").reason
    assert found.find("a.1") == CallSite(TRAIN, 10, "<module>", frames[0].code, frames[0].call)


@pytest.mark.parametrize(
    ("call", "parameters", "assigned", "reason"),
    [
        ("inner(h)", ["x"], [], "`h` is no parameter of outer (train.py:7)"),
        ("inner(x + 1)", ["x"], [], "`x + 1` is computed in outer (train.py:7)"),
        ("inner(x)", ["x"], ["x"], "`x` is assigned again in outer (train.py:7)"),
        (None, ["x"], [], "`y = torch.ones(3)` has no call"),
    ],
)
def test_a_value_that_a_function_between_computes_has_no_name(call, parameters, assigned, reason):
    outer = frame(call, "outer", line=7, parameters=parameters, assigned=assigned, code="y = torch.ones(3)")
    found = sites(frame("outer(ids)"), *torch_frames(FUNCTION), outer, compiled("h", function="inner"))
    assert reason in found.name("a.1", "h.size()[0]").reason


def test_the_code_after_a_graph_break_has_the_names_of_its_function():
    resumed = "torch_dynamo_resume_in_step_at_21"
    own = frame(None, "step", line=21, parameters=["x", "n"], assigned=["n"])
    found = sites(frame("step(ids, 3)"), *torch_frames(FUNCTION), own, compiled("x", "n", "z", function=resumed))
    assert found.name("a.1", "x.size()[0]").expression == "ids.shape[0]"
    assert "`n` is assigned again in step" in found.name("a.1", "n").reason
    assert "`z` is a local variable of step" in found.name("a.1", "z.size()[0]").reason
    assert "it has no name" in found.name("a.1", "___stack0.size()[0]").reason
    assert found.name("a.1", "LIMIT").expression == "LIMIT"
    assert found.find("a.1").call == "step(ids, 3)"


def test_a_global_of_another_file_has_no_name():
    found = sites(frame("step(ids)"), *torch_frames(FUNCTION), compiled("x", file="/home/ada/model.py"))
    assert found.name("a.1", "LIMIT").reason == "`LIMIT` is a global of model.py"


def test_a_decorator_that_only_passes_arguments_on_is_not_the_site():
    def find(call, parameters):
        wrapper = frame(call, "wrapper", line=5, parameters=parameters)
        return sites(frame("fast(ids, n=count)"), wrapper, *torch_frames(FUNCTION), compiled("x", "n"))

    passing = find("function(*args, **kwargs)", ["*args", "**kwargs"])
    assert passing.find("a.1").line == 10 and passing.name("a.1", "n").expression == "count"
    assert passing.name("a.1", "x.size()[0]").expression == "ids.shape[0]"
    assert find("function(x.float(), **kwargs)", ["x", "**kwargs"]).find("a.1").line == 5
    assert find("function(x)", ["x"]).find("a.1").line == 5
    alone = sites(frame("f(*args)", "w", parameters=["*args"]), *torch_frames(FUNCTION), compiled("x"))
    assert alone.name("a.1", "x").expression == "args[0]"


def test_properties_and_items_name_their_object():
    found = sites(frame("a.p"), *torch_frames(FUNCTION), compiled("self", function="p"))
    assert found.name("a.1", "self.n").expression == "a.n"


# The call site


def test_the_call_site_is_the_innermost_own_frame_outside_of_the_compiled_call():
    frames = [
        frame("main()", line=90),
        frame("trainer.fit()", "main", line=80),
        frame("self.run()", "fit", LIBRARY, 70),
        *torch_frames(FUNCTION),
        frame("inner(x)", "step", line=60, parameters=["x"]),
        compiled("x", function="inner"),
    ]
    assert sites(*frames).find("a.1").line == 80
    assert sites(*frames, my_code=["transformers"]).find("a.1").line == 70
    assert sites(*frames, my_code=["/home/ada/.venv/lib"]).find("a.1").line == 70
    assert sites(*frames, my_code=["nothing_here"]).find("a.1").line == 80


@pytest.mark.parametrize("own", [[], [frame("self._target()", "run", "/usr/lib/python3.11/threading.py")]])
def test_without_own_code_around_the_call_there_is_no_site(own):
    found = sites(*own, *torch_frames(FUNCTION), compiled("x"))
    assert found.find("a.1") is None and "no frame of your own code" in found.name("a.1", "x").reason


def test_what_is_not_recorded_has_no_site():
    found = sites(frame("step(x)"), compiled("x"))
    assert found.find(None) is None and found.find("b.2") is None
    assert found.name(None, "x").reason == "the compile is not recorded"
    assert found.name("b.2", "x").reason == "its call stack is not recorded"


# Logs


def log_sites(code, function="step", between=()):
    own, inner = frame(None, code=code, parameters=None), frame(None, function, line=3, parameters=None)
    return sites(own, *torch_frames(between), inner)


@pytest.mark.parametrize(
    ("code", "source", "expected"),
    [
        ("step(x)", "x.size()[0]", "x.shape[0]"),
        ("loss = step(input_ids=ids, labels=ids).mean()", "labels.size()[0]", "ids.shape[0]"),
        ("return step(ids)", "x.size()[0]", "ids.shape[0]"),
        ("for ids in batches: step(ids)", "x.size()[0]", "ids.shape[0]"),
        ("print(float(step(x=ids)))", "x.size()[0]", "ids.shape[0]"),
        ("with guard(step(x=ids)):", "x.size()[0]", "ids.shape[0]"),
        ("elif step(x=ids) > 3:", "x.size()[0]", "ids.shape[0]"),
        ("except step(x=ids):", "x.size()[0]", "ids.shape[0]"),
        ("out = step(x=ids,", "x.size()[0]", "ids.shape[0]"),
        ("step(ids=a, labels=b)", "kwargs['labels'].size()[0]", "b.shape[0]"),
        ("step(a, b)", "args[1].size()[0]", "b.shape[0]"),
        ("x = [", "x", None),
        ("f(a); g(b)", "x.size()[0]", None),
        ("step(a, b)", "y.size()[0]", None),
        ("main(x=x)", "x.size()[0]", None),
    ],
)
def test_a_log_has_the_line_only(code, source, expected):
    found = log_sites(code).name("a.1", source)
    assert found.expression == expected and (found.reason is None) == (expected is not None)


@pytest.mark.parametrize(
    ("code", "expected"), [("model(x)", "model.n"), ("self.model(x, y=2).sum().backward()", "self.model.n")]
)
def test_a_module_in_a_log(code, expected):
    assert log_sites(code, "forward", OPTIMIZED[:2]).name("a.1", "self.n").expression == expected
    assert "leaves out the innermost frames" in log_sites(code, "forward").name("a.1", "self.n").reason


def test_in_a_log_a_function_of_another_name_is_called_if_no_frame_is_missing():
    code = "return [f(torch.arange(float(n))) for n in (3, 4)]"
    found = log_sites(code, between=FUNCTION).name("a.1", "x.size()[0]")
    assert found.expression == "torch.arange(float(n)).shape[0]" and not found.is_duplicable


def test_without_torch_frames_the_code_after_a_graph_break_is_called_by_its_function():
    rows = [
        frame(code="step(x)", parameters=None),
        frame(code="print(x)", function="step", line=21, parameters=None),
        frame(function="torch_dynamo_resume_in_step_at_21", line=3, parameters=None),
    ]
    found = sites(*rows)
    assert found.find("a.1").code == "step(x)" and found.name("a.1", "x.size()[0]").expression == "x.shape[0]"
