"""Why a cache missed: the components of the key, compared with the nearest earlier key of the same function.

torch writes a key's components as lines, `[digest] name: text`, 540 to 640 of them, of which nine in ten are
configuration (`torch/_inductor/codecache.py: FxGraphCachePickler.debug_lines`). Only the digest decides whether two
components are the same: a text may hold an address, or leave out the values of a graph's constants.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import json
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, Protocol

from ..events import CacheLookup
from ..formatting import bound_text, cache_short, cut_text

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


Components = dict[str, Component]


def parse_components(lines: Iterable[str]) -> tuple[Components, Components]:
    """Parse the lines that a key is hashed from; return those that are configuration, nine in ten, on their own."""
    found: Components = {}
    settings: Components = {}
    for line in lines:
        setting = _parse_setting(line)
        if setting is not None:
            settings[setting[0]] = setting[1]
        elif (match := LINE.match(line)) is not None:
            digest, name, text = match.groups()
            found.update(make_components(name, digest, text))
    return found, settings


@cache_short(MOST_SETTINGS, SETTING_CHARS)
def _parse_setting(line: str) -> tuple[str, Component] | None:
    """Return the name and the component of a line if it is configuration.

    There is one object per setting: hundreds of new objects per key would slow down garbage collection.
    """
    match = LINE.match(line)
    if match is None or not match["name"].startswith(SETTING):
        return None
    return match["name"], Component(match["digest"], bound_text(match["text"], TEXT_CHARS))


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
                f"aot_config[{n}]": Component(None, bound_text(part, TEXT_CHARS))
                for n, part in zip(AOT_CONFIG, parts, strict=True)
            }
    if name.startswith(CODE):
        return {name: Component(digest, bound_text(text, CODE_CHARS))}
    if text.startswith("TensorMetadata"):
        text = _format_tensor(text)
    elif text.startswith("('") and text.endswith("',)"):
        text = text[2:-3]  # A symbolic number, as its reducer writes it.
    elif "0x" in text:
        text = ADDRESS.sub("", text)
    return {name: Component(digest, bound_text(text, TEXT_CHARS))}


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


@cache_short(MOST_TENSORS, SETTING_CHARS)
def _format_tensor(text: str) -> str:
    """Format `TensorMetadata(dtype=torch.float32, shape=torch.Size([2]), ...)` as `dtype=float32; shape=[2]; ...`."""
    inner = TENSOR.sub("", text, count=1).rstrip(")")
    said = (part.partition("=") for part in split_outside_brackets(inner))
    kept = [(name, value) for name, _, value in said if value not in ("", USUAL.get(name)) and name not in DERIVED]
    return "; ".join(f"{name}={_format_setting(value)}" for name, value in kept)


def _format_setting(value: str) -> str:
    """Format a value without the names of torch's classes."""
    value = value.removeprefix("torch.Size(").removeprefix("torch.")
    if value.startswith("device("):
        device = re.findall(r"type='(\w+)'(?:, index=(\d+))?", value)
        return ":".join(part for part in device[0] if part) if device else value
    if value.startswith("("):
        return f"[{value.strip('()').rstrip(',')}]"
    return value.removesuffix(")") if value.startswith("[") else value


#: A value in a difference is cut to this many characters.
VALUE_CHARS = 200
#: Differences shown, and lines shown of one graph.
MAX_DIFFERENCES, MAX_LINES = 24, 4
#: Longest graphs, in lines, that are aligned; longer ones are compared line by line.
MAX_ALIGNED = 1_000
ABSENT = "(absent)"
INPUT = "example_inputs["
#: Code that frees a value which is not used again; it ends a line of a graph.
FREED = re.compile(r";  (?:\w+ = )+None$")
#: The order of differences: what the user sets or passes comes before what follows from it.
ORDER = ("inductor_config", "autograd_config", "fx_kwargs", "aot_config", "example_inputs", "constant", *CODE)


