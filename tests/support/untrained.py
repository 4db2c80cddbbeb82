"""A training that trains nothing: policies as they were initialised, for tests of what comes after."""

import jax
import numpy as np

from aetdice import Member, Policy, Run, Verdict
from aetdice.learning.inputs import encoder_for, head_for
from aetdice.learning.population import product
from aetdice.learning.run import select_members
from aetdice.learning.setup import algorithm_for
from aetdice.networks import PolicyNetwork


def untrained(dataset, objectives, *, algorithm, horizon, seed, config, **others):
    """As `aetdice.train`, in no time; the algorithm's own check of its objectives is made."""
    learner = algorithm_for(algorithm, horizon, config)
    for objective in objectives:
        learner.check(objective, len(dataset.objectives))
    encoder, head = encoder_for(dataset, horizon, learner, config.network), head_for(dataset, config.network)
    grid = {name: others.get(name) or (default,) for name, default in learner.sweeps.items()}
    members = []
    for choice in product(objective=objectives, **grid, seed=seed):
        policy = PolicyNetwork(encoder, head, config.network.hidden, jax.random.key(choice["seed"]))
        acting = Policy(policy, {})
        known = {
            "held_out_claimed_value": float(len(members)),
            "mass_violation": 0.0,
            "flow_violation": 0.1,
            "effective_sample_size": 0.5,
        }
        params = {"algorithm": algorithm, **choice, "objective": choice["objective"].short_name}
        verdict = Verdict(True, "untrained")
        members.append(
            Member(
                params, choice["objective"], acting, acting, {} if algorithm == "esr-iql" else known, verdict
            )
        )
    return Run(members, select_members(members), algorithm, config, horizon, 0.0, np.asarray(dataset.returns))
