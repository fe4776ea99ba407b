"""A session's file: written, read, merged, and read as tables."""
