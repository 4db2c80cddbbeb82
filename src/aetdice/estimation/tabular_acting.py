"""A tabular policy as estimators ask it."""

import numpy as np
from jaxtyping import Float

from aetdice.estimation.acting import Augmented, DiscreteActing
from aetdice.exact import TabularPolicy

NEAR = 1e-7


class TabularActing(DiscreteActing):
    """Found by state, accrued reward and time; anything goes where the policy is never."""

    def __init__(self, policy: TabularPolicy) -> None:
        space, rows = policy.space, []
        for time, layer in enumerate(space.layers[:-1]):
            shown = space.momdp.observations[layer.state[layer.live]]
            rows.append(np.column_stack([shown, layer.accrued[layer.live], np.full(len(shown), time)]))
        table = np.concatenate(rows)
        # A random projection stands for a row: equal rows have equal ones, and others do not by chance.
        self.direction = np.random.default_rng(0).uniform(1, 2, table.shape[1])
        order = np.argsort(table @ self.direction)
        self.places = (table @ self.direction)[order]
        self.chances = np.concatenate(policy.probabilities)[order]

    def probabilities(self, states: Augmented) -> Float[np.ndarray, "n a"]:
        wanted = np.column_stack(states) @ self.direction
        place = np.clip(np.searchsorted(self.places, wanted - NEAR), 0, len(self.places) - 1)
        found = np.abs(self.places[place] - wanted) < 2 * NEAR
        return np.where(found[:, None], self.chances[place], 1 / self.chances.shape[1])
