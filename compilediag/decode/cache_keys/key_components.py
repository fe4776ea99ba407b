"""The components of a cache key, which torch hashes, as names and short texts.

torch writes a key's components as lines, `[digest] name: text`, 540 to 640 of them, of which nine in ten are
configuration (`torch/_inductor/codecache.py: FxGraphCachePickler.debug_lines`). Only the digest decides whether two
components are the same: a text may hold an address, or leave out the values of a graph's constants.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterable
from typing import NamedTuple

#: Characters kept of a text, and of source code.
TEXT_CHARS, CODE_CHARS = 1_000, 60_000
#: Lines that are parsed once, and their longest; torch has about 650 settings.
MOST_SETTINGS, SETTING_CHARS = 4_096, 2_000
LINE = re.compile(r"\[(?P<digest>\w+)\] (?P<name>[^:]*): (?P<text>.*)", re.DOTALL)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
TENSOR = re.compile(r"TensorMetadata(?:AndValues)?\((?:tensor_metadata=TensorMetadata\()?")
#: What `split_outside_brackets` looks at: a string, which may have no end, or one character.
MARK = re.compile(r"""'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[,()\[\]{}]""", re.DOTALL)
#: Tensors whose texts are formatted once.
MOST_TENSORS = 1_024
#: Prefixes of configuration; most keys of a session share all of it.
SETTING = ("inductor_config", "autograd_config[")
#: The graph, and other source code in a key.
GRAPH, CODE = "gm", ("gm", "user_defined_triton_source", "triton_kernel_source_codes")
#: Components that are bytes only; the values of `autograd_config` are components of their own.
OPAQUE = {"autograd_config"}
#: Defaults of a tensor's fields.
USUAL = {
    "layout": "torch.strided",
    "storage_offset": "0",
    **dict.fromkeys(
        ("requires_grad", "is_quantized", "is_conj", "is_neg", "is_inference", "is_sparse"),
        "False",
    ),
}
#: Fields of a tensor that follow from others.
DERIVED = {"memory_format", "storage_bytes", "is_coalesced", "dense_dim", "sparse_dim"}
#: Names of the parts of the tuple that is the configuration in AOTAutograd's key.
AOT_CONFIG = (
    "num_params_buffers",
    "keep_inference_input_mutations",
    "is_export",
    "no_tangents",
    "dynamic_shapes",
    "arg_pos_to_source",
    "static_input_indices",
    "enable_log",
    "pre_dispatch",
    "precompile_backend_id",
)


class Component(NamedTuple):
    """One component; `digest` is torch's, None if torch has none."""

    digest: str | None
    text: str

    def same_as(self, other: Component) -> bool:
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return self.text == other.text


Components = dict[str, Component]


def parse_components(lines: Iterable[str]) -> tuple[Components, Components]:
    """Parse the lines that a key is hashed from; return those that are configuration, nine in ten, on their own."""
    found: Components = {}
    settings: Components = {}
    for line in lines:
        setting = _recall_setting(line) if len(line) <= SETTING_CHARS else _parse_setting(line)
        if setting is not None:
            settings[setting[0]] = setting[1]
        elif (match := LINE.match(line)) is not None:
            digest, name, text = match.groups()
            found.update(make_components(name, digest, text))
    return found, settings


@functools.lru_cache(MOST_SETTINGS)
def _recall_setting(line: str) -> tuple[str, Component] | None:
    """Return one object per setting: hundreds of new objects per key would slow down garbage collection."""
    return _parse_setting(line)


def _parse_setting(line: str) -> tuple[str, Component] | None:
    """Return the name and the component of a line if it is configuration."""
    match = LINE.match(line)
    if match is None or not match["name"].startswith(SETTING):
        return None
    return match["name"], Component(match["digest"], shorten(match["text"]))


@functools.lru_cache(MOST_SETTINGS)
def make_setting(name: str, text: str) -> Component:
    """Return one object per setting that torch does not write itself."""
    return make_components(name, None, text).get(name, Component(None, ""))


def make_components(name: str, digest: str | None, text: str) -> Components:
    """Make what is stored of a component: short, without addresses; the parts of an unnamed tuple get names."""
    if name in OPAQUE:
        return {}
    if name == "aot_config":
        parts = split_outside_brackets(text.removeprefix("(").removesuffix(")"))
        if len(parts) == len(AOT_CONFIG):
            return {
                f"aot_config[{n}]": Component(None, shorten(part)) for n, part in zip(AOT_CONFIG, parts, strict=True)
            }
    if name.startswith(CODE):
        return {name: Component(digest, shorten(text, CODE_CHARS))}
    if text.startswith("TensorMetadata"):
        text = _recall_tensor(text) if len(text) <= SETTING_CHARS else _format_tensor(text)
    elif text.startswith("('") and text.endswith("',)"):
        text = text[2:-3]  # A symbolic number, as its reducer writes it.
    elif "0x" in text:
        text = ADDRESS.sub("", text)
    return {name: Component(digest, shorten(text))}


def parse_tensor_fields(text: str) -> dict[str, str]:
    """Return the fields of a tensor's text, by name; empty for any other text."""
    parts = [part.partition("=") for part in text.split("; ")]
    return {name: value for name, equals, value in parts if equals} if text.startswith("dtype=") else {}


def describe_component(text: str) -> str:
    """Format the text of a component: `float32 [2, 3], stride [3, 1], cpu` for a tensor."""
    tensor = parse_tensor_fields(text)
    if not tensor:
        return text
    head = f"{tensor.pop('dtype')} {tensor.pop('shape', '?')}, stride {tensor.pop('stride', '?')}"
    rest = [tensor.pop("device", "?"), *(f"{name} {value}" for name, value in tensor.items())]
    return ", ".join([head, *rest])


def split_outside_brackets(text: str) -> list[str]:
    """Split a text at the commas that are outside brackets and strings."""
    parts, depth, begin = [], 0, 0
    for mark in MARK.finditer(text):
        char = mark[0]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin : mark.start()].strip())
            begin = mark.end()
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def shorten(text: str, limit: int = TEXT_CHARS) -> str:
    """Return the text, or the start of a longer one with a checksum, so that two different texts stay different."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 40]}... ({len(text)} characters, {zlib.crc32(text.encode(errors='replace')):08x})"


def _format_tensor(text: str) -> str:
    """Format `TensorMetadata(dtype=torch.float32, shape=torch.Size([2]), ...)` as `dtype=float32; shape=[2]; ...`."""
    inner = TENSOR.sub("", text, count=1).rstrip(")")
    said = (part.partition("=") for part in split_outside_brackets(inner))
    kept = [(name, value) for name, _, value in said if value not in ("", USUAL.get(name)) and name not in DERIVED]
    return "; ".join(f"{name}={_format_value(value)}" for name, value in kept)


_recall_tensor = functools.lru_cache(MOST_TENSORS)(_format_tensor)


def _format_value(value: str) -> str:
    """Format a value without the names of torch's classes."""
    value = value.removeprefix("torch.Size(").removeprefix("torch.")
    if value.startswith("device("):
        device = re.findall(r"type='(\w+)'(?:, index=(\d+))?", value)
        return ":".join(part for part in device[0] if part) if device else value
    if value.startswith("("):
        return f"[{value.strip('()').rstrip(',')}]"
    return value.removesuffix(")") if value.startswith("[") else value
