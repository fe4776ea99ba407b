"""Whether an exception is the program's interrupt is found out without memory too: a MemoryError of ours stays ours."""

PROGRAM = """
import resource
from compilediag.system import interrupts

hoard = []


def exhaust(size=1 << 20):
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used, resource.RLIM_INFINITY))
    while size >= 16:
        try:
            hoard.append(bytearray(size))
        except MemoryError:
            size //= 2


def fail(work):
    try:
        work()
    except Exception as error:
        interrupts.pass_on(error)


raised = None
exhaust()
try:
    fail(lambda: [0] * 10_000_000)
except BaseException as error:
    raised = error
hoard.clear()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(repr(raised))
"""


def test_a_memory_error_of_ours_stays_ours(python):
    done = python("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None"]
