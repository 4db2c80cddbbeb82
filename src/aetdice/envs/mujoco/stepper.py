"""Many bodies stepped at once by MuJoCo's threads."""

import numpy as np
from jaxtyping import Bool, Float

from aetdice.envs.batched import check_actions, check_count
from aetdice.envs.mujoco.body import NOISE, Body, find_body
from aetdice.envs.mujoco.models import engine, load_model
from aetdice.envs.mujoco.picture import Camera
from aetdice.envs.mujoco.rules import Move
from aetdice.envs.pixels import Image
from aetdice.errors import InputError
from aetdice.hardware import cores


class BatchedBody:
    """Episodes of one body as a `BatchedEnvironment`, stepped by `threads` threads.

    A step depends on positions, velocities and action alone (the constraint solver starts
    cold), so an episode is the same to the last bit in any batch and with any number of
    threads. A simulation that diverges ends the episode where it was before the step.
    """

    def __init__(
        self,
        body: Body | str,
        *,
        noise: float = NOISE,
        horizon: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.body = find_body(body) if isinstance(body, str) else body
        self.horizon = self.body.horizon if horizon is None else horizon
        self.objectives, self.action_shape = self.body.objectives, (self.body.action_size,)
        threads = cores() if threads is None else threads
        if self.horizon < 1:
            raise InputError(f"the horizon must be at least 1, not {self.horizon}")
        if not (np.isfinite(noise) and noise >= 0):
            raise InputError(f"the noise must not be negative, but is {noise}")
        if threads < 1:
            raise InputError(f"at least one thread is needed, not {threads}")
        mujoco = engine()
        self.noise, self.model = noise, load_model(self.body)
        self._workspaces = [mujoco.MjData(self.model) for _ in range(threads)]
        self._pool = mujoco.rollout.Rollout(nthread=0 if threads == 1 else threads)
        self.duration = float(self.model.opt.timestep) * self.body.frame_skip
        self._place(np.zeros((0, self.body.positions)), np.zeros((0, self.body.velocities)))
        self._camera: Camera | None = None

    @property
    def positions(self) -> Float[np.ndarray, "count q"]:
        """MuJoCo's qpos of every episode."""
        return self._positions.copy()

    @property
    def velocities(self) -> Float[np.ndarray, "count v"]:
        """MuJoCo's qvel of every episode."""
        return self._velocities.copy()

    def reset(self, count: int, seed: int) -> Float[np.ndarray, "count o"]:
        return self.reset_from(np.random.default_rng(seed), count)

    def reset_from(self, rng: np.random.Generator, count: int) -> Float[np.ndarray, "count o"]:
        """New episodes with start noise from a generator."""
        check_count(count)
        return self.reset_to(*self.body.starts(self.model.qpos0, rng, count, self.noise))

    def reset_to(
        self, positions: Float[np.ndarray, "count q"], velocities: Float[np.ndarray, "count v"]
    ) -> Float[np.ndarray, "count o"]:
        """New episodes that start in given states."""
        self._place(np.array(positions, dtype=np.float64), np.array(velocities, dtype=np.float64))
        return self.body.observe(self._positions, self._velocities)

    def step(
        self, actions: Float[np.ndarray, "count a"]
    ) -> tuple[Float[np.ndarray, "count o"], Float[np.ndarray, "count m"], Bool[np.ndarray, " count"]]:
        check_actions(len(self._ended), actions)
        rewards = np.zeros((len(self._ended), len(self.objectives)))
        moving = np.flatnonzero(~self._ended)
        if moving.size:
            rewards[moving] = self._advance(moving, self._checked(actions[moving]))
        return self.body.observe(self._positions, self._velocities), rewards, self._ended.copy()

    def picture(self) -> Image:
        """The first episode's body, followed by a camera."""
        self._camera = self._camera or Camera(self.model)
        return self._camera.picture(self._positions[0], self._velocities[0])

    def close(self) -> None:
        """Give the graphics library back what `picture` took."""
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _advance(self, rows: np.ndarray, actions: Float[np.ndarray, "n a"]) -> Float[np.ndarray, "n m"]:
        """Step some of the episodes and return their rewards."""
        before = self._positions[rows]
        after, velocities, diverged = self._simulate(before, self._velocities[rows], actions)
        self._positions[rows], self._velocities[rows] = after, velocities
        self._ended[rows] = self.body.ends(after, velocities) | diverged
        return self.body.rewards(Move(before, after, actions, self.duration))

    def _simulate(
        self,
        positions: Float[np.ndarray, "n q"],
        velocities: Float[np.ndarray, "n v"],
        actions: Float[np.ndarray, "n a"],
    ) -> tuple[Float[np.ndarray, "n q"], Float[np.ndarray, "n v"], Bool[np.ndarray, " n"]]:
        """Positions and velocities after a step, and which simulations diverged.

        MuJoCo resets a simulation that diverges, and with it its clock; the state before the
        step is returned in its place.
        """
        skip, q = self.body.frame_skip, self.body.positions
        state = np.concatenate([np.zeros((len(actions), 1)), positions, velocities], axis=1)
        control = np.repeat(actions[:, None], skip, axis=1)
        states, _ = self._pool.rollout(self.model, self._workspaces, state, control)
        final = states[:, -1]
        diverged = ~np.isfinite(final).all(axis=1) | ~np.isclose(final[:, 0], self.duration)
        final[diverged] = state[diverged]
        return final[:, 1 : 1 + q], final[:, 1 + q :], diverged

    def _checked(self, actions: Float[np.ndarray, "n a"]) -> Float[np.ndarray, "n a"]:
        if actions.shape[1:] != (self.body.action_size,):
            raise InputError(
                f"the {self.body.name} takes actions of {self.body.action_size} numbers, "
                f"not of shape {actions.shape[1:]}"
            )
        if not np.all(np.isfinite(actions)):
            raise InputError(f"the {self.body.name} was given an action that is not finite")
        return self.body.clip(actions)

    def _place(
        self, positions: Float[np.ndarray, "count q"], velocities: Float[np.ndarray, "count v"]
    ) -> None:
        self._positions, self._velocities = positions, velocities
        self._ended = np.zeros(len(positions), dtype=bool)
