"""The ranks of a distributed job, compared with each other."""
