"""The browser formats numbers and names phases as Python does."""

import json
from pathlib import Path

from tests.browser.conftest import run_modules
from tests.inside import PHASES, find_phase_kind, format_phase

CASES = json.loads((Path(__file__).parents[1] / "format_cases.json").read_text())
#: Formats the cases of each kind with the module's own function.
FORMAT = """([format], kinds) => {
  const formatters = {
    seconds: format.formatSeconds,
    milliseconds: format.formatMilliseconds,
    count: format.formatCount,
    amount: (parts) => format.formatAmount(...parts),
    times: format.formatTimes,
    bytes: format.formatBytes,
    share: format.formatShare,
    signed_share: (value) => format.formatShare(value, true),
    place: (parts) => format.formatPlace(...parts),
    function: format.formatFunction,
  };
  const numbers = { NaN, Infinity, "-Infinity": -Infinity };
  const write = ([kind, cases]) => [kind, cases.map(([value]) => formatters[kind]?.(numbers[value] ?? value))];
  return Object.fromEntries(Object.entries(kinds).map(write));
}"""


def test_numbers_are_formatted_as_in_python(new_page):
    made = run_modules(new_page(), ["core/format.js"], FORMAT, CASES)
    assert made == {kind: [text for _, text in cases] for kind, cases in CASES.items()}


def test_phases_have_the_words_and_kinds_of_python(new_page):
    names = [*PHASES, "compile_attempt_3", "pass.fuse", "_recursive_post_grad_passes", "Scheduler.fuseNodes_x", "gc"]
    names += [
        "mm_template_autotuning",
        "addmm_template_precompiling",
        "additional_fake_tensor_prop",
        "no_name_of_torch",
    ]
    script = "([phases], names) => names.map((name) => [phases.phaseLabel(name), phases.phaseKind(name)])"
    made = run_modules(new_page(), ["timeline/phases.js"], script, names)
    assert made == [[format_phase(name), find_phase_kind(name)] for name in names]
