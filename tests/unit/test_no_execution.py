"""No text is executed: every call in the package that runs, imports or unpacks code by name, and why it may."""

import ast
from pathlib import Path

import compilediag

PACKAGE = Path(compilediag.__file__).parent

#: What executes, imports or unpacks what it is given, by its full name.
SUSPECT = {
    *("eval", "exec", "compile", "__import__"),
    *("importlib.import_module", "importlib.__import__", "importlib.reload"),
    *("importlib.util.find_spec", "importlib.util.spec_from_file_location", "importlib.util.module_from_spec"),
    *("pkgutil.resolve_name", "ast.literal_eval", "inspect.get_annotations", "typing.get_type_hints"),
    *("runpy.run_path", "runpy.run_module", "code.interact", "code.InteractiveInterpreter", "timeit.timeit"),
    *("types.FunctionType", "types.CodeType", "os.system", "os.popen", "os.startfile", "pty.spawn"),
    *("numpy.load", "torch.load", "yaml.load", "yaml.unsafe_load", "pandas.eval", "pandas.read_pickle"),
    *("ctypes.CDLL", "logging.config.fileConfig", "logging.config.dictConfig", "string.Formatter"),
}
#: Of these only calls count: their names also are those of variables and of types.
CALLED = {"compile", "types.FunctionType", "types.CodeType", "ctypes.CDLL"}
#: A call of these with constants alone names nothing that was recorded.
IMPORTING = {"importlib.import_module", "importlib.util.find_spec", "ctypes.CDLL"}
#: Packages of which every call unpacks objects, or runs code.
UNPACKING = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy", "jsonpickle"}
#: Methods that execute their argument, or a file, whatever they are called on.
METHODS = {
    *("exec_module", "load_module", "load_extension", "enable_load_extension", "run_cell", "run_cell_async"),
    *("eval", "query", "executescript", "create_function", "read_pickle", "get_type_hints", "run_line_magic", "ex"),
}
#: Not `compile` of Python.
OTHER_COMPILE = {"re.compile", "torch.compile"}

OWN_PARTS = "the names are a table of our own modules"
INSTALLED = "only asks whether a package is installed; the names are constants of ours"
HOOKS = "the names of torch's modules are constants in the torch_api.py files"
PROGRAM = "compiles the program that the user asked to run, as Python does"
OWN_PROCESS = "the bytes come from a process that this one started, over a pipe"
CONSTANT = "makes a constant of a text; there is no name and no call in its result"
USERS_SOURCE = "compiles the user's own file with the edits of a plan, in a process for a trial"
UNTIL = "the expression that the user gave on the command line, `--until EXPR`"
PROGRAMS_IMPORT = "passes on an import that the program itself makes"
PARSE_ONLY = "only parses, because of the flag PyCF_ONLY_AST"

