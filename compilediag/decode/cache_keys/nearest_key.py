"""Why a cache missed: the components of the key, compared with the nearest earlier key of the same function."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ...events import CacheLookup
from .key_components import SETTING, Component, Components, make_components, make_setting, parse_components
from .key_differences import describe_differences, measure_distance

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

    def add_past(self, earlier: Iterable[CacheKey]) -> None:
        own = {key.key for key in self.keys}
        self.keys = deque([*(key for key in earlier if key.key not in own), *self.keys], maxlen=REMEMBERED)
        self.has_past = True

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
        self._noted[key] = {**self._noted.get(key, {}), **_make_all(texts), **known}
        while len(self._noted) > MAX_NOTED:
            self._noted.popitem(last=False)

    def compare(self, lookup: CacheLookup, lines: Iterable[str]) -> CacheLookup:
        """Return `lookup` with the nearest earlier key of its function, if it missed; remember its own key.

        `lines` are the components as torch writes them, `[digest] name: text`, as far as it does.
        """
        if lookup.key is None:
            return lookup
        own, settings = parse_components(lines)
        noted = self._noted.get(lookup.key)
        if noted is not None:
            own, settings = _separate({**own, **settings, **noted})
        if not (own or settings) or lookup.function is None:
            return lookup
        own.update({n: own[n]._replace(text=text) for n, text in self._version.items() if n in own})
        owner, key = _make_owner(lookup, own), self._make_key(lookup.key, own, settings)
        known = self._find_known(owner)
        if lookup.outcome == "miss":
            if not known.has_past:
                known.add_past(self._find_past(owner))
            lookup = _with_nearest(lookup, key, known.keys)
        if known.add(key) and self._past is not None:
            self._unsaved.append((owner, key))
            if lookup.outcome == "miss" or len(self._unsaved) >= MAX_UNSAVED:
                self.save()
        return lookup

    def save(self) -> None:
        """Keep the keys of hits for later sessions too; those of misses are kept at once."""
        if self._past is not None and self._unsaved:
            self._past.remember(self._unsaved)
            self._unsaved = []

    def _make_key(self, name: str, own: Components, settings: Components, seen: str | None = None) -> CacheKey:
        if len(self._settings) >= MAX_SETTINGS:
            self._settings.clear()
        return CacheKey(name, own, self._settings.setdefault(tuple(map(id, settings.values())), settings), seen)

    def _find_known(self, owner: KeyOwner) -> KnownKeys:
        known = self._owners.setdefault(owner, KnownKeys())
        self._owners.move_to_end(owner)
        if len(self._owners) > MAX_FUNCTIONS:
            self._owners.popitem(last=False)
        return known

    def _find_past(self, owner: KeyOwner) -> list[CacheKey]:
        """Return the keys of earlier sessions, the oldest first."""
        earlier = self._past.earlier(owner) if self._past is not None else ()
        return [self._make_key(key, *_separate(found), seen) for key, found, seen in earlier]


def _separate(found: Components) -> tuple[Components, Components]:
    """Return the components that are no configuration, and those that are."""
    settings = {name: component for name, component in found.items() if name.startswith(SETTING)}
    return {name: component for name, component in found.items() if name not in settings}, settings


def _make_all(texts: Mapping[str, str]) -> Components:
    return {n: c for name, text in texts.items() for n, c in make_components(name, None, text).items()}


def _make_owner(lookup: CacheLookup, own: Components) -> KeyOwner:
    direction = own.get("fx_kwargs[is_backward]", Component(None, "False"))
    return KeyOwner(lookup.cache or "", lookup.function or "", lookup.file, lookup.line, direction.text == "True")


def _with_nearest(lookup: CacheLookup, now: CacheKey, known: Iterable[CacheKey]) -> CacheLookup:
    """Return `lookup` with the nearest known key and the differences. Of equally near keys the latest counts."""
    candidates = list(reversed(list(known)))
    same = [k for k in candidates if k.key == now.key]
    nearest = same[0] if same else min(candidates, key=now.distance, default=None)
    if nearest is None:
        return lookup
    differences = [] if same else nearest.differences(now)
    return dataclasses.replace(lookup, nearest_key=nearest.key, nearest_session=nearest.seen, key_diff=differences)
