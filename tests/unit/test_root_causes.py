"""Root causes: which recompiles are joined because one change of the program caused them, by hand-made sessions."""

from dataclasses import replace

from compilediag.diagnosis import diagnose
from compilediag.events import Compile, GraphBreak, GuardFailure, Recompile, StackFrame
from tests.unit.tables_builder import SECOND, compiled, failure, recompile, tables

TRAIN, MODEL = "/home/ada/train.py", "/home/ada/model.py"
ENTRANCE = "/x/site-packages/torch/_dynamo/eval_frame.py"


def frame(key, caller, function, file, line):
    return StackFrame(time_ns=SECOND, stack=key, caller=caller, function=function, file=file, line=line)


def stacks(*functions):
    """The stacks of compiled functions, each called by the one before it: train -> torch -> first -> second -> ..."""
    frames = [frame("user", None, "train", TRAIN, 28), frame("torch", "user", "compile_wrapper", ENTRANCE, 9)]
    caller = "torch"
    for function in functions:
        frames.append(frame(function, caller, function, MODEL, 1))
        caller = function
    return frames


def get_kind(source):
    """The kind of guard that a source looks like."""
    kinds = {".size()[": "tensor_size", ".requires_grad": "requires_grad", ".step": "value", "len(": "length"}
    return next((kind for part, kind in kinds.items() if part in source), "value")


def changed(function, number, *guards, closest=None, stack=None):
    """A recompile of a function: (source, old, new) of each guard that failed, sizes if they look like one."""
    place = {"function": function, "file": MODEL, "line": 1}
    kinds = [get_kind(source) for source, _, _ in guards]
    (source, old, new), kind = guards[0], kinds[0]
    ids = {"compile_id": f"0/{number}", "closest_compile_id": closest or f"0/{number - 50}"}
    row = recompile(source, kind, old, new, number, **place, **ids)
    compiled = Compile(
        time_ns=number * SECOND, compile_id=f"0/{number}", compile_key=row.compile_key, stack=stack or function, **place
    )
    failures = [
        failure(source, kind, number, expected=old, actual=new, entry_compile_id=ids["closest_compile_id"])
        for (source, old, new), kind in zip(guards, kinds, strict=True)
    ]
    return [compiled, row, *failures]


def describe(*groups):
    """(source, values, recompiles at which it failed first) of each cause, in the order in which they came."""
    return [(cause.source, cause.details, cause.count) for cause in find_causes(*groups)]


def find_causes(*groups):
    """The findings about values, the earliest first."""
    found = [finding for finding in diagnose(tables(*(event for group in groups for event in group))) if finding.source]
    return sorted(found, key=lambda finding: finding.evidence)


def test_one_size_in_three_frames_is_one_cause():
    assert describe(
        stacks("wrapper", "forward", "loss"),
        changed("wrapper", 101, ("kwargs['ids'].size()[1]", "16", "24")),
        changed("forward", 102, ("ids.size()[1]", "16", "24")),
        changed("loss", 103, ("logits.size()[1]", "16", "24")),
    ) == [("kwargs['ids'].size()[1]", ("16", "24"), 3)]


def test_a_multiple_and_a_product_of_sizes_follow_from_them():
    assert describe(
        stacks("forward", "torch_dynamo_resume_in_forward_at_44"),
        changed("forward", 101, ("ids.size()[1]", "16", "24")),
        changed("torch_dynamo_resume_in_forward_at_44", 102, ("rows.size()[0]", "128", "192")),
        changed("forward", 103, ("ids.size()[0]", "8", "5"), ("ids.size()[1]", "16", "32")),
        changed("torch_dynamo_resume_in_forward_at_44", 104, ("rows.size()[0]", "128", "160")),
    ) == [("ids.size()[1]", ("16", "24", "32"), 2), ("ids.size()[0]", ("8", "5"), 2)]


