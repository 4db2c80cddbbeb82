"""Hopper and Swimmer, which no study trains on; the reference is the best mixture of recorded episodes."""

import functools
from typing import NamedTuple

from aetdice.data import Episodes
from aetdice.datasets import collect_d4morl
from aetdice.envs.mujoco import BatchedBody
from aetdice.exact.mixtures import best_mixture
from aetdice.studies.strangers.problem import Extra, Problem, World, fair_objectives
from aetdice.studies.strangers.sampling import sampled_score

FAMILY = "MuJoCo"
EPISODES, EVALUATED = 500, 128


class Recording(NamedTuple):
    """Which body, by which behaviour, for how long."""

    body: str
    quality: str
    horizon: int


RECORDINGS = {
    "hopper": Recording("hopper", "amateur", 150),
    "swimmer": Recording("swimmer", "amateur", 150),
    "hopper-expert": Recording("hopper", "expert", 150),
    "swimmer-expert": Recording("swimmer", "expert", 150),
    "halfcheetah-expert": Recording("halfcheetah", "expert", 150),
}


def problems() -> list[Problem]:
    return [
        Problem(
            name,
            FAMILY,
            fair_objectives(),
            EPISODES,
            each._asdict(),
            functools.partial(_world, each),
            Extra("mujoco", "mujoco"),
        )
        for name, each in RECORDINGS.items()
    ]


def _world(recording: Recording) -> World:
    body = BatchedBody(recording.body, horizon=recording.horizon)

    def collect(episodes: int, seed: int) -> Episodes:
        return collect_d4morl(body, episodes, seed, recording.quality)

    return World(
        collect=collect,
        reference=lambda objective, dataset: best_mixture(objective, dataset.returns).value,
        score=sampled_score(body, EVALUATED),
    )
