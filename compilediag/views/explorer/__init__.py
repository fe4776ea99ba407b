"""The guard-failure explorer: one document per function, shown in the browser or as text."""