def test_a_number_after_a_graph_break_follows_from_a_size_but_an_attribute_does_not():
    resumed = "torch_dynamo_resume_in_forward_at_44"
    found = describe(
        stacks("forward", resumed),
        changed("forward", 101, ("ids.size()[0]", "8", "5")),
        changed(resumed, 102, ("count", "8", "5")),
        changed(resumed, 103, ("self.step", "8", "5")),
    )
    assert found == [("ids.size()[0]", ("8", "5"), 2), ("self.step", ("8", "5"), 1)]


def test_a_number_keeps_its_cause_after_the_next_graph_break():
    first, second = "torch_dynamo_resume_in_forward_at_44", "torch_dynamo_resume_in_forward_at_45"
    found = describe(
        stacks(first, second), changed(first, 101, ("___stack0", "4", "7")), changed(second, 102, ("width", "4", "7"))
    )
    assert found == [("___stack0", ("4", "7"), 2)]


def test_what_a_call_at_a_graph_break_returned_has_the_name_of_its_variable():
    resumed = "torch_dynamo_resume_in_forward_at_44"
    rows = changed(resumed, 101, ("___stack0", "4", "7"))
    unnamed = "a value from before the graph break at line 44"
    lines = {"width = box[2].item()": "width", "width = 2 * box[2].item()": unnamed, "f(box.item())": unnamed}
    for code, name in lines.items():
        found = GraphBreak(time_ns=1, user_file=MODEL, user_line=44, user_code=code)
        (cause,) = find_causes(stacks("forward", resumed), [found], rows)
        assert cause.what_changed == f"{name} was 4, then 7"


def test_a_value_that_the_user_names_is_one_cause_in_whatever_frame_it_recompiles():
    """At the third length, the outer function has a dynamic entry already, and the inner one has not."""
    outer = replace(frame("wrapper", "torch", "wrapper", MODEL, 1), parameters=["x"], call="forward(x)")
    inner = replace(frame("forward", "wrapper", "forward", MODEL, 1), parameters=["ids"])
    lengths = [
        changed("wrapper", 101, ("x.size()[0]", "4", "6")),
        changed("forward", 102, ("ids.size()[0]", "4", "6")),
        changed("forward", 103, ("ids.size()[0]", "6", "9")),
    ]
    user, torch, _ = call("", 28, "y = wrapper(tokens)", "wrapper")
    named = [user, replace(torch, stack="torch"), outer, inner]
    assert describe(named, *lengths) == [("x.size()[0]", ("4", "6", "9"), 3)]


def test_a_value_without_a_name_that_was_passed_on_once_is_passed_on_each_time():
    found = describe(
        stacks("wrapper", "forward"),
        changed("wrapper", 101, ("x.size()[0]", "4", "6")),
        changed("forward", 102, ("ids.size()[0]", "4", "6")),
        changed("forward", 103, ("ids.size()[0]", "6", "9")),
    )
    assert found == [("x.size()[0]", ("4", "6", "9"), 3)]


def test_a_relation_of_sizes_follows_from_the_size_that_changed():
    relation = "x.size()[0], y.size()[0]"
    rows = changed("forward", 101, (relation, "x.size()[0] == y.size()[0]", None), ("x.size()[0]", "4", "6"))
    rows = [
        replace(row, guard_kind="symbolic_shape") if getattr(row, "guard_source", None) == relation else row
        for row in rows
    ]
    assert describe(stacks("forward"), rows) == [("x.size()[0]", ("4", "6"), 1)]


def test_the_same_change_in_another_call_is_another_cause():
    """The second call begins when a function runs again."""
    found = describe(
        stacks("forward", "head"),
        changed("forward", 101, ("ids.size()[1]", "16", "24")),
        changed("forward", 102, ("ids.size()[0]", "8", "5")),
        changed("head", 103, ("hidden.size()[0]", "16", "24")),
    )
    assert [source for source, *_ in found] == ["ids.size()[1]", "ids.size()[0]", "hidden.size()[0]"]


