"""Policy extraction: from an algorithm's sample weights to what every policy learns from."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from aetdice.algorithms.sampling import SampleWeights, cumulative_shares
from aetdice.config import TrainingConfig
from aetdice.data.device import DeviceData
from aetdice.errors import InputError

FIRST_PART = 1 / 25
"""Of the longest episode: early oversampling fades as exp(-t / so much of it)."""


def sample_weights_for(
    weights: Sequence[Float[Array, " steps"]], twins: int, data: DeviceData, config: TrainingConfig
) -> SampleWeights:
    """What every policy learns from: a share `floor` as the behaviour has it, the rest by its weights.

    D2 of docs/paper.md: steps are drawn in proportion to w instead of weighting uniform draws.
    π(a|s̃) is the same for any factor of w that depends on s̃ alone, so the mass that time steps
    conserve may be corrected before, and early steps be drawn more often. Twins see the plain data.
    """
    extraction = config.extraction
    behaviour = np.asarray(data.behaviour, np.float64)
    behaviour /= behaviour.sum()
    shares = [behaviour] * twins
    for mass in reversed(weights):
        own = np.asarray(mass, np.float64)
        total = own.sum()
        if not np.isfinite(total) or total <= 0:
            raise InputError("every ratio is zero: no step is worth cloning; use a larger beta")
        shares.insert(0, (1 - extraction.floor) * own / total + extraction.floor * behaviour)
    if extraction.early_oversampling:
        time = np.asarray(data.steps.time)
        shares = [oversample_early(share, time, extraction.early_oversampling) for share in shares]
    if not config.ablation.weighted_loss:
        return SampleWeights(jnp.asarray(np.stack([cumulative_shares(share) for share in shares])), None)
    plain = cumulative_shares(behaviour)
    relative = np.stack([share / np.maximum(behaviour, 1e-300) for share in shares])
    return SampleWeights(jnp.asarray(np.stack([plain] * len(shares))), jnp.asarray(relative, jnp.float32))


def oversample_early(
    share: Float[np.ndarray, " steps"], time: Int[np.ndarray, " steps"], early: float
) -> Float[np.ndarray, " steps"]:
    """Shares of which a part `early` lies on the first steps of episodes."""
    first = share * np.exp(-time / (FIRST_PART * (time.max() + 1)))
    return (1 - early) * share + early * first / first.sum()
