"""Records of torch's structured trace: their kinds, the compile attempt that they belong to, and which texts are kept.

torch uses a compile id again after a reset and, in a log of several processes, in each of them. So every attempt gets a
`compile_key` of its own where it starts. All later records with its compile id, those of its lazy backward included,
belong to it, until the next attempt with the same id starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...events import Artifact
from ...formatting import bound_lines
from .compilation_metrics import KINDS as METRICS
from .shape_records import KINDS as TRACED

#: Fields of a record that say where it belongs. Its one other field is its kind.
CONTEXT = frozenset(
    {
        "rank",
        "compiled_autograd_id",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "stack",
        "has_payload",
        "subgraph_name",
    }
)

#: Texts for users. All others are torch's own bookkeeping, or are recorded in a cheaper way.
KEPT = frozenset(
    {
        "dynamo_output_graph",
        "optimize_ddp_split_graph",
        "compiled_autograd_graph",
        "aot_joint_graph",
        "aot_forward_graph",
        "aot_backward_graph",
        "aot_inference_graph",
        "inductor_pre_grad_graph",
        "inductor_post_grad_graph",
        "inductor_output_code",
        "dynamo_cpp_guards_str",
        "dynamo_error",
        "exported_program",
        "optimize_ddp_split_child",
        "inductor_provenance_tracking_node_mappings",
        "inductor_provenance_tracking_kernel_stack_traces",
        "inductor_collective_schedule",
        "inductor_runtime_and_tensor_meta",
        "graph_execution",
        "compile_worker_sidecar_death",
    }
)

#: Kinds of records with names of their own.
NAMED = frozenset({"artifact", "graph_dump"})
#: The text with the guards of an entry: a line has the whole value that the guarded one is compared with.
GUARD_TREE = "dynamo_cpp_guards_str"
#: Names that torch passes when it asks whether to build a record; it passes the name of an artifact later.
BUILT = KEPT | TRACED | NAMED
#: The texts that vLLM writes begin with that.
OF_VLLM = "vllm_"


#: A timed event, in the format of Chromium's traces.
TIMED = "chromium_event"

#: Kinds of records that torch 2.4 to 2.15 writes. Records of other kinds are kept too, and counted.
KNOWN = (
    KEPT
    | TRACED
    | NAMED
    | METRICS.keys()
    | {TIMED, "str", "dynamo_start", "dynamo_guards", "link", "dump_file", "inductor_input_graph"}
    | {"describe_storage", "describe_tensor", "describe_source"}
    | {"get_local_code_state", "put_local_code_state", "get_remote_code_state", "put_remote_code_state"}
)


def find_kind(metadata: Mapping[str, Any]) -> str | None:
    """Return the one field of a record that says what it is."""
    for key in metadata:
        if key not in CONTEXT:
            return key
    return None


def find_name(metadata: Mapping[str, Any]) -> str | None:
    """Return the name of a record's artifact or graph; its kind if it is neither."""
    kind = find_kind(metadata)
    body = metadata.get(kind) if kind else None
    if kind in NAMED and isinstance(body, dict):
        name = body.get("name")
        return name if isinstance(name, str) else kind
    return kind


def find_compile_id(metadata: Mapping[str, Any]) -> str | None:
    """Return torch's compile id in its usual form, from the fields of a record; None outside any compile."""
    autograd, frame = metadata.get("compiled_autograd_id"), metadata.get("frame_id")
    number = None if frame is None else metadata.get("frame_compile_id")
    own = None if number is None else f"{frame}/{number}"
    if autograd is None:
        return own
    return f"!{autograd}" if own is None else f"!{autograd}/{own}"


def is_kept(name: str | None) -> bool:
    """Return whether a live watch keeps a text of this name."""
    return name is not None and (name in KEPT or name.startswith(OF_VLLM))


def bound_artifact(name: str | None, text: str) -> str:
    """Return what is kept of a text: of a line of guards its beginning. All other texts are kept whole."""
    return bound_lines(text) if name == GUARD_TREE else text


def bound_payload(kind: str | None, payload: bytes) -> bytes:
    """Return what is kept of the text of a log's record, see `bound_artifact`."""
    if kind != GUARD_TREE:
        return payload
    return bound_artifact(kind, payload.decode("utf-8", "replace")).encode("utf-8", "replace")


