"""Plotly figures of a session."""