def test_tensors_that_change_alike_are_one_cause_and_those_that_do_not_are_two():
    together = describe(
        stacks("forward"), changed("forward", 101, ("a.size()[0]", "4", "6"), ("b.size()[0]", "4", "6"))
    )
    assert together == [("a.size()[0]", ("4", "6"), 1)]
    apart = describe(
        stacks("forward"),
        changed("forward", 101, ("a.size()[0]", "4", "6"), ("b.size()[0]", "4", "6")),
        changed("forward", 102, ("a.size()[0]", "6", "8")),
    )
    assert {source for source, *_ in apart} == {"a.size()[0]", "b.size()[0]"}


def test_sizes_that_differ_by_one_are_one_cause_if_they_do_so_twice():
    first = changed("forward", 101, ("x.size()[0]", "4", "6"), ("y.size()[0]", "5", "7"))
    second = changed("forward", 102, ("x.size()[0]", "6", "8"), ("y.size()[0]", "7", "9"))
    assert len(describe(stacks("forward"), first)) == 2
    assert describe(stacks("forward"), first, second) == [("x.size()[0]", ("4", "6", "8"), 2)]


def test_sizes_of_one_tensor_that_differ_by_one_are_two_causes():
    rows = [
        changed("forward", 101, ("x.size()[0]", "4", "6"), ("x.size()[1]", "5", "7")),
        changed("forward", 102, ("x.size()[0]", "6", "8"), ("x.size()[1]", "7", "9")),
    ]
    assert len(describe(stacks("forward"), *rows)) == 2


def test_another_module_is_the_cause_of_the_sizes_of_all_its_parameters_and_of_its_input():
    guards = [
        ("x.size()[1]", "4", "8"),
        ("self.lin.bias.size()[0]", "8", "16"),
        ("self.lin.weight.size()[1]", "4", "8"),
    ]
    rows = changed("forward", 101, *guards)
    tensor = "tensor 'L['self']._modules['lin']._parameters['w']'"
    named = [
        replace(row, guard=f"{tensor} size mismatch at index 0. expected {row.expected}, actual {row.actual}")
        if isinstance(row, GuardFailure) and row.guard_source.startswith("self.")
        else row
        for row in rows
    ]
    assert describe(stacks("forward"), named) == [("self.lin.bias.size()[0]", ("8", "16"), 1)]


def test_a_property_of_all_tensors_of_a_module_is_one_cause():
    tensors = [(f"self.lin.{name}.requires_grad", "True", "False") for name in ("bias", "weight")]
    assert len(describe(stacks("forward"), changed("forward", 101, *tensors))) == 1
    inputs = [(f"{name}.requires_grad", "True", "False") for name in ("x", "y")]
    assert len(describe(stacks("forward"), changed("forward", 101, *inputs))) == 2


def test_of_equal_sizes_the_first_one_in_the_users_call_is_the_root():
    user = replace(
        frame("user", None, "train", TRAIN, 28), code="y = forward(a, b)", call="forward(a, b)", parameters=["a", "b"]
    )
    torch = frame("torch", "user", "compile_wrapper", ENTRANCE, 9)
    own = replace(frame("forward", "torch", "forward", MODEL, 1), parameters=["query", "key"])
    rows = changed("forward", 101, ("key.size()[0]", "4", "6"), ("query.size()[0]", "4", "6"))
    (cause,) = find_causes([user, torch, own], rows)
    assert (cause.source, cause.what_changed) == ("query.size()[0]", "a.shape[0] was 4, then 6")


def call(key, line, code, function):
    """The stack of a compiled function with one parameter, called by one line of the user's."""
    text = code.partition(" = ")[2] or code
    user = replace(frame(f"user{key}", None, "train", TRAIN, line), code=code, call=text, parameters=[])
    torch = frame(f"torch{key}", user.stack, "compile_wrapper", ENTRANCE, 9)
    return [user, torch, replace(frame(key, torch.stack, function, MODEL, 1), parameters=["x"])]


