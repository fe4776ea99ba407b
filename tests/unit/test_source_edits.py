"""Edits of a source file: where they are put, what they refuse, and that line numbers stay those of the original."""

import textwrap
import traceback

import pytest

from compilediag.diagnosis import Edit
from tests.inside import EditError, apply_edits

MARK = "torch._dynamo.mark_dynamic(x, 0)"
IMPORT = "import torch\n"


def edit(source, line, kind, old, new, call=""):
    """The text below the import of torch, in which lines are counted."""
    text = IMPORT + textwrap.dedent(source)
    code = text.splitlines()[line].strip() if line < len(text.splitlines()) else old
    code = old if kind == "insert_before" else code
    changed = apply_edits(text, [Edit("train.py", line + 1, kind, old, new, code=code, call=call)]).text
    return changed.removeprefix(IMPORT)


def insert(source, line, old, new=MARK):
    return edit(source, line, "insert_before", old, new)


def replace(source, line, call, old, new):
    return edit(source, line, "replace", old, new, call)


@pytest.mark.parametrize(
    ("source", "line", "old", "expected"),
    [
        ("y = f(x)\n", 1, "y = f(x)", f"{MARK}\ny = f(x)\n"),
        ("for x in xs:\n    y = f(x)\n", 2, "y = f(x)", f"for x in xs:\n    {MARK}\n    y = f(x)\n"),
        ("for x in xs:\n\ty = f(x)\n", 2, "y = f(x)", f"for x in xs:\n\t{MARK}\n\ty = f(x)\n"),
        ("y = f(\n    x,\n)\n", 2, "x,", f"{MARK}\ny = f(\n    x,\n)\n"),
        ("if f(x):\n    pass\n", 1, "if f(x):", f"{MARK}\nif f(x):\n    pass\n"),
        ("@wrap\ndef f(): pass\n", 2, "def f(): pass", f"{MARK}\n@wrap\ndef f(): pass\n"),
        ("try:\n    f(x)\nexcept E:\n    f(y)", 4, "f(y)", f"try:\n    f(x)\nexcept E:\n    {MARK}\n    f(y)"),
        ("# é\nü = f('é', x)\n", 2, "ü = f('é', x)", f"# é\n{MARK}\nü = f('é', x)\n"),
        ("a = 1\r\nf(x)\r\n", 2, "f(x)", f"a = 1\r\n{MARK}\nf(x)\r\n"),
    ],
)
def test_a_line_is_put_before_the_statement_with_its_indentation(source, line, old, expected):
    assert insert(source, line, old) == expected


def test_inserted_lines_have_the_line_ends_of_the_file():
    change = Edit("a.py", 2, "insert_before", "f(x)", MARK, code="f(x)")
    changed = apply_edits("import os\r\nf(x)\r\n", [change], {"recompile_limit": 16}).text
    setting = "torch._dynamo.config.recompile_limit = 16\r\n"
    assert changed == f"import os\r\nimport torch\r\n{setting}{MARK}\r\nf(x)\r\n"


def test_settings_are_put_below_the_import_of_torch_also_below_other_code():
    source = "import os\nos.environ['A'] = '1'\nimport torch\nimport json\n\nf(x)\n"
    changed = apply_edits(source, [], {"recompile_limit": 16}).text
    assert changed == source.replace("json\n", "json\ntorch._dynamo.config.recompile_limit = 16\n")


LIMIT, SOURCES = "torch._dynamo.config.recompile_limit", "torch.compiler.config.dynamic_sources"


@pytest.mark.parametrize(
    ("source", "edits", "expected"),
    [
        ("def run():\n    f(x)\n", [(2, f"{LIMIT} = 9")], f"def run():\n    {LIMIT} = 9\n    f(x)\n"),
        (
            "def run():\n    'Do it.'\n    while True:\n        f(x)\n",
            [(4, f"{LIMIT} = 9")],
            f"def run():\n    'Do it.'\n    {LIMIT} = 9\n    while True:\n        f(x)\n",
        ),
        (
            "async def run():\n    f(x)\n    g(x)\n",
            [(2, f"{SOURCES} = 'a'"), (3, f"{SOURCES} = 'b'\n{LIMIT} = 9")],
            f"async def run():\n    {SOURCES} = 'a,b'\n    {LIMIT} = 9\n    f(x)\n    g(x)\n",
        ),
        (
            f"{LIMIT} = 3\ndef run():\n    {LIMIT} = 5\n    f(x)\n",
            [(4, f"{LIMIT} = 9")],
            f"{LIMIT} = 3\ndef run():\n    {LIMIT} = 9\n    f(x)\n",
        ),
        ("def run():\n    def go():\n        f(x)\n", [(3, f"{LIMIT} = 9")], None),
        ("def run(): f(x)\n", [(1, f"{LIMIT} = 9")], None),
        ("f(x)\n", [(1, f"{LIMIT} = 9")], None),
        ("def run():\n    f(x)\n", [(2, "import os")], None),
        ("def run():\n    f(x)\n", [(2, MARK)], None),
    ],
)
def test_settings_of_a_thread_are_put_at_the_beginning_of_its_function(source, edits, expected):
    lines = (IMPORT + source).splitlines()
    made = [Edit("a.py", at + 1, "begin_function", "run", new, code=lines[at].strip()) for at, new in edits]
    if expected is None:
        with pytest.raises(EditError):
            apply_edits(IMPORT + source, made)
    else:
        assert apply_edits(IMPORT + source, made).text.replace('"', "'") == IMPORT + expected


