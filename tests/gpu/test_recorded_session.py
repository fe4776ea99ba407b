"""The session that ships with the notebook on CUDA graphs can be recorded anew."""

import re

import compilediag as cd
from compilediag.events import BY_TABLE
from tests.conftest import ROOT

ACTIONS = {
    *("warmup", "record", "rerecord", "skip", "partition", "replays", "eager", "limit", "stuck", "invalidated"),
    "user_capture",
}


def test_it_has_every_action_is_small_and_contains_nothing_about_the_machine(python, tmp_path):
    ran = python(ROOT / "notebooks" / "record_cudagraphs.py", tmp_path / "out.cdiag")
    assert ran.returncode == 0, ran.stderr
    session = cd.load(tmp_path / "out.cdiag")
    assert set(session.cudagraphs["action"]) == ACTIONS
    assert (tmp_path / "out.cdiag").stat().st_size < 500_000
    in_use = session.sources.query("name in ('cudagraphs', 'cudagraph_skips', 'captures', 'replays')")
    assert set(in_use["status"]) == {"active"} and in_use["reason"].isna().all()
    cells = [
        str(cell)
        for table in BY_TABLE
        for column in getattr(session, table).to_dict("list").values()
        for cell in column
    ]
    assert [cell for cell in cells if re.search(r"(?<![\w.])/(?:home|root|work|tmp|opt|usr)/", cell)] == []
