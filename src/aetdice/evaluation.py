"""How good a policy is in its environment: sampled actions, many episodes at once."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from aetdice.envs.environment import Environment
from aetdice.errors import InputError
from aetdice.networks import Policy
from aetdice.objectives import Objective, bsr, esr, lsr, ser

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHOWN_OUTCOMES = 20


@eqx.filter_jit
def rollout_returns(
    policy: Policy, env: Environment, episodes: int, key: PRNGKeyArray
) -> Float[Array, "episodes m"]:
    """Returns of sampled episodes: policy and environment in one program."""

    def episode(key: PRNGKeyArray) -> Float[Array, " m"]:
        first, key = jax.random.split(key)

        def step(carry: Any, time: Array) -> tuple[Any, None]:
            state, accrued, running, key = carry
            key, act_key, step_key = jax.random.split(key, 3)
            action = policy.sample(env.observe(state), accrued, time, act_key)
            state, reward, terminated = env.step(step_key, state, action)
            accrued = accrued + jnp.where(running, reward.astype(accrued.dtype), 0)
            return (state, accrued, running & ~terminated, key), None

        start = (env.reset(first), jnp.zeros(len(env.objectives)), jnp.ones((), bool), key)
        (_, accrued, _, _), _ = jax.lax.scan(step, start, jnp.arange(env.horizon))
        return accrued

    return jax.vmap(episode)(jax.random.split(key, episodes))


def sample_returns(
    policy: Policy, env: Environment, episodes: int, seed: int
) -> Float[np.ndarray, "episodes m"]:
    """Returns of sampled episodes, on the host."""
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    return np.asarray(rollout_returns(policy, env, episodes, jax.random.key(seed)))


def standard_objectives(trained: Objective | None = None) -> dict[str, Objective]:
    """ESR, BSR(0.5), SER and LSR, and the objective trained for."""
    named = {"ESR": esr(), "BSR[alpha=0.5]": bsr(0.5), "SER": ser(), "LSR": lsr()}
    return named if trained is None else {**named, "trained": trained}


def evaluate_returns(
    returns: Float[np.ndarray, "episodes m"], objectives: Mapping[str, Objective], seed: int = 0
) -> dict[str, Any]:
    """Scores with bootstrap intervals, quantiles per objective and the commonest outcomes."""
    key = jax.random.key(seed)
    scores = {name: objective.score(returns, key)._asdict() for name, objective in objectives.items()}
    outcomes, counts = np.unique(np.round(returns, 4), axis=0, return_counts=True)
    order = np.argsort(-counts)[:SHOWN_OUTCOMES]
    return {
        "episodes": len(returns),
        "scores": scores,
        "mean_returns": returns.mean(axis=0).tolist(),
        "variances": returns.var(axis=0).tolist(),
        "quantiles": {str(q): np.quantile(returns, q, axis=0).tolist() for q in QUANTILES},
        "outcomes": [
            {"returns": outcomes[i].tolist(), "share": float(counts[i] / len(returns))} for i in order
        ],
    }
