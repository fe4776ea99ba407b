"""Programs with one known cause each. `program(compiled)` runs from scratch and gives what it computed; `compiled` is
torch.compile with the backend of the test. Each makes its objects itself, so that it can be run again and again.
"""

import enum
import gc
import os
import weakref

import torch


def ones(*shape, **options):
    return torch.ones(*shape, **options)


class Block(torch.nn.Module):
    def __init__(self, inputs=4, outputs=4, n=1):
        super().__init__()
        self.lin = torch.nn.Linear(inputs, outputs)
        self.n = n

    def forward(self, x):
        return self.lin(x) * self.n


# Sizes


def a_size_with_static_shapes(compiled):
    f = compiled(lambda x: x * 2, dynamic=False)
    return [f(ones(n, 3)) for n in (4, 6, 7, 9)]


def a_size_with_automatic_shapes(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(n, 3)) for n in (4, 6, 7, 9)]


def two_sizes_that_change_together(compiled):
    f = compiled(lambda x, y: x.sum() + y.sum(), dynamic=False)
    return [f(ones(n), ones(n + 1)) for n in (4, 6, 8)]


def a_size_in_a_dict(compiled):
    f = compiled(lambda batch: batch["ids"] * 2, dynamic=False)
    return [f({"ids": ones(2, n)}) for n in (16, 32, 48)]


def a_size_across_a_graph_break(compiled):
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * x

    g = compiled(f, dynamic=False)
    return [g(ones(n)) for n in (4, 6, 8)]


def a_size_in_two_functions(compiled):
    f = compiled(lambda x: x.sin(), dynamic=False)
    g = compiled(lambda x: x.cos() + 1, dynamic=False)
    return [g(f(ones(n))) for n in (4, 6, 8)]


def size_one(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(n, 3)) for n in (4, 1, 0)]


def a_size_that_a_loop_needs(compiled):
    def f(x):
        for i in range(x.size(0)):
            x = x + i
        return x

    g = compiled(f)
    return [g(ones(n)) for n in (4, 6, 7)]


def a_size_that_a_branch_asks_for(compiled):
    g = compiled(lambda x: x * 2 if x.size(0) < 10 else x * 3)
    return [g(ones(n)) for n in (4, 5, 15)]


def equal_sizes_at_first(compiled):
    f = compiled(lambda x, y: x.sum() + y.sum(), dynamic=True)
    return [f(ones(m), ones(n)) for m, n in ((4, 4), (5, 5), (6, 7))]


def a_buffer_of_another_size(compiled):
    module = torch.nn.Module()
    f = compiled(lambda x: x @ module.table)
    found = []
    for n in (4, 6, 8):
        module.register_buffer("table", ones(3, n))
        found.append(f(ones(2, 3)))
    return found


def modules_of_other_widths_share_their_code(compiled):
    torch.manual_seed(0)
    return [compiled(Block(4, n))(ones(2, 4)).detach() for n in (4, 8, 16)]


def keys_and_values_that_grow(compiled):
    """The first call has none, and so an entry that guards nothing of what is in them."""

    def attend(x, past=None):
        keys = x if past is None else torch.cat([past[0], x], 1)
        values = -x if past is None else torch.cat([past[1], -x], 1)
        return torch.softmax(x @ keys.mT, -1) @ values, (keys, values)

    f, past, found = compiled(attend, dynamic=False), None, []
    for _ in range(5):
        y, past = f(ones(1, 2, 4), past)
        found.append(y)
    return found


def a_size_that_has_to_divide(compiled):
    f = compiled(lambda x: x * 2 if x.size(0) % 8 == 0 else x * 3, dynamic=True)
    return [f(ones(n)) for n in (16, 24, 13)]


def layers_in_a_row_that_share_their_code(compiled):
    """The inputs are of other sizes because the layers are."""
    torch.manual_seed(0)
    x = ones(2, 4)
    for layer in [compiled(Block(*widths)) for widths in ((4, 8), (8, 16), (16, 3))]:
        x = layer(x)
    return x.detach()


# Other properties of tensors


def memory_format(compiled):
    f = compiled(lambda x: x * 2)
    image = ones(2, 3, 4, 4)
    return [f(image), f(image.contiguous(memory_format=torch.channels_last))]