#: (file, qualified name of the function, what it calls) -> why that cannot execute what was recorded.
ALLOWED = {
    ("__init__.py", "__getattr__", "importlib.import_module"): OWN_PARTS,
    ("__init__.py", "__getattr__", "getattr of a module"): OWN_PARTS,
    ("cli/python_program.py", "PythonProgram.run", "exec"): "runs the script that the user named on the command line",
    ("cli/python_program.py", "PythonProgram.load_into", "exec"): "the same script, in a process that it spawned",
    ("cli/python_program.py", "_find_spec", "importlib.util.find_spec"): "finds the module of `-m` on the command line",
    ("cli/python_program.py", "find_script", "compile"): PROGRAM,
    ("cli/try_process.py", "_find_program", ".compile"): USERS_SOURCE,
    ("diagnosis/source_edits.py", "EditedSource.compile", "compile"): USERS_SOURCE,
    ("diagnosis/source_edits.py", "_parse_source", "compile"): PARSE_ONLY,
    ("recording/startup/sitecustomize.py", "_run_programs_own", ".exec_module"): PROGRAMS_IMPORT,
    ("recording/startup/sitecustomize.py", "_run_programs_own", "importlib.util.module_from_spec"): PROGRAMS_IMPORT,
    ("trials/trial_process.py", "import_edited.get_edited_code", ".compile"): USERS_SOURCE,
    ("trials/trial_process.py", "StopRule.__init__", "compile"): UNTIL,
    ("trials/trial_process.py", "StopRule.ends_before", "eval"): UNTIL,
    ("trials/fork_server.py", "serve", "importlib.import_module"): "what the program's first run imported itself",
    ("trials/torch_api.py", "apply_settings", "importlib.import_module"): "the modules are a table in settings.py",
    ("diagnosis/source_edits.py", "EditedSource.parse", "compile"): PARSE_ONLY,
    ("frontends/cell_process.py", "_run_cells", ".run_cell"): "runs cells that the user executed, in a trial",
    ("frontends/magics.py", "CompileWatch.cell", ".run_cell"): "runs the cell that the user runs, under the magic",
    ("decode/records/autotune_choices.py", "_parse_value", "ast.literal_eval"): CONSTANT,
    ("decode/records/autotune_choices.py", "parse_inputs", "ast.literal_eval"): CONSTANT,
    ("diagnosis/rules/guards_on_objects.py", "_is_lengthening", "ast.literal_eval"): CONSTANT,
    ("json_document.py", "read_plain", "typing.get_type_hints"): "the types are those that a class of ours declares",
    ("logs/log_parts.py", "unpack_records", "marshal.loads"): OWN_PROCESS,
    ("logs/workers.py", "Worker.take", "marshal.loads"): OWN_PROCESS,
    ("logs/log_files.py", "_make_unpacker", "importlib.import_module"): "one of two names of zstd in a constant tuple",
    ("integrations/__init__.py", "_import_bases", "importlib.import_module"): "names of libraries in a constant table",
    ("integrations/__init__.py", "_import_bases", "getattr of a module"): "names of base classes in a constant table",
    ("cli/doctor_command.py", "_find_missing", "importlib.util.find_spec"): INSTALLED,
    ("integrations/__init__.py", "_import_bases", "importlib.util.find_spec"): INSTALLED,
    ("views/export.py", "_write_parquet", "importlib.util.find_spec"): INSTALLED,
    ("sources/autotune/torch_api.py", "count_compilers", "getattr of a module"): HOOKS,
    ("sources/caches/torch_api.py", "autograd_config", "getattr of a module"): HOOKS,
    ("sources/dynamo/torch_api.py", "get_setting", "getattr of a module"): HOOKS,
    ("sources/hooks/torch_names.py", "TorchName._find_owner", "importlib.import_module"): HOOKS,
    ("sources/hooks/torch_names.py", "TorchName.exists", "importlib.util.find_spec"): HOOKS,
    ("sources/hooks/torch_names.py", "require_modules", "importlib.util.find_spec"): HOOKS,
    ("sources/hooks/patches.py", "WhenImported.find_spec", "importlib.util.find_spec"): PROGRAMS_IMPORT,
    ("sources/hooks/patches.py", "_NotifyingLoader.exec_module", ".exec_module"): PROGRAMS_IMPORT,
    ("sources/caches/key_history.py", "StoredKeys._run", ".executescript"): "the SQL is a constant of the package",
    ("sources/caches/torch_api.py", "SettingTexts.read", "pickle.loads"): (
        "the bytes are torch's own settings, which torch packed in this process a moment before"
    ),
}


class Finder(ast.NodeVisitor):
    """The suspect calls and references of one module, as (function, name)."""

    def __init__(self):
        self.found = set()
        self.scope = []
        self.aliases = {}

    def visit_Import(self, node):
        for alias in node.names:
            self.aliases[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node):
        for alias in node.names:
            if not node.level:
                self.aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_FunctionDef(self, node):
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815

    def add(self, name):
        self.found.add((".".join(self.scope), name))

    def is_suspect(self, name):
        first, _, rest = (name or "").partition(".")
        return name in SUSPECT - CALLED or (first in UNPACKING and rest not in ("", "dumps", "PickleError"))

    def visit_Name(self, node):
        name = self.read_name(node)
        if isinstance(node.ctx, ast.Load) and self.is_suspect(name):
            self.add(name)

    def visit_Attribute(self, node):
        name = self.read_name(node)
        if self.is_suspect(name):
            self.add(name)
        self.generic_visit(node)

    def visit_Call(self, node):
        name = self.read_name(node.func)
        if name in IMPORTING and all(isinstance(argument, ast.Constant) for argument in node.args):
            return
        if name in CALLED:
            self.add(name)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_compile = method == "compile" and name not in OTHER_COMPILE
        if is_compile or (method in METHODS and name not in SUSPECT):
            self.add(f".{method}")
        if any(word.arg == "shell" for word in node.keywords):
            self.add("shell=")
        if name == "getattr" and not isinstance(node.args[1], ast.Constant) and self.is_module(node.args[0]):
            self.add("getattr of a module")
        self.generic_visit(node)

    def is_module(self, node):
        """True for an expression with a module in it that was found by its name."""
        text = ast.unparse(node)
        return "import_module" in text or "sys.modules" in text

    def read_name(self, node):
        """The full name of `a.b.c`, with what `a` was imported as; None for any other expression."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and (owner := self.read_name(node.value)):
            return f"{owner}.{node.attr}".removeprefix("builtins.")
        return None


def find_suspects(source):
    tree = ast.parse(source)
    finder = Finder()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            finder.visit(node)
    finder.visit(tree)
    return finder.found


def test_every_call_that_could_execute_a_text_has_a_reason():
    found = {
        (str(path.relative_to(PACKAGE)), *suspect)
        for path in sorted(PACKAGE.rglob("*.py"))
        for suspect in find_suspects(path.read_text())
    }
    assert sorted(found - {*ALLOWED}) == [], "not listed"
    assert sorted({*ALLOWED} - found) == [], "listed, and no longer there"
