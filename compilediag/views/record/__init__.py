"""The record of a session that a saved notebook keeps: text, and HTML that needs neither scripts nor a kernel."""
