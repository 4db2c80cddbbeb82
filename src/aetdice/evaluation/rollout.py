"""Rollouts: returns of sampled episodes, many at once, in JAX or in a batched environment."""

import math
from collections.abc import Sequence
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
from aetdice.evaluation.acting import draw_courses, sample_actions
from aetdice.evaluation.policy import Policy
from aetdice.networks import Categorical, GaussianMixture, PolicyHead, PolicyNetwork
from aetdice.progress import tell

TOGETHER = 256
"""Episodes of a batched environment that are stepped at once."""

AnyEnvironment: TypeAlias = Environment | BatchedEnvironment


class Situation(NamedTuple):
    """Where to begin instead of at an environment's reset: in the middle of an episode."""

    state: Any
    accrued: Float[Array, " m"]
    time: Int[Array, ""]


@eqx.filter_jit
def rollout_returns(
    network: PolicyNetwork,
    env: Environment,
    episodes: int,
    key: PRNGKeyArray,
    begin: Situation | None = None,
    transform: Transform | None = None,
    greedy: bool = False,
) -> Float[Array, "episodes m"]:
    """Returns of sampled episodes: policy and environment in one program."""
    objectives = env.objectives if transform is None else transform.names(env.objectives)

    def episode(key: PRNGKeyArray) -> Float[Array, " m"]:
        first, key = jax.random.split(key)
        course = network.draw_course(jax.random.fold_in(first, 1), greedy=greedy)

        def step(carry: Any, time: Array) -> tuple[Any, None]:
            state, accrued, running, key = carry
            key, act_key, step_key = jax.random.split(key, 3)
            if greedy:
                action = network.greedy(env.observe(state), accrued, time, course)
            else:
                action = network.sample(env.observe(state), accrued, time, act_key, course)
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
    env: AnyEnvironment,
    episodes: int,
    seed: int,
    *,
    begin: Situation | None = None,
    greedy: bool = False,
) -> Float[np.ndarray, "episodes m"]:
    """Returns of sampled episodes, on the host; of transformed rewards, where a policy knows no others."""
    if episodes < 1:
        raise InputError(f"at least one episode is needed, not {episodes}")
    check_fits(policy, env)
    if isinstance(env, Environment):
        key = jax.random.key(seed)
        return np.asarray(
            rollout_returns(policy.network, env, episodes, key, begin, policy.transform, greedy)
        )
    if begin is not None:
        raise InputError("a batched environment begins at its own reset")
    env = env if policy.transform is None else TransformedBatch(env, policy.transform)
    parts = [
        _batched_returns(policy, env, min(TOGETHER, episodes - first), seed, first, greedy, episodes)
        for first in range(0, episodes, TOGETHER)
    ]
    return np.concatenate(parts)


def check_fits(policy: Policy, env: AnyEnvironment) -> None:
    """`InputError` if the policy cannot act in this environment, or was trained for shorter episodes."""
    if not isinstance(env, Environment | BatchedEnvironment):
        raise InputError(f"an environment is what make_env gives, or a BatchedEnvironment; not {env!r}")
    encoder = policy.network.encoder
    if env.horizon > policy.horizon:
        raise InputError(
            f"the policy was trained for {policy.horizon} steps, but an episode of this environment has "
            f"{env.horizon}; make the environment with horizon={policy.horizon}, or train on longer episodes"
        )
    names = env.objectives if policy.transform is None else policy.transform.names(env.objectives)
    if len(names) != len(encoder.accrued_range):
        raise InputError(
            f"the policy knows {len(encoder.accrued_range)} objectives, the environment {len(names)}"
        )
    if isinstance(env, Environment):
        check_size(policy, len(env.observation_bounds[0]))
    _check_actions(policy.network.head, env)


def _check_actions(head: PolicyHead, env: AnyEnvironment) -> None:
    shape = () if isinstance(env, Environment) else getattr(env, "action_shape", None)
    own = (len(head.low),) if isinstance(head, GaussianMixture) else ()
    if shape is not None and _kind(shape) != _kind(own):
        raise InputError(f"the policy has {_kind(own)} actions, the environment {_kind(shape)} ones")
    if isinstance(head, Categorical) and isinstance(env, Environment) and head.actions > env.actions:
        raise InputError(f"the policy has {head.actions} actions, the environment {env.actions}")


def _kind(shape: tuple[int, ...]) -> str:
    return f"{math.prod(shape)}-dimensional" if shape else "discrete"


def check_size(policy: Policy, size: int) -> None:
    expected = len(policy.network.encoder.centre)
    if size != expected:
        raise InputError(
            f"the policy was trained on observations of {expected} entries, the environment shows {size}"
        )


def sample_returns_of(
    policies: Sequence[Policy], env: Environment, episodes: int, seed: int
) -> list[Float[np.ndarray, "episodes m"]]:
    """Of every policy as `sample_returns` has it; those that share their shape in one program."""
    for policy in policies:
        check_fits(policy, env)
    alike: dict[Any, list[int]] = {}
    for index, policy in enumerate(policies):
        leaves, form = jax.tree.flatten(policy.network)
        alike.setdefault((form, *(np.shape(leaf) for leaf in leaves)), []).append(index)
    found: dict[int, Float[np.ndarray, "episodes m"]] = {}
    for group in alike.values():
        networks = [policies[index].network for index in group]
        together = jax.tree.map(lambda *leaves: jax.device_put(np.stack(leaves)), *networks)
        returns = np.asarray(_rollouts(together, env, episodes, jax.random.key(seed)))
        found |= dict(zip(group, returns, strict=True))
    return [found[index] for index in range(len(policies))]


@eqx.filter_jit
def _rollouts(
    together: PolicyNetwork, env: Environment, episodes: int, key: PRNGKeyArray
) -> Float[Array, "policies episodes m"]:
    return jax.vmap(lambda network: rollout_returns(network, env, episodes, key))(together)


def _batched_returns(
    policy: Policy, env: BatchedEnvironment, count: int, seed: int, first: int, greedy: bool, episodes: int
) -> Float[np.ndarray, "count m"]:
    """Policy on the device, environment on the host, all episodes in step."""
    own = int(np.random.SeedSequence([seed, first]).generate_state(1)[0])
    observation, key = env.reset(count, own), jax.random.key(own)
    check_size(policy, observation[0].size)
    accrued, running = np.zeros((count, len(env.objectives))), np.ones(count, bool)
    courses = draw_courses(policy.network, count, jax.random.fold_in(key, 1), greedy)
    for time in range(env.horizon):
        key, act_key = jax.random.split(key)
        shown, now = jnp.asarray(accrued, jnp.float32), jnp.full(count, time, jnp.int32)
        action = sample_actions(policy.network, _device(observation), shown, now, act_key, greedy, courses)
        observation, reward, terminated = env.step(np.asarray(action))
        accrued += np.where(running[:, None], reward, 0)
        running &= ~terminated
        if not running.any():
            break
        tell("rollout", first * env.horizon + count * time, episodes * env.horizon)
    tell("rollout", (first + count) * env.horizon, episodes * env.horizon)
    return accrued


def _device(values: Shaped[np.ndarray, "..."]) -> Array:
    return jnp.asarray(values, jnp.int32 if np.issubdtype(values.dtype, np.integer) else jnp.float32)
