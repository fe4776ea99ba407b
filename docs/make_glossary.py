"""Writes docs/glossary.md to stdout, from the words that the page explains on hover and focus: `make docs`."""

from compilediag.events.words import GLOSSARY, GUARD_KIND_MEANINGS, describe_code

INTRODUCTION = """# Glossary

The words of the dashboard and the report. There, rest the pointer on a word or move the focus to it to read the same.
"""


def main() -> None:
    print(INTRODUCTION)
    write_table("word", dict(sorted(GLOSSARY.items(), key=lambda item: item[0].lower())))
    print("\n## Kinds of guards\n")
    write_table("kind", {describe_code(kind): meaning for kind, meaning in GUARD_KIND_MEANINGS.items()})


def write_table(head: str, meanings: dict[str, str]) -> None:
    print("\n".join([f"| {head} | meaning |", "|---|---|", *(f"| {word} | {meanings[word]} |" for word in meanings)]))


if __name__ == "__main__":
    main()
