"""The process of one run of a trial: it makes the changes of a job, records the program, and writes how it ended.

`fresh_process.py` writes the job, a JSON file, and reads the result, which is written beside it when the process ends.

What a program prints is a weak oracle: many print nothing of what they compute. So each run of a trial keeps a digest
of what the calls from outside into compiled code returned, which another run is compared with. A run can be ended after
a number of such calls: edits and backends do not change that number, as they change the number of compiled frames. A
change that compiles something inside of a function, in place of the function, has the function observed all the same:
in the copy that runs, `OBSERVE` is called where it was compiled.

A trial neither changes nor records Python processes that are not forked; whether the program starts any is noted.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import functools
import importlib.machinery
import json
import multiprocessing.process
import multiprocessing.spawn
import os
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from ..decode.call_stacks import OwnCode
from ..diagnosis.source_edits import EditedSource
from ..errors import CompilediagError
from ..formatting import format_first_line, format_place
from ..recording.active_recording import begin, end_all
from ..sources.hooks.torch_names import Unavailable
from ..system.files import write_file
from ..system.program import list_library_folders
from ..system.source_files import CellNames
from . import torch_api
from .fork_server import serve
from .fresh_process import CALLS_FILE, FIRST_CHILD, OBSERVE

# What the calls returned

#: Calls whose digest is kept, and tensors of each.
_MAX_CALLS, _MAX_TENSORS = 20_000, 64
#: A run that has taken so many seconds may end once nothing was compiled for so many calls.
_QUIET_S, _QUIET_CALLS = 60.0, 200


class StopRule:
    """When a run ends: after so many outer calls, at the first one after so many seconds, at the first one where an
    expression is true, or when nothing was compiled for so long that nothing more is expected.
    """

    def __init__(self, calls: int | None, seconds: float | None, until: str | None, when_quiet: bool):
        self._calls = calls
        self._seconds = seconds
        self._until = compile(until, "--until", "eval") if until is not None else None
        self._when_quiet = when_quiet
        self._begin = time.monotonic()
        self._graphs = self._last = self._longest_gap = 0

    def ends_before(self, caller: types.FrameType) -> bool:
        """True if the expression is true in the function that makes a call. It is false where it cannot be evaluated:
        other functions have other names.
        """
        if self._until is None:
            return False
        try:
            return bool(eval(self._until, caller.f_globals, caller.f_locals))
        except Exception:
            return False

    def ends_at(self, call: int) -> bool:
        """True if this call is the last one."""
        elapsed = time.monotonic() - self._begin
        if call == self._calls or (self._seconds is not None and elapsed > self._seconds):
            return True
        if not self._when_quiet:
            return False
        graphs = torch_api.find("counters")["stats"]["unique_graphs"]
        if graphs != self._graphs:
            self._longest_gap = max(self._longest_gap, call - self._last)
            self._graphs, self._last = graphs, call
        return elapsed > _QUIET_S and call - self._last > max(_QUIET_CALLS, 3 * self._longest_gap)


class CallObserver:
    """Observes the outer calls into functions that `torch.compile` made after `install`.

    Each is `[begin in ns of the wall clock, duration in ns, digest]`; the digest has one list for each tensor or number
    that the call returned. After the last call of `rule` it calls `end_process`, in the thread of that call.
    """

    def __init__(self, rule: StopRule, end_process: Callable[[], None]):
        self._rule = rule
        self._end_process = end_process
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._inside = threading.local()
        self._calls: list[tuple[int, int, list[Any]]] = []
        self._count = 0

    def install(self) -> None:
        """Observe what is compiled from now on. Unavailable if this torch has another way to compile."""
        context = torch_api.find("OptimizeContext")
        skip_code: Callable[[types.CodeType], None] = torch_api.find("skip_code")
        compile_callable: Callable[[Any, Any], Any] = context.__call__
        observer = self

        def compile_observed(self: Any, fn: Any) -> Any:
            compiled = compile_callable(self, fn)
            return observer.wrap(compiled) if isinstance(compiled, types.FunctionType) else compiled

        context.__call__ = compile_observed
        setattr(builtins, OBSERVE, self.observe)
        # Called from a frame that is compiled, after a graph break, a wrapper itself would be compiled too. All of them
        # share one code object.
        skip_code(self.wrap(lambda: None).__code__)

    def wrap(self, compiled: Callable[..., Any]) -> types.FunctionType:
        """A function that calls what `torch.compile` made, and notes what an outer call returned."""

        @functools.wraps(compiled)
        def call_observed(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "is_inside", False) or os.getpid() != self._owner:
                return compiled(*args, **kwargs)
            if self._rule.ends_before(sys._getframe(1)):
                self._end_process()
            self._inside.is_inside = True
            begin, before = time.time_ns(), time.perf_counter_ns()
            try:
                result = compiled(*args, **kwargs)
                self._note(begin, before, result)
                return result
            finally:
                self._inside.is_inside = False

        if hasattr(compiled, torch_api.WRAPPER_ID):
            # torch looks through its own wrappers by this number: compiling what is compiled compiles the original.
            setattr(call_observed, torch_api.WRAPPER_ID, id(call_observed))
        return call_observed  # type: ignore[return-value]

    def observe(self, called: Any) -> Any:
        """A function or module whose calls are noted, as if it was compiled."""
        if not isinstance(called, torch.nn.Module):
            return self.wrap(called)
        torch_api.wrap_module(called, self.wrap)
        return called

    def _note(self, begin: int, before: int, result: Any) -> None:
        with contextlib.suppress(Exception):
            if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
        duration = time.perf_counter_ns() - before
        digest = make_digest(result) if self._count < _MAX_CALLS else []
        with self._lock:
            self._count += 1
            if self._count <= _MAX_CALLS:
                self._calls.append((begin, duration, digest))
            is_last = self._rule.ends_at(self._count)
        if is_last:
            self._end_process()

    def write(self, folder: Path) -> None:
        """Write the calls for the parent process."""
        with self._lock:
            content = json.dumps({"count": self._count, "calls": self._calls})
        write_file(folder / CALLS_FILE, content)


def make_digest(result: Any) -> list[Any]:
    """A list for each tensor that a call returned: its shape, dtype, sum and norm; its value for a number or text."""
    digest: list[Any] = []
    with contextlib.suppress(Exception):
        for leaf in torch_api.find("tree_leaves")(result)[:_MAX_TENSORS]:
            if isinstance(leaf, torch.Tensor):
                digest.append([[*map(int, leaf.shape)], str(leaf.dtype), *_measure(leaf)])
            elif isinstance(leaf, (bool, int, float)):
                digest.append([type(leaf).__name__, float(leaf) if abs(leaf) < 1 << 63 else 0.0])
    return digest


def _measure(tensor: torch.Tensor) -> list[float]:
    """Sum and norm; nothing for a tensor that has no values of its own, or that is spread over processes."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided or tensor.is_meta:
        return []
    try:
        with torch.no_grad(), torch.autocast(tensor.device.type, enabled=False):
            values = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
            total = values.sum(dtype=torch.float64).item()
            if not values.is_floating_point():
                return [total]
            return [total, torch.linalg.vector_norm(values, dtype=torch.float64).item()]
    except (RuntimeError, TypeError, NotImplementedError):
        return []


