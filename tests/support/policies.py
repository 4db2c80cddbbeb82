"""Policies with opinions that nobody trained, of every kind that is shipped."""

import equinox as eqx
import jax
import numpy as np
import pytest

from aetdice import InputError, Policy, bsr
from aetdice.data.coding import Coding, ObservationColumn
from aetdice.data.transforms import Chain, Safety, Scaling
from aetdice.networks import Categorical, Encoder, GaussianMixture, PolicyNetwork
from aetdice.objectives import objective_record

HORIZON, OBJECTIVES = 20, 2
WORDS = Coding(
    (ObservationColumn("queue"), ObservationColumn("weather", ("dry", "rain"))),
    True,
    ("send", "how"),
    (("centre", 1), ("north", 1), ("north", 2)),
)


def policy_of(sizes=None, size=3, head=None, objectives=OBJECTIVES, scale=0.5, **given):
    """Some policy with opinions, and the frequencies that trained ones have; a large `scale` decides."""
    rng = np.random.default_rng(0)
    encoder = Encoder(
        sizes, HORIZON, True, True, rng.normal(size=size), 0.5 + rng.random(size),
        np.full(objectives, 2.7), 0 if sizes else 3, 8,
    )  # fmt: skip
    network = PolicyNetwork(encoder, head or Categorical(3), (32, 32), jax.random.key(0))
    last = scale * jax.random.normal(jax.random.key(1), network.net.weights[-1].shape)
    details = {"objective": "BSR", "objective_record": objective_record(bsr(0.25)), "objectives": ["a", "b"]}
    return Policy(eqx.tree_at(lambda p: p.net.weights[-1], network, last), details, **given)


POLICIES = {
    "one discrete entry": lambda: policy_of((5,), 1),
    "joint indicators": lambda: policy_of((5, 4, 3)),
    "too many for joint indicators": lambda: policy_of((50, 40, 3)),
    "continuous observations": policy_of,
    "one component": lambda: policy_of(head=GaussianMixture(np.array([-1.0]), np.array([3.0]), 1)),
    "a mixture": lambda: policy_of(head=GaussianMixture(np.array([-1.0, 5.0]), np.array([3.0, 6.0]), 3)),
    "words": lambda: policy_of(coding=WORDS),
    "transformed rewards": lambda: policy_of(
        objectives=3, transform=Chain((Scaling((0.5, 2.0)), Safety(height_entry=1, angle_entry=2)))
    ),
}


def some_states(policy, count=200):
    rng, encoder = np.random.default_rng(1), policy.network.encoder
    observations = (
        rng.normal(size=(count, len(encoder.centre))).astype(np.float32)
        if encoder.sizes is None
        else rng.integers(0, encoder.sizes, (count, len(encoder.sizes)))
    )
    accrued = rng.normal(size=(count, len(encoder.accrued_range))).astype(np.float32) * 5
    return observations, accrued, rng.integers(0, HORIZON, count)


@eqx.filter_jit
def outputs_of(network, observations, accrued, time):
    return jax.vmap(network.outputs)(observations, accrued, time)


def complaint(call):
    """What is said instead of an answer: one sentence."""
    with pytest.raises(InputError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value)
