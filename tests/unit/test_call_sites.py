"""Where the plan says that the user's own code calls into compiled code, and what a value is called there.

tests/live/test_call_sites.py has real programs.
"""

import pytest

from compilediag.events import Compile, GuardFailure, Recompile, StackFrame

from .session_builder import SECOND, saved

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
    return {
        "file": file,
        "line": line,
        "function": function,
        "call": call,
        "code": code or (call or "").split("\n")[0],
        "assigned": list(assigned),
        "parameters": None if parameters is None else list(parameters),
    }


def torch_frames(places):
    return [{"file": file, "line": line, "function": function} for file, line, function in places]


def compiled(*parameters, function="step", file=TRAIN, line=3, assigned=()):
    return frame(None, function, file, line, parameters, assigned)


#: Part of the name of a value -> the kind of guard on it.
KINDS = {
    ", ": "symbolic_shape", ".size()": "tensor_size", ".stride()": "tensor_stride", ".dtype": "tensor_dtype",
    ".device": "tensor_device", "len(": "length", "": "value",
}  # fmt: skip


def plan_of(folder, source, *frames, my_code=()):
    """The plan for a value that recompiled a function once. The frames are the stack of the call, outermost first."""
    keys = [None, *(f"k{number}" for number in range(len(frames)))]
    rows = [
        StackFrame(time_ns=1, stack=key, caller=caller, **columns)
        for columns, caller, key in zip(frames, keys, keys[1:], strict=False)
    ]
    place = {name: frames[-1][name] for name in ("function", "file", "line")}
    kind = next(kind for part, kind in KINDS.items() if part in source)
    guard = {"time_ns": 3, "guard_source": source, "guard_kind": kind, "expected": "3", "actual": "5"}
    columns = {"duration_s": 2.0, "outcome": "ok", "stack": keys[-1]}
    rows += [Compile(time_ns=n * SECOND, compile_key=f"a.{n}", **columns, **place) for n in (0, 1)]
    rows.append(Recompile(compile_key="a.1", closest_compile_key="a.0", reason="?", **place, **guard))
    rows.append(GuardFailure(compile_key="a.1", entry_compile_key="a.0", is_first=True, guard="?", **guard))
    session = saved(folder, *rows)
    session.data.set_meta(my_code=list(my_code))
    return session.plan()


def step_of(*args, **options):
    (step,) = plan_of(*args, **options).steps
    return step


def name(folder, call, source, *parameters, between=FUNCTION, function="step"):
    """The step for a value of the compiled function that the user's call passes."""
    return step_of(folder, source, frame(call), *torch_frames(between), compiled(*parameters, function=function))


#: Call, parameters of the compiled function, guarded value, and what the plan calls it. A value that must not be
#: computed a second time has the name that it has in the compiled function.
SPELLINGS = [
    ("step(ids)", "x", "x.size()[0]", "ids.shape[0]"),
    ("step(ids, labels)", "x y", "y.size()[1]", "labels.shape[1]"),
    ("step(y=labels, x=ids)", "x y", "x", "ids"),
    ("step(ids, n)", "x n", "n", "n"),
    ("step(ids, 3)", "x n", "n", "n"),
    ("step(ids, n=len(items))", "x n=", "n", "n"),
    ('step(batch["x"])', "x", "x.size()[0]", 'batch["x"].shape[0]'),
    ("step(batch[0], batch[1])", "x y", "y.stride()[0]", "batch[1].stride(0)"),
    ("step(batch.ids)", "x", "x.dtype", "batch.ids.dtype"),
    ("step(ids[:n])", "x", "x.size()[0]", "ids[:n].shape[0]"),
    ("step(a + b)", "x", "x.size()[0]", "x.shape[0]"),
    ("step(next(it))", "x", "x.size()[0]", "x.shape[0]"),
    ("step(ids.to(device))", "x", "x.device", "x.device"),
    ("step(*pair)", "x y", "y.size()[0]", "pair[1].shape[0]"),
    ("step(first, *rest)", "x y z", "z", "rest[1]"),
    ("step(*(ids, labels))", "x y", "y.size()[0]", "labels.shape[0]"),
    ("step(*(ids, labels), 3)", "x y n", "n", "n"),
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
    ("step([ids] + more)", "items", "items[1].size()[0]", "items[1].shape[0]"),
    ("step(caches)", "c", "c.layers[0].keys.size()[2]", "caches.layers[0].keys.shape[2]"),
    ("step(x)", "x", "len(x)", "len(x)"),
    ("step(\n    ids,\n    labels=labels,\n)", "ids labels", "labels.size()[0]", "labels.shape[0]"),
    ("step(\n    torch.cat(\n        [a, b]),\n)", "x", "x.size()[0]", "x.shape[0]"),
    ("step(outer(ids), 2)", "x n", "x.size()[0]", "x.shape[0]"),
    ("trainer.step(ids)", "self x", "x.size()[0]", "ids.shape[0]"),
    ("torch.compile(optimizer.step)()", "*args", "args[0]", "optimizer"),
    ("Trainer.step(self, ids)", "self x", "self.count", "self.count"),
    ("Trainer.step(trainer, ids)", "self x", "x.size()[0]", "ids.shape[0]"),
    ("await step(ids)", "x", "x.size()[0]", "ids.shape[0]"),
    ("list(step(ids))", "x", "x.size()[0]", "ids.shape[0]"),
    ("step(ids)", "x", "THRESHOLD", "THRESHOLD"),
    ("step(ids)", "x", "torch.backends.flag", "torch.backends.flag"),
    ("step(é, 'ü', n)", "a b n", "n", "n"),
    ("step(é, labels)", "a b", "b.size()[0]", "labels.shape[0]"),
    ("sum(step(ids) for ids in batches)", "x", "x.size()[0]", "ids.shape[0]"),
]


