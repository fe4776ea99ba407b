"""The layout of a command's help: paragraphs fill the terminal, examples and lists stay as they are."""

from __future__ import annotations

import argparse
import re
import textwrap

#: A paragraph that has lines like `csv:   a folder` or indented ones is an example or a list.
_IS_LAID_OUT = re.compile(r"^(?:\s+\S|\w+: +\S)", re.MULTILINE)


class CommandHelpFormatter(argparse.HelpFormatter):
    """Wraps the text of a command to the width of the terminal, one paragraph at a time."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = (
            textwrap.indent(paragraph, indent)
            if _IS_LAID_OUT.search(paragraph)
            else textwrap.fill(
                paragraph, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
            for paragraph in re.split(r"\n\n", text.strip("\n"))
        )
        return "\n\n".join(paragraphs)