def test_the_result_of_a_call_that_the_next_one_gets_is_one_cause_and_is_marked_at_both():
    rows = [
        *changed("encode", 101, ("x.size()[0]", "4", "6"), stack="a"),
        *changed("decode", 102, ("y.size()[0]", "4", "6"), stack="b"),
    ]
    second = call("b", 29, "loss = decode(hidden)", "decode")
    second[-1] = replace(second[-1], parameters=["y"])
    (cause,) = find_causes(call("a", 28, "hidden = encode(batch)", "encode"), second, rows)
    assert (cause.what_changed, cause.count) == ("batch.shape[0] was 4, then 6", 2)
    edits = [(edit.line, edit.new) for edit in cause.changes[0].edits]
    assert edits == [
        (28, "torch._dynamo.maybe_mark_dynamic(batch, 0)"),
        (29, "torch._dynamo.maybe_mark_dynamic(hidden, 0)"),
    ]
    other = call("b", 29, "loss = decode(labels)", "decode")
    other[-1] = second[-1]
    assert len(find_causes(call("a", 28, "hidden = encode(batch)", "encode"), other, rows)) == 2


def test_one_attribute_of_all_layers_is_one_cause_if_one_line_reads_it():
    sources = ("self.down.attention.scaling['a']", "self.mid.attention.scaling['a']", "self.up.scaling['a']")
    rows = changed("forward", 101, *((source, "2.0", "1.6") for source in sources))

    def at(*lines):
        placed = dict(zip(sources, lines, strict=True))
        guards = (GuardFailure, Recompile)
        return [replace(row, user_line=placed[row.guard_source]) if isinstance(row, guards) else row for row in rows]

    assert describe(stacks("forward"), at(31, 31, 31)) == [(sources[0], ("2.0", "1.6"), 1)]
    assert len(describe(stacks("forward"), at(31, 31, 40))) == 2
    assert len(describe(stacks("forward"), at(31, 40, 50))) == 3


def test_of_equal_numbers_the_one_that_the_code_reads_first_is_the_root():
    rows = changed("extend", 101, ("data.size()[0]", "1", "2"), ("self.size", "0", "1"), ("self.cursor", "0", "1"))
    lines = {"self.size": 14, "self.cursor": 11}
    placed = [
        replace(row, user_line=lines[row.guard_source])
        if isinstance(row, GuardFailure) and row.guard_source in lines
        else row
        for row in rows
    ]
    assert [source for source, *_ in describe(stacks("extend"), placed)] == ["data.size()[0]", "self.cursor"]


def test_an_object_that_died_and_what_it_held_are_one_cause():
    rows = [
        [
            replace(row, guard_kind="dead_reference", expected=None, actual=None)
            for row in rows
            if hasattr(row, "closest_compile_id")
        ]
        + [row for row in rows if isinstance(row, Compile)]
        for rows in (changed("wrapper", 101, ("args[0]", "", "")), changed("step", 102, ("self", "", "")))
    ]
    assert [source for source, *_ in describe(stacks("wrapper", "step"), *rows)] == ["args[0]"]


def test_what_changes_with_another_way_to_call_costs_nothing():
    """Evaluation has a compiled version of its own, so that its other batch size saves nothing."""
    guards = [("x.size()[0]", "8", "16"), ("self.dropout.training", "True", "False")]
    assert describe(stacks("forward"), changed("forward", 101, *guards)) == [
        ("self.dropout.training", ("True", "False"), 1)
    ]
    more = changed("forward", 102, ("x.size()[0]", "16", "20"))
    found = describe(stacks("forward"), changed("forward", 101, *guards), more)
    assert {source for source, *_ in found} == {"x.size()[0]", "self.dropout.training"}


def test_three_causes_at_one_call():
    found = describe(
        stacks("forward"),
        changed("forward", 101, ("x.size()[0]", "4", "6"), ("x.size()[1]", "16", "24"), ("self.step", "7", "8")),
    )
    assert {source: count for source, _, count in found} == {"x.size()[0]": 1, "x.size()[1]": 0, "self.step": 0}


