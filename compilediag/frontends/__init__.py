"""What users type or configure: IPython magics and the pytest plugin."""
