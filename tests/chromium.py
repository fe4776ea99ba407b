"""The browser of tests, benchmarks and pictures."""

import shutil

#: The first one that is there. The shell is the same engine without the window of a browser, which takes as long as the
#: page in it.
_COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """The path of a Chromium; None if there is none."""
    return next(filter(None, map(shutil.which, _COMMANDS)), None)
