"""A program that runs out of address space (RLIMIT_AS) around a watch, and prints what became of it.

Its arguments are the moment and the detail.
"""

import json
import logging
import resource
import sys

import torch

import compilediag as cd
from tests import inside

start, stop = cd.start, cd.stop
MOMENT, DETAIL = sys.argv[1:]
hoard = []


def exhaust(size=1 << 20):
    """Take all memory that the limit leaves: first in large pieces, then in smaller ones."""
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used, resource.RLIM_INFINITY))
    while size >= 16:
        try:
            hoard.append(bytearray(size))
        except MemoryError:
            size //= 2


def release():
    hoard.clear()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def call(function, *arguments, **options):
    """What a function raises while there is no memory."""
    exhaust()
    try:
        function(*arguments, **options)
    except BaseException as error:
        return error
    finally:
        release()


class Failing(logging.Handler):
    """Fails as any handler can."""

    def emit(self, record):
        raise MemoryError


def compile_new(number):
    assert compiled(torch.zeros(2), number).sum().item() == 2 * number


compiled = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)
compile_new(1)
logging.basicConfig()
logging.getLogger("compilediag").addHandler(Failing())
raised = None
if MOMENT == "start":
    raised = call(start, detail=DETAIL)
else:
    session = start(detail=DETAIL)
    compile_new(2)
    session.flush()
    if MOMENT == "flush":
        compile_new(3)
        raised = call(session.data.flush)
    if MOMENT == "hooks":
        # What a hook of ours can do without memory: the call itself may fail, as it would unwatched.
        hooked = [source for source in inside.list_watching() if source.is_active]
        for source in hooked:
            raised = raised or call(source.run_shielded, lambda: [0] * 10_000_000)
    if MOMENT == "stop":
        compile_new(3)
        raised = call(stop)
compile_new(4)
stop()
print(
    json.dumps(
        {
            "raised": None if raised is None else type(raised).__name__,
            "hooks": [str(hook) for hook in inside.list_hooks()],
            "running": cd.current() is not None,
        }
    ),
    flush=True,
)