def make_artifact(
    metadata: Mapping[str, Any], name: str, payload: str, time_ns: int, compile_key: str | None = None
) -> tuple[Artifact, str]:
    """Make the artifact of a record, with its text."""
    compile_id = find_compile_id(metadata)
    artifact = Artifact(time_ns=time_ns, compile_id=compile_id, compile_key=compile_key, name=name)
    return artifact, bound_artifact(name, payload)


#: Attempts and functions that are remembered: a log may never report the end of anything.
MAX_ATTEMPTS = 100_000

#: What a log reports of an attempt, in this order; some of it can be missing. An attempt that has come so far, or
#: farther, is over when the same is reported of its compile id again.
ANNOUNCED, REASONED, STARTED, MEASURED = 1, 2, 3, 4


#: Function, file and line of a code object, as columns.
CodePlace = Mapping[str, Any]
UNKNOWN_FUNCTION: CodePlace = {"function": None, "file": None, "line": None}


@dataclass(slots=True, eq=False)
class CompileAttempt:
    """One compile attempt. Both ids are None for what happens outside of any compile.

    `stage` says how far it has come, `restarts` how often torch restarted its analysis, `stack` where it was called.
    """

    compile_id: str | None = None
    compile_key: str | None = None
    stage: int = 0
    restarts: int = 0
    function: CodePlace | None = None
    stack: str | None = None

    @property
    def is_announced(self) -> bool:
        """True for a compile. torch 2.15 gives compile ids to exports too, and logs no start of a compile for them."""
        return self.compile_id is not None and (self.stage > 0 or self.compile_id.startswith("!"))

    def make_artifact(self, name: str, time_ns: int, **columns: Any) -> Artifact:
        """Make an artifact of the attempt."""
        compile_id, compile_key = self.compile_id, self.compile_key
        return Artifact(time_ns=time_ns, compile_id=compile_id, compile_key=compile_key, name=name, **columns)

    def note_restarts(self, number: object) -> None:
        """Note torch's number of the attempt at the frame, which counts from 0, once the analysis has started."""
        if self.function is not None and isinstance(number, int) and number > self.restarts:
            self.restarts = number


class Attempts:
    """Assigns records to attempts. `make_key` returns the key of the next attempt."""

    def __init__(self, make_key: Callable[[], str]) -> None:
        self._make_key = make_key
        self._current: dict[str | None, CompileAttempt] = {None: CompileAttempt()}
        #: What all compile ids of a code object have in common (see `find_frame_id`) -> its function.
        self._functions: dict[str, CodePlace] = {}

    def get(self, compile_id: str | None) -> CompileAttempt:
        """Return the attempt that has this id now. An id that was never announced starts one."""
        return self._current.get(compile_id) or self._add(compile_id)

    def find_key(self, compile_id: str | None) -> str | None:
        """Return the key of the attempt that has this id now; None if the log has none."""
        attempt = self._current.get(compile_id)
        return None if attempt is None else attempt.compile_key

    def advance(self, compile_id: str | None, stage: int) -> CompileAttempt:
        """Return the attempt that reaches `stage`: a new one if the current one has already been there."""
        attempt = self.get(compile_id)
        if compile_id is not None and attempt.stage >= stage:
            attempt = self._add(compile_id)
        attempt.stage = stage
        return attempt

    def start(self, attempt: CompileAttempt, function: CodePlace, stack: str | None) -> None:
        """Note the function of an attempt whose analysis starts."""
        attempt.function, attempt.stack = function, stack
        if len(self._functions) >= MAX_ATTEMPTS:
            self._functions.clear()
        self._functions[find_frame_id(attempt.compile_id)] = function

    def find_function(self, attempt: CompileAttempt) -> CodePlace:
        """Return the function of an attempt.

        An attempt that fails at once, as at the recompile limit, has no start: its function is that of the attempts
        before it.
        """
        return attempt.function or self._functions.get(find_frame_id(attempt.compile_id), UNKNOWN_FUNCTION)

    def describe(self, attempt: CompileAttempt) -> dict[str, object]:
        """Return the columns of an attempt that torch's metrics lack."""
        return {**self.find_function(attempt), "attempt": attempt.restarts, "stack": attempt.stack}

    def _add(self, compile_id: str | None) -> CompileAttempt:
        if len(self._current) >= MAX_ATTEMPTS:
            outside = self._current[None]
            self._current = {None: outside}
        attempt = self._current[compile_id] = CompileAttempt(compile_id, self._make_key())
        return attempt


def find_frame_id(compile_id: str | None) -> str:
    """Return what all compile ids of a code object have in common: `0/` for `0/1`."""
    head, slash, _ = (compile_id or "").rpartition("/")
    return head + slash
