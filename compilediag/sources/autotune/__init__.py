"""Hooks on Inductor's and triton's autotuning."""
