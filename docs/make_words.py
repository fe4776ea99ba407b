"""Writes the words that the browser's code shares with Python to stdout: `make docs`."""

import json

from compilediag.events.words import (
    CODES,
    GLOSSARY,
    GLOSSARY_NAMES,
    GUARD_KIND_MEANINGS,
    PHASE_KINDS,
    PHASE_NAMES,
    PHASE_PATTERNS,
    PHASES,
)

HEADER = """\
// Written by `make docs` (docs/make_words.py) from compilediag/events/words.py; a test holds the two together.

/**
 * `phases` and `codes` of the tables: name -> words. `patterns`: [pattern of the names of phases, words]. `phaseKinds`:
 * kind of a phase -> [word, meaning]; `phaseNames`: [pattern of the whole name, kind]. `meanings`: a total, a tab, a
 * label of a column, a mark or a kind of guard -> what it means.
 * @type {{ phases: Record<string, string>, patterns: string[][], phaseKinds: Record<string, string[]>,
 *   phaseNames: string[][], codes: Record<string, string>, meanings: Record<string, string> }}
 */"""

if __name__ == "__main__":
    named = {name: GLOSSARY[word] for name, word in GLOSSARY_NAMES.items()}
    meanings = {**GLOSSARY, **named, **GUARD_KIND_MEANINGS}
    phases = {"phases": PHASES, "patterns": PHASE_PATTERNS, "phaseKinds": PHASE_KINDS, "phaseNames": PHASE_NAMES}
    words = {**phases, "codes": CODES, "meanings": meanings}
    print(f"{HEADER}\nexport const WORDS = {json.dumps(words, indent=2, ensure_ascii=False)};")
