"""Spoils session files and logs, and runs every command on them: each ends with a result or one clear line, in time.

`tests/unit/test_fuzz.py` runs a few cases of each kind. `python -m tests.fuzz --minutes 10` runs as many as it can, in
processes of their own, and prints what failed with the seed that makes it again (`--seed N --cases 1`).
"""
