"""From recorded taxi rides to a policy that acts: what the README shows, in functions."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

import aetdice

TAXI: dict[str, Any] = {
    "size": 3,
    "origins": ((0, 0), (2, 2)),
    "destinations": ((0, 1), (2, 1)),
    "start": (1, 1),
    "horizon": 6,
}
"""A town small enough to solve by hand."""


def learn(out: Path, settings: dict[str, Any]) -> aetdice.Run:
    """Train on rides that the environment has recorded; the folder keeps everything."""
    dataset: aetdice.Episodes = aetdice.load_dataset("fair-taxi", episodes=30, **TAXI)
    config = aetdice.TrainingConfig().adapted(settings)
    return aetdice.train(dataset, aetdice.esr(), beta=[0.1, 1.0], config=config, out=out, progress=False)


def report(run: aetdice.Run) -> str:
    """Scores of the selected policy and its twin, and how much of the gap to the optimum they leave."""
    env = aetdice.make_env("fair-taxi", **TAXI)
    learned, twin = run.evaluate(env, episodes=50)
    again: aetdice.Comparison = aetdice.evaluate(run, env, episodes=50)
    assert again.policy.score == learned.score
    optimum = aetdice.solve(aetdice.TabularMOMDP.from_environment(env), aetdice.make_objective("esr", env))
    interval: aetdice.Score = learned.scores["trained"]
    lines = [
        f"policy {learned.score:.3f} ({interval.low:.3f} to {interval.high:.3f})",
        f"twin {twin.score:.3f}, optimum {optimum.value:.3f}",
        f"trusted: {run.verdict.trusted}; {run.verdict.words}",
    ]
    return "\n".join(lines)


def ride(policy: aetdice.Policy) -> npt.NDArray[np.float64]:
    """One episode under Gymnasium; what it brought."""
    world: gymnasium.Env[Any, Any] = gymnasium.make("fair-taxi-v0", **TAXI)
    observation, _ = world.reset()
    policy.reset()
    for _ in range(policy.horizon):
        action: int | npt.NDArray[np.float64] = policy.act(observation)
        observation, reward, _, _, _ = world.step(action)
        policy.observe(np.asarray(reward))
    return policy.accrued


def ride_together(policy: aetdice.Policy, count: int) -> npt.NDArray[np.float64]:
    """The same in several episodes at once."""
    worlds = [gymnasium.make("fair-taxi-v0", **TAXI) for _ in range(count)]
    observations = np.stack([world.reset(seed=i)[0] for i, world in enumerate(worlds)])
    many: aetdice.VectorPolicy = policy.vectorised(count, seed=0)
    for _ in range(policy.horizon):
        steps = [world.step(action) for world, action in zip(worlds, many.act(observations), strict=True)]
        observations = np.stack([step[0] for step in steps])
        many.observe(np.stack([np.asarray(step[1]) for step in steps]))
    return many.accrued


def own_data(rides: int) -> aetdice.Episodes:
    """Logs of one's own: two steps each, two objectives."""
    rng = np.random.default_rng(0)
    return aetdice.Episodes.from_list(
        [
            aetdice.Episode(
                observations=rng.integers(0, 3, (3, 1)),
                actions=rng.integers(0, 2, 2),
                rewards=rng.random((2, 2)),
                terminated=False,
                truncated=True,
            )
            for _ in range(rides)
        ],
        objectives=("north", "south"),
    )


def main(out: Path, settings: dict[str, Any]) -> None:
    """All of it; mistakes are sentences."""
    run = learn(out / "run", settings)
    print(report(aetdice.load_run(out / "run")))
    run.policy.save(out / "policy.npz")
    policy = aetdice.load_policy(out / "policy.npz")
    print("rides", ride(policy).shape, ride_together(policy, 3).shape)
    env = aetdice.make_env("fair-taxi", **TAXI)
    evaluation: aetdice.Evaluation = aetdice.evaluate(policy, env, episodes=50)
    print("alone", f"{evaluation.score:.3f}", evaluation.returns.shape)
    try:
        aetdice.train(own_data(5), aetdice.ser(), algorithm="esr-iql", progress=False)
    except aetdice.InputError as error:
        print("refused:", error)
