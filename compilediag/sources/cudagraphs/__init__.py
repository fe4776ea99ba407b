"""Hooks on CUDA graphs."""
