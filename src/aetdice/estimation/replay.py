"""The log replayed in a model of it: what was done is done again, and what came of it is known.

Actions do not answer to what the model makes of them, so this is for transitions without chance.
"""

import numpy as np
from jaxtyping import Shaped

from aetdice.data.noise import chance_share
from aetdice.estimation.acting import Augmented
from aetdice.estimation.neighbour_model import NeighbourModel
from aetdice.estimation.recording import Utilities, bootstrap_weights
from aetdice.estimation.rollouts import Utility

MOST_CHANCE = 0.1
"""Of what a step does, for a replay to tell anything."""
EPISODES = 100
REPLICATES = 40


class Replay:
    """Does at every time what was done then; a row for every episode."""

    def __init__(self, actions: Shaped[np.ndarray, "episodes horizon *a"]) -> None:
        self.actions = actions

    def sample(self, states: Augmented, rng: np.random.Generator) -> Shaped[np.ndarray, "n *a"]:
        del rng
        return self.actions[np.arange(len(states.time)), states.time]


def replay_errors(model: NeighbourModel, utility: Utility, seed: int) -> Utilities | None:
    """What a model of the other episodes adds to the k of some, in replicates; None where chance plays."""
    data, horizon = model.episodes, model.horizon
    whole = np.flatnonzero(data.lengths == horizon)
    if len(whole) < 2 * EPISODES or chance_share(data) > MOST_CHANCE:
        return None
    drawn = np.random.default_rng(seed).permutation(whole)[:EPISODES]
    apart = NeighbourModel(data.select(np.setdiff1d(np.arange(len(data)), drawn)), horizon)
    rows = data.starts[drawn][:, None] + np.arange(horizon)
    first = apart.scaled(data.observations[data.starts[drawn] + drawn])
    returns = apart.follow(Replay(data.actions[rows]), first, seed).returns
    errors = utility(returns) - utility(data.returns[drawn])
    weights = bootstrap_weights(len(drawn), REPLICATES, seed)
    return weights @ errors / weights.sum(axis=1, keepdims=True)
