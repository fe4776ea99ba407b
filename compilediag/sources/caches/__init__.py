"""Hooks on torch's compile caches and compile workers."""
