"""Hooks on the caches of generated code and on the workers that compile it."""
