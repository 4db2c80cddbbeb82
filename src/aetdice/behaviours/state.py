"""What a training goes on from, and its checkpoint: plain arrays, and a description of whose they are."""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from aetdice.behaviours.agent import Agent
from aetdice.behaviours.experience import RunningEpisodes
from aetdice.behaviours.normaliser import Running
from aetdice.behaviours.recipe import Recipe
from aetdice.envs.mujoco import Body
from aetdice.errors import InputError
from aetdice.files import read_arrays, write_arrays


class State(NamedTuple):
    """Everything a training goes on from; random numbers depend on the seed and the iteration only."""

    iteration: int
    agent: Agent
    moments: Any
    seen: Running
    """Of observations."""
    earned: Running
    """Of discounted returns."""
    running: RunningEpisodes


def save_state(path: Path, state: State, body: Body, recipe: Recipe) -> None:
    write_arrays(path, {**_arrays(state), "description": _description(body, recipe)})


def read_state(path: Path, blank: State, body: Body, recipe: Recipe) -> State:
    try:
        found = read_arrays(path)
        same = np.array_equal(found.pop("description"), _description(body, recipe))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a checkpoint ({error}); delete it to begin again") from error
    if not same:
        raise InputError(f"{path} was left by another training; delete it or choose another name")
    iteration = int(found.pop("iteration"))
    leaves, structure = jax.tree.flatten((blank.agent, blank.moments))
    learner = [jnp.asarray(found[f"leaf{i}"]) for i in range(len(leaves))]
    agent, moments = jax.tree.unflatten(structure, learner)
    return State(
        iteration,
        agent,
        moments,
        Running(*(found[f"seen_{name}"] for name in Running._fields)),
        Running(*(found[f"earned_{name}"] for name in Running._fields)),
        RunningEpisodes(**{field.name: found[field.name] for field in dataclasses.fields(RunningEpisodes)}),
    )


def _arrays(state: State) -> dict[str, Shaped[np.ndarray, "..."]]:
    leaves = jax.tree.leaves((state.agent, state.moments))
    arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    arrays |= {f"seen_{name}": value for name, value in state.seen._asdict().items()}
    arrays |= {f"earned_{name}": value for name, value in state.earned._asdict().items()}
    running = {
        field.name: getattr(state.running, field.name) for field in dataclasses.fields(RunningEpisodes)
    }
    return {**arrays, **running, "iteration": np.array(state.iteration)}


def _description(body: Body, recipe: Recipe) -> Shaped[np.ndarray, " bytes"]:
    text = json.dumps({"body": body.name, "recipe": recipe.record()}, sort_keys=True)
    return np.frombuffer(text.encode(), dtype=np.uint8)
