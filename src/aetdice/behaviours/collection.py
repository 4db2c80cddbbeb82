"""Datasets by D4MORL's protocol, expert and amateur, with our own behaviour policies; and one with falls."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from aetdice.behaviours.behaviour import Behaviour, load_behaviour
from aetdice.data import Episode
from aetdice.envs.mujoco import BatchedBody, Body, find_body
from aetdice.errors import InputError
from aetdice.files import package_version, versions

TRAJECTORIES = 2000
AT_ONCE = 128
"""Episodes stepped together. Fixed, so that an episode depends on the seed and its number only."""
UNCHANGED = 0.35
"""Probability that an amateur's action is the expert's."""
SCALES = (0.35, 1.65)
"""Otherwise it is the expert's times one number from this range."""
UNSTABLE = 0.25
"""Share of the trajectories that are weak."""
STRENGTHS = (0.3, 0.6)
"""What is left of their actions, one number from this range for all of a trajectory: walkers fall."""

Actions = Float[np.ndarray, "n a"]
Alter = Callable[[Actions], Actions]
"""What becomes of the policy's actions of one time step, in n trajectories."""


def expert(body: Body, n: int, rng: np.random.Generator) -> Alter:
    """The policy's own actions."""
    del body, n, rng
    return lambda actions: actions


def amateur(body: Body, n: int, rng: np.random.Generator) -> Alter:
    """With probability .35 unchanged, else times one scalar U(.35, 1.65) per step.

    As D4MORL's collector does, the swimmer's are uniformly random instead of unchanged.
    """
    limits = np.array(body.action_limits)

    def alter(actions: Actions) -> Actions:
        kept = rng.random(n) < UNCHANGED
        scaled = actions * rng.uniform(*SCALES, n)[:, None]
        random = rng.uniform(-limits, limits, actions.shape)
        return np.where(kept[:, None], random if body.name == "swimmer" else actions, scaled)

    return alter


def unstable(body: Body, n: int, rng: np.random.Generator) -> Alter:
    """An amateur's, and a quarter of the trajectories weak from beginning to end; not D4MORL's."""
    strength = np.where(rng.random(n) < UNSTABLE, rng.uniform(*STRENGTHS, n), 1.0)
    alter = amateur(body, n, rng)
    return lambda actions: alter(actions) * strength[:, None]


QUALITIES: dict[str, Callable[[Body, int, np.random.Generator], Alter]] = {
    "expert": expert,
    "amateur": amateur,
    "unstable": unstable,
}
"""By the dataset's quality, what makes the alteration for n trajectories."""


def collect_body(
    body: str,
    quality: str = "expert",
    trajectories: int = TRAJECTORIES,
    seed: int = 0,
    behaviour: Behaviour | None = None,
    threads: int | None = None,
    horizon: int | None = None,
) -> Iterator[Episode]:
    """Episodes by D4MORL's protocol, as they come; the first ones do not depend on how many.

    A preference uniform on the simplex, within the range of the policy's normalised returns; the
    policy's preference whose normalised returns are nearest acts, deterministically; actions are
    altered by the quality, clipped, stepped and stored as float32. Observations are float32,
    too: the policy acts on what is stored. Rewards are float64. Episodes last `horizon` steps, by
    default the body's own number.
    """
    found = find_body(body)
    if quality not in QUALITIES:
        raise InputError(f"unknown quality {quality!r}; known: {', '.join(QUALITIES)}")
    if trajectories < 1:
        raise InputError(f"at least one trajectory is needed, not {trajectories}")
    policy = load_behaviour(found.name) if behaviour is None else behaviour
    if policy.body != found.name:
        raise InputError(f"the policy is of the {policy.body}, not of the {found.name}")
    batch = BatchedBody(found, threads=threads, horizon=horizon)
    return _collect(batch, quality, trajectories, seed, policy)


def _collect(
    batch: BatchedBody, quality: str, trajectories: int, seed: int, policy: Behaviour
) -> Iterator[Episode]:
    for number, start in enumerate(range(0, trajectories, AT_ONCE)):
        rng = np.random.default_rng([seed, number])
        preferences = acting_preferences(policy, draw_targets(policy, AT_ONCE, rng))
        wanted = min(AT_ONCE, trajectories - start)
        alter = QUALITIES[quality](batch.body, AT_ONCE, rng)
        yield from _round(batch, policy, preferences, alter, wanted, rng)


def normalised_returns(policy: Behaviour) -> Float[np.ndarray, "k m"]:
    """R / ‖R‖₁ of the card's undominated preferences."""
    returns = policy.returns[policy.front()]
    return returns / np.sum(np.abs(returns), axis=1, keepdims=True)


def draw_targets(policy: Behaviour, count: int, rng: np.random.Generator) -> Float[np.ndarray, "count m"]:
    """Preferences uniform on the simplex, rejected outside the range of the normalised returns."""
    returns = normalised_returns(policy)
    low, high = returns.min(axis=0), returns.max(axis=0)
    found = np.zeros((0, returns.shape[1]))
    for _ in range(1000):
        drawn = rng.dirichlet(np.ones(returns.shape[1]), count)
        found = np.concatenate([found, drawn[np.all((drawn >= low) & (drawn <= high), axis=1)]])
        if len(found) >= count:
            return found[:count]
    raise InputError(
        f"the {policy.body}'s policy earns nearly the same for every preference; train it longer"
    )


def acting_preferences(policy: Behaviour, targets: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    """For each target the preference of the card whose normalised returns are nearest."""
    gaps = np.sum((normalised_returns(policy)[None] - targets[:, None]) ** 2, axis=2)
    return policy.preferences[policy.front()][np.argmin(gaps, axis=1)]


def _round(
    batch: BatchedBody,
    policy: Behaviour,
    preferences: Float[np.ndarray, "n m"],
    alter: Alter,
    wanted: int,
    rng: np.random.Generator,
) -> Iterator[Episode]:
    """The first `wanted` of n episodes; random numbers and rounding are those of all n."""
    body, n, horizon = batch.body, len(preferences), batch.horizon
    frames = np.zeros((horizon + 1, n, body.observation_size), np.float32)
    actions = np.zeros((horizon, n, body.action_size), np.float32)
    rewards = np.zeros((horizon, wanted, len(batch.objectives)))
    lengths, terminated = np.full(wanted, horizon), np.zeros(wanted, dtype=bool)
    frames[0, :wanted] = batch.reset_from(rng, wanted)
    for t in range(horizon):
        actions[t] = body.clip(alter(policy.act(frames[t], preferences)))
        frames[t + 1, :wanted], rewards[t], ended = batch.step(actions[t, :wanted].astype(np.float64))
        lengths[ended & ~terminated], terminated = t + 1, ended
        if terminated.all():
            break
    for i, length in enumerate(lengths):
        yield Episode(
            observations=frames[: length + 1, i],
            actions=actions[:length, i],
            rewards=rewards[:length, i],
            terminated=bool(terminated[i]),
            truncated=not terminated[i],
        )


def collection_facts(policy: Behaviour, quality: str, trajectories: int, seed: int) -> dict[str, Any]:
    """What a reader of such a dataset should know."""
    packages = {name: package_version(name) for name in ("mujoco", "gymnasium")}
    return {
        "protocol": "D4MORL, uniform preferences",
        "body": policy.body,
        "quality": quality,
        "trajectories": trajectories,
        "seed": seed,
        "behaviour": {"sha256": policy.sha256, **policy.details},
        "versions": versions() | packages,
    }
