"""Logs for tests: records as TORCH_TRACE writes them, one by one, and the golden log of a real run."""

import gzip
import hashlib
import json
from pathlib import Path

import compilediag as cd

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "torch-2.13.log.gz"
#: 2024-03-05 10:00:00 UTC; the stamps of records are in a zone two hours east of it.
BEGIN_US = 1_709_632_800_000_000


def golden():
    return gzip.decompress(GOLDEN.read_bytes())


def record(kind, details=None, payload=None, at=0.0, pid=100, compile_id="0/0", **context):
    """One record, `at` seconds after the log's begin; `compile_id` None is outside of any compile."""
    seconds = 12 * 3600 + at
    stamp = f"0305 {int(seconds // 3600):02}:{int(seconds // 60 % 60):02}:{seconds % 60:09.6f}"
    metadata = {kind: {} if details is None else details, **ids(compile_id), **context}
    if payload is not None:
        payload = payload if isinstance(payload, str) else json.dumps(payload)
        metadata.setdefault("has_payload", hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest())
    head = f"V{stamp} {pid} torch/_dynamo/utils.py:1] {json.dumps(metadata)}\n"
    return head + ("" if payload is None else "".join(f"\t{line}\n" for line in payload.split("\n")))


def ids(compile_id):
    if compile_id is None:
        return {}
    autograd, _, rest = compile_id.removeprefix("!").partition("/") if "!" in compile_id else ("", "", compile_id)
    frame, _, attempt = rest.partition("/")
    of_frame = {"frame_id": int(frame), "frame_compile_id": int(attempt)} if attempt else {}
    return {"compiled_autograd_id": int(autograd) if autograd else None, **of_frame, "attempt": 0}


def event(stage, name, at=0.0, compile_id="0/0", **details):
    """A chromium event."""
    args = {"compile_id": compile_id or "None", **details.pop("args", {})}
    payload = {"name": name, "ts": BEGIN_US + at * 1e6, "args": args, "ph": stage, "cat": "dynamo_timed"}
    return record("chromium_event", payload=payload, at=at, compile_id=compile_id, **details)


def start(at=0.0, function="f", **details):
    stack = [{"line": 30, "name": function, "filename": 0}]
    return record("dynamo_start", {"stack": stack}, at=at, **details)


def string(text="/home/user/model.py", number=0, **details):
    return record("str", [text, number], compile_id=None, **details)


def metrics(at=1.0, compile_id="0/0", **details):
    """The metrics of a compile that began a second before `at`."""
    end = BEGIN_US + int(at * 1e6)
    fields = {"compile_id": compile_id, "co_name": "f", "co_filename": "/home/user/model.py", "co_firstlineno": 30}
    fields |= {"start_time_us": end - 1_000_000, "end_time_us": end, "graph_op_count": 2, "recompile_reason": None}
    context = {name: details.pop(name) for name in ("pid", "rank") if name in details}
    return record("compilation_metrics", fields | details, at=at, compile_id=compile_id, **context)


def artifact(name, payload, **details):
    """An artifact; a payload that is no text is JSON."""
    return record("artifact", {"name": name, "encoding": "json"}, payload, **details)


def reasons(payload, compile_id="0/1", **details):
    name = {"name": "recompile_reasons", "encoding": "json"}
    return record("artifact", name, payload, compile_id=compile_id, **details)


def compile_(compile_id="0/0", at=0.0, **details):
    """All that a log has of one compile, at least."""
    return start(at, compile_id=compile_id, **details) + metrics(at + 1, compile_id=compile_id, **details)


def read_log(folder, text, **options):
    """The session of one log, whose text this is."""
    log = Path(folder) / "dedicated_log_torch_trace_x.log"
    log.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return cd.ingest(log, **options)
