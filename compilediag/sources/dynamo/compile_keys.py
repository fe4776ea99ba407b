"""Session-unique keys of compile attempts. torch reuses its compile ids: after a reset, and in other threads."""

from __future__ import annotations

import itertools
import os
import secrets
from collections import OrderedDict
from typing import Any

from . import torch_api

#: Attempts whose keys are remembered, for the backwards, entries and kernels that come later.
MAX_REMEMBERED = 20_000


class CompileKeys:
    """The keys of the attempts of one recording.

    torch creates one CompileId object per attempt and hands that very object on: to the compile's context, to its
    lazy backward (in autograd's thread too), its cache entry, its CUDA graphs and its kernels. So the object, not
    its text, identifies the attempt. It is held here: its `id()` stays its own.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[int, tuple[Any, str]] = OrderedDict()
        #: Text of an id -> the key, or None once several attempts have had that text.
        self._by_text: dict[str, str | None] = {}
        self._start_process()

    def _start_process(self) -> None:
        self._pid, self._token, self._count = os.getpid(), secrets.token_hex(4), itertools.count(1)

    def assign(self, compile_id: Any) -> str | None:
        """The key of an attempt by its CompileId object; a new one at the first call. None for None."""
        if compile_id is None:
            return None
        known = self._keys.get(id(compile_id))
        return known[1] if known is not None else self._add(compile_id)

    def make_key(self) -> str:
        """A key that no attempt has."""
        if os.getpid() != self._pid:  # A forked child counts its own attempts.
            self._start_process()
        return f"{self._token}.{next(self._count)}"

    def _add(self, compile_id: Any) -> str:
        key = self.make_key()
        self._keys[id(compile_id)] = compile_id, key
        text = str(compile_id)
        self._by_text[text] = None if text in self._by_text else key
        if len(self._keys) > MAX_REMEMBERED:
            self._keys.popitem(last=False)
        return key

    def find(self, compile_id: Any) -> str | None:
        """The key of an attempt; None if it started before this recording."""
        known = self._keys.get(id(compile_id))
        return None if known is None else known[1]

    def guess(self, compile_id: Any) -> str | None:
        """As `find`, and for an id that torch has copied the key of the only attempt with its text, if it is one."""
        if compile_id is None:
            return None
        return self.find(compile_id) or self._by_text.get(str(compile_id))

    def match(self, text: str | None) -> str | None:
        """The key of an attempt by the text of its id: that of this thread's attempt if it has that text, else the
        only one with it. torch announces some phases, of CUDA graphs, with the id of a compile that is over.
        """
        current, key = self.current()
        return key if current == text else self.guess(text)

    def current(self) -> tuple[str | None, str | None]:
        """(compile id, compile key) of the compile that runs in this thread; None outside of a compile."""
        compile_id = torch_api.current_compile_id()
        return (None, None) if compile_id is None else (str(compile_id), self.assign(compile_id))
