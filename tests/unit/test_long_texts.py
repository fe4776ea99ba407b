"""Texts of torch's of a million characters, made to be slow to search: the work stays proportional to their length.

The texts run in a process of their own. With a pattern that tries every beginning it would take hours.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from compilediag.formatting import bound_lines, bound_text
from compilediag.decode.call_stacks import find_code, find_user_line
from compilediag.decode.guards.path import Path, format_expression
from compilediag.decode.records.autotune_choices import extract_reason, parse_inputs, parse_parameters
from compilediag.decode.records.compilation_metrics import make_compile, normalize_metrics
from compilediag.decode.records.torch_messages import (
    parse_limit, parse_mismatch, parse_overwritten, parse_size_limit, parse_skip,
)
from compilediag.decode.records.torch_messages import parse_graph_break, parse_logged_break
from compilediag.diagnosis.rules.graph_breaks import _LOGGER

PIECES = [
    "\\n", " ", "\\n ", "_", "a", "1", "'", "(", "[", "\\\\", ".a", "a.", "a=(,", "a='", ":a=a", "0x", "w.", ". ",
    "input name: ", "\\ninput name: x. data pointer changed from ", " Stack trace: ", "Found from ", "[rank",
    "Dynamo recompile limit exceeded", "  Hint: ", "\\n  Hint: ", "  Explanation: ", "Graph Break Reason: ",
    'File "a", line 1, in f\\n', "Traceback\\n", "aError\\n", "function 1 exceeding max re-recording limit (=",
]
WORK = [
    lambda text: find_user_line(text),
    lambda text: find_code(text, "a", 2),
    lambda text: (parse_parameters(text), parse_inputs(text), extract_reason(text)),
    lambda text: (parse_skip(text), parse_limit(text, []), parse_size_limit(text)),
    lambda text: (parse_mismatch(text, []), parse_overwritten(text)),
    lambda text: parse_graph_break(text, 0, None),
    lambda text: parse_logged_break("Graph break in user code at " + text, 0, None),
    lambda text: make_compile(normalize_metrics("compilation_metrics", {"fail_reason": text}, "0/0", 0), {}, "k"),
    lambda text: (bound_text(text), bound_lines(text)),
]
for piece in PIECES:
    text = piece * (1_000_000 // len(piece)) + "\\0!"
    for work in WORK:
        work(text)
    short = text[:4_000]
    _LOGGER.search(short), format_expression(short), Path.of(short).of_any_instance
print("done")
"""


def test_no_text_is_searched_again_and_again():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, cwd=ROOT, check=False
    )
    assert ran.stdout == "done\n", ran.stderr