def rank(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(4, 6)), f(ones(4)), f(ones(2, 4, 6))]


def dtype(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(4)), f(ones(4, dtype=torch.float64)), f(ones(4, dtype=torch.bfloat16))]


def device(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(4)), f(ones(4, device="meta"))]


def requires_grad(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(4)), f(ones(4, requires_grad=True)).detach()]


def subclass(compiled):
    f = compiled(lambda x: x * 2)
    return [f(ones(4)), f(torch.nn.Parameter(ones(4), requires_grad=False))]


def aliases(compiled):
    f = compiled(lambda x, y: x + y)
    one = ones(4)
    return [f(one, ones(4)), f(one, one)]


# Values


class Counter(Block):
    def forward(self, x):
        self.n += 1
        return self.lin(x) * self.n


def a_counter_of_a_module(compiled):
    torch.manual_seed(0)
    f = compiled(Counter())
    return [f(ones(2, 4)).detach() for _ in range(5)]


def a_counter_that_is_an_argument(compiled):
    f = compiled(lambda x, step: x * step, dynamic=False)
    return [f(ones(4), step) for step in range(2, 7)]


def an_integer_of_a_module(compiled):
    torch.manual_seed(0)
    module = Block(n=9)
    f = compiled(module)
    found = []
    for n in (9, 5, 7, 3):
        module.n = n
        found.append(f(ones(2, 4)).detach())
    return found


def a_learning_rate(compiled):
    weight = torch.nn.Parameter(ones(4))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    step = compiled(optimizer.step, dynamic=False)
    for rate in (0.5, 0.25, 0.1):
        optimizer.param_groups[0]["lr"] = rate
        weight.grad = ones(4)
        step()
    return weight.detach()


def a_float(compiled):
    f = compiled(lambda x, scale: x * scale, dynamic=False)
    return [f(ones(4), scale) for scale in (0.5, 0.25, 0.1)]


def a_variable_of_a_function_passed_in(compiled):
    def times(k):
        return lambda x: x * k

    f = compiled(lambda x, g: g(x), dynamic=False)
    return [f(ones(4), times(k)) for k in (7, 3, 5)]


SCALE = 3


def a_global(compiled):
    global SCALE
    f = compiled(lambda x: x * SCALE)
    found = []
    for scale in (9, 5, 7):
        SCALE = scale
        found.append(f(ones(4)))
    return found


def a_flag(compiled):
    f = compiled(lambda x, flag: x + 1 if flag else x - 1)
    return [f(ones(4), flag) for flag in (True, False, True)]


def an_optional_argument(compiled):
    f = compiled(lambda x, mask=None: x + 1 if mask is None else x * mask)
    return [f(ones(4)), f(ones(4), ones(4))]


def nothing_to_do_at_first(compiled):
    f = compiled(lambda x, mask=None: x if mask is None else x * mask)
    return [f(ones(4)), f(ones(4), ones(4)), f(ones(4), ones(4))]


def nothing_to_do_later(compiled):
    f = compiled(lambda x, mask=None: x if mask is None else x * mask)
    return [f(ones(4), ones(4)), f(ones(4)), f(ones(4), ones(4))]


def a_number_or_a_tensor(compiled):
    f = compiled(lambda x, k: x * k)
    return [f(ones(4), 2.0), f(ones(4), torch.tensor(2.0))]


def the_environment(compiled):
    f = compiled(lambda x: x + 1 if os.environ.get("COMPILEDIAG_A_FLAG") == "1" else x - 1)
    found = []
    try:
        for flag in "01":
            os.environ["COMPILEDIAG_A_FLAG"] = flag
            found.append(f(ones(4)))
        return found
    finally:
        del os.environ["COMPILEDIAG_A_FLAG"]


def a_weak_reference(compiled):
    class Held:
        scale = 3

    held = Held()
    f, reference = compiled(lambda x, r: x + 1 if r() is None else x * r().scale), weakref.ref(held)
    found = [f(ones(4), reference)]
    del held
    gc.collect()
    return [*found, f(ones(4), reference)]


def two_modules_of_torch(compiled):
    torch.manual_seed(0)
    return [compiled(m)(ones(1, 2, 4)).detach() for m in (torch.nn.Linear(4, 4), torch.nn.Conv1d(2, 2, 1))]


