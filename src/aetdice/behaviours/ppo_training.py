"""Train a behaviour policy: roll out, learn, normalise, and save in between."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from aetdice.behaviours import ppo
from aetdice.behaviours.agent import explore, init_agent
from aetdice.behaviours.behaviour import Behaviour
from aetdice.behaviours.card import measure, preference_grid
from aetdice.behaviours.experience import Experience, begin, collect
from aetdice.behaviours.normaliser import merge, nothing_seen
from aetdice.behaviours.recipe import Recipe
from aetdice.behaviours.state import State, read_state, save_state
from aetdice.envs.mujoco import BatchedBody, Body
from aetdice.errors import InputError
from aetdice.files import package_version, versions

SAVE_SECONDS = 30.0


Report = Callable[[int, int, Float[np.ndarray, " m"] | None, float], None]
"""Hears after every update: steps done, steps in all, and of the episodes that ended in it the mean
returns (None without any) and the share that ended upright."""


def train_behaviour(
    body: str,
    recipe: Recipe,
    out: Path | str | None = None,
    report: Report | None = None,
    threads: int | None = None,
) -> Behaviour:
    """A policy for every preference, with its card; written to `out`, if given.

    Beside `out` a checkpoint is kept while the training is under way. A training that was cut
    off goes on from it to the same policy.
    """
    path = None if out is None else Path(out)
    if path is not None and path.exists():
        raise InputError(f"{path} exists; delete it or choose another name")
    batch = BatchedBody(body, threads=threads)
    state = start(batch, recipe)
    checkpoint = None if path is None else path.with_name(f"{path.name}.checkpoint.npz")
    if checkpoint is not None and checkpoint.exists():
        state = read_state(checkpoint, state, batch.body, recipe)
    saved = time.monotonic()
    while state.iteration < recipe.iterations:
        state, experience = iterate(batch, state, recipe)
        if report is not None:
            returns = experience.returns.mean(axis=0) if len(experience.returns) else None
            upright = float(experience.upright.mean()) if len(experience.upright) else float("nan")
            report(state.iteration * recipe.batch, recipe.iterations * recipe.batch, returns, upright)
        if checkpoint is not None and time.monotonic() - saved > SAVE_SECONDS:
            save_state(checkpoint, state, batch.body, recipe)
            saved = time.monotonic()
    behaviour = finish(state, batch.body, recipe, threads)
    if path is not None and checkpoint is not None:
        behaviour.save(path)
        checkpoint.unlink(missing_ok=True)
    return behaviour


def start(batch: BatchedBody, recipe: Recipe) -> State:
    """A state before the first step."""
    body, objectives = batch.body, len(batch.objectives)
    agent = init_agent(
        body.observation_size + objectives,
        body.action_size,
        objectives,
        recipe.hidden,
        (recipe.first_std, recipe.smallest_std),
        jax.random.key(recipe.seed),
    )
    moments = ppo.optimiser(recipe).init(eqx.filter(agent, eqx.is_inexact_array))
    running = begin(batch, recipe, np.random.default_rng([recipe.seed, recipe.iterations]))
    return State(0, agent, moments, nothing_seen(body.observation_size), nothing_seen(objectives), running)


def iterate(batch: BatchedBody, state: State, recipe: Recipe) -> tuple[State, Experience]:
    """One round of steps and one update; observations are standardised by what was seen before it."""
    rng = np.random.default_rng([recipe.seed, state.iteration])
    centre, spread = (jnp.asarray(x, jnp.float32) for x in (state.seen.mean, state.seen.spread))

    def act(
        observations: Float[np.ndarray, "n o"],
        preferences: Float[np.ndarray, "n m"],
        noise: Float[np.ndarray, "n a"],
    ) -> tuple[Float[np.ndarray, "n a"], Float[np.ndarray, " n"]]:
        given, told, drawn = map(jnp.asarray, (observations, preferences, noise))
        return jax.device_get(explore(state.agent, given, told, centre, spread, drawn))

    experience = collect(batch, state.running, act, recipe, recipe.width(state.iteration), rng)
    earned = merge(state.earned, experience.discounted.reshape(-1, experience.discounted.shape[-1]))
    scaled = (experience.rewards / earned.spread).astype(np.float32)
    learnt = ppo.Batch(
        rewards=jnp.asarray(scaled),
        **{name: jnp.asarray(getattr(experience, name)) for name in ppo.Batch._fields if name != "rewards"},
    )
    order = np.stack([rng.permutation(recipe.batch) for _ in range(recipe.epochs)]).astype(np.int32)
    rate = jnp.asarray(recipe.rate(state.iteration), jnp.float32)
    agent, moments, _ = ppo.update(
        state.agent, state.moments, learnt, centre, spread, jnp.asarray(order), rate, recipe
    )
    seen = merge(state.seen, experience.observations.reshape(recipe.batch, -1))
    return State(state.iteration + 1, agent, moments, seen, earned, state.running), experience


def finish(state: State, body: Body, recipe: Recipe, threads: int | None = None) -> Behaviour:
    """The policy of a state, with its card."""
    grid = preference_grid(recipe.grid, len(body.objectives))
    actor = jax.device_get(state.agent.actor)
    bare = Behaviour(
        body=body.name,
        weights=actor.weights,
        biases=actor.biases,
        centre=state.seen.mean.astype(np.float32),
        spread=state.seen.spread.astype(np.float32),
        std=np.asarray(state.agent.std),
        preferences=grid,
        returns=np.zeros_like(grid),
        upright=np.zeros(len(grid)),
        details=_details(state, recipe),
    )
    returns, upright = measure(bare, grid, recipe.episodes, recipe.seed, threads)
    return dataclasses.replace(bare, returns=returns, upright=upright)


def _details(state: State, recipe: Recipe) -> dict[str, Any]:
    packages = {name: package_version(name) for name in ("mujoco", "gymnasium")}
    return {
        "method": "preference-conditioned PPO",
        "steps": state.iteration * recipe.batch,
        "seed": recipe.seed,
        "recipe": recipe.record(),
        "versions": versions() | packages,
        "device": jax.devices()[0].device_kind,
    }
