"""Work per guard is linear in its text: only an algorithm that is not linear exceeds the limits of these processes."""

import json

import pytest

#: Seconds of the processor, which do not depend on what else the machine does. The linear work takes 1 to 3 s.
LIMIT_S = 30
LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({LIMIT_S}, {LIMIT_S}))\n"

PARSE = """
import sys
from compilediag.decode.guards.guard_text import parse_guard

word = sys.argv[1] * (300_000 // len(sys.argv[1]))
keys = [word, word.encode(), (word, 1), ((word,), word)]
forms = (
    "L['d'][{}] == 3", "___dict_contains('k', L['d'][{}])",
    "tensor 'L['d'][{}]' size mismatch at index 0. expected 2, actual 3",
    "KeyError on L['d'][{}]", "L['x'] == {}", "hasattr(L['d'], {})", "{}", "Duplicate tensors found: [{}]",
    "check_overlapping(overlapping=[L['d'][{}]], non_overlapping=[L['d'][{}], L['x']])", "0/1: L['d'][{}] is L['x']",
    "L['x'] == 1  # {}", "L['x'] == 1  # y = x  # a.py:5 in f (HINT: guard on {})", "User stack trace:\\n{}",
    "((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({})) if hasattr", "list(dict.keys(L['d'])) == [{}]",
    "2 <= L['d'][{}].size()[0]", "L['d'][{}].size()[0] == L['x'].size()[0]", "not L['d'][{}]",
    "check_tensor({}, Tensor",
)
for key in keys:
    for form in forms:
        text = form.replace("{}", repr(key))
        parse_guard(text)
"""

#: One character, and texts of which each part could begin something that the end of the text decides.
WORDS = (
    *("a", "'", '"', "\\", "(", "[", " ", "\n", "# ", "L['x']", "a.b", "a(", "<", "{0}", "not "),
    *(" == ", "'a', ", "\r", ".0"),
)


@pytest.mark.long("a process for each word and length")
def test_parsing_a_text_of_300_kb_is_linear(program_server):
    for word in WORDS:
        done = program_server.run("-c", LIMITED + PARSE, word)
        assert done.returncode == 0, (word, done.stderr[-2000:])


RECOMPILE = """
import json, os, sys, tempfile
import torch
import compilediag as cd
from tests.inside import read_page

length, detail = int(sys.argv[1]), sys.argv[2]
word = "w" * length

def by_key(x, d):
    for key in d:
        x = x * d[key]
    return x

def by_value(x, text):
    return x + 1 if text == "a" else x + 2

with tempfile.TemporaryDirectory() as folder, cd.watch(os.path.join(folder, "s.cdiag"), detail=detail) as session:
    for key in ((word, 1), (word, (word.encode(), "'")), word, frozenset({word})):
        torch._dynamo.reset()
        f = torch.compile(by_key, backend="eager")
        for value in (True, False):
            f(torch.ones(2), {key: value})
    f = torch.compile(by_value, backend="eager")
    for n in range(3):
        f(torch.ones(2), word + str(n))
    session.flush()
    print(json.dumps({"recompiles": len(session.recompiles), "summary": len(session.summary()),
                      "plan": len(str(session.plan())), "page": len(read_page(session.report(folder + "/r.html")))}))
"""


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_recompiles_on_long_keys_and_texts_are_linear(program_server, detail):
    runs = {length: program_server.run("-c", LIMITED + RECOMPILE, str(length), detail) for length in (800, 80_000)}
    assert {done.returncode for done in runs.values()} == {0}, [done.stderr[-2000:] for done in runs.values()]
    sizes = {length: json.loads(done.stdout) for length, done in runs.items()}
    assert {found["recompiles"] for found in sizes.values()} == {6}
    assert sizes[80_000]["summary"] < 20_000 and sizes[80_000]["plan"] < 50_000
    assert sizes[80_000]["page"] < sizes[800]["page"] + 100_000
