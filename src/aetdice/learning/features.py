"""Which features of continuous observations policies should see: by the likelihood of held-out episodes.

How well plain cloning predicts episodes it has not seen ranks features as the environment does; a
ratio-weighted J does not.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from aetdice.algorithms import Algorithm
from aetdice.algorithms.sampling import SampleWeights, cumulative_shares
from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.learning.inputs import encoder_for, head_for, onto_device
from aetdice.learning.population import fit_of_policies, start_policies, train_policies

CANDIDATES: tuple[Mapping[str, Any], ...] = (
    {},
    {"network.observation_fourier": 3, "network.fourier": 3},
    {"network.observation_fourier": 5, "network.fourier": 3},
)
UPDATES = 2_000
"""Of every candidate's trial."""
HELD_OUT = 0.1
MOST_EPISODES = 2_000
"""Of a dataset, by which features are chosen."""
RATE = 1e-3


def choose_features(
    dataset: Episodes, algorithm: Algorithm, horizon: int, config: TrainingConfig
) -> TrainingConfig:
    """The configuration with the features whose cloning predicts held-out episodes best."""
    touched = {name for candidate in CANDIDATES for name in candidate}
    if touched & set(config.changed()):
        return config
    order = np.random.default_rng(0).permutation(len(dataset))[:MOST_EPISODES]
    count = max(1, round(HELD_OUT * len(order)))
    if count == len(order):
        return config
    training, kept = (dataset.select(np.sort(rows)) for rows in (order[count:], order[:count]))
    tried = [config.adapted(candidate) for candidate in CANDIDATES]
    fits = [_fit(training, kept, algorithm, horizon, each) for each in tried]
    return tried[int(np.argmax(fits))]


def _fit(
    training: Episodes, held_out: Episodes, algorithm: Algorithm, horizon: int, config: TrainingConfig
) -> float:
    """E[log π(a|s̃)] of held-out steps, after a short cloning of the others."""
    seen, kept = (onto_device(part, horizon, algorithm) for part in (training, held_out))
    cdf = cumulative_shares(np.asarray(seen.steps.weight))
    seeds = jnp.zeros(1, jnp.int32)
    network = config.network
    states = start_policies(
        encoder_for(training, horizon, algorithm, network), head_for(training, network), network.hidden, seeds
    )
    trial = config.adapted({"extraction.steps": UPDATES}).extraction
    states = train_policies(
        states,
        SampleWeights(jnp.asarray(cdf)[None], None),
        jnp.full(1, RATE),
        seeds,
        seen,
        jnp.arange(UPDATES),
        trial,
    )
    return float(fit_of_policies(states, kept)[0])
