"""Hooks on compiles, recompiles, graph breaks, phases and calls."""
