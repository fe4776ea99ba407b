"""What users type: magics, the pytest plugin."""
