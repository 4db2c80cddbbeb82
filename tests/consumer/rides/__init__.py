"""A project that uses aetdice from outside, with public names only."""
