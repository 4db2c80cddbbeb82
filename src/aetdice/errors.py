"""The one exception of the library for input it cannot accept."""


class InputError(ValueError):
    """What a user handed in is wrong; the message says what, where, and what to do."""