def a_string(compiled):
    f = compiled(lambda x, mode: x * len(mode))
    return [f(ones(4), mode) for mode in ("sum", "mean", "a")]


def a_number_that_a_loop_needs(compiled):
    f = compiled(lambda x, k: sum(x for _ in range(k)))
    return [f(ones(4), k) for k in (3, 5, 4)]


def an_enum(compiled):
    colour = enum.Enum("Colour", {"RED": 1, "GREEN": 2})
    f = compiled(lambda x, c: x + c.value)
    return [f(ones(4), c) for c in colour]


# Containers and objects


def a_list_that_grows(compiled):
    f = compiled(lambda x, history: x + sum(history))
    history, found = [ones(4)], []
    for _ in range(4):
        found.append(f(ones(4), history))
        history.append(ones(4))
    return found


def a_dict_that_grows(compiled):
    f = compiled(lambda x, seen: x + len(seen))
    seen, found = {"a": 1}, []
    for key in "bcd":
        found.append(f(ones(4), seen))
        seen[key] = 1
    return found


def other_keys(compiled):
    f = compiled(lambda batch: batch["a"] + ("b" in batch))
    return [f({"a": ones(4)}), f({"a": ones(4), "b": ones(4)})]


def an_attribute_that_comes(compiled):
    class Holder:
        pass

    holder = Holder()
    f = compiled(lambda x, held: x + hasattr(held, "bias"))
    found = [f(ones(4), holder)]
    holder.bias = 1
    return [*found, f(ones(4), holder)]


def other_functions(compiled):
    f = compiled(lambda x, act: act(x))
    return [f(ones(4), act) for act in (torch.sin, torch.cos)]


def a_fresh_lambda_each_call(compiled):
    f = compiled(lambda x, act: act(x))
    return [f(ones(4), eval("lambda x: x + 1")) for _ in range(4)]


def a_fresh_class_each_call(compiled):
    def config():
        class Config:
            scale = 2

        return Config()

    f = compiled(lambda x, c: x * c.scale)
    return [f(ones(4), config()) for _ in range(3)]


def an_optimizer_made_anew(compiled):
    weight = torch.nn.Parameter(ones(4))
    for _ in range(3):
        weight.grad = ones(4)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        compiled(optimizer.step)()
        del optimizer
        gc.collect()
    return weight.detach()


def parameter_groups_that_come(compiled):
    first = torch.nn.Parameter(ones(4))
    optimizer = torch.optim.SGD([first], lr=0.1)
    step = compiled(optimizer.step)
    for _ in range(3):
        for group in optimizer.param_groups:
            group["params"][0].grad = torch.ones_like(group["params"][0])
        step()
        optimizer.add_param_group({"params": [torch.nn.Parameter(ones(3))]})
    return first.detach()


# Modes


def train_and_eval(compiled):
    module = torch.nn.Dropout(0.0)
    f = compiled(module)
    found = [f(ones(4))]
    module.eval()
    return [*found, f(ones(4))]


def grad_mode(compiled):
    f = compiled(lambda x: x * 2)
    found = [f(ones(4))]
    with torch.no_grad():
        return [*found, f(ones(4))]


def grad_mode_in_two_functions(compiled):
    f = compiled(lambda x: x * 2)
    g = compiled(lambda x: x * 3)
    found = [g(f(ones(4)))]
    with torch.no_grad():
        return [*found, g(f(ones(4)))]


def autocast(compiled):
    f = compiled(lambda x: x @ x)
    found = [f(ones(4, 4))]
    with torch.autocast("cpu"):
        return [*found, f(ones(4, 4))]


def threads(compiled):
    f, before = compiled(lambda x: x * 2), torch.get_num_threads()
    found = [f(ones(4))]
    try:
        torch.set_num_threads(before + 1)
        return [*found, f(ones(4))]
    finally:
        torch.set_num_threads(before)


def deterministic(compiled):
    f = compiled(lambda x: x * 2)
    found = [f(ones(4))]
    try:
        torch.use_deterministic_algorithms(True)
        return [*found, f(ones(4))]
    finally:
        torch.use_deterministic_algorithms(False)


