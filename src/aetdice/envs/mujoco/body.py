"""The five bodies of D4MORL, each one entry of a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from aetdice.envs.mujoco import rules
from aetdice.errors import InputError

HORIZON = 500
NOISE = 1e-3
Edits = Mapping[str, Mapping[str, str]]
"""For elements of the asset (a path in its XML): attributes and their new values."""


@dataclass(frozen=True)
class Body:
    """A MuJoCo body and its two objectives, as D4MORL (after PGMORL) defines them.

    The observation is the positions from `first_position` on, then the velocities, clipped to
    ±`velocity_limit`. `edits` turn Gymnasium's asset into D4MORL's.
    """

    name: str
    asset: str
    frame_skip: int
    positions: int
    velocities: int
    action_limits: tuple[float, ...]
    objectives: tuple[str, ...]
    rewards: Callable[[rules.Move], Float[np.ndarray, "n m"]]
    reward_bounds: tuple[tuple[float, ...], tuple[float, ...]]
    ends: Callable[[Float[np.ndarray, "n q"], Float[np.ndarray, "n v"]], Bool[np.ndarray, " n"]]
    first_position: int = 1
    velocity_limit: float = np.inf
    gaussian_velocities: bool = False
    """Whether start velocities are noise·N(0, 1) rather than U(-noise, noise)."""
    exact_height: bool = False
    """Whether the start height carries no noise."""
    edits: Edits = field(default_factory=dict)
    horizon: int = HORIZON

    @property
    def observation_size(self) -> int:
        return self.positions - self.first_position + self.velocities

    @property
    def action_size(self) -> int:
        return len(self.action_limits)

    def observe(
        self, positions: Float[np.ndarray, "n q"], velocities: Float[np.ndarray, "n v"]
    ) -> Float[np.ndarray, "n o"]:
        seen = np.clip(velocities, -self.velocity_limit, self.velocity_limit)
        return np.concatenate([positions[:, self.first_position :], seen], axis=1)

    def clip(self, actions: Float[np.ndarray, "n a"]) -> Float[np.ndarray, "n a"]:
        limits = np.array(self.action_limits)
        return np.clip(np.asarray(actions, dtype=np.float64), -limits, limits)

    def starts(
        self, rest: Float[np.ndarray, " q"], rng: np.random.Generator, count: int, noise: float
    ) -> tuple[Float[np.ndarray, "count q"], Float[np.ndarray, "count v"]]:
        """The position at rest plus noise; the first rows do not depend on `count`."""
        first, second = rng.spawn(2)
        positions = rest + noise * first.uniform(-1, 1, (count, self.positions))
        if self.exact_height:
            positions[:, 1] = rest[1]
        shape = (count, self.velocities)
        drawn = second.standard_normal(shape) if self.gaussian_velocities else second.uniform(-1, 1, shape)
        return positions, noise * drawn

    @property
    def page(self) -> str:
        """The body's page, with MO-Gymnasium's headings."""
        clipped = f" clipped to ±{self.velocity_limit:g}" if np.isfinite(self.velocity_limit) else ""
        limits = ", ".join(f"±{limit:g}" for limit in self.action_limits)
        velocities = "Gaussian" if self.gaussian_velocities else "uniform"
        return f"""
## Description
The {self.name} of D4MORL on Gymnasium's `{self.asset}`, {self.frame_skip} physics steps per action.

## Observation Space
{self.observation_size} numbers: positions from entry {self.first_position} on, then velocities{clipped}.

## Action Space
{self.action_size} torques in {limits}; actions outside are clipped first.

## Reward Space
{" and ".join(self.objectives)}: {self.rewards.__doc__}

## Starting State
At rest, with uniform noise on the positions and {velocities} noise on the velocities.

## Episode Termination
{self.ends.__doc__} A simulation that diverges ends the episode, too. Truncated after {self.horizon} steps.

## Arguments
- noise: the size of the noise at the start (default {NOISE:g})
- horizon: steps per episode (default {self.horizon})

## Credits
D4MORL (Zhu, Dang and Grover, 2023), after PGMORL (Xu et al., 2020).
"""


ANT = Body(
    name="ant",
    asset="ant.xml",
    frame_skip=5,
    positions=15,
    velocities=14,
    action_limits=(1.0,) * 8,
    objectives=("x-speed", "y-speed"),
    rewards=rules.ant_rewards,
    reward_bounds=((-np.inf, -np.inf), (np.inf, np.inf)),
    ends=rules.ant_ends,
    first_position=2,
    gaussian_velocities=True,
    edits={"actuator/motor": {"gear": "100"}},
)
WALKER2D = Body(
    name="walker2d",
    asset="walker2d.xml",
    frame_skip=4,
    positions=9,
    velocities=9,
    action_limits=(1.0,) * 6,
    objectives=("speed", "energy"),
    rewards=rules.walker2d_rewards,
    reward_bounds=((-np.inf, -1.0), (np.inf, 5.0)),
    ends=rules.walker2d_ends,
    velocity_limit=10.0,
    edits={"default/geom": {"density": "1500"}, "default/joint": {"damping": "3"}},
)
HALFCHEETAH = Body(
    name="halfcheetah",
    asset="half_cheetah.xml",
    frame_skip=5,
    positions=9,
    velocities=9,
    action_limits=(1.0,) * 6,
    objectives=("speed", "energy"),
    rewards=rules.halfcheetah_rewards,
    reward_bounds=((-np.inf, -1.0), (5.0, 5.0)),
    ends=rules.halfcheetah_ends,
    gaussian_velocities=True,
)
HOPPER = Body(
    name="hopper",
    asset="hopper.xml",
    frame_skip=5,
    positions=6,
    velocities=6,
    action_limits=(2.0, 2.0, 4.0),
    objectives=("speed", "height"),
    rewards=rules.hopper_rewards,
    reward_bounds=((-np.inf, -np.inf), (np.inf, np.inf)),
    ends=rules.hopper_ends,
    velocity_limit=10.0,
    exact_height=True,
    edits={
        "default/joint": {"damping": "40", "limited": "false"},
        "actuator/motor": {"gear": "200", "ctrlrange": "-2 2"},
        "actuator/motor[@joint='foot_joint']": {"gear": "300", "ctrlrange": "-4 4"},
    },
)
SWIMMER = Body(
    name="swimmer",
    asset="swimmer.xml",
    frame_skip=4,
    positions=5,
    velocities=5,
    action_limits=(1.0,) * 2,
    objectives=("speed", "energy"),
    rewards=rules.swimmer_rewards,
    reward_bounds=((-np.inf, 0.0), (np.inf, 0.3)),
    ends=rules.never_ends,
    first_position=2,
    edits={"actuator/motor": {"gear": "300"}},
)

BODIES: dict[str, Body] = {body.name: body for body in (ANT, WALKER2D, HALFCHEETAH, HOPPER, SWIMMER)}
"""Every body by its short name; to be listed here is to be registered as `d4morl-<name>-v0` and tested."""


def find_body(name: str) -> Body:
    """A body by its short name or its id."""
    short = name.removeprefix("d4morl-").removesuffix("-v0")
    if short not in BODIES:
        raise InputError(f"unknown body {name!r}; known: {', '.join(BODIES)}")
    return BODIES[short]