def measure_distance(then: Components, now: Components) -> float:
    """Return how far two keys are apart: components that differ, plus the share of lines of each graph that does."""
    then = _align_inputs(then, now)
    names = _find_differing(then, now)
    return len(names) + sum(_measure_share(then.get(n), now.get(n)) for n in names if n.startswith(CODE))


def describe_differences(then: Components, now: Components) -> list[str]:
    """Return the differences between two keys, the causes first."""
    texts = [text for texts in _describe_each(then, now).values() for text in texts]
    more = len(texts) - MAX_DIFFERENCES
    return texts if more <= 0 else [*texts[:MAX_DIFFERENCES], f"and {more} more"]


def _describe_each(then: Components, now: Components) -> dict[str, list[str]]:
    """The components that differ, the causes first -> how, in words."""
    then = _align_inputs(then, now)
    names = sorted(_find_differing(then, now), key=_find_place)
    return {name: _describe_difference(name, then.get(name), now.get(name), names) for name in names}


def _find_differing(then: Components, now: Components) -> list[str]:
    found = [name for name in {**then, **now} if not _is_same(then.get(name), now.get(name))]
    # The digest of a graph covers its constants: if it is the same, they made no difference.
    return found if GRAPH in found else [name for name in found if not name.startswith("constant[")]