def test_a_backward_that_is_compiled_later_does_not_hide_the_call_site():
    rows = changed("forward", 101, ("x.size()[0]", "4", "6"))
    backward = replace(rows[0], trigger="lazy_backward", stack=None)
    (cause,) = find_causes(stacks("forward"), rows, [backward])
    assert (cause.call_file, cause.call_line) == (TRAIN, 28)


def test_the_calls_of_two_threads_are_two():
    """One call of two functions has one cause; calls of two threads through the same lines have one each."""

    def changed_in(thread, *arguments):
        return [replace(row, thread=thread) if hasattr(row, "thread") else row for row in changed(*arguments)]

    def describe_in(*threads):
        size, number = ("x.size()[0]", "16", "24"), ("rows.size()[0]", "16", "24")
        first, second = changed_in(threads[0], "forward", 101, size), changed_in(threads[1], "loss", 102, number)
        return [source for source, _, _ in describe(stacks("forward", "loss"), first, second)]

    assert describe_in(7, 7) == ["x.size()[0]"]
    assert describe_in(7, 8) == ["x.size()[0]", "rows.size()[0]"]


def test_nothing_is_joined_without_stacks():
    found = describe(
        changed("forward", 101, ("ids.size()[1]", "16", "24")), changed("loss", 102, ("logits.size()[1]", "16", "24"))
    )
    assert len(found) == 2


def test_strides_follow_from_sizes_but_a_layout_does_not():
    def strides(number, *pairs):
        rows = changed("forward", number, ("x.size()[1]", "8", "10"))
        entry = f"0/{number - 50}"
        more = [
            failure(f"x.stride()[{dim}]", "tensor_stride", number, expected=old, actual=new, entry_compile_id=entry)
            for dim, old, new in pairs
        ]
        return [*rows, *more]

    assert len(describe(stacks("forward"), strides(101, (0, "32", "40")))) == 1
    assert len(describe(stacks("forward"), strides(101, (0, "32", "40"), (1, "4", "1"), (2, "1", "10")))) == 2


def test_sizes_that_one_symbol_has_are_one_cause():
    """At the second recompile a bound of the symbol fails, and torch names one of the two sizes."""
    first = changed("forward", 101, ("ids.size()[1]", "7", "4"), ("mask.size()[1]", "7", "4"))
    _, row, bound = changed("forward", 102, ("ids.size()[1]", ">= 2", "1"), closest="0/101")
    second = [replace(row, guard_kind="symbolic_shape"), replace(bound, guard_kind="symbolic_shape")]
    assert [source for source, *_ in describe(stacks("forward"), first, second)] == ["ids.size()[1]"]


def test_what_a_library_changes_at_once_is_one_cause():
    """peft: the name of the adapter in each layer, and which of the weights have gradients."""
    peft = {"file": "/x/site-packages/peft/peft_model.py", "function": "forward", "line": 1}
    row = recompile("self.active_adapter", "value", "'a'", "'b'", **peft)
    failures = [
        failure("self.active_adapter", "value", 1, expected="'a'", actual="'b'"),
        failure("self.layers[0]._active_adapter[0]", "value", 1, expected="'a'", actual="'b'"),
        failure("self.layers[0].lora_A.a.weight", "requires_grad", 1, expected="True", actual="False"),
    ]
    assert describe([compiled(**peft), row, *failures]) == [("self.active_adapter", ("'a'", "'b'"), 1)]


def test_a_first_momentum_is_one_cause_whichever_parameters_have_it():
    state = [f"len(self.state[list(self.state.keys())[{at}]])" for at in range(3)]
    assert describe(
        stacks("step"),
        changed("step", 101, *((source, "0", "1") for source in state)),
    ) == [(state[0], ("0", "1"), 1)]
