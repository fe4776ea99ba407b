"""A program with a secret of its own wherever a program can hold one, recorded as a user would record it.

Each secret contains a word or number that is nowhere else, so a test can search for it in whatever is written.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

#: Kind of key -> Python code of the key. Each has a word of its own, or a number.
KEYS = {
    "plain": "'SECRETplain'",
    "space": "'SECRETspace key'",
    "quote": '"SECRETquote\'s"',
    "double quote": "'SECRETdouble\"quoted'",
    "both quotes": "'SECRETboth\\'\"quotes'",
    "quote at the end": "'SECRETend\\''",
    "backslash": "'SECRETback\\\\slash\\\\'",
    "newline": "'SECRETnew\\nline'",
    "carriage return": "'SECRETcarriage\\rreturn'",
    "tab": "'\\tSECRETtab'",
    "null": "'SECRETnull\\0'",
    "braces": "'{SECRETbraces}'",
    "brackets": "'][SECRETbrackets]['",
    "parentheses": "')SECRETparens('",
    "comment": "'# SECRETcomment'",
    "markup": "'<b>SECRETmarkup</b>'",
    "path": "'/home/SECRETpath/data.csv'",
    "mail": "'SECRETmail@example.com'",
    "unicode": "'é SECRETunicode'",
    "like code": "'x.SECRETcode[0]'",
    "like a local": "\"L['SECRETlocal']\"",
    "comma": "'a, SECRETcomma'",
    "equals": "'s0 = SECRETequals'",
    "long": "'SECRETlong' * 30",
    "bytes": "b'SECRETbytes'",
    "bytes with quotes": "b'SECRETbquote\\'\"'",
    "tuple": "('SECRETtuple', 0)",
    "nested tuple": "(('SECRETnested', 1), b'SECRETdeep')",
    "frozenset": "frozenset(('SECRETfrozen',))",
    "integer": "41111101",
    "negative integer": "-41111102",
    "tuple of integers": "(41111103, 7)",
    "float": "4111.11104",
    "complex": "41111105j",
}
#: What else the program holds -> its word.
PLANTED = {
    "file": "SECRETfile",
    "folder": "SECRETfolder",
    "text constant": "SECRETvalue",
    "other text constant": "SECRETother",
    "integer constant": "41111201",
    "attribute's value": "SECRETattribute",
    "attribute with a space": "SECRETspaced",
    "attribute with quotes": "SECRETquoted",
    "member of a set": "SECRETmember",
    "key that is missing": "SECRETmissing",
    "global": "SECRETglobal",
    "function's name": "SECRETname",
    "comment": "SECRETremark",
    "printed": "SECRETprinted",
    "exception": "SECRETexception",
    "cause of the exception": "SECRETcause",
    "exception in a graph": "SECRETraised",
    "variable of the environment": "SECRETvariable",
    "its value": "SECRETenviron",
    "argument": "SECRETargument",
    "home": "SECREThome",
    "docstring": "SECRETdocstring",
    "enumeration": "SECRETenum",
    "size": "4111131",
    "kernel's folder": "SECRETcaches",
    "module of a dictionary": "SECRETmodule",
    "default": "SECRETdefault",
    "closure": "SECRETclosure",
    "class attribute": "SECRETclass",
}

#: The secret -> words, each of which gives it away.
SECRETS = {
    **{f"key: {name}": re.findall(r"SECRET[a-z]+|\d{4}[\d.]+", code) for name, code in KEYS.items()},
    **{name: [word] for name, word in PLANTED.items()},
}

PROGRAM = f'''
"""SECRETdocstring"""
import enum, os, types
import torch

KEYS = [{", ".join(KEYS.values())}]
TABLE = {{"SECRETglobal key": 1}}

def copy(function, name):
    """The function with entries of its own."""
    code = function.__code__.replace(co_name=name)
    return types.FunctionType(code, globals(), name, function.__defaults__, function.__closure__)

def read(x, table, key):
    """SECRETdocstring"""
    return x + table[key]  # SECRETremark

def contain(x, table, key):
    return x + 1 if key in table else x - 1

def nested(x, tables, key):
    return x + tables[0][key]["n"]

def read_global(x):
    return x + TABLE["SECRETglobal key"]

def is_text(x, text):
    return x + 1 if text == "SECRETvalue" else x - 1

def is_number(x, number):
    return x * number

def read_environ(x):
    return x + len(os.environ["SECRETvariable"])

def breaking(x):
    print("SECRETprinted")
    return x + 1

def raising(x):
    y = x + 1
    raise ValueError("SECRETraised")

def with_default(x, mode="SECRETdefault"):
    return x + len(mode)

def make_closure(text):
    def inner(x):
        return x + len(text)
    return inner

class Kind(enum.Enum):
    ONE = "SECRETenum"
    TWO = "SECRETenum 2"

def is_kind(x, kind):
    return x + len(kind.value)

def failing(graph, inputs):
    try:
        raise OSError("SECRETcause")
    except OSError as error:
        raise ValueError("SECRETexception") from error

class Model(torch.nn.Module):
    label = "SECRETclass"

    def __init__(self):
        super().__init__()
        self.mode = "SECRETattribute"
        self.seen = {{"SECRETmember"}}
        self.blocks = torch.nn.ModuleDict({{"SECRETmodule one": torch.nn.Linear(2, 2)}})
        setattr(self, "SECRETspaced name", 1)
        setattr(self, "SECRETquoted'\\"", 1)

    def forward(self, x):
        x = self.blocks["SECRETmodule one"](x) + len(self.mode) + len(self.label)
        x = x + getattr(self, "SECRETspaced name") + getattr(self, "SECRETquoted'\\"")
        return x + 1 if "SECRETmember" in self.seen else x

def call(function, *changes, **options):
    for change in changes:
        try:
            torch.compile(function, backend="eager", **options)(*change)
        except Exception as error:
            print("failed:", type(error).__name__)

x = torch.ones(2)
for number, key in enumerate(KEYS):
    call(copy(read, f"read{{number}}"), (x, {{key: 1}}, key), (x, {{key: 2}}, key), (x, {{}}, key))
    call(copy(contain, f"contain{{number}}"), (x, {{key: 1}}, key), (x, {{}}, key))
    call(copy(nested, f"nested{{number}}"), (x, [{{key: {{"n": 1}}}}], key), (x, [{{key: {{"n": 2}}}}], key))
call(copy(read, "SECRETname of a function"), (x, {{1: 1}}, 1), (x, {{1: 2}}, 1))
call(is_text, (x, "SECRETvalue"), (x, "SECRETother"), (x, "SECRETvalue and more"))
call(is_number, (x, 41111201), (x, 41111201.5), dynamic=False)
call(with_default, (x,), (x, "SECRETdefault2"))
for text in ("SECRETclosure", "SECRETclosure2"):
    call(make_closure(text), (x,))
call(is_kind, (x, Kind.ONE), (x, Kind.TWO))
call(breaking, (x,))
call(raising, (x,))
call(lambda x: x[-1:] + 1, (torch.ones(4111131),), (torch.ones(4111132),), dynamic=False)
call(read_global, (x,))
TABLE["SECRETglobal key"] = 2
call(read_global, (x,))
call(read_environ, (x,))
os.environ["SECRETvariable"] += "!"
call(read_environ, (x,))
model = Model()
call(model, (x,))
for name in ("SECRETspaced name", "SECRETquoted'\\""):
    setattr(model, name, 2)
    call(model, (x,))
model.mode += "2"
call(model, (x,))
model.seen.add("SECRETmember2")
call(model, (x,))
model.seen.remove("SECRETmember")
call(model, (x,))
Model.label += "2"
call(model, (x,))
call(lambda x, key: {{key: x}}["SECRETmissing"], (x, "SECRETvalue"))
try:
    torch.compile(lambda x: x - 1, backend=failing)(x)
except torch._dynamo.exc.BackendCompilerFailed:
    pass
torch.compile(lambda x: x * 2 + 1, backend="inductor")(x)
'''


def run_program(folder: Path, detail: str) -> tuple[Path, Path, Path]:
    """Record the program; returns the session, the folder of its TORCH_TRACE logs, and its redacted report."""
    place = folder / PLANTED["folder"]
    place.mkdir()
    script = place / f"{PLANTED['file']}.py"
    script.write_text(PROGRAM)
    session, logs, report = place / "run.cdiag", place / "logs", folder / "report.html"
    environment = {
        **os.environ,
        "HOME": str(place / PLANTED["home"]),
        "SECRETvariable": PLANTED["its value"],
        "TORCH_TRACE": str(logs),
        "TORCHINDUCTOR_CACHE_DIR": str(place / PLANTED["kernel's folder"]),
    }
    options = ["--save", str(session), "--report", str(report), "--redact", "--detail", detail, "--quiet"]
    command = [sys.executable, "-m", "compilediag", "run", *options, str(script), f"--token={PLANTED['argument']}"]
    # No fork: torch reads HOME when it is imported.
    subprocess.run(command, env=environment, cwd=place, check=True, timeout=600, stdout=subprocess.DEVNULL)
    return session, logs, report


def find_leaks(text: str) -> list[str]:
    """The secrets that a text contains."""
    return [name for name, words in SECRETS.items() if any(word in text for word in words)]