@pytest.mark.parametrize(
    ("settings", "line", "expected"),
    [
        ({"dynamic_sources": "L['x']"}, "torch.compiler.config.dynamic_sources = \"L['k']\"", "L['x'],L['k']"),
        ({"dynamic_sources": "L['x']"}, "torch.compiler.config.dynamic_sources = \"L['x']\"", "L['x']"),
        ({"recompile_limit": 16}, "torch._dynamo.config.recompile_limit = 32", 32),
        ({"capture_scalar_outputs": True}, "torch._dynamo.config.capture_scalar_outputs = False", True),
    ],
)
def test_a_setting_that_the_file_assigns_is_changed_there(settings, line, expected):
    (key,) = settings
    changed = apply_edits(f"import torch\n\nf(x)\n{line}  # mine\nf(x)\n", [], settings).text
    assert changed == f"import torch\n\nf(x)\n{line.partition(' = ')[0]} = {expected!r}  # mine\nf(x)\n"


@pytest.mark.parametrize(
    ("source", "line", "call", "old", "new", "expected"),
    [
        ("y = f(x)\n", 1, "f(x)", "x", "x.contiguous()", "y = f(x.contiguous())\n"),
        ("f(x, scale=k)", 1, "f(x, scale=k)", "k", "torch.tensor(k)", "f(x, scale=torch.tensor(k))"),
        (
            "f(\n    x,  # all\n    k,\n)",
            1,
            "f(x, k)",
            "k",
            "torch.tensor(k)",
            "f(\n    x,  # all\n    torch.tensor(k),\n)",
        ),
        ("f('é', k)", 1, "f('é', k)", "k", "torch.tensor(k)", "f('é', torch.tensor(k))"),
        ("f(k, k)", 1, "f(k, k)", "k", "torch.tensor(k)", "f(torch.tensor(k), torch.tensor(k))"),
        ('f(b["k"])', 1, "f(b['k'])", "b['k']", "torch.tensor(b['k'])", 'f(torch.tensor(b["k"]))'),
        ("x = g(k, f(k))", 1, "f(k)", "k", "torch.tensor(k)", "x = g(k, f(torch.tensor(k)))"),
        ("for x in f(xs):\n    f(xs)", 1, "f(xs)", "xs", "xs.view_as(xs)", "for x in f(xs.view_as(xs)):\n    f(xs)"),
    ],
)
def test_an_argument_is_replaced_in_its_call(source, line, call, old, new, expected):
    assert replace(source, line, call, old, new) == expected


def test_edits_of_one_call_are_joined():
    call = "step(ids, labels)"
    shared = {"code": call, "call": call}
    marks = [f"torch._dynamo.mark_dynamic(ids, {n})" for n in (0, 1)]
    edits = [
        Edit("a.py", 2, "replace", "ids", "ids.contiguous()", **shared),
        Edit("a.py", 2, "replace", "labels", "labels.view_as(labels)", **shared),
        *(Edit("a.py", 2, "insert_before", call, marks[n], code=call) for n in (0, 1, 0)),
    ]
    changed = "step(ids.contiguous(), labels.view_as(labels))"
    assert apply_edits(IMPORT + call, edits).text == "\n".join([IMPORT.strip(), *marks, changed])


def test_two_edits_of_the_same_argument_are_refused():
    news = ("torch.tensor(n)", "torch.as_tensor(n)")
    edits = [Edit("a.py", 2, "replace", "n", new, code="f(n)", call="f(n)") for new in news]
    with pytest.raises(EditError, match="two changes replace the same code in line 2"):
        apply_edits(IMPORT + "f(n)", edits)


