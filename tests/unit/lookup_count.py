"""An independent count of the lookups that a trace log mentions: a scan of its lines, without compilediag."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

NAME = re.compile(r"(fx_graph|aotautograd|autograd)(_bundled)?_cache_(hit|miss|bypass|disabled|hash)$")
PROFILE = re.compile(r"(get|put)_(?:extra_)?(local|remote)_code_state$")


def count_lookups(path: Path) -> Counter:
    """(cache, outcome, key) -> how often the log mentions it.

    torch writes a lookup as an event, as an artifact, or as both, so a log mentions as many as it has of the more
    frequent one.
    """
    events, artifacts = Counter(), Counter()
    records = list(split_records(path))
    for number, (head, payload) in enumerate(records):
        artifact = head.get("artifact")
        if "chromium_event" in head:
            event = json.loads(payload)
            if event["ph"] == "i" and (found := NAME.match(event["name"])):
                events[describe(found, event.get("args") or {})] += 1
        elif artifact and (found := NAME.match(artifact["name"])):
            cache, outcome, key = describe(found, json.loads(payload))
            artifacts[cache, outcome or find_outcome(records[number:]), key] += 1
        elif artifact and (found := PROFILE.match(artifact["name"])):
            artifacts["pgo", "hit" if found[1] == "get" else "saved", None] += 1
    return events | artifacts


def describe(found: re.Match, fields: dict) -> tuple:
    cache = "fx_graph" if found[1] == "fx_graph" else "aot_autograd"
    outcome = fields.get("cache_state") if found[3] == "hash" else found[3]
    return cache, outcome, fields.get("key")


def find_outcome(records: list) -> str:
    """The outcome of the first record, a lookup of torch 2.4, which has only a key: a miss compiles a graph next."""
    (first, _), *others = records
    for head, _ in others:
        if get_ids(head) == get_ids(first):
            if "inductor_post_grad_graph" in head:
                return "miss"
            if {"dynamo_start", "compilation_metrics"} & head.keys() or "cache" in str(head.get("artifact")):
                return "hit"
    return "hit"


def get_ids(head: dict) -> tuple:
    return head.get("frame_id"), head.get("frame_compile_id")


def split_records(path: Path):
    """The JSON of each record, and its payload."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    head, payload = None, []
    for line in text.split("\n"):
        if line.startswith("\t"):
            payload.append(line[1:])
        elif (at := line.find("] {")) >= 0 and line[:1] in "VIWEC[":
            if head is not None:
                yield head, "\n".join(payload)
            head, payload = json.loads(line[at + 2 :]), []
    if head is not None:
        yield head, "\n".join(payload)
