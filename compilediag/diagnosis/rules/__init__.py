"""Findings that are not recompiles: caches, autotuning, CUDA graphs, graph breaks, failures, coverage."""