@pytest.mark.parametrize(("call", "parameters", "source", "expected"), SPELLINGS)
def test_a_value_has_the_users_name(tmp_path, call, parameters, source, expected):
    step = name(tmp_path, call, source, *parameters.split())
    assert (step.expression, step.file, step.line, step.code) == (expected, TRAIN, 10, call.split("\n")[0])


INSIDE = [*MODULE[:1], *FUNCTION, *MODULE[1:]]
DDP = f"{TORCH}/nn/parallel/distributed.py"
WRAPPED = [*MODULE, (DDP, 1800, "forward"), (DDP, 1715, "_run_ddp_forward"), *FUNCTION, *MODULE]


@pytest.mark.parametrize(
    ("call", "between", "function", "named"),
    [
        ("trainer.step(ids)", FUNCTION, "step", "trainer"),
        ("self.inner.step(ids)", FUNCTION, "step", "self.inner"),
        ("torch.compile(trainer.step)(ids)", FUNCTION, "step", "trainer"),
        ("Trainer.step(self, ids)", FUNCTION, "step", "self"),
        ("a.p", FUNCTION, "p", "a"),
        ("model(ids)", OPTIMIZED, "forward", "model"),
        ("self.model(ids)", OPTIMIZED, "forward", "self.model"),
        ("models[0](ids)", INSIDE, "forward", "models[0]"),
        ("model(ids)", WRAPPED, "forward", "model.module"),
    ],
)
def test_an_object_is_the_one_that_is_called(tmp_path, call, between, function, named):
    step = name(tmp_path, call, "self.w.dtype", "self", "x", between=between, function=function)
    assert f" {named}.w.to(dtype)" in step.change


@pytest.mark.parametrize("between", [OPTIMIZED, INSIDE])
def test_arguments_of_a_module_are_those_of_the_call(tmp_path, between):
    step = name(tmp_path, "model(x=ids)", "x.size()[1]", "self", "x", between=between, function="forward")
    assert step.expression == "ids.shape[1]"


@pytest.mark.parametrize(
    ("source", "parameters", "between"),
    [
        ("x.size()[0]", ["x"], [*NO_GRAD, *FUNCTION]),
        ("args[0].size()[0]", ["*args", "**kwargs"], [*FUNCTION, *NO_GRAD]),
    ],
)
def test_decorators_of_torch_pass_arguments_through(tmp_path, source, parameters, between):
    assert name(tmp_path, "step(ids)", source, *parameters, between=between).expression == "ids.shape[0]"


@pytest.mark.parametrize(
    ("code", "method", "source", "expected"),
    [
        ("layer @ ids", "__matmul__", "other.size()[0]", "ids.shape[0]"),
        ("layer @ ids", "__matmul__", "self.size()[0]", "layer.shape[0]"),
        ("ids @ layer", "__rmatmul__", "other.size()[0]", "ids.shape[0]"),
        ("layer >> ids", "__rshift__", "other.size()[0]", "ids.shape[0]"),
        ("layer += ids", "__iadd__", "other.size()[0]", "ids.shape[0]"),
        ("layer += make(ids)", "__iadd__", "self.size()[0]", "layer.shape[0]"),
        ("-layer", "__neg__", "self.size()[0]", "layer.shape[0]"),
        ("layers[n]", "__getitem__", "other", "n"),
        ("layers[n]", "__getitem__", "self.size()[0]", "layers.shape[0]"),
        ("layers[:n]", "__getitem__", "other", "other"),  # A slice is no expression.
        ("ids in layers", "__contains__", "other.size()[0]", "ids.shape[0]"),
    ],
)
def test_an_operator_names_the_object_and_the_arguments_of_its_method(tmp_path, code, method, source, expected):
    assert name(tmp_path, code, source, "self", "other", function=method).expression == expected


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


