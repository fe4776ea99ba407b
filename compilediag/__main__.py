"""`python -m compilediag`: the same as the `compilediag` command."""

import sys

from compilediag.cli import main

if __name__ == "__main__":
    sys.exit(main())
