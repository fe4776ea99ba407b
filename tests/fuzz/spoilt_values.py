"""Values that a stranger could put where compilediag expects an honest one."""

import json

#: If this is ever a name in generated code, a text of a file became code.
NAME = "FUZZ_CODE"
TEXTS = (
    "", "\x00", "\x1b[2J\x1b]0;owned\x07", "\x9b31m\u202e\u2066", f"\n{NAME}()\n", f'"""\n{NAME}()\n"""',
    f"'\"\n{NAME}()#", f"\r{NAME}()", f"\u2028{NAME}()",
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>", "<!--<script>",
    "=cmd|' /C calc'!A0", "\t@SUM(A1)", "x\r=1+1", "../../../../etc/passwd", "/dev/zero", "/proc/self/mem",
    "file:///etc/passwd", "javascript:alert(1)", "%s %d {0} {x.__class__} \\N{BULLET} $x `x`", "L['x']" * 5000,
    "(" * 3000 + ")" * 3000, "[" * 900 + "]" * 900, "-" * 5000 + "1", "9" * 5000, "nan", "-1", "0/0",
    "L['x'].size()[99999999999999999999]", "0.0/0", "null", '{"a": {"b": [null, 1e999]}}', '["a", 7, null]', '[""]',
    json.dumps(["x" * 300] * 300), json.dumps({f"k{n}": n for n in range(500)}),
    "\ud7ff\uffff\U0001f468\u200d\U0001f469", "a" * 300_000,
)  # fmt: skip
NUMBERS = (
    *(0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 1.5, -0.0, 1e-308, 1e15, 1e16, 1e300),
    *(float("inf"), float("-inf"), 10**18, 1_700_000_000_000_000_000),
)
BLOBS = (b"", b"\x00", b"\xff\xfe\xfa", b"\x78\x9c" + b"\x00" * 20, b"x" * 100_000)


def choose_cell(random_):
    """A value of any type that SQLite stores."""
    kind = random_.random()
    if kind < 0.6:
        return random_.choice(TEXTS)
    if kind < 0.85:
        return random_.choice(NUMBERS)
    return random_.choice((None, *BLOBS))


def choose_json(random_, depth=0):
    """A value of any type that JSON has."""
    kind = random_.random()
    if kind < 0.5 or depth > 3:
        return random_.choice(TEXTS)
    if kind < 0.8:
        return random_.choice((*NUMBERS, None, True, False, 10**400))
    if kind < 0.9:
        return [choose_json(random_, depth + 1) for _ in range(random_.randrange(4))]
    return {random_.choice(("a", "", "name", *TEXTS)): choose_json(random_, depth + 1) for _ in range(3)}
