"""The exceptions of the library for input it cannot accept."""


class InputError(ValueError):
    """What a user handed in is wrong; the message says what, where, and what to do."""


class TurnError(InputError):
    """What was asked for is right, but not now: `act` and `observe` take turns until the horizon."""