def read_reason(step):
    """Why the value has no name at the call, None if it has one."""
    _, found, reason = step.why.partition("It has no name at your call: ")
    assert "\n" not in reason
    return reason if found else None


@pytest.mark.parametrize(("call", "parameters", "source", "reason"), FAILURES)
def test_where_there_is_no_name_the_reason_says_why(tmp_path, call, parameters, source, reason):
    assert reason in read_reason(name(tmp_path, call, source, *parameters.split()))


@pytest.mark.parametrize(
    ("call", "change"),
    [
        ("step(ids)", "torch._dynamo.maybe_mark_dynamic(ids, 0)"),
        ('step(batch["x"])', "torch._dynamo.maybe_mark_dynamic(batch['x'], 0)"),
        ("step(self.data.x)", "torch._dynamo.maybe_mark_dynamic(self.data.x, 0)"),
        *((f"step({argument})", None) for argument in ("next(it)", "p.data", "ids[:, :n]", "a * b", "(y := make())")),
    ],
)
def test_what_can_be_evaluated_twice_is_marked_before_the_call(tmp_path, call, change):
    step = name(tmp_path, call, "x.size()[0]", "x")
    assert [(edit.kind, edit.new) for edit in step.edits] == ([("insert_before", change)] if change else [])
    assert step.settings is None if change else step.settings == {"dynamic_sources": "L['x']"}


def test_a_name_inside_a_comprehension_has_no_value_before_the_statement(tmp_path):
    own = (frame("[step(x) for x in xs]"), frame("step(x)", "<listcomp>", parameters=[".0"]))
    step = step_of(tmp_path, "x.size()[0]", *own, *torch_frames(FUNCTION), compiled("x"))
    assert (step.edits, step.function) == ((), "<module>")


# From the compiled function through other functions


@pytest.mark.parametrize(("source", "expected"), [("input_ids.size()[0]", "ids.shape[0]"),
                                                   ("labels.size()[1]", "ids.shape[1]")])  # fmt: skip
def test_a_value_is_followed_through_the_functions_between(tmp_path, source, expected):
    frames = [
        frame("step(input_ids=ids, labels=ids)"),
        *torch_frames(FUNCTION),
        frame("model(**kwargs)", "step", LIBRARY, 20, ["**kwargs"]),
        *torch_frames(MODULE),
        frame("func(self, *args, **kwargs)", "wrapper", LIBRARY, 933, ["self", "*args", "**kwargs"]),
        compiled("self", "input_ids", "labels", function="forward", file=LIBRARY),
    ]
    step = step_of(tmp_path, source, *frames)
    assert (step.expression, step.file, step.line) == (expected, TRAIN, 10)


@pytest.mark.parametrize(
    ("call", "parameters", "assigned", "reason"),
    [
        ("inner(h)", ["x"], [], "`h` is no parameter of outer (train.py:7)"),
        ("inner(x + 1)", ["x"], [], "`x + 1` is computed in outer (train.py:7)"),
        ("inner(x)", ["x"], ["x"], "`x` is assigned again in outer (train.py:7)"),
        (None, ["x"], [], "`y = torch.ones(3)` has no call"),
    ],
)
def test_a_value_that_a_function_between_computes_has_no_name(tmp_path, call, parameters, assigned, reason):
    outer = frame(call, "outer", line=7, parameters=parameters, assigned=assigned, code="y = torch.ones(3)")
    frames = [frame("outer(ids)"), *torch_frames(FUNCTION), outer, compiled("h", function="inner")]
    assert reason in read_reason(step_of(tmp_path, "h.size()[0]", *frames))


@pytest.mark.parametrize(
    ("source", "expected", "reason"),
    [
        ("x.size()[0]", "ids.shape[0]", None),
        ("n", "n", "`n` is assigned again in step"),
        ("z.size()[0]", "z.shape[0]", "`z` is a local variable of step"),
        ("LIMIT", "LIMIT", None),
    ],
)
def test_the_code_after_a_graph_break_has_the_names_of_its_function(tmp_path, source, expected, reason):
    resumed = compiled("x", "n", "z", function="torch_dynamo_resume_in_step_at_21")
    own = frame(None, "step", line=21, parameters=["x", "n"], assigned=["n"])
    step = step_of(tmp_path, source, frame("step(ids, 3)"), *torch_frames(FUNCTION), own, resumed)
    assert (step.expression, step.code) == (expected, "step(ids, 3)")
    assert reason in read_reason(step) if reason else read_reason(step) is None


