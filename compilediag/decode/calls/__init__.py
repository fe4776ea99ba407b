"""Calls as text: which argument of a call a value of the called function is, and which files are the user's own."""
