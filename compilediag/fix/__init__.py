"""`compilediag fix`: searches for the smallest change of the user's program that runs have proven."""