def default_dtype(compiled):
    f = compiled(lambda x: x * 2)
    found = [f(ones(4))]
    try:
        torch.set_default_dtype(torch.float64)
        return [*found, f(ones(4, dtype=torch.float32))]
    finally:
        torch.set_default_dtype(torch.float32)


def default_device(compiled):
    f = compiled(lambda x: x * 2)
    found = [f(ones(4))]
    with torch.device("cpu"):
        return [*found, f(ones(4))]


def a_backend_each_time(compiled):
    def f(x):
        return x * 2

    return [compiled(f, backend=lambda graph, inputs: graph)(ones(4)) for _ in range(3)]


# Limits and breaks


def up_to_the_limit(compiled):
    f = compiled(lambda x, name: x * len(name))
    return [f(ones(4), "n" * n) for n in range(1, 12)]


def a_counter_up_to_the_limit(compiled):
    torch.manual_seed(0)
    f = compiled(Counter())
    return [f(ones(2, 4)).detach() for _ in range(11)]


def a_graph_break(compiled):
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    return compiled(f)(ones(4))


def a_storm_of_graph_breaks(compiled):
    def f(x):
        x = x + 1
        print(end="")
        x = x + 2
        print(end="")
        x = x + 3
        print(end="")
        return x

    return compiled(f)(ones(4))


def a_graph_break_in_a_loop(compiled):
    def f(x):
        for _ in range(3):
            x = x + 1
            print(end="")
        return x

    return compiled(f)(ones(4))


def a_graph_break_in_a_try_block(compiled):
    def f(x):
        try:
            x = x + 1
            print(end="")
            return x * 2
        except ValueError:
            return x

    return compiled(f)(ones(4))


def a_mark_that_the_code_does_not_allow(compiled):
    x = ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    try:
        compiled(lambda x: x + 1 if x.size(0) == 4 else x - 1)(x)
    except Exception as error:
        return type(error).__name__


def a_backend_that_fails(compiled):
    def failing(graph, inputs):
        raise RuntimeError("no kernels today")

    try:
        compiled(lambda x: x * 2, backend=failing)(ones(4))
    except Exception as error:
        return type(error).__name__


class Case:
    """A program, the rule of its first finding, words of its title, whether a setting fixes it, and how many recompiles
    of another cause are `left` with that setting.
    """

    def __init__(self, program, rule, says, fixed=False, left=0):
        self.program, self.rule, self.says, self.fixed, self.left = program, rule, says, fixed, left

    def __repr__(self):
        return self.program.__name__


