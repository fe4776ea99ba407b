"""What people look at. `model.py` makes every number that is shown; the rest of this package only shows it."""
