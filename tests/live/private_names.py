"""The private names of torch that compilediag uses, and how to take one away, for the tests and the soak."""

import contextlib
import importlib
from pathlib import Path

import compilediag
from tests.inside import TorchName

MISSING = object()


def list_names():
    """The names that the `torch_api.py` of each group declares, but for attributes that are read from objects."""
    found = set()
    for file in Path(compilediag.__file__).parent.glob("sources/*/torch_api.py"):
        constants = vars(importlib.import_module(f"compilediag.sources.{file.parent.name}.torch_api"))
        for name, value in constants.items():
            if name.isupper() and name != "_READ":
                found.update(flatten(value))
    return sorted(found, key=str)


def flatten(value):
    """The names in a constant."""
    if isinstance(value, TorchName):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for part in value:
            yield from flatten(part)


@contextlib.contextmanager
def put_instead(name, value):
    """In the block a name of torch is missing or has another value. Gives false for one of a type in C, which stays."""
    owner = name.owner()
    original = vars(owner)[name.name]
    try:
        delattr(owner, name.name) if value is MISSING else setattr(owner, name.name, value)
    except TypeError:
        yield False
        return
    try:
        yield True
    finally:
        setattr(owner, name.name, original)
