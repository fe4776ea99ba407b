"""Evaluation of guards: which failed, and with which values."""
