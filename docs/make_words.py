"""Writes the words that the browser's code shares with Python to stdout: `make docs`."""

import json

from compilediag.events.words import CODES, PHASE_PATTERNS, PHASES

HEADER = """\
// Written by `make docs` (docs/make_words.py) from compilediag/events/words.py; a test holds the two together.

/**
 * `phases` and `codes` of the tables: name -> words. `patterns`: [pattern of the names of phases, words].
 * @type {{ phases: Record<string, string>, patterns: string[][], codes: Record<string, string> }}
 */"""

if __name__ == "__main__":
    words = {"phases": PHASES, "patterns": PHASE_PATTERNS, "codes": CODES}
    print(f"{HEADER}\nexport const WORDS = {json.dumps(words, indent=2)};")
