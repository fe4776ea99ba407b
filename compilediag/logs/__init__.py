"""TORCH_TRACE logs as sessions: which files, how they are unpacked, and how their events are written."""

from .job import UnreadRecords, ingest, opened, read_logs, read_on_dask

__all__ = ["UnreadRecords", "ingest", "opened", "read_logs", "read_on_dask"]
