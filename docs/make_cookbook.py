"""Writes docs/cookbook and the package's examples from the programs of tests/advice: `make docs`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "cookbook"
EXAMPLES = ROOT / "compilediag" / "diagnosis" / "examples.json"


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.advice.cookbook import write_examples, write_pages
    from tests.advice.known_programs import load_programs

    pages = write_pages(load_programs())
    EXAMPLES.write_text(write_examples(load_programs()), encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for path in {*FOLDER.glob("*.md")} - {FOLDER / name for name in pages}:
        path.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