def _align_inputs(then: Components, now: Components) -> Components:
    """Return `then` with its inputs numbered as in `now`, if one was added or removed (a size that became dynamic)."""
    before, after = _find_inputs(then), _find_inputs(now)
    if len(before) == len(after) or max(len(before), len(after)) > MAX_ALIGNED:
        return then
    old_texts, new_texts = ([component.text for component in inputs.values()] for inputs in (before, after))
    old, new = list(before), list(after)
    names: dict[str, str] = {}
    matcher = difflib.SequenceMatcher(None, old_texts, new_texts, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind in ("equal", "replace"):  # Sizes come before the tensors that have them, so the ends match.
            names.update(zip(reversed(old[i1:i2]), reversed(new[j1:j2]), strict=False))
    return {names.get(name, name.replace("[", "[old ") if name in before else name): c for name, c in then.items()}


def _find_inputs(key: Components) -> Components:
    return {name: component for name, component in key.items() if name.startswith(INPUT)}


def _is_same(old: Component | None, new: Component | None) -> bool:
    if old is None or new is None or old is new:
        return old is new
    is_digested = old.digest is not None and new.digest is not None
    return old.digest == new.digest if is_digested else old.text == new.text


def _find_place(name: str) -> tuple[int, int]:
    place = next((place for place, head in enumerate(ORDER) if name.startswith(head)), -1)
    number = re.search(r"\d+", name) if name.startswith(INPUT) else None
    return place, int(number[0]) if number else 0


def _describe_difference(name: str, old: Component | None, new: Component | None, names: list[str]) -> list[str]:
    if old is None or new is None:
        return [f"{name}: {_format_value(old)} -> {_format_value(new)}"]
    if old.text == new.text:
        if name != GRAPH:
            return [f"{name}: same text, other content"]
        # The digest of a graph covers its constants, its code does not; small ones are components of their own.
        return [] if any(n.startswith("constant[") for n in names) else ["graph: same code, other constants"]
    if name.startswith(CODE):
        return _describe_lines(name, old.text, new.text)
    before, after = parse_tensor_fields(old.text), parse_tensor_fields(new.text)
    if before and after:
        changed = [field for field in {**before, **after} if before.get(field) != after.get(field)]
        return [f"{name} {field}: {_format_field(before, field)} -> {_format_field(after, field)}" for field in changed]
    return [f"{name}: {' -> '.join(_show_difference(describe_component(old.text), describe_component(new.text)))}"]


def _format_field(tensor: dict[str, str], name: str) -> str:
    return tensor.get(name) or USUAL.get(name, ABSENT).removeprefix("torch.")


def _format_value(component: Component | None) -> str:
    return ABSENT if component is None else cut_text(describe_component(component.text), VALUE_CHARS)


def _show_difference(old: str, new: str) -> tuple[str, str]:
    """Return two values; of long ones the part that differs."""
    if max(len(old), len(new)) <= VALUE_CHARS:
        return old, new
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(same - VALUE_CHARS // 4, 0)
    head = "..." if begin else ""
    return head + cut_text(old[begin:], VALUE_CHARS), head + cut_text(new[begin:], VALUE_CHARS)


# Graphs


def _split_code(text: str) -> list[str]:
    """Return the lines of a graph's code from its `def`, without comments, empty lines and code that frees values."""
    lines = [FREED.sub("", line.strip()) for line in text.split("\n")]
    begin = next((i for i, line in enumerate(lines) if line.startswith("def ")), 0)
    return [line for line in lines[begin:] if line and not line.startswith("#")]


def _describe_lines(name: str, old: str, new: str) -> list[str]:
    """Describe the lines of code that differ, numbered from the `def`, which is line 1."""
    label = "graph" if name == GRAPH else name
    before, after = _split_code(old), _split_code(new)
    pairs: list[tuple[int, str | None, str | None]] = []  # Line number in the new graph, old line, new line.
    if max(len(before), len(after)) > MAX_ALIGNED:
        pairs += ((at, a, b) for at, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b)
    else:
        for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind != "equal":
                pairs += ((at, a, b) for at, (a, b) in enumerate(zip_longest(before[i1:i2], after[j1:j2]), j1 + 1))
    texts = [
        f"{label} line {at}: {cut_text(a or ABSENT, VALUE_CHARS)} -> {cut_text(b or ABSENT, VALUE_CHARS)}"
        for at, a, b in pairs[:MAX_LINES]
    ]
    if len(pairs) > MAX_LINES:
        texts.append(f"{label}: {len(pairs) - MAX_LINES} more of {len(after)} lines differ")
    return texts or [f"{label}: the first {len(after)} lines are the same, later lines are not stored"]


def _measure_share(old: Component | None, new: Component | None) -> float:
    """Return the share of lines that two codes do not have in common, 0 to 1."""
    if old is None or new is None:
        return 1.0
    before, after = (Counter(component.text.split("\n")) for component in (old, new))
    lines = max(before.total(), after.total(), 1)
    return 1 - (before & after).total() / lines


#: Keys remembered for one function, cache and direction.
REMEMBERED = 32
#: Functions remembered, keys whose components wait for their look-up, and configurations that keys share.
MAX_FUNCTIONS, MAX_NOTED, MAX_SETTINGS = 1_024, 16, 256
#: Keys of hits that wait until they are kept for later sessions.
MAX_UNSAVED = 64


@dataclasses.dataclass(frozen=True)
class KeyOwner:
    """What a key belongs to. Only keys of the same owner are compared."""

    cache: str
    function: str
    file: str | None
    line: int | None
    #: A function has one key for its forward and another for its backward.
    backward: bool


@dataclasses.dataclass(frozen=True)
class CacheKey:
    """A key with its components; `seen` says when and where, if an earlier session had it.

    `settings` are the components that are configuration: nine in ten, and the same object in keys that share them.
    """

    key: str
    own: Components
    settings: Components
    seen: str | None = None

    def distance(self, other: CacheKey) -> float:
        """Return how far two keys are apart, see `measure_distance`."""
        own = measure_distance(self.own, other.own)
        return own if self.settings is other.settings else own + measure_distance(self.settings, other.settings)

    def differences(self, other: CacheKey) -> list[str]:
        """Return how `other` differs from this key."""
        if self.settings is other.settings:
            return describe_differences(self.own, other.own)
        return describe_differences({**self.own, **self.settings}, {**other.own, **other.settings})

    def find_changes(self, earlier: CacheKey) -> dict[str, list[str]]:
        """How this key differs from an earlier one: the components that differ, the causes first, each in words."""
        changes = _describe_each({**earlier.own, **earlier.settings}, {**self.own, **self.settings})
        # The text of code is left out of keys that are read from a session.
        return {name: [f"{name}: other code"] if name.startswith(CODE) else texts for name, texts in changes.items()}


class PastKeys(Protocol):
    """The keys of earlier sessions: name, components, when and where it was seen; the oldest first."""

    problem: str | None

    def earlier(self, owner: KeyOwner) -> Iterable[tuple[str, Components, str]]: ...
    def remember(self, keys: Sequence[tuple[KeyOwner, CacheKey]]) -> None: ...


class KnownKeys:
    """The keys of one owner, the oldest first: those of this session, and of earlier ones once a miss asks for them."""

    def __init__(self) -> None:
        self.keys: deque[CacheKey] = deque(maxlen=REMEMBERED)
        self.has_past = False

    def add(self, key: CacheKey) -> bool:
        """Add a key as the latest; return True if it is new in this session."""
        same = [k for k in self.keys if k.key == key.key]
        for k in same:
            self.keys.remove(k)
        self.keys.append(key)
        return all(k.seen for k in same)


class KeyHistory:
    """The latest keys of each function; it compares a missed key with the nearest of them.

    If the same key was seen before and misses all the same, it is the nearest one and has no differences: its entry was
    deleted or never saved. A guard miss is not compared, because its entry was found. Earlier sessions are read at the
    first miss of a function, because most look-ups of a second run are hits.
    """

    def __init__(self, past: PastKeys | None = None, torch_version: str | None = None) -> None:
        self._past = past
        self.texts = KeyTexts()
        #: torch writes this component as bytes: a hash of its sources.
        self._version = {} if torch_version is None else {"torch_version": torch_version}
        self._owners: OrderedDict[KeyOwner, KnownKeys] = OrderedDict()
        self._unsaved: list[tuple[KeyOwner, CacheKey]] = []
        self._noted: OrderedDict[str, Components] = OrderedDict()
        self._noted_settings: tuple[Mapping[str, str] | None, Components] = (None, {})
        #: The ids of settings, most of which are the same objects in all keys, -> those settings.
        self._settings: dict[tuple[int, ...], Components] = {}

    @property
    def problem(self) -> str | None:
        """Why the keys of earlier sessions are not available; None if they are, or if nobody asked for them."""
        return self._past.problem if self._past is not None else None

    def note(self, key: str, texts: Mapping[str, str], settings: Mapping[str, str] | None = None) -> None:
        """Remember components of a key, by name, that its look-up will not have.

        `settings` are those that are configuration; pass the same object as long as the configuration has not changed.
        """
        if settings is not None and self._noted_settings[0] is not settings:
            self._noted_settings = settings, {name: make_setting(name, text) for name, text in settings.items()}
        known = self._noted_settings[1] if settings else {}
        made = {n: c for name, text in texts.items() for n, c in make_components(name, None, text).items()}
        self._noted[key] = {**self._noted.get(key, {}), **made, **known}
        while len(self._noted) > MAX_NOTED:
            self._noted.popitem(last=False)

    def compare(self, lookup: CacheLookup, lines: Iterable[str]) -> tuple[CacheLookup, CacheKey | None]:
        """Return `lookup` with the nearest earlier key of its function, if it missed, and its own key, which is
        remembered; None if its components are not known.

        `lines` are the components as torch writes them, `[digest] name: text`, as far as it does.
        """
        if lookup.key is None:
            return lookup, None
        own, settings = parse_components(lines)
        noted = self._noted.get(lookup.key)
        if noted is not None:
            own, settings = _separate({**own, **settings, **noted})
        if not (own or settings) or lookup.function is None:
            return lookup, None
        own.update({n: own[n]._replace(text=text) for n, text in self._version.items() if n in own})
        direction = own.get("fx_kwargs[is_backward]", Component(None, "False")).text
        owner = KeyOwner(lookup.cache or "", lookup.function, lookup.file, lookup.line, direction == "True")
        key = self._make_key(lookup.key, own, settings)
        known = self._owners.setdefault(owner, KnownKeys())
        self._owners.move_to_end(owner)
        if len(self._owners) > MAX_FUNCTIONS:
            self._owners.popitem(last=False)
        if lookup.outcome == "miss":
            if not known.has_past:
                self._add_past(owner, known)
            lookup = _with_nearest(lookup, key, known.keys)
        if known.add(key) and self._past is not None:
            self._unsaved.append((owner, key))
            if lookup.outcome == "miss" or len(self._unsaved) >= MAX_UNSAVED:
                self.save()
        return lookup, key

    def save(self) -> None:
        """Keep the keys of hits for later sessions too; those of misses are kept at once."""
        if self._past is not None and self._unsaved:
            self._past.remember(self._unsaved)
            self._unsaved = []

    def _make_key(self, name: str, own: Components, settings: Components, seen: str | None = None) -> CacheKey:
        if len(self._settings) >= MAX_SETTINGS:
            self._settings.clear()
        return CacheKey(name, own, self._settings.setdefault(tuple(map(id, settings.values())), settings), seen)

    def _add_past(self, owner: KeyOwner, known: KnownKeys) -> None:
        """Add the keys of earlier sessions before those of this one."""
        own = {key.key for key in known.keys}
        earlier = self._past.earlier(owner) if self._past is not None else ()
        past = [self._make_key(key, *_separate(found), seen) for key, found, seen in earlier if key not in own]
        known.keys = deque([*past, *known.keys], maxlen=REMEMBERED)
        known.has_past = True


def _separate(found: Components) -> tuple[Components, Components]:
    """Return the components that are no configuration, and those that are."""
    settings = {name: component for name, component in found.items() if name.startswith(SETTING)}
    return {name: component for name, component in found.items() if name not in settings}, settings


def _with_nearest(lookup: CacheLookup, now: CacheKey, known: Iterable[CacheKey]) -> CacheLookup:
    """Return `lookup` with the nearest known key and the differences. Of equally near keys the latest counts."""
    candidates = list(reversed(list(known)))
    same = [k for k in candidates if k.key == now.key]
    nearest = same[0] if same else min(candidates, key=now.distance, default=None)
    if nearest is None:
        return lookup
    differences = [] if same else nearest.differences(now)
    return dataclasses.replace(lookup, nearest_key=nearest.key, nearest_session=nearest.seen, key_diff=differences)


# Keys in a session: an artifact for each key, and one for each configuration that keys share

#: The names of these artifacts, and what the names of those that torch itself writes for a look-up begin with.
KEY, SETTINGS = "cache_key", "cache_key_settings"
LOGGED = ("fx_graph_cache_", "aotautograd_cache_")


class KeyTexts:
    """The texts of keys for a session. Code is left out: its digest is enough, and it is there as graph and source."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[Components, str]] = {}

    def write(self, key: CacheKey) -> Iterator[tuple[str, str]]:
        """Yield the artifacts of a key, as (name, text), without settings that were written before."""
        known = self._written.get(id(key.settings))
        if known is None:
            if len(self._written) >= MAX_SETTINGS:
                self._written.clear()
            text = json.dumps(key.settings)
            known = self._written[id(key.settings)] = key.settings, _digest(text)
            yield SETTINGS, text
        own = {n: (c.digest, "" if c.digest and n.startswith(CODE) else c.text) for n, c in key.own.items()}
        yield KEY, json.dumps({"key": key.key, "settings": known[1], "components": own})


def read_keys(artifacts: Iterable[tuple[str, str]]) -> dict[str, CacheKey]:
    """The keys that a session has, by name; `artifacts` are (name, text). What can't be read is left out."""
    settings: dict[str, Components] = {}
    keys: dict[str, CacheKey] = {}
    for name, text in artifacts:
        try:
            found = json.loads(text)
            if name == SETTINGS:
                settings[_digest(text)] = read_components(found)
            elif name == KEY:
                own = read_components(found["components"])
                keys[found["key"]] = CacheKey(found["key"], own, settings.get(found["settings"], {}))
            elif found.get("components"):
                keys[found["key"]] = CacheKey(found["key"], *parse_components(found["components"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
    return keys


def _digest(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def read_components(found: Mapping[str, Sequence[str]]) -> Components:
    """Return components that were stored as JSON; an exception if `found` is anything else."""
    return {str(name): Component(digest and str(digest), str(text)) for name, (digest, text) in found.items()}
