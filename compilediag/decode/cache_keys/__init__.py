"""Cache keys: their components, and why two keys differ."""
