"""`compilediag example RULE`: a worked example of a finding."""

from __future__ import annotations

import argparse

from compilediag.errors import CompilediagError


class ExampleCommand:
    """Print a worked example of a finding: a small program, what compilediag prints for it, and the changes that work.

    Examples:

      compilediag example               the rules that have an example
      compilediag example size_changes
    """

    name = "example"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("rule", metavar="RULE", nargs="?", help="the rule of a finding, such as size_changes")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.diagnosis.registry import load_examples

        examples = load_examples()
        if args.rule is None:
            width = max(map(len, examples))
            print("\n".join(f"{rule:<{width}}  {example.symptom}" for rule, example in examples.items()))
        elif args.rule in examples:
            print(examples[args.rule])
        else:
            raise CompilediagError(f"no example of '{args.rule}'; `compilediag example` lists the rules that have one")
        return 0
