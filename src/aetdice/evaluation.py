"""How good a policy is in its environment: sampled actions, many episodes at once."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from aetdice.data import Transform
from aetdice.envs.batched import BatchedEnvironment
from aetdice.envs.environment import Environment
from aetdice.envs.transformed import TransformedBatch
from aetdice.errors import InputError
from aetdice.networks import Policy
from aetdice.objectives import Objective, bsr, esr, lsr, ser

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHOWN_OUTCOMES = 20
TOGETHER = 256
"""Episodes of a batched environment that are stepped at once."""

Playable: TypeAlias = Environment | BatchedEnvironment


def utility_threshold(env: Playable) -> float:
    """Below which return logarithms and powers in F are continued: 1 unless the environment has its own."""
    return env.utility_threshold if isinstance(env, Environment) else 1.0


class Situation(NamedTuple):
    """Where to begin instead of at an environment's reset: in the middle of an episode."""

    state: Any
    accrued: Float[Array, " m"]
    time: Int[Array, ""]


@eqx.filter_jit
def rollout_returns(
    policy: Policy,
    env: Environment,
    episodes: int,
    key: PRNGKeyArray,
    begin: Situation | None = None,
    transform: Transform | None = None,
) -> Float[Array, "episodes m"]:
    """Returns of sampled episodes: policy and environment in one program."""
    objectives = env.objectives if transform is None else transform.names(env.objectives)

    def episode(key: PRNGKeyArray) -> Float[Array, " m"]:
        first, key = jax.random.split(key)

        def step(carry: Any, time: Array) -> tuple[Any, None]:
            state, accrued, running, key = carry
            key, act_key, step_key = jax.random.split(key, 3)
            action = policy.sample(env.observe(state), accrued, time, act_key)
            state, reward, terminated = env.step(step_key, state, action)
            if transform is not None:
                reward = transform(reward, env.observe(state))
            running = running & (time < env.horizon)
            accrued = accrued + jnp.where(running, reward.astype(accrued.dtype), 0)
            return (state, accrued, running & ~terminated, key), None

        start = begin or Situation(env.reset(first), jnp.zeros(len(objectives)), jnp.zeros((), jnp.int32))
        carry = (start.state, start.accrued, jnp.ones((), bool), key)
        (_, accrued, _, _), _ = jax.lax.scan(step, carry, start.time + jnp.arange(env.horizon))
        return accrued

    return jax.vmap(episode)(jax.random.split(key, episodes))


def sample_returns(
    policy: Policy,
    env: Playable,
    episodes: int,
    seed: int,
    begin: Situation | None = None,
    transform: Transform | None = None,
) -> Float[np.ndarray, "episodes m"]:
    """Returns of sampled episodes, on the host; of transformed rewards, where a policy knows no others."""
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    if isinstance(env, Environment):
        return np.asarray(rollout_returns(policy, env, episodes, jax.random.key(seed), begin, transform))
    if begin is not None:
        raise InputError("a batched environment begins at its own reset")
    env = env if transform is None else TransformedBatch(env, transform)
    parts = [
        _batched_returns(policy, env, min(TOGETHER, episodes - first), seed, first)
        for first in range(0, episodes, TOGETHER)
    ]
    return np.concatenate(parts)


def sample_returns_of(
    policies: Sequence[Policy], env: Environment, episodes: int, seed: int
) -> list[Float[np.ndarray, "episodes m"]]:
    """Of every policy as `sample_returns` has it, in one program; the policies share their shape."""
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    return list(np.asarray(_rollouts(together, env, episodes, jax.random.key(seed))))


@eqx.filter_jit
def _rollouts(
    together: Policy, env: Environment, episodes: int, key: PRNGKeyArray
) -> Float[Array, "policies episodes m"]:
    return jax.vmap(lambda policy: rollout_returns(policy, env, episodes, key))(together)


def _batched_returns(
    policy: Policy, env: BatchedEnvironment, count: int, seed: int, first: int
) -> Float[np.ndarray, "count m"]:
    """Policy on the device, environment on the host, all episodes in step."""
    own = int(np.random.SeedSequence([seed, first]).generate_state(1)[0])
    observation, key = env.reset(count, own), jax.random.key(own)
    accrued, running = np.zeros((count, len(env.objectives))), np.ones(count, bool)
    for time in range(env.horizon):
        key, act_key = jax.random.split(key)
        shown = jnp.asarray(accrued, jnp.float32)
        action = _act_all(policy, _device(observation), shown, jnp.asarray(time, jnp.int32), act_key)
        observation, reward, terminated = env.step(np.asarray(action))
        accrued += np.where(running[:, None], reward, 0)
        running &= ~terminated
        if not running.any():
            break
    return accrued


@eqx.filter_jit
def _act_all(
    policy: Policy,
    observation: Shaped[Array, "count o"],
    accrued: Float[Array, "count m"],
    time: Int[Array, ""],
    key: PRNGKeyArray,
) -> Shaped[Array, "count *a"]:
    keys = jax.random.split(key, observation.shape[0])
    return jax.vmap(policy.sample, in_axes=(0, 0, None, 0))(observation, accrued, time, keys)


def _device(values: Shaped[np.ndarray, "..."]) -> Array:
    return jnp.asarray(values, jnp.int32 if np.issubdtype(values.dtype, np.integer) else jnp.float32)


def standard_objectives(trained: Objective | None = None, threshold: float = 1.0) -> dict[str, Objective]:
    """ESR, BSR(0.5), SER and LSR, F continued below the threshold, and the objective trained for."""
    named = {
        "ESR": esr(threshold=threshold),
        "BSR[alpha=0.5]": bsr(0.5, threshold=threshold),
        "SER": ser(),
        "LSR": lsr(),
    }
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
