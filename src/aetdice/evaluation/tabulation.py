"""A discrete policy network as a table over all augmented states, so that its J can be computed exactly."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from aetdice.exact import AugmentedSpace, TabularPolicy
from aetdice.networks import PolicyNetwork


def tabulated(network: PolicyNetwork, space: AugmentedSpace) -> TabularPolicy:
    """The network's probabilities on every augmented state."""
    layers = space.layers[:-1]
    states = space.momdp.observations[np.concatenate([layer.state[layer.live] for layer in layers])]
    accrued = np.concatenate([layer.accrued[layer.live] for layer in layers]).astype(np.float32)
    sizes = [layer.live.size for layer in layers]
    rows = jax.device_put((states, accrued, np.repeat(np.arange(len(sizes)), sizes)))
    outputs = np.asarray(_outputs(network, *rows), float)
    weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return TabularPolicy(space, np.split(weights / weights.sum(axis=1, keepdims=True), np.cumsum(sizes)[:-1]))


@eqx.filter_jit
def _outputs(
    network: PolicyNetwork,
    states: Shaped[Array, "n o"],
    accrued: Float[Array, "n m"],
    time: Int[Array, " n"],
) -> Float[Array, "n a"]:
    return jax.vmap(network.outputs)(states, accrued, time)