_CACHES = "TORCHINDUCTOR_CACHE_DIR"

#: How the variables begin that libraries set when they are imported.
_OF_LIBRARIES = ("TORCHINDUCTOR_", "TRITON_", "KMP_", "PYTORCH_NVML", "CUDA_MODULE", "QT_", "MKL", "TF_CPP")

#: The job of the run, for processes that the program spawns.
_JOB = "COMPILEDIAG_TRIAL_JOB"

Files = dict[str, EditedSource]


# The run


class RunResult:
    """How the program ended, as the parent process reads it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._environment = dict(os.environ)
        self._values: dict[str, Any] = {}
        self._calls: CallObserver | None = None

    def observe_calls(self, rule: StopRule) -> None:
        """Keep what the outer calls into compiled code return, if this torch can be observed; the rule says after which
        the process ends. Keep whether the program starts processes.
        """
        owner = os.getpid()
        watch_processes(lambda: self._values.update(starts_processes=True))

        def end() -> None:
            if os.getpid() != owner:
                return
            self._values["is_stopped"] = True
            _finish(self, owner)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            os._exit(0)  # An exception would pass through the program's own `except` and `finally`.

        observer = CallObserver(rule, end)
        with contextlib.suppress(Unavailable):
            observer.install()
            self._calls = observer

    def note_graph(self, graph: Any) -> None:
        """Count the graphs that no cache would keep, because they enter autocast."""
        self._values["uncached"] = self._values.get("uncached", 0) + torch_api.enters_autocast(graph)

    def note_error(self, error: BaseException, cell: int | None = None) -> None:
        """Keep the exception that ended the program, and the number of the notebook cell that raised it."""
        self._values |= {"raised": _describe(error), "is_torchs": is_torchs(error), "cell": cell}

    def write(self, problem: str | None = None) -> None:
        """Write it for the parent process. `problem` says why the program could not be started."""
        files = [*list_own_files()]
        modules = [(name, getattr(module, "__file__", None)) for name, module in sys.modules.copy().items()]
        others = [name for name, file in modules if isinstance(file, str) and os.path.abspath(file) not in files]
        # The program itself may have to set variables before it imports something.
        variables = [name for name, value in os.environ.items() if self._environment.get(name) != value]
        found = {
            "problem": problem,
            "has_own_caches": self._environment.get(_CACHES) == os.environ.get(_CACHES),
            "files": files,
            "modules": [name for name in others if name != "__main__"],
            "has_gpu": torch.cuda.is_available(),
            "has_compiled": torch_api.has_compiled(),
            "sets_environment": any(not name.startswith(_OF_LIBRARIES) for name in variables),
        }
        if self._calls is not None:
            self._calls.write(self._folder)
        write_file(self._folder / "result.json", json.dumps({**self._values, **found}))


#: Finds the program of a job, of which some files are edited, and gives what runs it.
Prepare = Callable[[dict[str, Any], Files], Callable[[RunResult], None]]


def run_process(args: list[str], prepare: Prepare, main: str | None = None) -> int:
    """Run the job that is named; `--serve FILE`: fork for each job that standard input names. Returns 2 if a job cannot
    be started. `main`: the file that spawned processes run, see `lead_spawned`.
    """
    job_file = serve(args[1]) if args[0] == "--serve" else args[0]
    if main is not None:
        lead_spawned(job_file, main)
    return _run_job(job_file, prepare)


def _run_job(job_file: str, prepare: Prepare) -> int:
    """Run a job; return 2 if it cannot be started."""
    job = json.loads(Path(job_file).read_text())
    job["folder"] = _choose_folder(job)
    result = RunResult(Path(job["folder"]))
    files = {file: EditedSource(text, tuple(lines)) for file, (text, lines) in job["files"].items()}
    try:
        import_edited(files)
        run = prepare(job, files)
        torch_api.apply_settings(job["settings"])
        if job["backend"]:
            torch_api.replace_backends(job["backend"], result.note_graph)
        if job["observes"]:
            result.observe_calls(
                StopRule(job["stop_after"], job["stop_after_s"], job["stop_until"], job["stops_when_quiet"])
            )
        begin(os.path.join(job["folder"], "run.cdiag"), job["detail"], job["requests"])
    except CompilediagError as error:
        result.write(problem=str(error))
        return error.exit_code
    atexit.register(_finish, result, os.getpid())
    run(result)
    return 0


def _choose_folder(job: Mapping[str, Any]) -> str:
    """Where this process records: in a folder of its own if it is not that of rank 0, whose output is the only one; or
    if it was spawned by the program.
    """
    folder, rank = Path(job["folder"]), os.environ.get("RANK", "0")
    if multiprocessing.parent_process() is not None:
        with contextlib.suppress(FileExistsError):
            (folder / FIRST_CHILD).mkdir(mode=0o700)
            return str(folder / FIRST_CHILD)
        own = folder / f"child-{os.getpid()}"
    elif job["is_launched"] and rank != "0":
        sys.stdout.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        own = folder / f"rank-{int(rank)}"
    else:
        return str(folder)
    own.mkdir(mode=0o700)
    return str(own)


def lead_spawned(job_file: str, main: str) -> None:
    """Let processes that `multiprocessing` spawns run `main` in place of the program's main module, which calls
    `join_run`.
    """
    os.environ[_JOB] = job_file
    make_data = multiprocessing.spawn.get_preparation_data

    def make_data_with_main(name: str) -> dict[str, Any]:
        data = make_data(name)
        if data.pop("init_main_from_name", None) or data.get("init_main_from_path"):
            data["init_main_from_path"] = main
        return data

    multiprocessing.spawn.get_preparation_data = make_data_with_main


def join_run(prepare: Prepare) -> None:
    """In a process that the program spawned: make the changes of the run and record."""
    job_file = os.environ.get(_JOB)
    if job_file is not None and _run_job(job_file, prepare):
        sys.exit(2)


def is_torchs(error: BaseException) -> bool:
    """True if torch defines the exception."""
    return type(error).__module__.partition(".")[0] == "torch"


def _describe(error: BaseException) -> str:
    """An exception in one line, with the last line of the program that raised it; its own text may fail."""
    # Above the exception, a syntax error has its place, in lines that are indented.
    lines = traceback.format_exception_only(error)
    text = format_first_line("".join(line for line in lines if not line.startswith("  ")))
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{text} ({format_place(CellNames().name(error.filename) or error.filename, error.lineno)})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "compilediag" not in frame.filename]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    if not own:
        return text
    place = CellNames().name(own[-1].filename) or own[-1].filename
    return f"{text} ({format_place(place, own[-1].lineno)})"


def list_own_files() -> Iterator[str]:
    """The source files of the program that were imported, its script first. A program of a library, such as pytest, has
    none: then the first is the one that was imported last, which imports the others.
    """
    code = OwnCode(libraries=list_library_folders())
    main = sys.modules.get("__main__")
    script = getattr(main, "__file__", None)
    modules = [*sys.modules.copy().values()]
    if not isinstance(script, str) or not code.is_own(os.path.abspath(script)):
        modules.reverse()
    for module in filter(None, [main, *modules]):
        file = getattr(module, "__file__", None)
        if (getattr(module, "__name__", None) or "").partition(".")[0] == "compilediag":
            continue  # A checkout of it is in no folder of libraries.
        if isinstance(file, str) and (module is main or file.endswith(".py")) and code.is_own(os.path.abspath(file)):
            yield os.path.abspath(file)


def _finish(result: RunResult, owner: int) -> None:
    """End the recording and write the result. Does nothing in a forked child."""
    if os.getpid() == owner:
        end_all()
        result.write()


# Edits of the program, made before it starts


def import_edited(files: Mapping[str, EditedSource]) -> None:
    """Let imports of these files run the edited code, under the name of the file and with its line numbers."""
    loader: Any = importlib.machinery.SourceFileLoader
    get_code: Callable[[Any, str], types.CodeType | None] = loader.get_code

    def get_edited_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> types.CodeType | None:
        file = self.get_filename(fullname)
        edited = find_edited(files, file)
        return get_code(self, fullname) if edited is None else edited.compile(file)

    if files:
        loader.get_code = get_edited_code


def find_edited(files: Mapping[str, EditedSource], file: str) -> EditedSource | None:
    """The edited text of a file; None if it is not edited."""
    return files.get(file) or files.get(os.path.realpath(file))


# Processes that the program starts


def watch_processes(note: Callable[[], None]) -> None:
    """Call `note` when the program starts a Python process, for the rest of this one."""
    process: Any = multiprocessing.process.BaseProcess
    command: Any = subprocess.Popen
    start, begin = process.start, command.__init__

    def note_start(process: Any) -> None:
        note()
        start(process)

    def note_command(command: Any, args: Any, *rest: Any, **more: Any) -> None:
        if _is_python(args):
            note()
        begin(command, args, *rest, **more)

    process.start, command.__init__ = note_start, note_command


def _is_python(args: Any) -> bool:
    """True for the command of an interpreter, or of a script such as torchrun that is installed beside it."""
    words = args.split() if isinstance(args, str) else [*args] if isinstance(args, (list, tuple)) else [args]
    program = os.fsdecode(words[0]) if words and isinstance(words[0], (str, bytes, os.PathLike)) else ""
    name = os.path.basename(program)
    return name.startswith("python") or (
        name != "" and os.path.exists(os.path.join(os.path.dirname(sys.executable), name))
    )
