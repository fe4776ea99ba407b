"""Root causes of recompiles, and what to change for each."""
