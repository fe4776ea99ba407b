"""Trials: run the user's workload with and without changes, and compare."""
