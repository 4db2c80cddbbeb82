"""Cases that are trained: policies of several algorithms and settings, their twin, and half of each."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from aetdice.config import TrainingConfig
from aetdice.data import Episodes
from aetdice.datasets import load_dataset, make_env
from aetdice.envs.environment import Environment, FiniteEnvironment
from aetdice.evaluation import sample_returns
from aetdice.exact import TabularMOMDP, enumerate_space
from aetdice.learning.setup import readable
from aetdice.learning.training import train
from aetdice.objectives import Objective, bsr
from estimation_cases.case import Candidate, Case, Half, Truth, cases_of, parts

TRUTH_EPISODES = 4_000
CLONED = {"network.hidden": (64,), "extraction.steps": 1_000}
SHORT, SHORT_IQL = ({**CLONED, f"{stage}.steps": 1_000} for stage in ("dual", "iql"))
MAZE = {"network.observation_fourier": 3, "network.fourier": 3, "extraction.steps": 1_000}
MAZE_DUAL, MAZE_IQL = ({**MAZE, f"{stage}.steps": 3_000} for stage in ("dual", "iql"))
OBJECTIVES = {"ESR": bsr(0.0), "BSR": bsr(0.5), "SER": bsr(1.0)}
MAZE_OBJECTIVES = {label: bsr(alpha, threshold=0.01) for label, alpha in (("ESR", 0.0), ("SER", 1.0))}
MAZES = (("pointmaze-2obj", 0.0), ("pointmaze-3obj", 0.0), ("pointmaze-2obj", 0.1))
"""Two logs of each, one after the other."""


def trained(
    data: Episodes, objectives: dict[str, Objective], horizon: int, settings: dict[str, Any], **options: Any
) -> list[Candidate]:
    """Their twin, and a policy for each objective and setting, from one training."""
    given = TrainingConfig().adapted({**settings, "trainer.report": 0.0})
    config = readable(given, options.get("algorithm", "aetdice"))
    asked = list(objectives.values())
    run = train(data, asked, horizon=horizon, config=config, progress=False, **options)
    labels = {objective.name: label for label, objective in objectives.items()}
    found = [Candidate("twin", run.members[0].twin, list(objectives))]
    for member in run.members:
        shown = ", ".join(f"{name}={value:g}" for name, value in _own(member.params).items())
        name = f"{run.algorithm} {shown}".strip()
        found.append(Candidate(name, member.policy, [labels[member.objective.name]]))
    return found


def _own(params: dict[str, Any]) -> dict[str, float]:
    return {name: params[name] for name in ("beta", "expectile", "sample_size") if name in params}


def halves(candidates: list[Candidate]) -> list[Candidate]:
    """Half of the episodes by the first policy of every objective, half by the twin."""
    twin, found = candidates[0].policy, {}
    for candidate in candidates[1:]:
        label = candidate.labels[0]
        found.setdefault(label, Candidate("half twin", Half(candidate.policy, twin), [label]))
    return list(found.values())


def taxi_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """Layouts drawn at random, every other one with slip: AETDICE with three β, ESR-IQL, FairDICE."""
    for seed in numbers:
        rng = np.random.default_rng([19, seed])
        cells = [divmod(int(c), 5) for c in rng.permutation(25)[:5]]
        layout = {
            "size": 5,
            "origins": tuple(cells[:2]),
            "destinations": tuple(cells[2:4]),
            "start": cells[4],
        }
        slip = 0.1 * (seed % 2)
        env = make_env("fair-taxi", horizon=20, slip=slip, **layout)
        assert isinstance(env, FiniteEnvironment)
        data = load_dataset("fair-taxi", horizon=20, slip=slip, episodes=2_000, seed=seed, **layout)
        divided = parts(data, 0)
        candidates = trained(divided[0], OBJECTIVES, 20, SHORT, beta=(1e-3, 1e-2, 1e-1))
        candidates += halves(candidates)
        esr, ser = ({label: OBJECTIVES[label]} for label in ("ESR", "SER"))
        candidates += trained(divided[0], esr, 20, SHORT_IQL, algorithm="esr-iql")[1:]
        fair = trained(divided[0], ser, 20, SHORT, algorithm="fairdice")
        candidates.append(fair[1]._replace(labels=list(OBJECTIVES)))
        space = enumerate_space(TabularMOMDP.from_environment(env))
        name = f"layout {seed}, slip {slip:g}"
        yield from cases_of("fair-taxi", name, divided, candidates, OBJECTIVES, 20, Truth(space))


def maze_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """PointMaze with two and three goals, with and without slip, 150 steps; truth from sampled episodes.

    Whole episodes weighed, by two sample sizes; on the first two logs beside ESR-IQL, FairDICE and the
    AETDICE of single steps.
    """
    objectives = MAZE_OBJECTIVES
    for index in numbers:
        name, slip = MAZES[index // 2 % len(MAZES)]
        arguments: dict[str, Any] = {"slip": slip} if slip else {}
        env = make_env(name, horizon=150, **arguments)
        assert isinstance(env, Environment)
        divided = parts(load_dataset(name, episodes=1_000, seed=50 + index, horizon=150, **arguments), 0)
        candidates = trained(
            divided[0], objectives, 150, MAZE, algorithm="episode-weighting", sample_size=(0.03, 0.15)
        )
        candidates += halves(candidates)
        if index < 2:
            esr, ser = ({label: objectives[label]} for label in objectives)
            candidates += trained(divided[0], esr, 150, MAZE_IQL, algorithm="esr-iql")[1:]
            candidates += trained(divided[0], objectives, 150, MAZE_DUAL, algorithm="aetdice")[1:]
            candidates += trained(divided[0], ser, 150, MAZE_DUAL, algorithm="fairdice")[1:]
        yield from cases_of(
            "maze",
            f"{name}, slip {slip:g}, seed {50 + index}",
            divided,
            candidates,
            objectives,
            150,
            Truth(returns=lambda policy, env=env: sample_returns(policy, env, TRUTH_EPISODES, 99)),
        )


def body_cases(numbers: Iterable[int]) -> Iterator[Case]:
    """Short episodes of a hopper, which has too many dimensions for neighbours to be near."""
    horizon = 50
    for seed in numbers:
        env = make_env("d4morl-hopper", horizon=horizon)
        divided = parts(
            load_dataset("d4morl-hopper", episodes=300, seed=seed, quality="amateur", horizon=horizon), 0
        )
        label, objective = list(OBJECTIVES.items())[seed % 3]
        yield from cases_of(
            "body",
            f"hopper, seed {seed}",
            divided,
            trained(divided[0], {label: objective}, horizon, CLONED, algorithm="episode-weighting"),
            {label: objective},
            horizon,
            Truth(returns=lambda policy, env=env: sample_returns(policy, env, 256, 99)),
        )
