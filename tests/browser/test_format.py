"""The browser formats numbers as Python does."""

import json
from pathlib import Path

from compilediag.events.words import PHASES as KNOWN_PHASES
from compilediag.events.words import format_phase
from compilediag.views import esm

CASES = json.loads((Path(__file__).parents[1] / "format_cases.json").read_text())
#: Formats the cases of a kind with the module's own function.
FORMAT = """async ([source, kind, cases]) => {
  const text = `${source}export default $files["core/format.js"];`;
  const format = (await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })))).default;
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
  return kind in formatters ? cases.map(([value]) => formatters[kind](numbers[value] ?? value)) : null;
}"""


def test_numbers_are_formatted_as_in_python(new_page):
    page = new_page()
    page.set_content("<!doctype html><html><body></body></html>")
    source = esm.join_modules("core/format.js")
    for kind, cases in CASES.items():
        made = page.evaluate(FORMAT, [source, kind, cases])
        assert made == [text for _, text in cases], kind


#: Phases with words, of a family, and without.
PHASES = (
    *KNOWN_PHASES,
    "compile_attempt_3",
    "pass.fuse",
    "_recursive_post_grad_passes",
    "Scheduler.fuseNodes_x",
)


def test_phases_have_the_words_of_python(new_page):
    page = new_page()
    page.set_content("<!doctype html><html><body></body></html>")
    source = esm.join_modules("dashboard/phases.js")
    label = """async ([source, names]) => {
      const text = `${source}export default $files["dashboard/phases.js"];`;
      const phases = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      return names.map((name) => phases.default.phaseLabel(name));
    }"""
    made = page.evaluate(label, [source, list(PHASES)])
    assert made == [format_phase(name) for name in PHASES]
