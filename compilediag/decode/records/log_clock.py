"""When a record was written: its prefix has local time without a year; some records have an absolute time too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from .trace_log import Record

SECOND = 1_000_000_000
#: Time zones are quarters of an hour apart.
QUARTER = 900 * SECOND
HALF_YEAR = 180 * 86_400 * SECOND


class LogClock:
    """Converts stamps to nanoseconds since 1970, given the first records of a log.

    If none of them has an absolute time, the year is that of the file's last change, and the zone is UTC.
    """

    def __init__(self, records: Sequence[Record], changed_ns: int):
        self._year = _find_year(changed_ns)
        self._offset = 0
        self._last = 0
        self._second = ("", 0)
        for record in records:
            absolute = read_absolute_ns(record)
            if absolute is not None:
                self._align(record.stamp, absolute)
                return
        if records and self.convert(records[0].stamp) > changed_ns + 86_400 * SECOND:
            self._year -= 1
        self._last, self._second = 0, ("", 0)

    def _align(self, stamp: str, absolute: int) -> None:
        self._year = _find_year(absolute)
        difference = absolute - self.convert(stamp)
        if abs(difference) > HALF_YEAR:  # Local time and UTC were in different years.
            self._year += 1 if difference > 0 else -1
            self._second = ("", 0)
            difference = absolute - self.convert(stamp)
        self._offset = round(difference / QUARTER) * QUARTER
        self._last, self._second = 0, ("", 0)

    def convert(self, stamp: str) -> int:
        """Return the time of a stamp, `1121 13:54:23.654000`. Half a year before the last one means a new year."""
        whole = stamp[:-7]
        if whole != self._second[0]:
            self._second = (whole, self._convert_second(whole))
            if self._second[1] < self._last - HALF_YEAR:
                self._year += 1
                self._second = (whole, self._convert_second(whole))
            self._last = self._second[1]
        return self._second[1] + int(stamp[-6:]) * 1000

    def _convert_second(self, whole: str) -> int:
        month, day, hour, minute, second = (int(whole[at : at + 2]) for at in (0, 2, 5, 8, 11))
        try:
            moment = datetime(self._year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:  # A damaged prefix, or the 29th of February of another year.
            return self._last
        return int(moment.timestamp()) * SECOND + self._offset


def _find_year(ns: int) -> int:
    return datetime.fromtimestamp(ns // SECOND, UTC).year


def read_absolute_ns(record: Record) -> int | None:
    """Return the absolute time at which a record was written; None if it has none."""
    metadata = record.metadata
    if "chromium_event" in metadata and record.size:
        try:
            return check_range(record.parse_event()["ts"] * 1000)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
    metrics = metadata.get("compilation_metrics")
    if isinstance(metrics, dict):
        try:
            end_us = metrics.get("end_time_us")
            return check_range(
                end_us * 1000
                if end_us is not None
                else (metrics["start_time"] + metrics["entire_frame_compile_time_s"]) * SECOND
            )
        except (TypeError, KeyError):
            return None
    return None


def check_range(ns: float) -> int | None:
    """Return `ns` if it is a time of this century, else None."""
    return int(ns) if math.isfinite(ns) and 946_684_800 * SECOND < ns < 4_102_444_800 * SECOND else None