@pytest.mark.parametrize(
    ("source", "line", "old", "message"),
    [
        ("y = g(x)", 1, "y = f(x)", r"train.py:2 is no longer `y = f\(x\)`: the file was changed since"),
        ("y = f(x) + 1", 1, "f(x)", "no longer"),
        ("password = 'A'", 1, "A", "no longer"),
        ("y = g(x)", 1, "", "no longer"),
        ("y = g(x)", 7, "y = f(x)", "train.py:8 has no code"),
        ("x = g(); y = f(x)", 1, "x = g(); y = f(x)", "train.py:2 has several statements"),
        ("if a:\n    b\nelif f(x):\n    c", 3, "elif f(x):", "no line can be put before `elif`"),
        ("y = (", 1, "y = (", "the file is not valid Python"),
        ("(" * 500 + ")" * 500, 1, "(", "the file is not valid Python"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_in_one_line(source, line, old, message):
    with pytest.raises(EditError, match=message) as raised:
        insert(source, line, old)
    assert "\n" not in str(raised.value) and "password" not in str(raised.value)


EVIL = "__import__('os').system('x')"


@pytest.mark.parametrize(
    "new",
    [
        "mark dynamic!",
        EVIL,
        f"torch._dynamo.mark_dynamic(x, 0); {EVIL}",
        f"torch._dynamo.mark_dynamic(x, 0)\n{EVIL}",
        f"torch._dynamo.mark_dynamic(x, 0)\r{EVIL}",
        f"torch._dynamo.mark_dynamic(x, 0) #\r{EVIL}",
        f"torch._dynamo.mark_dynamic(x[{EVIL}], 0)",
        f"torch._dynamo.mark_dynamic(x, {EVIL})",
        "torch._dynamo.mark_dynamic(f'{x}', 0)",
        "torch._dynamo.mark_dynamic((y := x), 0)",
        "torch._dynamo.mark_dynamic(x, 0)  # coding: utf-7",
        "torch._dynamo.mark_dynamic(x, 0, min=2)",
        "torch.load(x, 0)",
        "torch._dynamo.config.cache_size_limit = f()",
        "torch._inductor.config.cpp.cxx = ('sh', '-c', 'x')",
        "import os",
        "from os import system as torch",
        "import torch as os",
        "n = IntVar(f())",
        "torch = IntVar('n')",
        "@evil\n@dynamic_spec({})",
        "@evil",
        f"@dynamic_spec({{}})\ndef decorated(): {EVIL}",
        "module.compile(dynamic_shapes={})",
        "torch.tensor(x)",
    ],
)
def test_code_of_no_known_form_is_not_inserted(new):
    with pytest.raises(EditError):
        insert("y = f(x)\n", 1, "y = f(x)", new)
    with pytest.raises(EditError):
        insert("def f(x):\n    return x\n", 1, "def f(x):", new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x", EVIL),
        ("x", "y"),
        ("x", f"x.contiguous({EVIL})"),
        ("x", "y.contiguous()"),
        ("x", "x.view_as(y)"),
        ("x", "x.contiguous() #"),
        ("x", f"x.contiguous())\r({EVIL}"),
        ("x", f"x.contiguous()\n\n{EVIL}"),
        (EVIL, f"{EVIL}.contiguous()"),
        ("@torch.compile", f"@torch.compile(backend={EVIL})"),
        ("@torch.compile", f"@torch.compile(dynamic_shapes={EVIL})"),
        ("@torch.compile", "@torch.compile(dynamic_shapes={}, backend='y')"),
    ],
)
def test_an_argument_of_no_known_form_is_not_inserted(old, new):
    with pytest.raises(EditError):
        replace(f"y = f(x)\nf({EVIL})\n", 1, "f(x)", old, new)
    with pytest.raises(EditError):
        edit("@torch.compile\ndef f(x):\n    return x\n", 1, "replace", old, new)


@pytest.mark.parametrize(
    "imports", ["import os", "from os import system", f"import torch; {EVIL}", f"import torch\r{EVIL}"]
)
def test_no_other_import_is_added(imports):
    change = Edit("a.py", 2, "insert_before", "f(x)", MARK, imports, code="f(x)")
    with pytest.raises(EditError, match="is not an import"):
        apply_edits(IMPORT + "f(x)\n", [change])


def test_line_numbers_stay_those_of_the_original():
    source = (
        "def f(x):\n    y = [\n        x,\n    ]\n    return g(y,\n      x)\n\ndef g(a, b):\n    raise ValueError\n"
    )
    edits = [
        Edit("a.py", 2, "insert_before", "y = [", 'first = IntVar("a")\nsecond = IntVar("b")', code="y = ["),
        Edit("a.py", 5, "replace", "x", "x.contiguous()", code="return g(y,", call="g(y,\n      x)"),
        Edit("a.py", 9, "insert_before", "raise ValueError", 'third = IntVar("c")', code="raise ValueError"),
    ]
    edited = apply_edits(source, edits)
    assert edited.lines == (1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10)
    namespace = {"IntVar": str}
    exec(edited.compile("a.py"), namespace)

    class Value:
        def contiguous(self):
            return self

    with pytest.raises(ValueError) as raised:
        namespace["f"](Value())
    lines = [frame.lineno for frame in traceback.extract_tb(raised.value.__traceback__) if frame.filename == "a.py"]
    assert lines == [5, 9]
    assert namespace["g"].__code__.co_firstlineno == 8


def test_what_is_not_edited_compiles_to_the_same_code():
    source = "x = 1\n\n\ndef f():\n    return (x,\n        f)\n"
    code, expected = apply_edits(source, []).compile("a.py"), compile(source, "a.py", "exec")
    assert code.co_code == expected.co_code
    assert list(code.co_positions()) == list(expected.co_positions())


# What keeps sizes static is taken away


@pytest.mark.parametrize(
    ("source", "line", "old", "new", "expected"),
    [
        ("@torch.compile(dynamic=False)\ndef f(): pass", 1, "@torch.compile(dynamic=False)", "@torch.compile", None),
        ("@torch.compile(a=1, dynamic=False)\ndef f(): pass", 1, "@torch.compile(a=1, dynamic=False)",
         "@torch.compile(a=1)", None),
        ("@partial(torch.compile, dynamic=False)\ndef f(): pass", 1, "@partial(torch.compile, dynamic=False)",
         "@partial(torch.compile)", None),
        ("é = torch.compile(f('é'), dynamic=False)", 1, "torch.compile(f('é'), dynamic=False)",
         "torch.compile(f('é'))", None),
        ("model.compile(dynamic=False)", 1, "model.compile(dynamic=False)", "model.compile()", None),
        ("f = compile(f, dynamic=False, **options)", 1, "compile(f, dynamic=False, **options)",
         "compile(f, **options)", None),
        ("torch.compile(\n    f,\n    dynamic=False,  # why\n    a=1,\n)", 3, "torch.compile(f, dynamic=False, a=1)",
         "torch.compile(f, a=1)", "torch.compile(\n    f,\n    a=1,\n)"),
        ("torch.compile(\r\n    f, dynamic=False,\r\n)", 2, "torch.compile(f, dynamic=False)", "torch.compile(f)",
         "torch.compile(\r\n    f,\r\n)"),
        ("m.compile(\n    dynamic=False,\n)", 2, "m.compile(dynamic=False)", "m.compile()", "m.compile()"),
        ("torch._dynamo.config.specialize_int = True", 1, "torch._dynamo.config.specialize_int = True",
         "torch._dynamo.config.specialize_int = False", None),
    ],
)  # fmt: skip
def test_what_keeps_sizes_static_is_taken_away(source, line, old, new, expected):
    changed = source.replace(old.removeprefix("@"), new.removeprefix("@")) if expected is None else expected
    assert replace(source, line, "", old, new) == changed


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("torch.compile(f, dynamic=False)", "torch.compile(f, dynamic=False)", "torch.compile(g)"),
        ("torch.compile(f, dynamic=False)", "torch.compile(f, dynamic=False)", f"torch.compile(f, a={EVIL})"),
        ("torch.compile(f, dynamic=False)", "torch.compile(f, dynamic=False)", ""),
        ("torch.compile(f, dynamic=False, a=1)", "torch.compile(f, dynamic=False)", "torch.compile(f)"),
        ("torch.compile(f, dynamic=True)", "torch.compile(f, dynamic=True)", "torch.compile(f)"),
        ("torch.compile(f, check=False)", "torch.compile(f, check=False)", "torch.compile(f)"),
        ("torch.export(f, dynamic=False)", "torch.export(f, dynamic=False)", "torch.export(f)"),
        ("torch._dynamo.config.suppress_errors = True", "torch._dynamo.config.suppress_errors = True",
         "torch._dynamo.config.suppress_errors = False"),
        ("config.specialize_int = True", "config.specialize_int = True", "config.specialize_int = False"),
    ],
)  # fmt: skip
def test_nothing_else_is_taken_away(source, old, new):
    with pytest.raises(EditError):
        replace(source, 1, "", old, new)
