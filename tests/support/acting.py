"""Policies for tests of models and estimators, which ask them as `aetdice.estimation.acting` has it."""

import numpy as np


class Always:
    """Does the same everywhere."""

    def __init__(self, action: float) -> None:
        self.action = action

    def sample(self, states, rng):
        return np.full(len(states.time), self.action)