def test_a_global_of_another_file_has_no_name(tmp_path):
    frames = [frame("step(ids)"), *torch_frames(FUNCTION), compiled("x", file="/home/ada/model.py")]
    assert "`LIMIT` is a global of model.py" in read_reason(step_of(tmp_path, "LIMIT", *frames))


@pytest.mark.parametrize(
    ("call", "parameters", "line"),
    [
        ("function(*args, **kwargs)", ["*args", "**kwargs"], 10),
        ("function(x.float(), **kwargs)", ["x", "**kwargs"], 5),
        ("function(x)", ["x"], 5),
    ],
)
def test_a_decorator_that_only_passes_arguments_on_is_not_the_site(tmp_path, call, parameters, line):
    wrapper = frame(call, "wrapper", line=5, parameters=parameters)
    frames = [frame("fast(ids, n=count)"), wrapper, *torch_frames(FUNCTION), compiled("x", "n")]
    assert step_of(tmp_path, "x.size()[0]", *frames).line == line


# The call site


@pytest.mark.parametrize(
    ("my_code", "line"), [([], 80), (["transformers"], 70), (["/home/ada/.venv/lib"], 70), (["nothing_here"], 80)]
)
def test_the_call_site_is_the_innermost_own_frame_outside_of_the_compiled_call(tmp_path, my_code, line):
    frames = [
        frame("main()", line=90),
        frame("trainer.fit()", "main", line=80),
        frame("self.run()", "fit", LIBRARY, 70),
        *torch_frames(FUNCTION),
        frame("inner(x)", "step", line=60, parameters=["x"]),
        compiled("x", function="inner"),
    ]
    assert step_of(tmp_path, "x.size()[0]", *frames, my_code=my_code).line == line


@pytest.mark.parametrize("own", [[], [frame("self._target()", "run", "/usr/lib/python3.11/threading.py")]])
def test_without_own_code_around_the_call_the_place_is_the_function(tmp_path, own):
    step = step_of(tmp_path, "x.size()[0]", *own, *torch_frames(FUNCTION), compiled("x"))
    assert (step.code, step.place, step.expression, step.edits) == (None, "train.py:3", "x.shape[0]", ())


# Logs


LINES = [
    ("step(x)", "x.size()[0]", "x.shape[0]"),
    ("loss = step(input_ids=ids, labels=ids).mean()", "labels.size()[0]", "ids.shape[0]"),
    ("return step(ids)", "x.size()[0]", "ids.shape[0]"),
    ("for ids in batches: step(ids)", "x.size()[0]", None),
    ("print(float(step(x=ids)))", "x.size()[0]", "ids.shape[0]"),
    ("with guard(step(x=ids)):", "x.size()[0]", "ids.shape[0]"),
    ("elif step(x=ids) > 3:", "x.size()[0]", None),
    ("out = step(x=ids,", "x.size()[0]", "ids.shape[0]"),
    ("step(ids=a, labels=b)", "kwargs['labels'].size()[0]", "b.shape[0]"),
    ("step(a, b)", "args[1].size()[0]", "b.shape[0]"),
    ("x = [", "x", None),
    ("f(a); g(b)", "x.size()[0]", None),
    ("step(a, b)", "y.size()[0]", None),
    ("main(x=x)", "x.size()[0]", None),
]


def log_step(folder, source, code, between=(), function="step"):
    own, inner = frame(None, code=code, parameters=None), frame(None, function, line=3, parameters=None)
    return step_of(folder, source, own, *torch_frames(between), inner)


@pytest.mark.parametrize(("code", "source", "expected"), LINES)
def test_a_log_has_the_line_only(tmp_path, code, source, expected):
    step = log_step(tmp_path, source, code)
    assert (step.expression, read_reason(step)) == (expected, None) if expected else not step.edits


def test_without_torch_frames_the_code_after_a_graph_break_is_called_by_its_function(tmp_path):
    rows = [
        frame(code="step(x)", parameters=None),
        frame(code="print(x)", function="step", line=21, parameters=None),
        frame(function="torch_dynamo_resume_in_step_at_21", line=3, parameters=None),
    ]
    step = step_of(tmp_path, "x.size()[0]", *rows)
    assert (step.code, step.expression) == ("step(x)", "x.shape[0]")
