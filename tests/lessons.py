"""Small lessons for the learner that several tests share; equal shapes let them share compiled programs."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from problems import random_tables, uniform_episodes

from aetdice import Episodes, Objective, TabularMOMDP, bsr
from aetdice.config import TrainingConfig
from aetdice.exact import AugmentedSpace, TabularPolicy
from aetdice.networks import PolicyNetwork
from aetdice.learning.run import Run
from aetdice.learning.training import train

TINY = TrainingConfig(hidden=(8,), batch=16, value_steps=100, cloning_steps=100, chunk=25, holdout=0.0)


def tiny_episodes(seed: int = 0) -> Episodes:
    """Fifty episodes of three steps."""
    return uniform_episodes(random_tables(seed).momdp(), 50, seed)


def tiny_run(**changes: Any) -> Run:
    """A run of a second, once compiled."""
    objective: Objective = changes.pop("objective", bsr(0.5))
    data: Episodes = changes.pop("data", None) or tiny_episodes()
    return train(data, objective, **{"beta": 0.1, "config": TINY, **changes})


def deterministic_momdp(seed: int, *, states: int = 4, actions: int = 2, horizon: int = 4) -> TabularMOMDP:
    """Random next states and small integer rewards in two objectives that compete."""
    rng = np.random.default_rng(seed)
    return TabularMOMDP.from_arrays(
        rng.integers(0, states, (states, actions)),
        rng.integers(0, 4, (states, actions, 2)).astype(float),
        0,
        horizon,
    )


def leaves(*trees: Any) -> list[np.ndarray]:
    """The arrays of trees, on the host."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trees)]


def parameters(run: Run) -> list[np.ndarray]:
    """Every weight of every policy and twin."""
    return leaves([(member.policy.policy, member.twin.policy) for member in run.members])


def tabulated(policy: PolicyNetwork, space: AugmentedSpace) -> TabularPolicy:
    """A network's probabilities on every augmented state."""
    layers = space.layers[:-1]
    states = space.momdp.observations[np.concatenate([layer.state[layer.live] for layer in layers])]
    accrued = np.concatenate([layer.accrued[layer.live] for layer in layers])
    sizes = [layer.live.size for layer in layers]
    time = np.repeat(np.arange(len(sizes)), sizes)
    outputs = np.asarray(every_output(policy, states, accrued.astype(np.float32), time), np.float64)
    weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    table = weights / weights.sum(axis=1, keepdims=True)
    return TabularPolicy(space, np.split(table, np.cumsum(sizes)[:-1]))


@eqx.filter_jit
def every_output(policy: PolicyNetwork, states, accrued, time):
    return jax.vmap(policy.outputs)(states, accrued, time)
