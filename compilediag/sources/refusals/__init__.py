"""Calls that torch does not compile, because of a stance or of `aot_compile`."""
