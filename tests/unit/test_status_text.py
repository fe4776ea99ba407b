"""The table of sources that `%compilewatch status` prints."""

from tests.inside import format_status


def make_source(name, status="active", events=0, reason=None):
    return {"name": name, "status": status, "events": events, "reason": reason}


def test_columns_are_aligned_and_only_active_sources_have_a_number():
    sources = [
        make_source("aot_autograd_cache", events=1234),
        make_source("calls", "off", reason="not requested"),
        make_source("phases", "failed", 7, "KeyError:\n'x'"),
        make_source("my_plugin", "failed", None, "it raised"),
    ]
    assert format_status(sources).splitlines() == [
        "source              status  events  why",
        "aot_autograd_cache  active   1,234",
        "calls               off             not requested",
        "phases              failed       7  KeyError: 'x'",
        "my_plugin           failed          it raised",
    ]