CASES = [
    Case(a_size_with_static_shapes, "size_changes", "x.size(0) was 4, then 6, 7, 9", True),
    Case(a_size_with_automatic_shapes, "size_changes", "x.size(0) was 4, then 6", True),
    Case(two_sizes_that_change_together, "size_changes", "x.size(0) was 4, then 6, 8", True),
    Case(a_size_in_a_dict, "size_changes", "size(1) was 16, then 32, 48", True),
    Case(a_size_across_a_graph_break, "size_changes", "x.size(0) was 4, then 6, 8", True),
    Case(a_size_in_two_functions, "size_changes", "and 1 more function recompiled 4x", True),
    Case(size_one, "size_zero_one", "x.size(0) was 4, then 1, 0", True),
    Case(a_size_that_a_loop_needs, "specialized", "x.size(0) was 4, then 6, 7"),
    Case(a_size_that_a_branch_asks_for, "branch", "x.size(0) was 4, then 5, 15"),
    Case(equal_sizes_at_first, "duck_sizing", "y.size(0) == x.size(0) no longer holds", True),
    Case(a_buffer_of_another_size, "module_tensor_size", "table.size(1) was 4, then 6, 8", True),
    Case(modules_of_other_widths_share_their_code, "modules_share_code", "self.lin", True),
    Case(keys_and_values_that_grow, "size_changes", "past[0].size(1) was 2, then 4, 6", True, left=1),
    Case(layers_in_a_row_that_share_their_code, "modules_share_code", "self.lin", True, left=1),
    Case(a_size_that_has_to_divide, "branch", "x.size(0) was 13"),
    Case(memory_format, "stride_changes", "x.stride("),
    Case(rank, "rank_changes", "x.dim() was 2, then 1, 3"),
    Case(dtype, "dtype_changes", "x.dtype was torch.float32, then torch.float64, torch.bfloat16"),
    Case(device, "device_changes", "x.device was cpu, then meta"),
    Case(requires_grad, "requires_grad_changes", "x.requires_grad was False, then True"),
    Case(subclass, "type_changes", "x was Tensor, then Parameter"),
    Case(aliases, "alias_changes", "same tensor at some calls only"),
    Case(a_counter_of_a_module, "counter", "self.n was 1, then 2, 3, 4, 5", True),
    Case(a_counter_that_is_an_argument, "counter", "step was 2, then 3, 4, 5, 6", True),
    Case(an_integer_of_a_module, "module_int", "self.n was 9, then 5, 7, 3", True),
    Case(a_learning_rate, "optimizer_number", "self.param_groups[0]['lr'] was 0.5, then 0.25, 0.1"),
    Case(a_float, "float_changes", "scale was 0.5, then 0.25, 0.1"),
    Case(a_variable_of_a_function_passed_in, "int_changes", "k was 7, then 3, 5", True),
    Case(a_global, "global_int", "SCALE was 9, then 5, 7", True),
    Case(a_flag, "flag", "flag was True, then False"),
    Case(an_optional_argument, "optional_argument", "mask was None, then Tensor"),
    Case(nothing_to_do_at_first, "nothing_to_compile", "its first call had nothing to compile"),
    Case(nothing_to_do_later, "optional_argument", "mask was Tensor"),
    Case(a_number_or_a_tensor, "type_changes", "k was 2.0, then Tensor"),
    Case(the_environment, "value_changes", "os.environ['COMPILEDIAG_A_FLAG'] was b'0', then b'1'"),
    Case(a_weak_reference, "dead_reference", "r() was deallocated"),
    Case(two_modules_of_torch, "modules_share_code", "the module was Linear, then Conv1d"),
    Case(a_string, "string_changes", "mode was 'sum', then 'mean', 'a'"),
    Case(a_number_that_a_loop_needs, "specialized", "k was 3, then 5, 4"),
    Case(an_enum, "identity_changes", "c was another object: Colour.GREEN"),
    Case(a_list_that_grows, "growing_container", "len(history) was 1, then 2, 3, 4"),
    Case(a_dict_that_grows, "growing_container", "len(seen) was 1, then 2, 3"),
    Case(other_keys, "dict_keys_change", "batch['b'] was absent, then present"),
    Case(an_attribute_that_comes, "hasattr_changes", "held.bias was absent, then present"),
    Case(other_functions, "identity_changes", "act was another object"),
    Case(a_fresh_lambda_each_call, "fresh_object", "act"),
    Case(a_fresh_class_each_call, "fresh_class", "c was"),
    Case(an_optimizer_made_anew, "dead_reference", "was deallocated"),
    Case(parameter_groups_that_come, "growing_container", "len(self.param_groups) was 1, then 2, 3"),
    Case(train_and_eval, "train_eval", "training was True, then False"),
    Case(grad_mode, "grad_mode", "grad_mode was True, then False"),
    Case(grad_mode_in_two_functions, "grad_mode", "and 1 more function recompiled 2x"),
    Case(autocast, "autocast", "autocast"),
    Case(threads, "num_threads", "num_threads"),
    Case(deterministic, "deterministic", "deterministic_algorithms was False, then True"),
    Case(default_dtype, "default_dtype", "default_dtype"),
    Case(default_device, "mode_stack", "the stack of torch function modes changed"),
    Case(a_backend_each_time, "backend_changes", "compiled with another backend callable"),
    Case(up_to_the_limit, "recompile_limit", "hit recompile_limit", True),
    Case(a_counter_up_to_the_limit, "recompile_limit", "hit recompile_limit", True),
    Case(a_graph_break, "graph_break", "graph break at programs.py:"),
    Case(a_storm_of_graph_breaks, "graph_break_storm", "graph breaks at 3 lines of programs.py"),
    Case(a_graph_break_in_a_loop, "runs_eagerly", "in a loop"),
    Case(a_graph_break_in_a_try_block, "runs_eagerly", "is not compiled and runs eagerly"),
    Case(a_mark_that_the_code_does_not_allow, "compile_failed", "ConstraintViolationError"),
    Case(a_backend_that_fails, "compile_failed", "no kernels today"),
]
