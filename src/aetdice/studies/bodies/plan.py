"""How much of the studies of the bodies to do: data, grids, seeds, networks."""

from dataclasses import dataclass, replace

from aetdice.config import TrainingConfig
from aetdice.envs.mujoco.body import HORIZON
from aetdice.studies.bodies.scenes import Convex, Efficiency, Scene

VALUE_GAIN = 0.1
"""Of AETDICE's ν; docs/bodies-study.md has the trials that chose it, and frequencies and warm-up below."""
CRITIC_AVERAGING = 0.95
"""Of ESR-IQL: with the usual 0.995 its values have not reached the start of 500 steps in 40,000 updates."""


@dataclass(frozen=True)
class Plan:
    """One study: its tables, and what is spent on each."""

    study: str
    scenes: tuple[Scene, ...]
    trajectories: int
    """Collected per body and quality, from the seed 0."""
    reference: int
    """The first so many of them give the constants of the normalisation, whatever the dataset's size."""
    betas: tuple[float, ...]
    """Of AETDICE, in exact units and in units of the data's own value where G is linear."""
    discounted_betas: tuple[float, ...]
    """Of OptiDICE and FairDICE, whose weights sum to one: the unit is the paper's own."""
    expectiles: tuple[float, ...]
    temperatures: tuple[float, ...]
    """Of ESR-IQL, in units of the data's own value."""
    baseline_steps: int
    """Updates of ν or of the values, for all but AETDICE."""
    baseline_batch: int
    """Fewer steps do for plain states, and the values of ESR-IQL travel one step of the horizon an update."""
    seeds: tuple[int, ...]
    episodes: int
    """Evaluation episodes per policy."""
    config: TrainingConfig
    horizon: int = HORIZON


def convex(body: str, qualities: tuple[str, ...], *scales: tuple[float, float]) -> tuple[Scene, ...]:
    return tuple(Convex(body, quality, scale) for scale in scales for quality in qualities)


def efficiency(qualities: tuple[str, ...]) -> tuple[Scene, ...]:
    """With the alive bonus as in the paper, and without; and a walker that falls, for safety to prevent."""
    walker, halfcheetah = (
        [Efficiency(body, quality, form) for form in (True, False) for quality in qualities]
        for body in ("walker2d", "halfcheetah")
    )
    return (*walker, Efficiency("walker2d", "unstable", True), *halfcheetah)


BOTH = ("expert", "amateur")
FULL = Plan(
    study="ant",
    scenes=convex("ant", BOTH, (1.0, 1.0), (2.0, 1.0)),
    trajectories=2000,
    reference=300,
    betas=(1e-3, 3e-4),
    discounted_betas=(1.0, 1e-1, 1e-2),
    expectiles=(0.85,),
    temperatures=(100.0, 30.0),
    baseline_steps=20_000,
    baseline_batch=512,
    seeds=(0, 1, 2, 3, 4),
    episodes=100,
    config=TrainingConfig(
        hidden=(256, 256),
        batch=1024,
        cloning_batch=512,
        value_steps=20_000,
        cloning_steps=32_000,
        holdout=0.1,
        warm_up=0.5,
        frequencies=3,
        value_frequencies=5,
        chunk=4_000,
    ),
)
QUICK = replace(
    FULL,
    scenes=convex("ant", ("expert",), (1.0, 1.0)),
    trajectories=300,
    discounted_betas=(1e-1,),
    temperatures=(100.0,),
    baseline_steps=6_000,
    baseline_batch=256,
    seeds=(0,),
    episodes=40,
    config=TrainingConfig(
        hidden=(256, 256),
        batch=256,
        value_steps=6_000,
        cloning_steps=8_000,
        holdout=0.1,
        warm_up=0.5,
        frequencies=3,
        value_frequencies=5,
        chunk=500,
    ),
)

PLANS: dict[str, tuple[Plan, Plan]] = {
    "ant": (FULL, QUICK),
    "walker2d": (
        replace(FULL, study="walker2d", scenes=convex("walker2d", BOTH, (1.0, 1.0))),
        replace(QUICK, study="walker2d", scenes=convex("walker2d", ("amateur",), (1.0, 1.0))),
    ),
    "cobb-douglas": (
        replace(FULL, study="cobb-douglas", scenes=efficiency(BOTH), betas=(1e-3, 5e-4, 2e-4, 1e-4)),
        replace(QUICK, study="cobb-douglas", scenes=efficiency(("amateur",))),
    ),
}
"""Full and quick, by study."""
