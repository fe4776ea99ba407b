"""The program that makes the gallery of the documentation: its pictures show the session, and they are small."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import gallery
from tests.unit.session_builder import saved
from tests.unit.tables_builder import compiled, sizes


@pytest.mark.long("takes the pictures of a session")
def test_pictures_of_a_session_are_small_and_the_page_shows_them_all(browser: Browser, tmp_path: Path) -> None:
    session = saved(tmp_path, compiled(), *sizes("4", "6"))
    shown = tuple(itertools.product(("dashboard", "report"), gallery.SIZES, gallery.SCHEMES))
    exhibit = gallery.Exhibit("small", "Small", "One size changes.", session, shown)
    pictures = list(gallery.take_pictures(browser, exhibit, tmp_path))
    assert len({picture.png for picture in pictures}) == len(pictures) == 8, "each one differs"
    for picture in pictures:
        assert struct.unpack(">II", picture.png[16:24]) == (picture.width, gallery.SIZES[picture.width])
    size = gallery.write_pictures(browser, pictures, tmp_path / "img" / "gallery")
    written = {path.name: path.read_bytes() for path in (tmp_path / "img" / "gallery").iterdir()}
    assert sum(map(len, written.values())) == size < sum(len(picture.png) for picture in pictures)
    assert all(content[:4] == b"RIFF" and content[8:12] == b"WEBP" for content in written.values())
    page = gallery.format_page([exhibit], "img/gallery")
    assert {*written} == {line.rpartition("/")[2].rstrip(")") for line in page.splitlines() if line.startswith("![")}
    assert f"The plan: {session.plan().headline}." in page
