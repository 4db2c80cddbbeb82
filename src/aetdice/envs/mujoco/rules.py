"""What each body sees, earns and survives: pure functions of positions, velocities and actions."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

ALIVE = 1.0
"""The bonus of every step survived."""
HOPPER_HEIGHT = 1.25
"""h0: where the hopper's torso starts."""


class Move(NamedTuple):
    """One step of n bodies: positions before and after, the clipped actions, the time it took."""

    before: Float[np.ndarray, "n q"]
    after: Float[np.ndarray, "n q"]
    actions: Float[np.ndarray, "n a"]
    duration: float

    def velocity(self, axis: int) -> Float[np.ndarray, " n"]:
        """(x_after - x_before) / dt."""
        return (self.after[:, axis] - self.before[:, axis]) / self.duration

    @property
    def effort(self) -> Float[np.ndarray, " n"]:
        """‖a‖², summed column by column so that it does not depend on n."""
        total = np.zeros(len(self.actions))
        for column in self.actions.T:
            total = total + column**2
        return total


def ant_rewards(move: Move) -> Float[np.ndarray, "n m"]:
    """(vx + 1 - .5‖a‖², vy + 1 - .5‖a‖²)."""
    other = ALIVE - 0.5 * move.effort
    return np.stack([move.velocity(0) + other, move.velocity(1) + other], axis=1)


def walker2d_rewards(move: Move) -> Float[np.ndarray, "n m"]:
    """(vx + 1, 5 - ‖a‖²)."""
    return np.stack([move.velocity(0) + ALIVE, 4 - move.effort + ALIVE], axis=1)


def halfcheetah_rewards(move: Move) -> Float[np.ndarray, "n m"]:
    """(min(4, vx) + 1, 5 - ‖a‖²)."""
    return np.stack([np.minimum(4, move.velocity(0)) + ALIVE, 4 - move.effort + ALIVE], axis=1)


def hopper_rewards(move: Move) -> Float[np.ndarray, "n m"]:
    """(1.5 vx + 1 - 2e-4‖a‖², 12 (h - h0) + 1 - 2e-4‖a‖²)."""
    other = ALIVE - 2e-4 * move.effort
    height = move.after[:, 1] - HOPPER_HEIGHT
    return np.stack([1.5 * move.velocity(0) + other, 12 * height + other], axis=1)


def swimmer_rewards(move: Move) -> Float[np.ndarray, "n m"]:
    """(vx, .3 - .15‖a‖²)."""
    return np.stack([move.velocity(0), 0.3 - 0.15 * move.effort], axis=1)


def ant_ends(
    positions: Float[np.ndarray, "n q"], velocities: Float[np.ndarray, "n v"]
) -> Bool[np.ndarray, " n"]:
    """The state is not finite."""
    return ~(np.isfinite(positions).all(axis=1) & np.isfinite(velocities).all(axis=1))


def walker2d_ends(
    positions: Float[np.ndarray, "n q"], velocities: Float[np.ndarray, "n v"]
) -> Bool[np.ndarray, " n"]:
    """Not (.8 < h < 2 and |angle| < 1)."""
    del velocities
    height, angle = positions[:, 1], positions[:, 2]
    return ~((height > 0.8) & (height < 2) & (np.abs(angle) < 1))


def halfcheetah_ends(
    positions: Float[np.ndarray, "n q"], velocities: Float[np.ndarray, "n v"]
) -> Bool[np.ndarray, " n"]:
    """|angle| ≥ 50°."""
    del velocities
    return ~(np.abs(positions[:, 2]) < np.deg2rad(50))


def hopper_ends(
    positions: Float[np.ndarray, "n q"], velocities: Float[np.ndarray, "n v"]
) -> Bool[np.ndarray, " n"]:
    """h ≤ .4, or the torso or a joint at 90° or more."""
    del velocities
    bent = np.abs(positions[:, 2:6]) < np.deg2rad(90)
    return ~((positions[:, 1] > 0.4) & bent.all(axis=1))


def never_ends(
    positions: Float[np.ndarray, "n q"], velocities: Float[np.ndarray, "n v"]
) -> Bool[np.ndarray, " n"]:
    """Never."""
    del velocities
    return np.zeros(len(positions), dtype=bool)
