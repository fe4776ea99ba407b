"""The rules by subject: what each finds, what to do about it and why. `registry` has all of them by name."""
